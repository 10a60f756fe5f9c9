"""Virtual time: what happens at one instant, and in which order.

BATCHED    all ends, then jobs held back that may now be queued, then all arrivals in log order, then one pass.
ONE_BY_ONE arrivals first, in log order, each followed by a pass; then ends, each followed by a pass.
ENDS_FIRST ends, each followed by a pass; then arrivals, each followed by a pass.

Between instants nothing happens: no policy here plans a start for a time at which no job ends (the docs say why).
"""

from __future__ import annotations

from windrow.kernels.cluster.jobs import (
    admit,
    arrive,
    finish_first,
    give_back,
    queued,
    queued_set,
    remove_held,
    remove_queued,
    sift_up,
    tell,
)
from windrow.kernels.cluster.policies import schedule
from windrow.kernels.cluster.state import (
    ALIVE,
    BATCHED,
    BY,
    CAP,
    CLIENTS,
    CONSERVATIVE,
    END,
    EVENT_ORDER,
    EVENTS_ROOM,
    FOREVER,
    FREED,
    HAPPENED,
    HEAD,
    HEAP_AT,
    HEAP_WIDTH,
    HELD,
    HELD_AT,
    HELD_ROOM,
    JOB,
    LOG_NODES,
    LOG_REQUESTED,
    LOG_RUN,
    NEXT,
    NODES,
    NODES_ALL,
    NOW,
    ONE_BY_ONE,
    PENDING,
    PLANNED,
    POLICY,
    QUEUE_ROOM,
    QUEUED_WIDTH,
    REQUESTED,
    RUNNING,
    RUNNING_AT,
    RUNNING_ROOM,
    RUNNING_WIDTH,
    SLOT,
    SUBMIT,
    TAIL,
    USER,
    USERS_AT,
    Ints,
)
from windrow.kernels.jit import kernel

REACHED, EVENTS_HAPPENED, NEEDS_ROOM = range(3)


@kernel
def advance(s: Ints, log: Ints, starts: Ints, until: int) -> int:
    """Go on to `until`, inclusive, or to the first instant at which something happens to a client's job.

    Returns REACHED, EVENTS_HAPPENED, or NEEDS_ROOM: then nothing of the next instant has been done yet.
    """
    if s[PENDING] == 1:
        if not has_room(s, 0):
            return NEEDS_ROOM
        schedule(s, starts)
        s[PENDING] = 0
    while s[HAPPENED] == 0:
        at = next_instant(s, log)
        if at > until or at == FOREVER:
            if until < FOREVER:
                s[NOW] = until
            return REACHED
        if not has_room(s, arrivals(s, log, at)):
            return NEEDS_ROOM
        s[NOW] = at
        instant(s, log, starts)
    return EVENTS_HAPPENED


@kernel
def next_instant(s: Ints, log: Ints) -> int:
    """When the next job arrives or ends; FOREVER if none will."""
    at = FOREVER
    if s[NEXT] < log.shape[0]:
        at = log[s[NEXT], SUBMIT]
    if s[RUNNING] > 0:
        at = min(at, s[s[HEAP_AT] + END])
    return at


@kernel
def arrivals(s: Ints, log: Ints, at: int) -> int:
    """How many jobs of the log arrive at that instant."""
    last = s[NEXT]
    while last < log.shape[0] and log[last, SUBMIT] <= at:
        last += 1
    return last - s[NEXT]


@kernel
def has_room(s: Ints, more: int) -> bool:
    """Whether the state can take an instant with so many arrivals, whatever it does."""
    waiting = s[TAIL] - s[HEAD] + s[HELD] + more
    return (
        waiting < s[QUEUE_ROOM]
        and min(s[NODES_ALL], s[RUNNING] + waiting) <= s[RUNNING_ROOM]
        and (s[CAP] == 0 or s[HELD] + more <= s[HELD_ROOM])
        and s[HAPPENED] + 2 * s[ALIVE] + 2 <= s[EVENTS_ROOM]
    )


@kernel
def instant(s: Ints, log: Ints, starts: Ints) -> None:
    """Everything that happens now."""
    batched = s[EVENT_ORDER] == BATCHED
    if s[EVENT_ORDER] == ONE_BY_ONE:
        arrive_all(s, log, starts)
    while s[RUNNING] > 0 and s[s[HEAP_AT] + END] <= s[NOW]:
        finish_first(s, -1)
        if not batched:
            admit(s)
            schedule(s, starts)
    if s[HELD] > 0:
        admit(s)
    if s[EVENT_ORDER] != ONE_BY_ONE:
        arrive_all(s, log, starts)
    if batched:
        schedule(s, starts)


@kernel
def arrive_all(s: Ints, log: Ints, starts: Ints) -> None:
    """The log's jobs of this instant arrive, each with a pass of its own unless events are batched."""
    while s[NEXT] < log.shape[0] and log[s[NEXT], SUBMIT] <= s[NOW]:
        j = s[NEXT]
        s[NEXT] += 1
        arrive(s, j, log[j, LOG_NODES], log[j, LOG_REQUESTED], log[j, LOG_RUN], log[j, BY])
        if s[EVENT_ORDER] != BATCHED:
            schedule(s, starts)


@kernel
def submit(s: Ints, starts: Ints, nodes: int, requested: int, run: int, user: int) -> int:
    """A client's job arrives now. The caller has made room. Returns the job's number."""
    s[CLIENTS] += 1
    s[ALIVE] += 1
    job = -s[CLIENTS]
    arrive(s, job, nodes, requested, run, user)
    changed(s, starts)
    return job


@kernel
def stop(s: Ints, starts: Ints, job: int, kind: int) -> bool:
    """A client's job leaves now, whether it runs, waits or is held back. False where there is no such job."""
    found = stop_running(s, job, kind) or stop_queued(s, job, kind) or stop_held(s, job, kind)
    if found:
        admit(s)
        changed(s, starts)
    return found


@kernel
def changed(s: Ints, starts: Ints) -> None:
    """A client changed something: a pass is due, at once where every event has its own, else before time goes on."""
    s[PENDING] = 1
    if s[EVENT_ORDER] != BATCHED:
        schedule(s, starts)


@kernel
def stop_running(s: Ints, job: int, kind: int) -> bool:
    """End a running job now."""
    for i in range(s[RUNNING]):
        e = s[HEAP_AT] + i * HEAP_WIDTH
        if s[s[RUNNING_AT] + s[e + SLOT] * RUNNING_WIDTH + JOB] == job:
            s[e + END] = s[NOW]  # every other end lies in the future, so this one comes to the top
            sift_up(s, i)
            finish_first(s, kind)
            return True
    return False


@kernel
def stop_queued(s: Ints, job: int, kind: int) -> bool:
    """Take a job that waits out of the queue."""
    for i in range(s[HEAD], s[TAIL]):
        q = queued(s, i)
        if s[q + JOB] == job:
            planned = s[q + PLANNED]
            if s[POLICY] == CONSERVATIVE and planned >= 0:
                give_back(s, planned, planned + s[q + REQUESTED], s[q + NODES], queued_set(s, i))
            if s[CAP] > 0:
                s[s[USERS_AT] + s[q + USER]] -= 1
            s[FREED] = 2
            remove_queued(s, i)
            tell(s, kind, job)
            return True
    return False


@kernel
def stop_held(s: Ints, job: int, kind: int) -> bool:
    """Take a job out of those held back."""
    for h in range(s[HELD]):
        if s[s[HELD_AT] + h * QUEUED_WIDTH + JOB] == job:
            remove_held(s, h)
            tell(s, kind, job)
            return True
    return False
