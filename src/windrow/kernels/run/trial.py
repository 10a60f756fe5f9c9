"""What happens to a run between two decisions, in one call: the manager's core and its allocations, compiled.

The rules are those of `manager.core`, of `model.allocation` and of the driver in `lab.trial`, to the
second and in the same order; tests run both side by side. Campaigns of a hundred thousand trials need it. Two things
are left out, and such trials take the long way: tasks that differ in what they need, and runs that lose patience.

Tables have one row for each task, for each job of this run in the order of submission, and for each attempt at a task.

`go_on` returns when a decision is due, and goes on from there when called again: PHASE remembers where it was.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.cluster.advance import NEEDS_ROOM, REACHED, advance, has_room, stop, submit
from windrow.kernels.cluster.state import (
    CANCELLED,
    E_JOB,
    E_KIND,
    EVENT_WIDTH,
    EVENTS_AT,
    EVENTS_ROOM,
    FOREVER,
    HAPPENED,
    KILLED_EVENT,
    NOW,
    STARTED,
    Ints,
)
from windrow.kernels.jit import kernel
from windrow.kernels.run.estimate import pop, push
from windrow.kernels.run.play import request

Floats = NDArray[np.float64]

# A task. HOME is the row of its job, or one of the two below. SINCE and UNTIL are its last attempt's.
EXPECTED, ACTUAL, PARENTS, HOME, SINCE, UNTIL = range(6)
TASK_WIDTH = 6
IN_NO_JOB, DONE = -1, -2

# A job. PLACES is how many more tasks may start, AT where its tasks are, READY how many of them may start.
NODES, REQUESTED, RUN, STAGE, OPEN, STOPPING, BEGUN, SUBMITTED, BEGAN, EXPECTED_END, PLACES, AT, READY, SIZE = range(14)
JOB_WIDTH = 14
WAITING, RUNNING, GONE = range(3)

# An attempt.
TASK, JOB = range(2)

# Counts that change.
PHASE, EVENT, EVENTS, JOBS, ACTIVE, WAITING_JOBS, LEFT, LEAVING, OPEN_TASKS = range(9)
ATTEMPTS, RUNNING_TASKS, FREE_TASKS, USED_AT, LONGER, QUEUE_WAIT, NODE_S, KILLED_JOBS = range(9, 17)
# Rules that do not.
CAP, FIRST_CLIENT, OWNER, PER_NODE, QUIET, BY_TASK, BUSY_IS_REQUEST = range(17, 24)
BOOK_WIDTH = 24

# Phases. QUIET: when a strategy has nothing to say.
BEGINNING, TASKS_END, JOBS_CHANGE, TIME_GOES_ON = range(4)
NEVER, WHILE_WAITING, WHILE_IN_SYSTEM = range(3)

COMPLETE, DECIDE, NO_ROOM, STUCK = range(4)

_TASKS = 1 << 20  # more than a workflow of such a trial has; keys of heaps are a time times this, plus a number
_LONG = 1 << 40  # longer than any task


class Tables(NamedTuple):
    """The run. `ends` is a heap of attempts by their end, `ready` one of the tasks that are ready and in no job.

    `pool` holds, from a job's AT on, its tasks: a list while it waits, then a heap of those that may start.
    """

    first_child: Ints
    children: Ints
    tasks: Ints
    jobs: Ints
    active: Ints
    attempts: Ints
    ends: Ints
    ready: Ints
    pool: Ints
    happened: Ints
    book: Ints


@kernel
def go_on(s: Ints, log: Ints, t: Tables, terms: Floats) -> int:
    """Go on until all tasks are done or a decision is due. NO_ROOM: some table or the state is too small; call again.

    STUCK: nothing will ever happen again, and tasks are left.
    """
    book, nobody = t.book, np.empty(0, dtype=np.int64)
    while True:
        if not has_space(s, t):
            return NO_ROOM
        due = book[PHASE] == BEGINNING
        if due:
            begin(t)
        elif book[PHASE] == TASKS_END and book[RUNNING_TASKS] > 0 and t.ends[0] // _TASKS <= s[NOW]:
            due = end_attempt(s, nobody, t)
        elif book[PHASE] == TASKS_END:
            book[PHASE] = JOBS_CHANGE
        elif book[PHASE] == JOBS_CHANGE and book[EVENT] < book[EVENTS]:
            hear(s, nobody, t)
            due = True
        elif book[OPEN_TASKS] == 0:
            return COMPLETE
        elif book[PHASE] == TIME_GOES_ON:
            outcome = pass_time(s, log, nobody, t)
            if outcome != REACHED:
                return outcome
        else:
            book[PHASE] = TIME_GOES_ON
        if due and is_due(book):
            if book[BY_TASK] == 0:
                return DECIDE
            submit_ready(s, nobody, t, terms)


@kernel
def begin(t: Tables) -> None:
    """Tasks without parents are ready."""
    for v in range(t.tasks.shape[0]):
        if t.tasks[v, PARENTS] == 0:
            set_free(t, v)
    t.book[PHASE] = TIME_GOES_ON


@kernel
def has_space(s: Ints, t: Tables) -> bool:
    """Whether every table can take one step, whatever it does."""
    book, n = t.book, t.tasks.shape[0]
    coming = min(n, book[CAP]) if book[BY_TASK] == 1 else 0
    return (
        has_room(s, coming + 2)
        and s[EVENTS_ROOM] <= t.happened.shape[0]
        and book[JOBS] + coming <= t.jobs.shape[0]
        and book[USED_AT] + coming <= t.pool.shape[0]
        and book[ATTEMPTS] + n <= t.attempts.shape[0]
        and book[FREE_TASKS] + n <= t.ready.shape[0]
    )


@kernel
def pass_time(s: Ints, log: Ints, nobody: Ints, t: Tables) -> int:
    """Up to the next end of an attempt, or to what happens to a job before. REACHED, NO_ROOM or STUCK."""
    book = t.book
    until = t.ends[0] // _TASKS if book[RUNNING_TASKS] > 0 else FOREVER
    outcome = advance(s, log, nobody, until)
    if outcome == NEEDS_ROOM:
        return NO_ROOM
    if outcome == REACHED and until == FOREVER:
        return STUCK
    book[EVENT], book[EVENTS] = 0, s[HAPPENED]
    for e in range(s[HAPPENED]):
        for i in range(EVENT_WIDTH):
            t.happened[e, i] = s[s[EVENTS_AT] + e * EVENT_WIDTH + i]
    s[HAPPENED] = 0
    book[PHASE] = TASKS_END
    return REACHED


@kernel
def is_due(book: Ints) -> bool:
    """Whether a decision is of use: tasks are left, the cap has room, no job is about to give tasks back.

    And the strategy would say something.
    """
    if book[ACTIVE] >= book[CAP] or book[LEFT] == 0 or book[LEAVING] > 0:
        return False
    if book[QUIET] == WHILE_WAITING and book[BY_TASK] == 0:
        return book[WAITING_JOBS] == 0
    return book[QUIET] != WHILE_IN_SYSTEM or book[ACTIVE] == 0


@kernel
def end_attempt(s: Ints, nobody: Ints, t: Tables) -> bool:
    """The attempt that ends first is over. Whether that may make a decision due: it does where it frees a task."""
    tasks, jobs, book = t.tasks, t.jobs, t.book
    key = pop(t.ends, book[RUNNING_TASKS])
    book[RUNNING_TASKS] -= 1
    v, j = t.attempts[key % _TASKS, TASK], t.attempts[key % _TASKS, JOB]
    if jobs[j, STAGE] != RUNNING:
        return False  # it was lost with its job
    tasks[v, UNTIL], tasks[v, HOME] = key // _TASKS, DONE
    book[OPEN_TASKS] -= 1
    jobs[j, OPEN] -= 1
    jobs[j, PLACES] += 1
    freed = tell_children(t, v)
    start_tasks(s[NOW], t, j)
    for c in t.children[t.first_child[v] : t.first_child[v + 1]]:
        if tasks[c, HOME] >= 0:
            start_tasks(s[NOW], t, tasks[c, HOME])
    if jobs[j, OPEN] == 0:
        book[LEAVING] -= jobs[j, STOPPING]
        jobs[j, STOPPING] = 1
        stop(s, nobody, book[FIRST_CLIENT] - j, CANCELLED)
    return freed


@kernel
def tell_children(t: Tables, v: int) -> bool:
    """Task `v` is done. Whether a task that is in no job is ready now."""
    freed = False
    for c in t.children[t.first_child[v] : t.first_child[v + 1]]:
        t.tasks[c, PARENTS] -= 1
        home = t.tasks[c, HOME]
        if t.tasks[c, PARENTS] == 0 and home == IN_NO_JOB:
            set_free(t, c)
            freed = True
        elif t.tasks[c, PARENTS] == 0 and t.jobs[home, STAGE] == RUNNING:
            offer(t, home, c)
    return freed


@kernel
def order_key(tasks: Ints, v: int) -> int:
    """Where the task is in the order of starting: the longest first, then by number."""
    return (_LONG - tasks[v, EXPECTED]) * _TASKS + v


@kernel
def set_free(t: Tables, v: int) -> None:
    """The task is ready, and in no job. Entries of tasks that have gone into jobs stay until they are met."""
    push(t.ready, t.book[FREE_TASKS], order_key(t.tasks, v))
    t.book[FREE_TASKS] += 1


@kernel
def offer(t: Tables, j: int, v: int) -> None:
    """The task may start in its job, when that has room."""
    at = t.jobs[j, AT]
    push(t.pool[at : at + t.jobs[j, SIZE]], t.jobs[j, READY], order_key(t.tasks, v))
    t.jobs[j, READY] += 1


@kernel
def start_tasks(now: int, t: Tables, j: int) -> None:
    """Start what may and has room in job `j`, where that runs."""
    tasks, jobs, book = t.tasks, t.jobs, t.book
    if jobs[j, STAGE] != RUNNING:
        return
    heap = t.pool[jobs[j, AT] : jobs[j, AT] + jobs[j, SIZE]]
    while jobs[j, READY] > 0 and jobs[j, PLACES] > 0:
        v = pop(heap, jobs[j, READY]) % _TASKS
        jobs[j, READY] -= 1
        jobs[j, PLACES] -= 1
        jobs[j, BEGUN] = 1
        tasks[v, SINCE], tasks[v, UNTIL] = now, FOREVER
        a = book[ATTEMPTS]
        t.attempts[a, TASK], t.attempts[a, JOB] = v, j
        push(t.ends, book[RUNNING_TASKS], (now + tasks[v, ACTUAL]) * _TASKS + a)
        book[RUNNING_TASKS] += 1
        book[ATTEMPTS] += 1


@kernel
def hear(s: Ints, nobody: Ints, t: Tables) -> None:
    """A job of this run started, or is gone."""
    book, now = t.book, s[NOW]
    kind, j = t.happened[book[EVENT], E_KIND], book[FIRST_CLIENT] - t.happened[book[EVENT], E_JOB]
    book[EVENT] += 1
    if kind == STARTED:
        begin_job(now, t, j)
        start_tasks(now, t, j)
        return
    if t.jobs[j, STAGE] == RUNNING:
        book[NODE_S] += t.jobs[j, NODES] * (now - t.jobs[j, BEGAN])
        book[KILLED_JOBS] += kind == KILLED_EVENT and t.jobs[j, OPEN] > 0
    else:
        book[WAITING_JOBS] -= 1
    if kind == KILLED_EVENT:
        expect_longer(now, t, j)
        stop_descendants(s, nobody, t, j)
    leave(t, j)


@kernel
def begin_job(now: int, t: Tables, j: int) -> None:
    """Job `j` has its nodes; its tasks whose parents are done may start."""
    jobs, book = t.jobs, t.book
    book[WAITING_JOBS] -= 1
    book[QUEUE_WAIT] += now - jobs[j, SUBMITTED]
    end = now
    for i in range(book[ACTIVE]):
        if jobs[t.active[i], STAGE] == RUNNING:
            end = max(end, jobs[t.active[i], EXPECTED_END])
    jobs[j, EXPECTED_END] = now + jobs[j, REQUESTED] if book[BUSY_IS_REQUEST] else end + jobs[j, RUN]
    jobs[j, STAGE], jobs[j, BEGAN] = RUNNING, now
    jobs[j, PLACES] = jobs[j, NODES] * book[PER_NODE]
    members = t.pool[jobs[j, AT] : jobs[j, AT] + jobs[j, SIZE]].copy()
    for v in members:
        if t.tasks[v, PARENTS] == 0:
            offer(t, j, v)


@kernel
def expect_longer(now: int, t: Tables, j: int) -> None:
    """A task lost while running takes at least twice as long as it had."""
    tasks = t.tasks
    for v in range(tasks.shape[0]):
        if tasks[v, HOME] == j and tasks[v, UNTIL] == FOREVER:
            longer = 2 * min(now - tasks[v, SINCE], t.jobs[j, REQUESTED])
            if longer > tasks[v, EXPECTED]:
                tasks[v, EXPECTED] = longer
                t.book[LONGER] = 1


@kernel
def stop_descendants(s: Ints, nobody: Ints, t: Tables, j: int) -> None:
    """Job `j` was killed: jobs that wait for its open tasks, and have not begun, are stopped."""
    n = t.tasks.shape[0]
    found, stack, top = t.tasks[:, HOME] == j, np.empty(n, dtype=np.int64), 0
    for v in range(n):
        if found[v]:
            stack[top] = v
            top += 1
    waits = np.zeros(t.book[JOBS], dtype=np.bool_)
    while top > 0:
        top -= 1
        v = stack[top]
        for c in t.children[t.first_child[v] : t.first_child[v + 1]]:
            if not found[c]:
                found[c] = True
                stack[top] = c
                top += 1
                if t.tasks[c, HOME] >= 0:
                    waits[t.tasks[c, HOME]] = True
    for other in t.active[: t.book[ACTIVE]]:
        if waits[other] and other != j and t.jobs[other, BEGUN] == 0 and t.jobs[other, STOPPING] == 0:
            t.jobs[other, STOPPING] = 1
            t.book[LEAVING] += 1
            stop(s, nobody, t.book[FIRST_CLIENT] - other, CANCELLED)


@kernel
def leave(t: Tables, j: int) -> None:
    """Job `j` is gone; what it had not done is left again."""
    tasks, active, book = t.tasks, t.active, t.book
    if t.jobs[j, OPEN] > 0:
        book[LEAVING] -= t.jobs[j, STOPPING]
        for v in range(tasks.shape[0]):
            if tasks[v, HOME] == j:
                tasks[v, HOME], tasks[v, UNTIL] = IN_NO_JOB, 0
                book[LEFT] += 1
                if tasks[v, PARENTS] == 0:
                    set_free(t, v)
    t.jobs[j, STAGE] = GONE
    i = 0
    while active[i] != j:
        i += 1
    book[ACTIVE] -= 1
    for k in range(i, book[ACTIVE]):
        active[k] = active[k + 1]


@kernel
def submit_job(s: Ints, nobody: Ints, t: Tables, members: Ints, nodes: int, run: int, requested: int) -> int:
    """Submit a job of these tasks now; its row. The caller has made room."""
    jobs, book = t.jobs, t.book
    j, at, size = book[JOBS], book[USED_AT], members.shape[0]
    jobs[j, :] = 0
    jobs[j, NODES], jobs[j, RUN], jobs[j, REQUESTED] = nodes, run, requested
    jobs[j, SUBMITTED], jobs[j, AT], jobs[j, SIZE], jobs[j, OPEN] = s[NOW], at, size, size
    for i in range(size):
        t.pool[at + i] = members[i]
        t.tasks[members[i], HOME] = j
    book[USED_AT] += size
    book[LEFT] -= size
    t.active[book[ACTIVE]] = j
    book[ACTIVE] += 1
    book[JOBS] += 1
    book[WAITING_JOBS] += 1
    submit(s, nobody, nodes, requested, FOREVER, book[OWNER])
    return j


@kernel
def submit_ready(s: Ints, nobody: Ints, t: Tables, terms: Floats) -> None:
    """Each ready task that is in no job becomes one, the longest first, while the cap allows."""
    tasks, book = t.tasks, t.book
    member = np.empty(1, dtype=np.int64)
    while book[FREE_TASKS] > 0 and book[ACTIVE] < book[CAP]:
        key = pop(t.ready, book[FREE_TASKS])
        book[FREE_TASKS] -= 1
        v = key % _TASKS
        if tasks[v, HOME] == IN_NO_JOB and tasks[v, PARENTS] == 0 and key == order_key(tasks, v):
            member[0] = v
            submit_job(s, nobody, t, member, 1, tasks[v, EXPECTED], request(tasks[v, EXPECTED], terms))
