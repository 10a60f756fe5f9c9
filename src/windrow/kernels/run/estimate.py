"""How long the tasks of one job run, if nothing else ever happens: list scheduling with packing.

The rules are those of `model.packing`. Times are whole seconds. The papers' case, one core per node
and one task per node, is the general one with shape 1.
"""

from __future__ import annotations

import numpy as np

from windrow.kernels.cluster.state import Ints
from windrow.kernels.jit import kernel, lean
from windrow.kernels.run import tables as t
from windrow.kernels.run.finish import close, end_first, next_end, tell_children
from windrow.kernels.run.room import vacate
from windrow.kernels.run.start import open_job, start_tasks


@kernel
def run_times(r: Ints, members: Ints, nodes: int, answers: Ints) -> None:
    """Fill `answers[k]` with the time that these tasks take on nodes + k nodes, or -1 if some
    task does not fit.

    Cost per answer: tasks x log tasks; if PACKED, up to tasks x (log tasks + nodes) for each end
    of a task.
    """
    parents, heap = opened(r, members)
    for k in range(answers.shape[0]):
        end = lasting(r, members, parents, heap, nodes + k)
        answers[k] = end if r[t.OPEN_TASKS] == 0 else -1


@kernel
def latest_end(r: Ints, members: Ints, drawn: Ints) -> int:
    """How long these tasks run at worst on one node, however large, if all take what a row of
    `drawn` says.

    If some task finds no room for ever, the others count.
    """
    parents, heap = opened(r, members)
    worst = 0
    for d in range(drawn.shape[0]):
        for k in range(drawn.shape[1]):
            r[t.HEADER + k * t.TASK_WIDTH + t.ACTUAL] = drawn[d, k]
        worst = max(worst, lasting(r, members, parents, heap, 1))
    return worst


@kernel
def opened(r: Ints, members: Ints) -> tuple[Ints, Ints]:
    """A job of these tasks; all others count as done. How many of them each waits for, and the heap
    of those ready."""
    for v in range(t.HEADER, r[t.TASKS_END], t.TASK_WIDTH):
        r[v + t.HOME], r[v + t.PARENTS], r[v + t.UNTIL] = t.DONE, 0, 0
    for v in members:
        for i in range(r[v + t.CHILDREN], r[v + t.TASK_WIDTH + t.CHILDREN]):
            r[r[i] + t.PARENTS] += 1
    j = t.job(r, 0)
    pool = r[t.POOL_AT]
    n = members.shape[0]
    for i in range(j, j + t.JOB_WIDTH):
        r[i] = 0
    r[j + t.STAGE], r[j + t.SIZE] = t.RUNNING, n
    parents = np.empty(n, dtype=np.int64)
    for k in range(n):
        parents[k], r[pool + k] = r[members[k] + t.PARENTS], members[k]
    open_job(r, j)
    return parents, r[pool : pool + r[j + t.READY]].copy()


@lean
def lasting(r: Ints, members: Ints, parents: Ints, heap: Ints, nodes: int) -> int:
    """When the last of these tasks ends that finds room, if their job has this many nodes from time
    0 on.

    Tasks that end together make room together.
    """
    j = t.job(r, 0)
    pool = r[t.POOL_AT]
    now = 0
    n = members.shape[0]
    r[j + t.NODES], r[j + t.OPEN], r[j + t.READY], r[t.OPEN_TASKS], r[t.USED_NODES] = (
        nodes,
        n,
        heap.shape[0],
        n,
        0,
    )
    for k in range(n):
        r[members[k] + t.HOME], r[members[k] + t.PARENTS] = 0, parents[k]
    for k in range(heap.shape[0]):
        r[pool + k] = heap[k]
    vacate(r, j)
    start_tasks(now, r, j)
    while r[t.RUNNING_TASKS] > 0:
        now = next_end(r)
        together = True
        while together:
            v = end_first(r)
            close(r, v)
            tell_children(r, v)
            together = r[t.RUNNING_TASKS] > 0 and next_end(r) == now
        start_tasks(now, r, j)
    return now
