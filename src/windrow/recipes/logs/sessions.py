"""Sessions: jobs that one user submits together, and that resemble each other.

Law. Sessions change neither the number of jobs, nor their widths, run times and requests, nor how
these go together: they only change which jobs come at the same moment. So every mean of a log stays
as it was, while its queue grows long at times, as real ones do.

The number of jobs of a session follows a Pareto law (exponent 1.3), rounded down, between one and
`most`, with the mean that is set. Jobs are alike if their width and then their run time are: all
jobs are sorted by both, each blurred a little, and cut into sessions, which are shuffled. All jobs
of a session come when the first of them would have come, and belong to one user.

Four public logs (CTC-SP2, KTH-SP2, SDSC-BLUE, SDSC-SP2) have 1.6 to 2.2 jobs of one user and width
in a row, no more than 20 minutes apart, and 42 to 491 in the longest row.
"""

from dataclasses import replace

import numpy as np
from numpy.random import Generator

from windrow.model import Log
from windrow.model.graph import Ints
from windrow.recipes.logs.requests import draw_users

PARETO = 1.3
_WIDTH_BLUR = 0.5  # of the logarithm to base 2
_RUN_BLUR = 1.0  # of the natural logarithm


def in_sessions(log: Log, rng: Generator, *, mean: float, most: int, users: int) -> Log:
    """The log with its jobs in sessions of `mean` jobs on average, and at most `most`."""
    jobs = len(log)
    if mean <= 1 or jobs < 2:
        return log
    first = _first_jobs(rng, jobs, _scale(mean, most), most)
    width = np.round(np.log2(log.nodes) + _WIDTH_BLUR * rng.standard_normal(jobs))
    run = np.log1p(log.run_s) + _RUN_BLUR * rng.standard_normal(jobs)
    alike = np.split(np.lexsort((run, width)), first[1:])
    shuffled = [alike[k] for k in rng.permutation(len(alike))]
    order = np.concatenate(shuffled)
    sizes = np.array([len(each) for each in shuffled])
    begins = np.cumsum(sizes) - sizes
    at = begins * (jobs - 1) // max(1, int(begins[-1]))  # the last one at the end of the log
    return replace(
        log,
        submit_s=np.repeat(log.submit_s[at], sizes),
        nodes=log.nodes[order],
        requested_s=log.requested_s[order],
        run_s=log.run_s[order],
        user=np.repeat(draw_users(rng, len(sizes), users), sizes),
    )


def _first_jobs(rng: Generator, jobs: int, scale: float, most: int) -> Ints:
    """The places at which sessions begin, the first of them 0."""
    first = np.zeros(1, dtype=np.int64)
    while first[-1] < jobs:
        drawn = np.minimum(scale * (1 + rng.pareto(PARETO, jobs)), most)
        first = np.append(first, first[-1] + np.cumsum(np.maximum(1, drawn.astype(np.int64))))
    return first[first < jobs]


def _scale(mean: float, most: int) -> float:
    """Of the Pareto law that has this mean once it is cut: by bisection, as the mean grows with
    it."""
    size = np.arange(2, most + 1, dtype=np.float64)
    low = 1e-3
    high = float(most)
    for _ in range(60):
        scale = (low + high) / 2
        if 1 + np.minimum(1, (scale / size) ** PARETO).sum() < mean:
            low = scale
        else:
            high = scale
    return (low + high) / 2
