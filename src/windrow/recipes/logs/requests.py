"""What a generated log adds to its jobs: the time that was asked for, and who asked.

Requests. Users over-estimate, and choose few, round values. A job that runs r seconds asks for r (1
+ f u), with u uniform in [0, 1] (the f-model of Mu'alem and Feitelson, 2001), rounded up to the
next value of a short list (after the finding of Tsafrir, Etsion and Feitelson, 2005, that some
twenty values make most requests), but for no more than the queue's limit, where real requests pile
up too.

Users. The k-th user has a share in proportion to k ** -0.7. On four public logs (KTH-SP2, CTC-SP2,
SDSC-SP2, SDSC-BLUE) the busiest user has 4 to 8 % of the jobs and the ten busiest 20 to 37 %; with
200 users this law gives 7 % and 29 %.

Deliberately absent: sessions, and jobs of one user that resemble each other. A job's user is drawn
for itself.
"""

import numpy as np
from numpy.random import Generator

from windrow.model.graph import Ints
from windrow.model.workflow import Floats

_MINUTES = (5, 10, 15, 20, 30, 45)
_HOURS = (
    1,
    1.5,
    2,
    3,
    4,
    5,
    6,
    8,
    10,
    12,
    15,
    18,
    20,
    24,
    30,
    36,
    48,
    60,
    72,
    96,
    120,
    168,
    240,
    336,
    504,
    720,
)
ROUND_VALUES_S: tuple[int, ...] = tuple(60 * m for m in _MINUTES) + tuple(
    round(3600 * h) for h in _HOURS
)
USER_EXPONENT = 0.7


def requested_times(run_s: Ints, draw: Floats, overestimate: float, limit_s: int) -> Ints:
    """A round request for each job, never below its run. `draw` is uniform in [0, 1); no run may
    exceed `limit_s`."""
    values = np.array([v for v in ROUND_VALUES_S if v < limit_s] + [limit_s], dtype=np.int64)
    wanted = np.minimum(run_s * (1 + overestimate * draw), limit_s)
    return values[np.searchsorted(values, wanted)]


def overestimate_for(run_s: Ints, draw: Floats, weight: Ints, limit_s: int, ratio: float) -> float:
    """The over-estimate f at which requests, weighted, are `ratio` times the runs.

    If no f can do that (rounding alone is more, or every job asking for the limit is less) the
    nearest end of 0 to 1,000 is returned. Bisection: the requested sum never falls as f grows.
    """
    target = ratio * float((weight * run_s).sum())
    low = 0.0
    high = 1000.0
    for _ in range(40):
        middle = (low + high) / 2
        if float((weight * requested_times(run_s, draw, middle, limit_s)).sum()) < target:
            low = middle
        else:
            high = middle
    if high < 1e-6:
        return high
    return (low + high) / 2


def draw_users(rng: Generator, jobs: int, users: int) -> Ints:
    """The user of each job, 0 being the busiest."""
    share = np.arange(1, users + 1, dtype=np.float64) ** -USER_EXPONENT
    edges = np.cumsum(share / share.sum())
    return np.minimum(np.searchsorted(edges, rng.random(jobs), side="right"), users - 1)
