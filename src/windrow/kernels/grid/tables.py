"""What the schedulers are given, and what they fill in.

Processors are numbered cluster by cluster: those of cluster c from `first[c]` to before `first[c + 1]`. The edges into
a task stand side by side, from `start[task]` to before `start[task + 1]`.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windrow.model.graph import Ints

Floats = NDArray[np.float64]


class Given(NamedTuple):
    """run_s: of task on cluster. latency_s, s_per_byte: from cluster to cluster. parent, size: of each edge."""

    run_s: Floats
    first: Ints
    latency_s: Floats
    s_per_byte: Floats
    start: Ints
    parent: Ints
    size: Floats


class Plan(NamedTuple):
    """Where tasks are, and the room that is left on processors.

    free: from when on a processor is idle for good. Idle gaps before that are chained, in any order: `head` of a
    processor, `after` of a gap, -1 behind the last one; `gaps`: how many there are, and whether they are kept. touched:
    of each cluster, how many nodes must be looked at; the others are empty. least: of each, the two least of `free`.
    at: for each edge, when the task has all its data if it runs where that parent is.
    """

    processor: Ints
    cluster: Ints
    begin: Floats
    end: Floats
    free: Floats
    head: Ints
    gap: Floats
    after: Ints
    gaps: Ints
    touched: Ints
    least: Floats
    at: Floats


def empty_plan(given: Given, placements: int = 0) -> Plan:
    """Nothing placed yet. Gaps are kept where there is room for those of so many placements."""
    tasks, clusters, processors = len(given.run_s), len(given.first) - 1, int(given.first[-1])
    ints = partial(np.full, fill_value=-1, dtype=np.int64)
    where = ints(tasks), ints(tasks), np.zeros(tasks), np.zeros(tasks), np.zeros(processors)
    gaps = ints(processors if placements else 0), np.zeros((placements, 2)), ints(placements)
    least = np.stack((np.zeros(clusters), np.where(np.diff(given.first) == 1, np.inf, 0.0)), axis=1)
    flags, touched = np.array([0, placements > 0]), np.zeros(clusters, dtype=np.int64)
    return Plan(*where, *gaps, flags, touched, least, np.zeros(len(given.parent)))
