"""Virtual time: what happens at one instant, and in which order.

BATCHED    all ends, then jobs held back that may now be queued, then all arrivals in log order, then one pass.
ONE_BY_ONE arrivals first, in log order, each followed by a pass; then ends, each followed by a pass.
ENDS_FIRST ends, each followed by a pass; then arrivals, each followed by a pass.

Nodes fail right after the ends of an instant (`failures`), under each of the three; a pass follows.

Between instants nothing happens: no policy here plans a start for a time at which no job ends (the
docs say why), a closure's own among them.
"""  # noqa: E501

from __future__ import annotations

from windrow.kernels.cluster import state as c
from windrow.kernels.cluster.failures import fail, is_due
from windrow.kernels.cluster.jobs import (
    admit,
    arrive,
    finish_first,
    give_up_place,
    queued,
    remove_held,
    remove_queued,
    sift_up,
    tell,
)
from windrow.kernels.cluster.policies import schedule
from windrow.kernels.cluster.state import Ints
from windrow.kernels.jit import kernel, lean

REACHED, EVENTS_HAPPENED, NEEDS_ROOM = range(3)


@kernel
def advance(s: Ints, log: Ints, starts: Ints, until: int) -> int:
    """Advance to `until`, inclusive, or to the first instant at which something happens to a
    client's job.

    Returns REACHED, EVENTS_HAPPENED, or NEEDS_ROOM: then nothing of the next instant has been done
    yet.
    """
    if s[c.PENDING] == 1:
        if not has_room(s, 0):
            return NEEDS_ROOM
        schedule(s, starts)
        s[c.PENDING] = 0
    while s[c.HAPPENED] == 0:
        at = next_instant(s, log)
        if at > until or at == c.FOREVER:
            if until < c.FOREVER:
                s[c.NOW] = until
            return REACHED
        if not has_room(s, arrivals(s, log, at)):
            return NEEDS_ROOM
        s[c.NOW] = at
        instant(s, log, starts)
    return EVENTS_HAPPENED


@lean
def next_instant(s: Ints, log: Ints) -> int:
    """When the next job arrives or ends, or the next node fails; FOREVER if none will.

    Then a job may still wait where passes are bounded: it goes when it is planned to.
    """
    at = c.FOREVER
    if s[c.NEXT] < log.shape[0]:
        at = log[s[c.NEXT], c.SUBMIT]
    if s[c.FAILURE] < log.shape[0]:
        at = min(at, log[s[c.FAILURE], c.SUBMIT])
    if s[c.RUNNING] > 0:
        at = min(at, s[s[c.HEAP_AT] + c.END])
    if at == c.FOREVER and s[c.LOOKS] > 0:
        for i in range(s[c.HEAD], s[c.TAIL]):
            planned = s[queued(s, i) + c.PLANNED]
            if planned >= 0:
                at = min(at, max(planned, s[c.NOW]))
    return at


@lean
def arrivals(s: Ints, log: Ints, at: int) -> int:
    """How many jobs of the log arrive at that instant, or may have to because a node fails."""
    last = s[c.NEXT]
    failure = s[c.FAILURE]
    while last < log.shape[0] and log[last, c.SUBMIT] <= at:
        last += 1
    while failure < log.shape[0] and log[failure, c.SUBMIT] <= at:
        failure += 1
    return last - s[c.NEXT] + failure - s[c.FAILURE]


@lean
def has_room(s: Ints, more: int) -> bool:
    """Whether the state can take an instant with this many arrivals, whatever it does."""
    waiting = s[c.TAIL] - s[c.HEAD] - s[c.GONE] + s[c.HELD] + more
    return (
        waiting < s[c.QUEUE_ROOM]
        and min(s[c.NODES_ALL] + s[c.CLOSURES], s[c.RUNNING] + waiting) <= s[c.RUNNING_ROOM]
        and (s[c.CAP] == 0 or s[c.HELD] + more <= s[c.HELD_ROOM])
        and s[c.HAPPENED] + 2 * s[c.ALIVE] + 2 <= s[c.EVENTS_ROOM]
    )


@lean
def instant(s: Ints, log: Ints, starts: Ints) -> None:
    """Everything that happens now."""
    batched = s[c.EVENT_ORDER] == c.BATCHED
    if s[c.EVENT_ORDER] == c.ONE_BY_ONE:
        arrive_all(s, log, starts)
    while s[c.RUNNING] > 0 and s[s[c.HEAP_AT] + c.END] <= s[c.NOW]:
        finish_first(s, -1)
        if not batched:
            admit(s)
            schedule(s, starts)
    if is_due(s, log):
        fail_all(s, log, starts)
    if s[c.HELD] > 0:
        admit(s)
    if s[c.EVENT_ORDER] != c.ONE_BY_ONE:
        arrive_all(s, log, starts)
    if batched:
        schedule(s, starts)


@lean
def fail_all(s: Ints, log: Ints, starts: Ints) -> None:
    """The nodes whose time it is fail. Behind the starts of jobs are recorded those that lose one,
    and their starts."""
    while is_due(s, log):
        f = s[c.FAILURE]
        s[c.FAILURE] += 1
        j = fail(s, log[f, c.NODE], log[f, c.OUT_UNTIL], log[f, c.LOSES])
        if j >= 0 and starts.shape[0]:
            starts[f], starts[f + starts.shape[0] - log.shape[0]] = j, starts[j]
            if log[f, c.LOSES] == 0:
                starts[j] = -1
    if s[c.EVENT_ORDER] != c.BATCHED:
        admit(s)
        schedule(s, starts)


@lean
def arrive_all(s: Ints, log: Ints, starts: Ints) -> None:
    """The log's jobs of this instant arrive, each with a pass of its own unless events are
    batched."""
    while s[c.NEXT] < log.shape[0] and log[s[c.NEXT], c.SUBMIT] <= s[c.NOW]:
        j = s[c.NEXT]
        s[c.NEXT] += 1
        arrive(s, j, log[j, c.LOG_NODES], log[j, c.LOG_REQUESTED], log[j, c.LOG_RUN], log[j, c.BY])
        if s[c.EVENT_ORDER] != c.BATCHED:
            schedule(s, starts)


@kernel
def submit(s: Ints, starts: Ints, nodes: int, requested: int, run: int, user: int) -> int:
    """A client's job arrives now. The caller has made room. Returns the job's number."""
    s[c.CLIENTS] += 1
    s[c.ALIVE] += 1
    job = -s[c.CLIENTS]
    arrive(s, job, nodes, requested, run, user)
    changed(s, starts)
    return job


@kernel
def stop(s: Ints, starts: Ints, job: int, kind: int) -> bool:
    """A client's job leaves now, whether it runs, waits or is held back. False if there is no
    such job."""
    found = stop_running(s, job, kind) or stop_queued(s, job, kind) or stop_held(s, job, kind)
    if found:
        admit(s)
        changed(s, starts)
    return found


@lean
def changed(s: Ints, starts: Ints) -> None:
    """A client changed something: a pass is due, at once if every event has its own, else before
    time passes."""
    s[c.PENDING] = 1
    if s[c.EVENT_ORDER] != c.BATCHED:
        schedule(s, starts)


@lean
def stop_running(s: Ints, job: int, kind: int) -> bool:
    """End a running job now."""
    for i in range(s[c.RUNNING]):
        e = s[c.HEAP_AT] + i * c.HEAP_WIDTH
        if s[s[c.RUNNING_AT] + s[e + c.SLOT] * c.RUNNING_WIDTH + c.JOB] == job:
            s[e + c.END] = s[
                c.NOW
            ]  # every other end lies in the future, so this one comes to the top
            sift_up(s, i)
            finish_first(s, kind)
            return True
    return False


@lean
def stop_queued(s: Ints, job: int, kind: int) -> bool:
    """Take a job that waits out of the queue."""
    for i in range(s[c.HEAD], s[c.TAIL]):
        q = queued(s, i)
        if s[q + c.JOB] == job:
            planned = s[q + c.PLANNED]
            if s[c.POLICY] == c.CONSERVATIVE and planned >= 0:
                give_up_place(s, i)
            if s[c.CAP] > 0:
                s[s[c.USERS_AT] + s[q + c.USER]] -= 1
            s[c.FREED] = 2
            remove_queued(s, i)
            tell(s, kind, job)
            return True
    return False


@lean
def stop_held(s: Ints, job: int, kind: int) -> bool:
    """Take a job out of those held back."""
    for h in range(s[c.HELD]):
        if s[s[c.HELD_AT] + h * c.QUEUED_WIDTH + c.JOB] == job:
            remove_held(s, h)
            tell(s, kind, job)
            return True
    return False
