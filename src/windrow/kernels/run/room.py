"""Whether a job has room for a task: the rules of `model.packing`.

Room is counted in units: places where all tasks need alike, else cores over all nodes of a job. Where a run is PACKED,
that is not enough: cores and memory must be free on one node, the first that has them, or whole nodes be empty.

A job is given by where its row begins, here and in `start`.
"""

from __future__ import annotations

from windrow.kernels.cluster.state import Ints
from windrow.kernels.jit import lean
from windrow.kernels.run.tables import (
    FIRST_NODE,
    FREE,
    FREE_CORES,
    FREE_MEMORY,
    HOLDER,
    MEMORY,
    NODE_MEMORY,
    NODE_WIDTH,
    NODES,
    NODES_AT,
    PACKED,
    PER_NODE,
    PLACE,
    UNITS,
    USED_NODES,
    WHOLE,
    more,
)


@lean
def vacate(r: Ints, j: int) -> None:
    """The job gets its nodes, and all their room."""
    r[j + FREE] = r[j + NODES] * r[PER_NODE]
    if r[PACKED] == 0:
        return
    r[j + FIRST_NODE] = r[USED_NODES]
    r[USED_NODES] += r[j + NODES]
    first, last = nodes_of(r, j)
    for i in range(first, last, NODE_WIDTH):
        r[i + FREE_CORES], r[i + FREE_MEMORY], r[i + HOLDER] = r[PER_NODE], r[NODE_MEMORY], -1


@lean
def nodes_of(r: Ints, j: int) -> tuple[int, int]:
    """Where the job's nodes begin and end."""
    first = r[NODES_AT] + r[j + FIRST_NODE] * NODE_WIDTH
    return first, first + r[j + NODES] * NODE_WIDTH


@lean
def take(r: Ints, v: int, j: int) -> bool:
    """Give task `v` its room in the job. False where there is none."""
    fits = r[v + UNITS] <= r[j + FREE]
    if fits and r[PACKED] == 1:
        fits = put_on_nodes(r, v, j)
    if fits:
        r[j + FREE] -= r[v + UNITS]
    return fits


@lean
def put_on_nodes(r: Ints, v: int, j: int) -> bool:
    """Put task `v` on the first node of the job that has room for it, or on the first empty ones."""
    return put_on_one(r, v, j) if r[more(r, v) + WHOLE] == 0 else put_on_whole(r, v, j)


@lean
def put_on_one(r: Ints, v: int, j: int) -> bool:
    """Put task `v` on the first node of the job that has room for it."""
    cores, memory = r[v + UNITS], r[more(r, v) + MEMORY]
    first, last = nodes_of(r, j)
    for i in range(first, last, NODE_WIDTH):
        if r[i + FREE_CORES] >= cores and r[i + FREE_MEMORY] >= memory:
            r[i + FREE_CORES] -= cores
            r[i + FREE_MEMORY] -= memory
            r[more(r, v) + PLACE] = i - first
            return True
    return False


@lean
def put_on_whole(r: Ints, v: int, j: int) -> bool:
    """Put task `v` on the first empty nodes of the job, if there are enough."""
    empty, left = 0, r[more(r, v) + WHOLE]
    first, last = nodes_of(r, j)
    for i in range(first, last, NODE_WIDTH):
        empty += r[i + FREE_CORES] == r[PER_NODE]
    if empty < left:
        return False
    for i in range(first, last, NODE_WIDTH):
        if left > 0 and r[i + FREE_CORES] == r[PER_NODE]:
            r[i + FREE_CORES], r[i + HOLDER] = 0, v
            left -= 1
    return True


@lean
def give(r: Ints, v: int, j: int) -> None:
    """Task `v` has ended, and its room in the job is free again."""
    r[j + FREE] += r[v + UNITS]
    if r[PACKED] == 0:
        return
    first, last = nodes_of(r, j)
    if r[more(r, v) + WHOLE] == 0:
        r[first + r[more(r, v) + PLACE] + FREE_CORES] += r[v + UNITS]
        r[first + r[more(r, v) + PLACE] + FREE_MEMORY] += r[more(r, v) + MEMORY]
        return
    for i in range(first, last, NODE_WIDTH):
        if r[i + HOLDER] == v:
            r[i + HOLDER], r[i + FREE_CORES] = -1, r[PER_NODE]
