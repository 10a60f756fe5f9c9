"""What follows from the end of a task: in its job, for its children, for its job."""

from __future__ import annotations

from windrow.kernels.cluster.advance import stop
from windrow.kernels.cluster.state import CANCELLED, NOW, Ints
from windrow.kernels.jit import kernel, lean
from windrow.kernels.run.heap import pop
from windrow.kernels.run.room import give
from windrow.kernels.run.start import offer, set_free, start_tasks
from windrow.kernels.run.tables import (
    ATTEMPTS_AT,
    BITS,
    CHILDREN,
    DONE,
    ENDS_AT,
    HOME,
    IN_NO_JOB,
    LEAVING,
    NAME,
    NUMBER,
    OPEN,
    OPEN_TASKS,
    PARENTS,
    PLAYED,
    RUNNING,
    RUNNING_TASKS,
    STAGE,
    STOPPING,
    TASK_WIDTH,
    UNTIL,
    job,
)


@lean
def next_end(r: Ints) -> int:
    """When the next attempt ends. Some is under way."""
    return r[r[ENDS_AT]] >> BITS


@lean
def end_first(r: Ints) -> int:
    """Take out the attempt that ends first; its task, or -1 where it was lost with its job meanwhile.

    Entries of lost attempts stay until they are met: their task is in no job, or its last attempt ends at another time.
    """
    key = pop(r, r[ENDS_AT], r[RUNNING_TASKS])
    r[RUNNING_TASKS] -= 1
    v = key & NAME
    if r[PLAYED] == 0:
        v = r[r[ATTEMPTS_AT] + v]
    is_lost = (r[v + HOME] < 0) | (r[v + UNTIL] != key >> BITS)
    return -1 if is_lost else v


@lean
def close(r: Ints, v: int) -> int:
    """Task `v` is done; where the row of its job begins."""
    j = job(r, r[v + HOME])
    r[v + HOME] = DONE
    r[OPEN_TASKS] -= 1
    r[j + OPEN] -= 1
    give(r, v, j)
    return j


@lean
def tell_children(now: int, r: Ints, v: int, one_by_one: bool) -> bool:
    """Task `v` is done. Whether a task that is in no job is ready now.

    `one_by_one`: what may start in a child's job does so before the next child is told.
    """
    freed = False
    for i in range(r[v + CHILDREN], r[v + TASK_WIDTH + CHILDREN]):
        c = r[i]
        r[c + PARENTS] -= 1
        if r[c + PARENTS] == 0 and r[c + HOME] == IN_NO_JOB:
            set_free(r, c)
            freed = True
        elif r[c + PARENTS] == 0 and r[c + HOME] >= 0:
            home = job(r, r[c + HOME])
            if r[home + STAGE] == RUNNING:
                offer(r, c, home)
                if one_by_one:
                    start_tasks(now, r, home)
    return freed


@kernel
def finish_first(s: Ints, nobody: Ints, r: Ints) -> bool:
    """The attempt that ends first is over. Whether a task that is in no job is ready now.

    A job without open tasks gives its nodes back.
    """
    v, now = end_first(r), s[NOW]
    if v < 0:
        return False
    j = close(r, v)
    freed = tell_children(now, r, v, r[PLAYED] == 1)
    start_tasks(now, r, j)
    if r[PLAYED] == 0:
        for i in range(r[v + CHILDREN], r[v + TASK_WIDTH + CHILDREN]):
            if r[r[i] + HOME] >= 0:
                start_tasks(now, r, job(r, r[r[i] + HOME]))
    if r[j + OPEN] == 0:
        r[LEAVING] -= r[j + STOPPING]
        r[j + STOPPING] = 1
        stop(s, nobody, r[j + NUMBER], CANCELLED)
    return freed
