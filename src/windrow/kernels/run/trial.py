"""What happens to a run between two decisions, in one call: the manager's core and its allocations,
compiled.

The rules are those of `manager.core`, of `model.allocation` and of the driver in `trials.trial`, to
the second and in the same order; tests run both side by side. Campaigns of a hundred thousand
trials need it. Runs that lose patience are left out, and take the long way.

`go_on` returns when a decision is due, and continues from there when called again: PHASE remembers
where it was.
"""

from __future__ import annotations

import numpy as np

from windrow.kernels.cluster import state as c
from windrow.kernels.cluster.advance import NEEDS_ROOM, REACHED, advance, has_room
from windrow.kernels.cluster.state import Ints
from windrow.kernels.jit import kernel, lean
from windrow.kernels.run import tables as t
from windrow.kernels.run.finish import finish_first, next_end
from windrow.kernels.run.hear import hear, take_news
from windrow.kernels.run.requests import next_ready, submit_single
from windrow.kernels.run.start import set_free
from windrow.kernels.run.tables import Floats

# Phases. QUIET: when a strategy has nothing to say.
BEGINNING, TASKS_END_NOW, JOBS_CHANGE, TIME_GOES_ON = range(4)
NEVER, WHILE_WAITING, WHILE_IN_SYSTEM = range(3)

COMPLETE, DECIDE, NO_ROOM, STUCK, GROW = range(5)


@kernel
def go_on(s: Ints, log: Ints, r: Ints, terms: Floats) -> int:
    """Continue until all tasks are done or a decision is due. NO_ROOM: some table or the state is
    too small; call again.

    STUCK: nothing will ever happen again, and tasks are left. GROW: tasks join the run now, after
    all else; the caller takes them in and lets it begin again.
    """
    no_starts = np.empty(0, dtype=np.int64)
    while True:
        if not has_space(s, r):
            return NO_ROOM
        due = r[t.PHASE] == BEGINNING
        if due:
            begin(r)
        elif r[t.PHASE] == TASKS_END_NOW and r[t.RUNNING_TASKS] > 0 and next_end(r) <= s[c.NOW]:
            due = finish_first(s, no_starts, r)
        elif r[t.PHASE] == TASKS_END_NOW:
            r[t.PHASE] = JOBS_CHANGE
        elif r[t.PHASE] == JOBS_CHANGE and r[t.EVENT] < r[t.EVENTS]:
            hear(s, no_starts, r)
            due = True
        elif r[t.OPEN_TASKS] == 0 and r[t.GROWTH_S] == c.FOREVER:
            return COMPLETE
        elif r[t.PHASE] == TIME_GOES_ON:
            if s[c.NOW] >= r[t.GROWTH_S]:
                return GROW
            outcome = pass_time(s, log, no_starts, r)
            if outcome != REACHED:
                return outcome
        else:
            r[t.PHASE] = TIME_GOES_ON
        if due and is_due(r):
            if r[t.SINGLY] == 0:
                return DECIDE
            submit_ready(s, no_starts, r, terms)


@lean
def begin(r: Ints) -> None:
    """New tasks whose parents are done are ready."""
    for v in range(t.HEADER + r[t.NEW_TASKS] * t.TASK_WIDTH, r[t.TASKS_END], t.TASK_WIDTH):
        if r[v + t.PARENTS] == 0 and r[v + t.HOME] == t.IN_NO_JOB:
            set_free(r, v)
    r[t.PHASE] = TIME_GOES_ON


@lean
def has_space(s: Ints, r: Ints) -> bool:
    """Whether every table can take one step, whatever it does."""
    n = (r[t.TASKS_END] - t.HEADER) // t.TASK_WIDTH
    if r[t.SINGLY] == 1:
        coming = min(n, r[t.CAP])
    else:
        coming = 0
    return (
        has_room(s, coming + 2)
        and s[c.EVENTS_ROOM] <= r[t.NEWS_AT + 1]
        and r[t.JOBS] + coming <= r[t.JOBS_AT + 1]
        and r[t.USED_POOL] + coming <= r[t.POOL_AT + 1]
        and r[t.RUNNING_TASKS] + n <= r[t.ENDS_AT + 1]
        and r[t.FREE_TASKS] + n <= r[t.READY_AT + 1]
        and (r[t.PACKED] == 0 or r[t.USED_NODES] + s[c.NODES_ALL] <= r[t.NODES_AT + 1])
    )


@lean
def pass_time(s: Ints, log: Ints, no_starts: Ints, r: Ints) -> int:
    """Up to the next end of an attempt or tasks that join, or to what happens to a job before.

    REACHED, NO_ROOM or STUCK.
    """
    until = min(next_end(r) if r[t.RUNNING_TASKS] > 0 else c.FOREVER, r[t.GROWTH_S])
    outcome = advance(s, log, no_starts, until)
    if outcome == NEEDS_ROOM:
        return NO_ROOM
    if outcome == REACHED and until == c.FOREVER:
        return STUCK
    take_news(s, r)
    r[t.PHASE] = TASKS_END_NOW
    return REACHED


@lean
def is_due(r: Ints) -> bool:
    """Whether a decision is of use: tasks are left, the cap has room, no job is about to give tasks
    back.

    And the strategy would say something.
    """
    if r[t.ACTIVE] >= r[t.CAP] or r[t.LEFT] == 0 or r[t.LEAVING] > 0:
        return False
    if r[t.QUIET] == WHILE_WAITING and r[t.SINGLY] == 0:
        return r[t.WAITING_JOBS] == 0
    return r[t.QUIET] != WHILE_IN_SYSTEM or r[t.ACTIVE] == 0


@lean
def submit_ready(s: Ints, no_starts: Ints, r: Ints, terms: Floats) -> None:
    """Each ready task that is in no job becomes one, the longest first, while the cap allows."""
    while r[t.ACTIVE] < r[t.CAP]:
        v = next_ready(r)
        if v < 0:
            return
        submit_single(s, no_starts, r, v, terms)
