"""Small random workflows and streams for the tests of this folder."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from windrow.model import Adjacency, Workflow
from windrow_lab.stream.workload import Workload


@st.composite
def workflows(draw: st.DrawFn, *, most_tasks: int = 9, most_cores: int = 1) -> Workflow:
    n = draw(st.integers(1, most_tasks))
    # Task i may depend on any earlier one; the bits of a number say on which.
    masks = [draw(st.integers(0, 2**i - 1)) for i in range(n)]
    parents = [[p for p in range(i) if mask >> p & 1] for i, mask in enumerate(masks)]
    # Few different times, zero among them: ties are where two implementations part.
    times = draw(st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.5, 7.0]), min_size=n, max_size=n))
    cores = draw(st.lists(st.integers(1, most_cores), min_size=n, max_size=n))
    return Workflow(
        "small",
        ids=[f"t{i}" for i in range(n)],
        kinds=[f"k{i % 3}" for i in range(n)],
        runtime_s=np.array(times),
        cores=np.array(cores),
        parents=Adjacency.from_lists(parents),
    )


@st.composite
def streams(draw: st.DrawFn, *, most_cores: int = 1) -> tuple[Workload, list[float]]:
    """A stream and when its workflows arrive."""
    drawn = draw(st.lists(workflows(most_cores=most_cores), min_size=1, max_size=6))
    gaps = draw(
        st.lists(st.sampled_from([0.0, 1.0, 2.5, 6.0]), min_size=len(drawn), max_size=len(drawn))
    )
    sizes = np.zeros(len(drawn), dtype=np.int64)
    return Workload("small", tuple(drawn), sizes, np.array(gaps)), np.cumsum(gaps).tolist()


@st.composite
def orders(draw: st.DrawFn, workflow: Workflow) -> list[int]:
    """The tasks in some order in which they could complete."""
    left = set(range(len(workflow)))
    order: list[int] = []
    while left:
        able = [v for v in sorted(left) if not left & set(workflow.parents.of(v).tolist())]
        order.append(draw(st.sampled_from(able)))
        left.remove(order[-1])
    return order
