"""What the schedulers are given, and what they fill in.

Processors are numbered cluster by cluster: those of cluster c from `first[c]` to before `first[c + 1]`. The edges into
a task stand side by side, from `start[task]` to before `start[task + 1]`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.jit import lean
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

    free: from when on a processor is idle for good. Idle gaps before that are chained, in order: `head` of a processor,
    `after` of a gap, -1 behind the last one; `gaps`: how many were made, and whether they are kept. touched: of each
    cluster, how many nodes must be looked at; the others have no tasks. least: of each, the two least of `free`. at:
    for the edges of a task, when it has all its data if it runs where that parent is. The rest is scratch space.
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
    own: Floats
    last: Floats
    via: Ints
    stamp: Ints


def empty_plan(given: Given, placements: int = 0) -> Plan:
    """Nothing placed yet. Gaps are kept where there is room for those of so many placements."""
    tasks, clusters, processors = len(given.run_s), len(given.first) - 1, int(given.first[-1])

    def ints(n: int) -> Ints:
        return np.full(n, -1, dtype=np.int64)

    alone = np.diff(given.first) == 1

    return Plan(
        processor=ints(tasks),
        cluster=ints(tasks),
        begin=np.zeros(tasks),
        end=np.zeros(tasks),
        free=np.zeros(processors),
        head=ints(processors),
        gap=np.zeros((placements, 2)),
        after=ints(placements),
        gaps=np.array([0, placements > 0]),
        touched=np.zeros(clusters, dtype=np.int64),
        least=np.stack((np.zeros(clusters), np.where(alone, np.inf, 0.0)), axis=1),
        at=np.zeros(len(given.parent)),
        own=np.zeros(processors),
        last=np.zeros((clusters, 2)),
        via=ints(clusters),
        stamp=ints(clusters),
    )


@lean
def way_s(given: Given, edge: int, c: int, d: int) -> float:
    """How long the data of an edge take from a processor of c to another one of d."""
    return given.latency_s[c, d] + given.size[edge] * given.s_per_byte[c, d]
