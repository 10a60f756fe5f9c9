"""Which task starts next: the rules of `model.packing` and `model.allocation`.

Tasks wait in heaps: those that are in no job in one, those that may start in a job in one of that
job's own. The key is ORDER, turned round so that the longest goes first, and then the task, so that
equals go by number.
"""

from __future__ import annotations

from windrow.kernels.cluster.state import Ints
from windrow.kernels.jit import lean
from windrow.kernels.run import tables as t
from windrow.kernels.run.heap import pop, push
from windrow.kernels.run.room import take


@lean
def order_key(r: Ints, v: int) -> int:
    """Where the task is in the order of starting."""
    return ((t.LONG - r[v + t.ORDER]) << t.BITS) + v


@lean
def set_free(r: Ints, v: int) -> None:
    """The task is ready, and in no job.

    Its entry is not looked for when it goes into a job with others, or when it is expected to take
    longer: such an entry is stale, and dropped when it is met.
    """
    push(r, r[t.READY_AT], r[t.FREE_TASKS], order_key(r, v))
    r[t.FREE_TASKS] += 1


@lean
def offer(r: Ints, v: int, j: int) -> None:
    """The task may start in its job, when that has room."""
    push(r, r[t.POOL_AT] + r[j + t.AT], r[j + t.READY], order_key(r, v))
    r[j + t.READY] += 1


@lean
def open_job(r: Ints, j: int) -> None:
    """The job has its nodes: its list of tasks becomes the heap of those that may start.

    The heap grows where the list was read already, and never beyond that.
    """
    first = r[t.POOL_AT] + r[j + t.AT]
    least = t.LONG
    for i in range(first, first + r[j + t.SIZE]):
        v = r[i]
        least = min(least, r[v + t.UNITS])
        if r[v + t.PARENTS] == 0 and r[v + t.UNTIL] == 0:
            offer(r, v, j)
    r[j + t.LEAST] = least


@lean
def start_tasks(now: int, r: Ints, j: int) -> None:
    """Start what may and has room in the job, if that runs. What has none does not hold up those
    behind it."""
    if r[j + t.STAGE] != t.RUNNING or r[j + t.READY] == 0 or r[j + t.FREE] < r[j + t.LEAST]:
        return
    heap = r[t.POOL_AT] + r[j + t.AT]
    ready = r[j + t.READY]
    passed = 0
    end = heap + ready
    while ready > 0 and r[j + t.FREE] >= r[j + t.LEAST]:
        key = pop(r, heap, ready)
        ready -= 1
        if take(r, key & t.NAME, j):
            start_one(now, r, key & t.NAME, j)
        # it is kept behind the heap, which has become shorter by at least one for each of them
        else:
            passed += 1
            r[end - passed] = key
    for i in range(end - passed, end):
        push(r, heap, ready, r[i])
        ready += 1
    r[j + t.READY] = ready


@lean
def start_one(now: int, r: Ints, v: int, j: int) -> None:
    """Task `v` starts in the job, which has room for it."""
    r[v + t.UNTIL] = now + r[v + t.ACTUAL]
    r[j + t.BEGUN] = 1
    push(r, r[t.ENDS_AT], r[t.RUNNING_TASKS], (r[v + t.UNTIL] << t.BITS) + v)
    r[t.RUNNING_TASKS] += 1
