"""A workflow played to its end on a copy of a cluster, in one call: what would come of a course of action.

The rules of a run are those of the manager's core and of an allocation, with three simplifications that only a look
ahead may make. Cores are counted over a job's nodes, not node by node. Tasks start in the order of what was expected at
first. After a job was killed, whatever is left goes out task by task. What a task takes (RUNTIME) no request knows:
those go by what is BELIEVED.

Tables, one row each. Tasks are sorted so that those expected to be longest come first: whoever scans them meets them in
the order in which they start. No scan begins before the first task that may be ready (FROM, READY_FROM). Jobs are this
run's, with those that are in the system first; PLANNED ones are submitted at once.
Groups are the courses' later jobs, in order: levels FIRST to LAST, and HOW they follow.

Kernels allocate nothing that lasts. Where the cluster's state has no room, `rollout` says so, and is called again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.cluster.advance import NEEDS_ROOM, REACHED, advance, has_room, stop, submit
from windrow.kernels.cluster.estimate import estimate
from windrow.kernels.cluster.state import (
    E_JOB,
    E_KIND,
    ENDED,
    EVENT_WIDTH,
    EVENTS_AT,
    FOREVER,
    HAPPENED,
    NOW,
    PENDING,
    STARTED,
    Ints,
)
from windrow.kernels.jit import kernel
from windrow.kernels.run.estimate import pop, push

Floats = NDArray[np.float64]

# A task. HOME is the row of its job, or one of the two below. UNTIL is when it ends, while it runs, else 0. RUNTIME is
# what it takes, BELIEVED what its jobs ask for.
RUNTIME, LEVEL, CORES, PARENTS, HOME, UNTIL, BELIEVED = range(7)
TASK_WIDTH = 7
IN_NO_JOB, DONE = -1, -2

# A job. NUMBER is the cluster's name for it. No task before FROM can start in it.
NUMBER, NODES, REQUESTED, RUN, STAGE, OPEN, READY, FREE, BEGAN, EXPECTED, FROM = range(11)
JOB_WIDTH = 11
PLANNED, WAITING, RUNNING, GONE = range(4)

# A group. RUNS_AT is where its run times on 1, 2, ... WIDTH nodes begin in the table of run times.
FIRST, LAST, HOW, RUNS_AT, WIDTH = range(5)
GROUP_WIDTH = 5
WHEN_STARTED, WHEN_DONE, BY_TASK = range(3)

# Counts that change, and rules that do not.
JOBS, RUNNING_TASKS, OPEN_TASKS, NEXT_GROUP, KILLS, NODE_S, JOBS_WAITING, JOBS_RUNNING = range(8)
CAP, OWNER, SHAPE_CORES, MOST_NODES, PER_CORE, SIZES, LEEWAY_ROUNDS, LIMIT = range(8, 16)
READY_LEFT, READY_FROM = range(16, 18)  # ready tasks in no job: how many, and before which task there is none
HORIZON = 18
BOOK_WIDTH = 19

# Requests. LATE is by which factor later jobs are asked for longer than they should run.
MARGIN, ROUND_S, OVERHEAD_S, MAX_REQUEST_S, LATE = range(5)

NO_ROOM, STUCK = -1, -2


@kernel
def rollout(
    s: Ints,
    log: Ints,
    nobody: Ints,
    tasks: Ints,
    first_child: Ints,
    children: Ints,
    jobs: Ints,
    ends: Ints,
    groups: Ints,
    runs: Ints,
    book: Ints,
    terms: Floats,
) -> int:
    """When the last task ends; NO_ROOM where the state or the table of jobs is too small, STUCK where nothing goes on.

    A course that goes beyond LIMIT is given up, at some time after it, but not after HORIZON. All tables are changed.
    `ends` is a heap of end * tasks + task, with room for all tasks and restarts.
    """
    for v in range(tasks.shape[0]):
        book[READY_LEFT] += tasks[v, HOME] == IN_NO_JOB and tasks[v, PARENTS] == 0
    for j in range(book[JOBS]):
        start_tasks(s[NOW], tasks, jobs, j, ends, book)
        if jobs[j, STAGE] == PLANNED and not put_in(s, nobody, jobs, j, book):
            return NO_ROOM
    if not submit_more(s, log, nobody, tasks, jobs, groups, runs, book, terms):
        return NO_ROOM
    while book[OPEN_TASKS] > 0 and s[NOW] <= book[LIMIT]:
        until = min(book[HORIZON], ends[0] // tasks.shape[0] if book[RUNNING_TASKS] > 0 else FOREVER)
        outcome = advance(s, log, nobody, until)
        if outcome == NEEDS_ROOM:
            return NO_ROOM
        if outcome == REACHED and until == FOREVER:
            return STUCK
        while book[RUNNING_TASKS] > 0 and ends[0] // tasks.shape[0] <= s[NOW]:
            finish_one(s, nobody, tasks, first_child, children, jobs, ends, book)
            if not submit_more(s, log, nobody, tasks, jobs, groups, runs, book, terms):
                return NO_ROOM
        happened = news(s)
        for e in range(happened.shape[0]):
            hear(s, tasks, jobs, ends, book, happened[e, E_KIND], happened[e, E_JOB])
            if not submit_more(s, log, nobody, tasks, jobs, groups, runs, book, terms):
                return NO_ROOM
    for j in range(book[JOBS]):
        if jobs[j, STAGE] == RUNNING:
            book[NODE_S] += jobs[j, NODES] * (s[NOW] - jobs[j, BEGAN])
    return s[NOW]


@kernel
def put_in(s: Ints, nobody: Ints, jobs: Ints, j: int, book: Ints) -> bool:
    """Submit a planned job now. False where there is no room."""
    if not has_room(s, 2):
        return False
    jobs[j, NUMBER] = submit(s, nobody, jobs[j, NODES], jobs[j, REQUESTED], FOREVER, book[OWNER])
    jobs[j, STAGE] = WAITING
    book[JOBS_WAITING] += 1
    return True


@kernel
def finish_one(
    s: Ints, nobody: Ints, tasks: Ints, first_child: Ints, children: Ints, jobs: Ints, ends: Ints, book: Ints
) -> None:
    """The task that ends first is done; a job without open tasks gives its nodes back."""
    n, now = tasks.shape[0], s[NOW]
    key = pop(ends, book[RUNNING_TASKS])
    book[RUNNING_TASKS] -= 1
    v = key % n
    if tasks[v, UNTIL] != key // n:
        return  # its job was killed meanwhile
    j = tasks[v, HOME]
    tasks[v, HOME], tasks[v, UNTIL] = DONE, 0
    book[OPEN_TASKS] -= 1
    jobs[j, OPEN] -= 1
    jobs[j, FREE] += tasks[v, CORES]
    for c in children[first_child[v] : first_child[v + 1]]:
        tasks[c, PARENTS] -= 1
        home = tasks[c, HOME]
        if tasks[c, PARENTS] == 0 and home >= 0:
            jobs[home, READY] += 1
            jobs[home, FROM] = min(jobs[home, FROM], c)
            start_tasks(now, tasks, jobs, home, ends, book)
        elif tasks[c, PARENTS] == 0 and home == IN_NO_JOB:
            note_ready(book, c)
    start_tasks(now, tasks, jobs, j, ends, book)
    if jobs[j, OPEN] == 0:
        stop(s, nobody, jobs[j, NUMBER], ENDED)


@kernel
def note_ready(book: Ints, v: int) -> None:
    """A task that is in no job may go into one."""
    book[READY_LEFT] += 1
    book[READY_FROM] = min(book[READY_FROM], v)


@kernel
def news(s: Ints) -> Ints:
    """What the cluster says of this run's jobs, one row each; it says it once."""
    happened = s[s[EVENTS_AT] : s[EVENTS_AT] + s[HAPPENED] * EVENT_WIDTH].copy().reshape((s[HAPPENED], EVENT_WIDTH))
    s[HAPPENED] = 0
    return happened


@kernel
def start_tasks(now: int, tasks: Ints, jobs: Ints, j: int, ends: Ints, book: Ints) -> None:
    """Start what may and has room in job `j`, the longest first."""
    if jobs[j, STAGE] != RUNNING or jobs[j, READY] == 0 or jobs[j, FREE] == 0:
        return
    n, skipped = tasks.shape[0], -1
    for v in range(jobs[j, FROM], n):
        if tasks[v, HOME] != j or tasks[v, PARENTS] > 0 or tasks[v, UNTIL] > 0:
            continue
        if tasks[v, CORES] > jobs[j, FREE]:
            skipped = v if skipped < 0 else skipped
            continue
        if book[RUNNING_TASKS] == ends.shape[0]:
            return
        tasks[v, UNTIL] = now + tasks[v, RUNTIME]
        push(ends, book[RUNNING_TASKS], tasks[v, UNTIL] * n + v)
        book[RUNNING_TASKS] += 1
        jobs[j, FREE] -= tasks[v, CORES]
        jobs[j, READY] -= 1
        if jobs[j, READY] == 0 or jobs[j, FREE] == 0:
            jobs[j, FROM] = v + 1 if skipped < 0 else skipped
            return


@kernel
def hear(s: Ints, tasks: Ints, jobs: Ints, ends: Ints, book: Ints, kind: int, number: int) -> None:
    """A job of this run started, or is gone."""
    j = book[JOBS] - 1
    while j >= 0 and jobs[j, NUMBER] != number:
        j -= 1
    if j < 0:
        return
    if kind == STARTED:
        jobs[j, EXPECTED] = max(s[NOW], busy_until(jobs, book)) + jobs[j, RUN]
        jobs[j, STAGE], jobs[j, BEGAN] = RUNNING, s[NOW]
        book[JOBS_WAITING] -= 1
        book[JOBS_RUNNING] += 1
        start_tasks(s[NOW], tasks, jobs, j, ends, book)
    elif jobs[j, STAGE] == RUNNING:
        jobs[j, STAGE] = GONE
        book[JOBS_RUNNING] -= 1
        book[NODE_S] += jobs[j, NODES] * (s[NOW] - jobs[j, BEGAN])
        if jobs[j, OPEN] > 0:
            lose(s[NOW], tasks, j, jobs[j, REQUESTED], book)


@kernel
def lose(now: int, tasks: Ints, j: int, requested: int, book: Ints) -> None:
    """Job `j` was killed: its open tasks are left, and start again from zero.

    Those that ran are believed to take at least twice as long as they had, as in `Core`.
    """
    book[KILLS] += 1
    for v in range(tasks.shape[0]):
        if tasks[v, HOME] == j:
            if tasks[v, UNTIL] > 0:
                had = min(requested, now - (tasks[v, UNTIL] - tasks[v, RUNTIME]))
                tasks[v, BELIEVED] = max(tasks[v, BELIEVED], 2 * had)
            tasks[v, HOME], tasks[v, UNTIL] = IN_NO_JOB, 0
            if tasks[v, PARENTS] == 0:
                note_ready(book, v)


@kernel
def busy_until(jobs: Ints, book: Ints) -> int:
    """When this run's running jobs are expected to end; 0 where none runs."""
    until = 0
    for j in range(book[JOBS]):
        if jobs[j, STAGE] == RUNNING and jobs[j, OPEN] > 0:
            until = max(until, jobs[j, EXPECTED])
    return until


@kernel
def submit_more(
    s: Ints, log: Ints, nobody: Ints, tasks: Ints, jobs: Ints, groups: Ints, runs: Ints, book: Ints, terms: Floats
) -> bool:
    """Submit what the course says is due. False where there is no room for it."""
    in_system = book[JOBS_WAITING] + book[JOBS_RUNNING]
    if in_system >= book[CAP]:
        return True
    if book[KILLS] > 0:
        return submit_ready(s, nobody, tasks, jobs, book, terms)
    if book[NEXT_GROUP] >= groups.shape[0]:
        return True
    how = groups[book[NEXT_GROUP], HOW]
    if how == BY_TASK:
        return submit_ready(s, nobody, tasks, jobs, book, terms)
    if book[JOBS_WAITING] > 0 or (how == WHEN_DONE and in_system > 0):
        return True
    if book[JOBS] >= jobs.shape[0] or not has_room(s, 2):
        return False
    submit_group(s, log, nobody, tasks, jobs, groups[book[NEXT_GROUP]], runs, book, terms)
    book[NEXT_GROUP] += 1
    return True


@kernel
def submit_group(
    s: Ints, log: Ints, nobody: Ints, tasks: Ints, jobs: Ints, group: Ints, runs: Ints, book: Ints, terms: Floats
) -> None:
    """The group's levels as one job, on the number of nodes that ends first by the batch system's own estimate."""
    j = book[JOBS]
    jobs[j, :] = 0
    for v in range(tasks.shape[0]):
        if tasks[v, HOME] == IN_NO_JOB and group[FIRST] <= tasks[v, LEVEL] <= group[LAST]:
            tasks[v, HOME] = j
            jobs[j, OPEN] += 1
            jobs[j, READY] += tasks[v, PARENTS] == 0
    book[READY_LEFT] -= jobs[j, READY]
    if s[PENDING] == 1:
        advance(s, log, nobody, s[NOW])  # the plan must know of our last change
    size(s, log[:0], jobs, j, runs[group[RUNS_AT] : group[RUNS_AT] + group[WIDTH]], book, terms)
    jobs[j, FREE] = jobs[j, NODES] * book[SHAPE_CORES]
    book[JOBS] += 1
    put_in(s, nobody, jobs, j, book)


@kernel
def size(s: Ints, nothing: Ints, jobs: Ints, j: int, runs: Ints, book: Ints, terms: Floats) -> None:
    """Set nodes, run and request of a group's job, with leeway where it would start before there is work for it.

    `nothing` is an empty log.
    """
    busy = max(0, busy_until(jobs, book) - s[NOW])
    width, count = runs.shape[0], min(runs.shape[0], book[SIZES])
    nodes, requested = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    starts = np.empty(count, dtype=np.int64)
    for k in range(count):
        nodes[k] = (k + 1) * width // count
        requested[k] = late_request(runs[nodes[k] - 1], 0, terms)
    estimate(s, nothing, nodes, requested, book[OWNER], False, starts)
    best, least = 0, FOREVER
    for k in range(count):
        end = max(starts[k] - s[NOW], busy) + runs[nodes[k] - 1]
        if end < least:
            best, least = k, end
    run = runs[nodes[best] - 1]
    start, leeway = starts[best : best + 1], 0
    for _ in range(book[LEEWAY_ROUNDS]):
        if s[NOW] + busy - start[0] <= leeway:
            break
        leeway = s[NOW] + busy - start[0]
        requested[best] = late_request(run, leeway, terms)
        estimate(s, nothing, nodes[best : best + 1], requested[best : best + 1], book[OWNER], False, start)
    jobs[j, NODES], jobs[j, RUN], jobs[j, REQUESTED] = nodes[best], run, requested[best]


@kernel
def request(run: int, terms: Floats) -> int:
    """How long to ask for, for a job that should run this long. As `Terms.request_s`."""
    wanted = max(1.0, -(-((run + terms[OVERHEAD_S]) * terms[MARGIN]) // terms[ROUND_S])) * terms[ROUND_S]
    return int(min(wanted, terms[MAX_REQUEST_S]))


@kernel
def late_request(run: int, leeway: int, terms: Floats) -> int:
    """The same for a later job, with leeway and with time to be late."""
    return request(round(run * terms[LATE]) + leeway, terms)


@kernel
def submit_ready(s: Ints, nobody: Ints, tasks: Ints, jobs: Ints, book: Ints, terms: Floats) -> bool:
    """Ready tasks that are in no job: each a job of its own while the cap allows, or in bundles where PER_CORE > 0.

    Bundles take in all ready tasks; the longest are dealt out first, one to each bundle. A bundle has cores for every
    PER_CORE-th of its tasks. False where there is no room.
    """
    count = min(book[CAP] - book[JOBS_WAITING] - book[JOBS_RUNNING], book[READY_LEFT])
    if count == 0:
        return True
    first, dealt = book[JOBS], 0
    if first + count > jobs.shape[0]:
        return False
    jobs[first : first + count, :] = 0
    taken = book[READY_LEFT] if book[PER_CORE] > 0 else count
    v = book[READY_FROM]
    while dealt < taken:
        if tasks[v, HOME] == IN_NO_JOB and tasks[v, PARENTS] == 0:
            tasks[v, HOME] = first + dealt % count
            if dealt < count:
                jobs[first + dealt, FROM] = v
            dealt += 1
        v += 1
    book[READY_FROM], book[READY_LEFT] = v, book[READY_LEFT] - taken
    book[JOBS] += count
    for j in range(first, first + count):
        bundle(tasks, jobs, j, book)
        jobs[j, REQUESTED] = late_request(jobs[j, RUN], 0, terms)
        if not put_in(s, nobody, jobs, j, book):
            return False
    return True


@kernel
def bundle(tasks: Ints, jobs: Ints, j: int, book: Ints) -> None:
    """Set what job `j` needs for its tasks, all of them ready: nodes for every PER_CORE-th, and the time they take."""
    cores = widest = 0
    single = 1 if book[PER_CORE] == 0 else tasks.shape[0]
    last = min(tasks.shape[0], jobs[j, FROM] + single)
    for v in range(jobs[j, FROM], last):
        if tasks[v, HOME] == j:
            cores += tasks[v, CORES] if jobs[j, OPEN] % max(1, book[PER_CORE]) == 0 else 0
            widest = max(widest, tasks[v, CORES])
            jobs[j, OPEN] += 1
    jobs[j, READY] = jobs[j, OPEN]
    jobs[j, NODES] = min(book[MOST_NODES], -(-max(cores, widest) // book[SHAPE_CORES]))
    jobs[j, FREE] = jobs[j, NODES] * book[SHAPE_CORES]
    places = max(1, jobs[j, FREE] // widest)
    loads = np.zeros(places, dtype=np.int64)
    for v in range(jobs[j, FROM], last):
        if tasks[v, HOME] == j:
            load = pop(loads, places) + tasks[v, BELIEVED]
            push(loads, places - 1, load)
            jobs[j, RUN] = max(jobs[j, RUN], load)


@kernel
def latest_end(tasks: Ints, first_child: Ints, children: Ints, mine: Ints, cores: int, drawn: Ints) -> int:
    """How long a job of the tasks `mine` runs at worst, with that many cores, if they take what a row of `drawn` says.

    Parents outside the job count as done. Where some task finds no room for ever, the others count.
    """
    worst = 0
    book, ends = np.zeros(BOOK_WIDTH, dtype=np.int64), np.empty(mine.shape[0], dtype=np.int64)
    for d in range(drawn.shape[0]):
        own, job = tasks.copy(), np.zeros((1, JOB_WIDTH), dtype=np.int64)
        own[:, HOME], own[:, PARENTS], own[:, UNTIL] = IN_NO_JOB, 0, 0
        own[:, RUNTIME] = drawn[d]
        for v in mine:
            own[v, HOME] = 0
            for c in children[first_child[v] : first_child[v + 1]]:
                own[c, PARENTS] += 1
        for v in mine:
            job[0, READY] += own[v, PARENTS] == 0
        job[0, STAGE], job[0, FREE] = RUNNING, cores
        worst = max(worst, alone(own, first_child, children, job, ends, book))
    return worst


@kernel
def alone(tasks: Ints, first_child: Ints, children: Ints, job: Ints, ends: Ints, book: Ints) -> int:
    """How long the job runs, if nothing else ever happens. All tables are changed."""
    n, now = tasks.shape[0], 0
    start_tasks(now, tasks, job, 0, ends, book)
    while book[RUNNING_TASKS] > 0:
        key = pop(ends, book[RUNNING_TASKS])
        book[RUNNING_TASKS] -= 1
        now, v = key // n, key % n
        job[0, FREE] += tasks[v, CORES]
        for c in children[first_child[v] : first_child[v + 1]]:
            tasks[c, PARENTS] -= 1
            if tasks[c, PARENTS] == 0 and tasks[c, HOME] == 0:
                job[0, READY] += 1
                job[0, FROM] = min(job[0, FROM], c)
        start_tasks(now, tasks, job, 0, ends, book)
    return now
