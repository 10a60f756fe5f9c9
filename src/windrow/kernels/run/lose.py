"""What follows where a job goes before its tasks are done: they are left again, and start from zero in a later job."""

from __future__ import annotations

import numpy as np

from windrow.kernels.cluster.advance import stop
from windrow.kernels.cluster.state import CANCELLED, NOW, Ints
from windrow.kernels.jit import kernel
from windrow.kernels.run.start import set_free
from windrow.kernels.run.tables import (
    ACTIVE,
    ACTIVE_AT,
    ACTUAL,
    BEGUN,
    CHILDREN,
    EXPECTED,
    GONE,
    HEADER,
    HOME,
    IN_NO_JOB,
    JOBS,
    KILLS,
    LEAVING,
    LEFT,
    LONGER,
    NUMBER,
    OPEN,
    ORDER,
    PARENTS,
    PLAYED,
    REQUESTED,
    STAGE,
    STOPPING,
    TASK_WIDTH,
    TASKS_END,
    UNTIL,
    job,
)


@kernel
def lose(s: Ints, nobody: Ints, r: Ints, row: int) -> None:
    """The job was killed with open tasks. A play goes on task by task from then on, so it stops no other job."""
    r[KILLS] += 1
    expect_longer(s[NOW], r, row)
    if r[PLAYED] == 0:
        stop_descendants(s, nobody, r, row)


@kernel
def expect_longer(now: int, r: Ints, row: int) -> None:
    """A task lost while running takes at least twice as long as it had. In a play it keeps its turn all the same."""
    most = r[job(r, row) + REQUESTED]
    for v in range(HEADER, r[TASKS_END], TASK_WIDTH):
        if r[v + HOME] == row and r[v + UNTIL] > 0:
            longer = 2 * min(now - (r[v + UNTIL] - r[v + ACTUAL]), most)
            if longer > r[v + EXPECTED]:
                r[v + EXPECTED], r[LONGER] = longer, 1
                if r[PLAYED] == 0:
                    r[v + ORDER] = longer


@kernel
def stop_descendants(s: Ints, nobody: Ints, r: Ints, row: int) -> None:
    """The job was killed: jobs that wait for its open tasks, and have not begun, are stopped."""
    n = (r[TASKS_END] - HEADER) // TASK_WIDTH
    found, stack, top = np.zeros(n, dtype=np.bool_), np.empty(n, dtype=np.int64), 0
    for v in range(HEADER, r[TASKS_END], TASK_WIDTH):
        if r[v + HOME] == row:
            found[(v - HEADER) // TASK_WIDTH] = True
            stack[top] = v
            top += 1
    waits = np.zeros(r[JOBS], dtype=np.bool_)
    while top > 0:
        top -= 1
        v = stack[top]
        for i in range(r[v + CHILDREN], r[v + TASK_WIDTH + CHILDREN]):
            c = r[i]
            if not found[(c - HEADER) // TASK_WIDTH]:
                found[(c - HEADER) // TASK_WIDTH] = True
                stack[top] = c
                top += 1
                if r[c + HOME] >= 0:
                    waits[r[c + HOME]] = True
    for i in range(r[ACTIVE]):
        other = r[r[ACTIVE_AT] + i]
        j = job(r, other)
        if waits[other] and other != row and r[j + BEGUN] == 0 and r[j + STOPPING] == 0:
            r[j + STOPPING] = 1
            r[LEAVING] += 1
            stop(s, nobody, r[j + NUMBER], CANCELLED)


@kernel
def leave(r: Ints, row: int) -> None:
    """The job is gone; what it had not done is left again."""
    j = job(r, row)
    if r[j + OPEN] > 0:
        r[LEAVING] -= r[j + STOPPING]
        for v in range(HEADER, r[TASKS_END], TASK_WIDTH):
            if r[v + HOME] == row:
                r[v + HOME], r[v + UNTIL] = IN_NO_JOB, 0
                r[LEFT] += 1
                if r[v + PARENTS] == 0:
                    set_free(r, v)
    r[j + STAGE] = GONE
    i = r[ACTIVE_AT]
    while r[i] != row:
        i += 1
    r[ACTIVE] -= 1
    for k in range(i, r[ACTIVE_AT] + r[ACTIVE]):
        r[k] = r[k + 1]
