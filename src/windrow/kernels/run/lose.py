"""What follows where a job goes before its tasks are done: they are left again, and start from zero
in a later job."""

from __future__ import annotations

import numpy as np

from windrow.kernels.cluster import state as c
from windrow.kernels.cluster.advance import has_room, stop
from windrow.kernels.cluster.state import Ints
from windrow.kernels.jit import kernel, lean
from windrow.kernels.run import tables as t
from windrow.kernels.run.requests import put_in
from windrow.kernels.run.start import set_free


@lean
def lose(s: Ints, no_starts: Ints, r: Ints, row: int, by_node: bool) -> None:
    """The job was killed with open tasks, by its time limit or by a node that failed, which says
    nothing of tasks.

    A play continues task by task from then on, so it stops no other job; after a failed node, with
    the same job again.
    """
    if by_node and r[t.PLAYED] == 1 and may_submit_again(s, r):
        submit_again(s, no_starts, r, row)
        return
    r[t.KILLS] += 1
    if r[t.PLAYED] == 0:
        count_lost(s[c.NOW], r, row)
    if by_node:
        r[t.NODE_FAILURES] += 1
    else:
        expect_longer(s[c.NOW], r, row)
    if r[t.PLAYED] == 0:
        stop_descendants(s, no_starts, r, row)


@lean
def may_submit_again(s: Ints, r: Ints) -> bool:
    """Whether there is room for one more job, and for ends of tasks that were lost, which stay
    until they are met."""
    ends = r[t.RUNNING_TASKS] + r[t.OPEN_TASKS] + r[t.JOBS_AT + 1]
    return r[t.JOBS] < r[t.JOBS_AT + 1] and ends <= r[t.ENDS_AT + 1] and has_room(s, 2)


@lean
def submit_again(s: Ints, no_starts: Ints, r: Ints, row: int) -> None:
    """What the job of that row has not done becomes a job of the same size, with the same place in
    the pool."""
    j = t.job(r, row)
    new = t.job(r, r[t.JOBS])
    size = 0
    for i in range(t.JOB_WIDTH):
        r[new + i] = 0
    r[new + t.NODES], r[new + t.RUN], r[new + t.REQUESTED] = (
        r[j + t.NODES],
        r[j + t.RUN],
        r[j + t.REQUESTED],
    )
    for v in range(t.HEADER, r[t.TASKS_END], t.TASK_WIDTH):
        if r[v + t.HOME] == row:
            r[r[t.POOL_AT] + r[j + t.AT] + size] = v
            size = size + 1
            r[v + t.HOME], r[v + t.UNTIL] = r[t.JOBS], 0
    r[new + t.AT], r[new + t.SIZE], r[new + t.OPEN] = r[j + t.AT], size, size
    r[t.JOBS] += 1
    put_in(s, no_starts, r, r[t.JOBS] - 1)


@lean
def count_lost(now: int, r: Ints, row: int) -> None:
    """Add up for how long those attempts ran that are lost with the job."""
    for v in range(t.HEADER, r[t.TASKS_END], t.TASK_WIDTH):
        if r[v + t.HOME] == row and r[v + t.UNTIL] > 0:
            r[t.more(r, v) + t.LOST] += now - (r[v + t.UNTIL] - r[v + t.ACTUAL])


@lean
def expect_longer(now: int, r: Ints, row: int) -> None:
    """A task lost while running takes twice as long as it had, if jobs may. In a play it keeps its
    turn."""
    most = r[t.job(r, row) + t.REQUESTED]
    for v in range(t.HEADER, r[t.TASKS_END], t.TASK_WIDTH):
        if r[v + t.HOME] == row and r[v + t.UNTIL] > 0:
            ran = min(now - (r[v + t.UNTIL] - r[v + t.ACTUAL]), most)
            longer = min(2 * ran, max(ran, r[t.LONGEST]))
            if longer > r[v + t.EXPECTED]:
                r[v + t.EXPECTED], r[t.LONGER] = longer, 1
                if r[t.PLAYED] == 0:
                    r[v + t.ORDER] = longer


@kernel
def stop_descendants(s: Ints, no_starts: Ints, r: Ints, row: int) -> None:
    """The job was killed: jobs that wait for its open tasks, and have not started, are stopped."""
    n = (r[t.TASKS_END] - t.HEADER) // t.TASK_WIDTH
    found = np.zeros(n, dtype=np.bool_)
    stack = np.empty(n, dtype=np.int64)
    top = 0
    for v in range(t.HEADER, r[t.TASKS_END], t.TASK_WIDTH):
        if r[v + t.HOME] == row:
            found[(v - t.HEADER) // t.TASK_WIDTH] = True
            stack[top] = v
            top += 1
    waits = np.zeros(r[t.JOBS], dtype=np.bool_)
    while top > 0:
        top -= 1
        v = stack[top]
        for i in range(r[v + t.CHILDREN], r[v + t.TASK_WIDTH + t.CHILDREN]):
            child = r[i]
            if not found[(child - t.HEADER) // t.TASK_WIDTH]:
                found[(child - t.HEADER) // t.TASK_WIDTH] = True
                stack[top] = child
                top += 1
                if r[child + t.HOME] >= 0:
                    waits[r[child + t.HOME]] = True
    for i in range(r[t.ACTIVE]):
        other = r[r[t.ACTIVE_AT] + i]
        j = t.job(r, other)
        if waits[other] and other != row and r[j + t.BEGUN] == 0 and r[j + t.STOPPING] == 0:
            r[j + t.STOPPING] = 1
            r[t.LEAVING] += 1
            stop(s, no_starts, r[j + t.NUMBER], c.CANCELLED)


@lean
def leave(r: Ints, row: int) -> None:
    """The job is gone; what it had not done is left again."""
    j = t.job(r, row)
    if r[j + t.OPEN] > 0:
        r[t.LEAVING] -= r[j + t.STOPPING]
        for v in range(t.HEADER, r[t.TASKS_END], t.TASK_WIDTH):
            if r[v + t.HOME] == row:
                r[v + t.HOME], r[v + t.UNTIL] = t.IN_NO_JOB, 0
                r[t.LEFT] += 1
                if r[v + t.PARENTS] == 0:
                    set_free(r, v)
    r[j + t.STAGE] = t.GONE
    i = r[t.ACTIVE_AT]
    while r[i] != row:
        i += 1
    r[t.ACTIVE] -= 1
    for k in range(i, r[t.ACTIVE_AT] + r[t.ACTIVE]):
        r[k] = r[k + 1]
