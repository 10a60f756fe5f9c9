"""What happens to a run between two decisions, in one call: the manager's core and its allocations, compiled.

The rules are those of `manager.core`, of `model.allocation` and of the driver in `lab.trial`, to the second and in the
same order; tests run both side by side. Campaigns of a hundred thousand trials need it. Runs that lose patience are
left out, and take the long way.

`go_on` returns when a decision is due, and goes on from there when called again: PHASE remembers where it was.
"""

from __future__ import annotations

import numpy as np

from windrow.kernels.cluster.advance import NEEDS_ROOM, REACHED, advance, has_room
from windrow.kernels.cluster.state import EVENTS_ROOM, FOREVER, NODES_ALL, NOW, Ints
from windrow.kernels.jit import kernel
from windrow.kernels.run.finish import finish_first, next_end
from windrow.kernels.run.hear import hear, take_news
from windrow.kernels.run.requests import next_ready, submit_single
from windrow.kernels.run.start import set_free
from windrow.kernels.run.tables import (
    ACTIVE,
    ATTEMPTS,
    ATTEMPTS_AT,
    CAP,
    EVENT,
    EVENTS,
    FREE_TASKS,
    HEADER,
    JOBS,
    JOBS_AT,
    LEAVING,
    LEFT,
    NEWS_AT,
    NODES_AT,
    OPEN_TASKS,
    PACKED,
    PARENTS,
    PHASE,
    POOL_AT,
    QUIET,
    READY_AT,
    RUNNING_TASKS,
    SINGLY,
    TASK_WIDTH,
    TASKS_END,
    USED_NODES,
    USED_POOL,
    WAITING_JOBS,
    Floats,
)

# Phases. QUIET: when a strategy has nothing to say.
BEGINNING, TASKS_END_NOW, JOBS_CHANGE, TIME_GOES_ON = range(4)
NEVER, WHILE_WAITING, WHILE_IN_SYSTEM = range(3)

COMPLETE, DECIDE, NO_ROOM, STUCK = range(4)


@kernel
def go_on(s: Ints, log: Ints, r: Ints, terms: Floats) -> int:
    """Go on until all tasks are done or a decision is due. NO_ROOM: some table or the state is too small; call again.

    STUCK: nothing will ever happen again, and tasks are left.
    """
    nobody = np.empty(0, dtype=np.int64)
    while True:
        if not has_space(s, r):
            return NO_ROOM
        due = r[PHASE] == BEGINNING
        if due:
            begin(r)
        elif r[PHASE] == TASKS_END_NOW and r[RUNNING_TASKS] > 0 and next_end(r) <= s[NOW]:
            due = finish_first(s, nobody, r)
        elif r[PHASE] == TASKS_END_NOW:
            r[PHASE] = JOBS_CHANGE
        elif r[PHASE] == JOBS_CHANGE and r[EVENT] < r[EVENTS]:
            hear(s, nobody, r)
            due = True
        elif r[OPEN_TASKS] == 0:
            return COMPLETE
        elif r[PHASE] == TIME_GOES_ON:
            outcome = pass_time(s, log, nobody, r)
            if outcome != REACHED:
                return outcome
        else:
            r[PHASE] = TIME_GOES_ON
        if due and is_due(r):
            if r[SINGLY] == 0:
                return DECIDE
            submit_ready(s, nobody, r, terms)


@kernel
def begin(r: Ints) -> None:
    """Tasks without parents are ready."""
    for v in range(HEADER, r[TASKS_END], TASK_WIDTH):
        if r[v + PARENTS] == 0:
            set_free(r, v)
    r[PHASE] = TIME_GOES_ON


@kernel
def has_space(s: Ints, r: Ints) -> bool:
    """Whether every table can take one step, whatever it does."""
    n = (r[TASKS_END] - HEADER) // TASK_WIDTH
    coming = min(n, r[CAP]) if r[SINGLY] == 1 else 0
    return (
        has_room(s, coming + 2)
        and s[EVENTS_ROOM] <= r[NEWS_AT + 1]
        and r[JOBS] + coming <= r[JOBS_AT + 1]
        and r[USED_POOL] + coming <= r[POOL_AT + 1]
        and r[ATTEMPTS] + n <= r[ATTEMPTS_AT + 1]
        and r[FREE_TASKS] + n <= r[READY_AT + 1]
        and (r[PACKED] == 0 or r[USED_NODES] + s[NODES_ALL] <= r[NODES_AT + 1])
    )


@kernel
def pass_time(s: Ints, log: Ints, nobody: Ints, r: Ints) -> int:
    """Up to the next end of an attempt, or to what happens to a job before. REACHED, NO_ROOM or STUCK."""
    until = next_end(r) if r[RUNNING_TASKS] > 0 else FOREVER
    outcome = advance(s, log, nobody, until)
    if outcome == NEEDS_ROOM:
        return NO_ROOM
    if outcome == REACHED and until == FOREVER:
        return STUCK
    take_news(s, r)
    r[PHASE] = TASKS_END_NOW
    return REACHED


@kernel
def is_due(r: Ints) -> bool:
    """Whether a decision is of use: tasks are left, the cap has room, no job is about to give tasks back.

    And the strategy would say something.
    """
    if r[ACTIVE] >= r[CAP] or r[LEFT] == 0 or r[LEAVING] > 0:
        return False
    if r[QUIET] == WHILE_WAITING and r[SINGLY] == 0:
        return r[WAITING_JOBS] == 0
    return r[QUIET] != WHILE_IN_SYSTEM or r[ACTIVE] == 0


@kernel
def submit_ready(s: Ints, nobody: Ints, r: Ints, terms: Floats) -> None:
    """Each ready task that is in no job becomes one, the longest first, while the cap allows."""
    while r[ACTIVE] < r[CAP]:
        v = next_ready(r)
        if v < 0:
            return
        submit_single(s, nobody, r, v, terms)
