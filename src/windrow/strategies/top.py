"""TOP: which resources should run a task, so that it is likely enough that one of them ends it in
time.

The rule is `kernels.top`; here it is asked from Python, without loading numba.
"""

from collections.abc import Sequence
from math import inf

import numpy as np

from windrow.kernels.jit import in_python
from windrow.kernels.top import choose_copies


def top(
    end_s: Sequence[float],
    failure: Sequence[float],
    *,
    wanted: float = 0.95,
    deadline_s: float = inf,
    limit: int | None = None,
    held: Sequence[int] = (),
) -> list[int]:
    """The fewest resources, most reliable first, so that all fail with a probability of at most 1 -
    `wanted`.

    Resource r would end the task at end_s[r], and fails before with probability failure[r]; those
    that end after the deadline are left out. `held` run it anyway: they come first and count. If
    no set suffices, all that end in time, `limit` at most.
    """
    if limit is None:
        most = len(end_s)
    else:
        most = max(min(limit, len(end_s)), len(held))
    chosen = np.array([*held, *[-1] * (most - len(held))], dtype=np.int64)
    with in_python():
        times = np.array(end_s, dtype=np.float64)
        risks = np.array(failure, dtype=np.float64)
        found = choose_copies(times, risks, deadline_s, wanted, chosen, len(held))
    return [int(r) for r in chosen[:found]]
