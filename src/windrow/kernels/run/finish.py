"""What follows from the end of a task: in its job, for its children, for its job."""

from __future__ import annotations

from windrow.kernels.cluster import state as c
from windrow.kernels.cluster.advance import stop
from windrow.kernels.cluster.state import Ints
from windrow.kernels.jit import lean
from windrow.kernels.run import tables as t
from windrow.kernels.run.heap import pop
from windrow.kernels.run.lose import leave
from windrow.kernels.run.room import give
from windrow.kernels.run.start import offer, set_free, start_tasks


@lean
def next_end(r: Ints) -> int:
    """When the next attempt ends. Some is under way."""
    return r[r[t.ENDS_AT]] >> t.BITS


@lean
def end_first(r: Ints) -> int:
    """Take out the attempt that ends first, of equals the first task; its task, or -1 if it was
    lost with its job.

    Entries of lost attempts stay until they are met: their task is in no job, or its last attempt
    ends at another time.
    """
    key = pop(r, r[t.ENDS_AT], r[t.RUNNING_TASKS])
    r[t.RUNNING_TASKS] -= 1
    v = key & t.NAME
    is_lost = (r[v + t.HOME] < 0) | (r[v + t.UNTIL] != key >> t.BITS)
    if is_lost:
        return -1
    return v


@lean
def close(r: Ints, v: int) -> int:
    """Task `v` is done; where the row of its job begins."""
    j = t.job(r, r[v + t.HOME])
    r[v + t.HOME] = t.DONE
    r[t.OPEN_TASKS] -= 1
    r[j + t.OPEN] -= 1
    give(r, v, j)
    return j


@lean
def tell_children(r: Ints, v: int) -> bool:
    """Task `v` is done. Whether a task that is in no job is ready now."""
    freed = False
    for i in range(r[v + t.CHILDREN], r[v + t.TASK_WIDTH + t.CHILDREN]):
        child = r[i]
        r[child + t.PARENTS] -= 1
        if r[child + t.PARENTS] != 0:
            continue
        if r[child + t.HOME] == t.IN_NO_JOB:
            set_free(r, child)
            freed = True
        elif r[child + t.HOME] >= 0:
            home = t.job(r, r[child + t.HOME])
            if r[home + t.STAGE] == t.RUNNING:
                offer(r, child, home)
    return freed


@lean
def finish_first(s: Ints, no_starts: Ints, r: Ints) -> bool:
    """The attempt that ends first is over. Whether a task that is in no job is ready now.

    A job without open tasks gives its nodes back.
    """
    v = end_first(r)
    now = s[c.NOW]
    if v < 0:
        return False
    row = r[v + t.HOME]
    j = close(r, v)
    freed = tell_children(r, v)
    start_tasks(now, r, j)
    for i in range(r[v + t.CHILDREN], r[v + t.TASK_WIDTH + t.CHILDREN]):
        if r[r[i] + t.HOME] >= 0:
            start_tasks(now, r, t.job(r, r[r[i] + t.HOME]))
    if r[j + t.OPEN] == 0:
        r[t.LEAVING] -= r[j + t.STOPPING]
        r[j + t.STOPPING] = 1
        if r[j + t.NUMBER] == t.ELSEWHERE:
            r[t.CAP] -= 1
            leave(r, row)
        else:
            stop(s, no_starts, r[j + t.NUMBER], c.CANCELLED)
    return freed
