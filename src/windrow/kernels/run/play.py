"""A workflow played to its end on a copy of a cluster, in one call: what would come of a course of
action.

The rules of a run are those of a trial, with simplifications that only a look ahead may make:
PLAYED says where. Cores are counted over a job's nodes, not node by node. Tasks keep the order of
what was expected at first. A job that lost a node is submitted again with what it had not done;
after one was killed by its time limit, whatever is left goes out task by task. What a task takes
(ACTUAL) no request knows: those go by what is EXPECTED. Jobs that were about to leave when the play
begins count no more.

Jobs are this run's, with those that are in the system first; PLANNED ones are submitted at once.
Groups are the later jobs of the course, in order: levels FIRST to LAST, and HOW they follow.
"""

from __future__ import annotations

import numpy as np

from windrow.kernels.cluster import state as c
from windrow.kernels.cluster.advance import NEEDS_ROOM, REACHED, advance, has_room
from windrow.kernels.cluster.estimate import PASS_WIDTH, estimate
from windrow.kernels.cluster.state import Ints
from windrow.kernels.jit import kernel, lean
from windrow.kernels.run import tables as t
from windrow.kernels.run.finish import finish_first, next_end
from windrow.kernels.run.hear import busy_until, hear, take_news
from windrow.kernels.run.requests import next_ready, put_in, request, submit_job, submit_single
from windrow.kernels.run.start import open_job, set_free, start_tasks
from windrow.kernels.run.tables import Floats

# A group. RUNS_AT is where its run times on 1, 2, ... WIDTH nodes begin in the table of run times.
FIRST, LAST, HOW, RUNS_AT, WIDTH = range(5)
GROUP_WIDTH = 5
WHEN_STARTED, WHEN_DONE, BY_TASK, DEALT = range(4)

NO_ROOM = -1
STUCK = -2


@kernel
def rollout(s: Ints, log: Ints, r: Ints, groups: Ints, runs: Ints, terms: Floats) -> int:
    """When the last task ends; NO_ROOM if the state or a table is too small, STUCK if nothing
    can happen.

    A course that goes beyond LIMIT is given up, at some time after it, but not after HORIZON.
    """
    no_starts = np.empty(0, dtype=np.int64)
    if not begin(s, no_starts, r) or not submit_more(s, log, no_starts, r, groups, runs, terms):
        return NO_ROOM
    if not finish_due(s, log, no_starts, r, groups, runs, terms):
        return NO_ROOM
    while r[t.OPEN_TASKS] > 0 and s[c.NOW] <= r[t.LIMIT]:
        until = min(r[t.HORIZON], next_end(r) if r[t.RUNNING_TASKS] > 0 else c.FOREVER)
        outcome = advance(s, log, no_starts, until)
        if outcome == NEEDS_ROOM:
            return NO_ROOM
        if outcome == REACHED and until == c.FOREVER:
            return STUCK
        if not finish_due(s, log, no_starts, r, groups, runs, terms):
            return NO_ROOM
        take_news(s, r)
        while r[t.EVENT] < r[t.EVENTS]:
            hear(s, no_starts, r)
            if not submit_more(s, log, no_starts, r, groups, runs, terms):
                return NO_ROOM
    for i in range(r[t.ACTIVE]):
        j = t.job(r, r[r[t.ACTIVE_AT] + i])
        if r[j + t.STAGE] == t.RUNNING:
            r[t.NODE_S] += r[j + t.NODES] * (s[c.NOW] - r[j + t.BEGAN])
    return s[c.NOW]


@lean
def begin(s: Ints, no_starts: Ints, r: Ints) -> bool:
    """Continue from what is under way, and submit what is planned. False if there is no room for
    it."""
    for v in range(t.HEADER, r[t.TASKS_END], t.TASK_WIDTH):
        if r[v + t.HOME] == t.IN_NO_JOB and r[v + t.PARENTS] == 0:
            set_free(r, v)
    for row in range(r[t.OWN]):
        r[r[t.ACTIVE_AT] + row] = row
        r[t.ACTIVE] += 1
        if r[t.job(r, row) + t.STAGE] == t.RUNNING:
            open_job(r, t.job(r, row))
            start_tasks(s[c.NOW], r, t.job(r, row))
        else:
            r[t.WAITING_JOBS] += 1
    for row in range(r[t.OWN], r[t.JOBS]):
        if not has_room(s, 2):
            return False
        put_in(s, no_starts, r, row)
    return True


@lean
def finish_due(
    s: Ints, log: Ints, no_starts: Ints, r: Ints, groups: Ints, runs: Ints, terms: Floats
) -> bool:
    """End what ends now, and submit what is due after each. False if there is no room for it."""
    while r[t.RUNNING_TASKS] > 0 and next_end(r) <= s[c.NOW]:
        finish_first(s, no_starts, r)
        if not submit_more(s, log, no_starts, r, groups, runs, terms):
            return False
    return True


@kernel
def submit_more(
    s: Ints, log: Ints, no_starts: Ints, r: Ints, groups: Ints, runs: Ints, terms: Floats
) -> bool:
    """Submit what the course says is due. False if there is no room for it."""
    if r[t.ACTIVE] >= r[t.CAP]:
        return True
    if r[t.KILLS] > 0:
        return submit_ready(s, no_starts, r, terms)
    if r[t.NEXT_GROUP] >= groups.shape[0]:
        return True
    how = groups[r[t.NEXT_GROUP], HOW]
    if how == BY_TASK:
        return submit_ready(s, no_starts, r, terms)
    if how == DEALT:
        return submit_dealt(s, no_starts, r, terms)
    if r[t.WAITING_JOBS] > 0 or (how == WHEN_DONE and r[t.ACTIVE] > 0):
        return True
    if r[t.JOBS] >= r[t.JOBS_AT + 1] or not has_room(s, 2):
        return False
    submit_group(s, log, no_starts, r, groups[r[t.NEXT_GROUP]], runs, terms)
    r[t.NEXT_GROUP] += 1
    return True


@lean
def submit_ready(s: Ints, no_starts: Ints, r: Ints, terms: Floats) -> bool:
    """Ready tasks that are in no job: each a job of its own, while the cap allows. False if
    there is no room."""
    while r[t.ACTIVE] < r[t.CAP]:
        v = next_ready(r)
        if v < 0:
            return True
        if r[t.JOBS] >= r[t.JOBS_AT + 1] or not has_room(s, 2):
            return False
        submit_single(s, no_starts, r, v, terms)
    return True


@kernel
def submit_dealt(s: Ints, no_starts: Ints, r: Ints, terms: Floats) -> bool:
    """All ready tasks that are in no job, dealt to as many jobs as the cap allows. False if
    there is no room.

    The longest are dealt out first, one to each job. A job has room for all of its tasks at once,
    if it may.
    """
    if r[t.FREE_TASKS] == 0:
        return True
    ready = np.empty(r[t.FREE_TASKS], dtype=np.int64)
    count = 0
    v = next_ready(r)
    while v >= 0:
        ready[count] = v
        count = count + 1
        v = next_ready(r)
    jobs = min(r[t.CAP] - r[t.ACTIVE], count)
    for first in range(jobs):
        if r[t.JOBS] >= r[t.JOBS_AT + 1] or not has_room(s, 2):
            return False
        at = r[t.POOL_AT] + r[t.USED_POOL]
        size = 0
        units = 0
        work = 0
        longest = 0
        for i in range(first, count, jobs):
            v = ready[i]
            r[at + size] = v
            size = size + 1
            units += r[v + t.UNITS]
            work += r[v + t.UNITS] * r[v + t.EXPECTED]
            longest = max(longest, r[v + t.EXPECTED])
        nodes = min(r[t.MOST_NODES], -(-units // r[t.PER_NODE]))
        run = max(longest, -(-work // (nodes * r[t.PER_NODE])))
        submit_job(s, no_starts, r, size, nodes, run, request(run, 0, terms))
    return True


@kernel
def submit_group(
    s: Ints, log: Ints, no_starts: Ints, r: Ints, group: Ints, runs: Ints, terms: Floats
) -> None:
    """The group's levels as one job, on the number of nodes that ends first by the batch system's
    own estimate."""
    count = 0
    first = r[t.POOL_AT] + r[t.USED_POOL]
    for v in range(t.HEADER, r[t.TASKS_END], t.TASK_WIDTH):
        if (
            r[v + t.HOME] == t.IN_NO_JOB
            and group[FIRST] <= r[t.more(r, v) + t.LEVEL] <= group[LAST]
        ):
            r[first + count] = v
            count += 1
    if s[c.PENDING] == 1:
        advance(s, log, no_starts, s[c.NOW])  # the plan must know of our last change
    nodes, run, requested = size(
        s, log[:0], r, runs[group[RUNS_AT] : group[RUNS_AT] + group[WIDTH]], terms
    )
    submit_job(s, no_starts, r, count, nodes, run, requested)


@kernel
def size(s: Ints, nothing: Ints, r: Ints, runs: Ints, terms: Floats) -> tuple[int, int, int]:
    """Nodes, run and request of a group's job, with leeway if it would start before there is
    work for it.

    `nothing` is an empty log.
    """
    busy = max(0, busy_until(r) - s[c.NOW])
    width = runs.shape[0]
    count = min(runs.shape[0], r[t.SIZES])
    nodes = np.empty(count, dtype=np.int64)
    requested = np.empty(count, dtype=np.int64)
    starts = np.empty(count, dtype=np.int64)
    for k in range(count):
        nodes[k] = (k + 1) * width // count
        requested[k] = request(runs[nodes[k] - 1], 0, terms)
    later = np.empty(0, dtype=np.int64)
    passes = np.empty((0, PASS_WIDTH), dtype=np.int64)
    estimate(s, nothing, nodes, requested, r[t.OWNER], False, starts, later, passes)
    best = 0
    least = c.FOREVER
    for k in range(count):
        end = max(starts[k] - s[c.NOW], busy) + runs[nodes[k] - 1]
        if end < least:
            best = k
            least = end
    run = runs[nodes[best] - 1]
    start = starts[best : best + 1]
    leeway = 0
    for _ in range(r[t.LEEWAY_ROUNDS]):
        if s[c.NOW] + busy - start[0] <= leeway:
            break
        leeway = s[c.NOW] + busy - start[0]
        requested[best] = request(run, leeway, terms)
        only = nodes[best : best + 1]
        length = requested[best : best + 1]
        estimate(s, nothing, only, length, r[t.OWNER], False, start, later, passes)
    return nodes[best], run, requested[best]
