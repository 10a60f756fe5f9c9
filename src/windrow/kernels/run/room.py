"""Whether a job has room for a task: the rules of `model.packing`.

Room is counted in units: places if all tasks need alike, else cores over all nodes of a job.
If a run is PACKED, that is not enough: cores, memory and EXTRAS must be free on one node, the
first that has them, or whole nodes be empty.

A job is given by where its row begins, here and in `start`.
"""

from __future__ import annotations

from windrow.kernels.cluster.state import Ints
from windrow.kernels.jit import lean
from windrow.kernels.run import tables as t


@lean
def vacate(r: Ints, j: int) -> None:
    """The job gets its nodes, and all their room."""
    r[j + t.FREE] = r[j + t.NODES] * r[t.PER_NODE]
    if r[t.PACKED] == 0:
        return
    r[j + t.FIRST_NODE] = r[t.USED_NODES]
    r[t.USED_NODES] += r[j + t.NODES]
    first, last, width = nodes_of(r, j)
    for i in range(first, last, width):
        r[i + t.FREE_CORES], r[i + t.FREE_MEMORY], r[i + t.HOLDER] = (
            r[t.PER_NODE],
            r[t.NODE_MEMORY],
            -1,
        )
        for e in range(r[t.EXTRAS]):
            r[i + t.NODE_WIDTH + e] = r[t.extra(r, r[t.TASKS_END], e)]


@lean
def nodes_of(r: Ints, j: int) -> tuple[int, int, int]:
    """Where the job's nodes begin and end, and how wide the row of one is."""
    width = t.NODE_WIDTH + r[t.EXTRAS]
    first = r[t.NODES_AT] + r[j + t.FIRST_NODE] * width
    return first, first + r[j + t.NODES] * width, width


@lean
def take(r: Ints, v: int, j: int) -> bool:
    """Give task `v` its room in the job. False if there is none."""
    fits = r[v + t.UNITS] <= r[j + t.FREE]
    if fits and r[t.PACKED] == 1:
        fits = put_on_nodes(r, v, j)
    if fits:
        r[j + t.FREE] -= r[v + t.UNITS]
    return fits


@lean
def put_on_nodes(r: Ints, v: int, j: int) -> bool:
    """Put task `v` on the first node of the job that has room for it, or on the first empty
    ones."""
    if r[t.more(r, v) + t.WHOLE] == 0:
        return put_on_one(r, v, j)
    return put_on_whole(r, v, j)


@lean
def put_on_one(r: Ints, v: int, j: int) -> bool:
    """Put task `v` on the first node of the job that has room for it."""
    cores = r[v + t.UNITS]
    memory = r[t.more(r, v) + t.MEMORY]
    extras = r[t.EXTRAS]
    first, last, width = nodes_of(r, j)
    for i in range(first, last, width):
        if (
            r[i + t.FREE_CORES] >= cores
            and r[i + t.FREE_MEMORY] >= memory
            and (extras == 0 or has_extras(r, v, i))
        ):
            r[i + t.FREE_CORES] -= cores
            r[i + t.FREE_MEMORY] -= memory
            for e in range(extras):
                r[i + t.NODE_WIDTH + e] -= r[t.extra(r, v, e)]
            r[t.more(r, v) + t.PLACE] = i - first
            return True
    return False


@lean
def has_extras(r: Ints, v: int, i: int) -> bool:
    """Whether the node whose row begins at `i` has free what task `v` needs of the extras."""
    has_all = True
    for e in range(r[t.EXTRAS]):
        has_all &= r[i + t.NODE_WIDTH + e] >= r[t.extra(r, v, e)]
    return has_all


@lean
def put_on_whole(r: Ints, v: int, j: int) -> bool:
    """Put task `v` on the first empty nodes of the job, if there are enough."""
    empty = 0
    left = r[t.more(r, v) + t.WHOLE]
    first, last, width = nodes_of(r, j)
    for i in range(first, last, width):
        empty += r[i + t.FREE_CORES] == r[t.PER_NODE] and has_extras(r, v, i)
    if empty < left:
        return False
    for i in range(first, last, width):
        if left > 0 and r[i + t.FREE_CORES] == r[t.PER_NODE]:
            r[i + t.FREE_CORES], r[i + t.HOLDER] = 0, v
            left -= 1
    return True


@lean
def give(r: Ints, v: int, j: int) -> None:
    """Task `v` has ended, and its room in the job is free again."""
    r[j + t.FREE] += r[v + t.UNITS]
    if r[t.PACKED] == 0:
        return
    first, last, width = nodes_of(r, j)
    if r[t.more(r, v) + t.WHOLE] == 0:
        i = first + r[t.more(r, v) + t.PLACE]
        r[i + t.FREE_CORES] += r[v + t.UNITS]
        r[i + t.FREE_MEMORY] += r[t.more(r, v) + t.MEMORY]
        for e in range(r[t.EXTRAS]):
            r[i + t.NODE_WIDTH + e] += r[t.extra(r, v, e)]
        return
    for i in range(first, last, width):
        if r[i + t.HOLDER] == v:
            r[i + t.HOLDER], r[i + t.FREE_CORES] = -1, r[t.PER_NODE]
