"""What crosses the link to home, in the four ways of Bent's figure 3.3, by his formulas."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.model import File, Task, Workflow
from windrow.storage.staging import SCOPES, Rates, moves, with_moves


def pipelines(width: int, depth: int, batch: int, pipe: int, end: int) -> Workflow:
    """Chains whose tasks all read one batch file a level, and hand a file on; the ends are endpoint
    data."""
    tasks, files = [], [File(f"b{d}", batch) for d in range(depth)]
    for w in range(width):
        names = [f"f{w}.{d}" for d in range(depth + 1)]
        files += [File(name, end if d in (0, depth) else pipe) for d, name in enumerate(names)]
        for d in range(depth):
            parents = (f"t{w}.{d - 1}",) if d else ()
            tasks.append(
                Task(f"t{w}.{d}", 10.0, f"k{d}", parents, (names[d], f"b{d}"), (names[d + 1],))
            )
    return Workflow.from_tasks("w", tasks, files)


@given(
    st.integers(2, 9), st.integers(2, 4), st.integers(1, 99), st.integers(1, 99), st.integers(1, 99)
)
def test_what_crosses_the_link_is_what_bent_counts(
    width: int, depth: int, b: int, p: int, e: int
) -> None:
    workflow = pipelines(width, depth, b, p, e)
    batch, private, ends = depth * b, 2 * (depth - 1) * p, 2 * e
    law = {
        "remote": width * (batch + private + ends),
        "localised": width * (batch + ends),
        "cached": batch + width * (private + ends),
        "both": batch + width * ends,
    }
    for scope, (_, is_cached) in SCOPES.items():
        own, fetched, near, total = moves(workflow, scope)
        assert total == law[scope]
        slower, home = with_moves(workflow, Rates(2.0, 50.0), scope, slots=3)
        assert home == law[scope]
        for task in range(len(workflow)):
            stage = task % depth
            ours = b + (e if stage == 0 else p) + (e if stage == depth - 1 else p)
            assert own[task] + near[task] == ours
            assert fetched[task] == (b if is_cached else 0)
            far = own[task] * min(width, 3) + fetched[task]
            assert slower.runtime_s[task] == pytest.approx(10 + far / 2 + near[task] / 50)
