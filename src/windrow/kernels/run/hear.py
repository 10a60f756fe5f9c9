"""What the batch system says of this run's jobs: they start, and they go. The rules of `manager.core`."""

from __future__ import annotations

from windrow.kernels.cluster.state import (
    CANCELLED,
    E_JOB,
    E_KIND,
    EVENT_WIDTH,
    EVENTS_AT,
    HAPPENED,
    NOW,
    STARTED,
    Ints,
)
from windrow.kernels.jit import kernel
from windrow.kernels.run.lose import leave, lose
from windrow.kernels.run.room import vacate
from windrow.kernels.run.start import open_job, start_tasks
from windrow.kernels.run.tables import (
    ACTIVE,
    ACTIVE_AT,
    BEGAN,
    BUSY_IS_REQUEST,
    EVENT,
    EVENTS,
    EXPECTED_END,
    FIRST_CLIENT,
    NEWS_AT,
    NODE_S,
    NODES,
    NUMBER,
    OPEN,
    OWN,
    PLAYED,
    QUEUE_WAIT,
    REQUESTED,
    RUN,
    RUNNING,
    STAGE,
    SUBMITTED,
    WAITING_JOBS,
    job,
)


@kernel
def take_news(s: Ints, r: Ints) -> None:
    """Take what happened over from the cluster, which says it once: to act upon it makes more happen."""
    r[EVENT], r[EVENTS] = 0, s[HAPPENED]
    for i in range(s[HAPPENED] * EVENT_WIDTH):
        r[r[NEWS_AT] + i] = s[s[EVENTS_AT] + i]
    s[HAPPENED] = 0


@kernel
def hear(s: Ints, nobody: Ints, r: Ints) -> None:
    """The next piece of news: a job of this run started, or is gone."""
    told, now = r[NEWS_AT] + r[EVENT] * EVENT_WIDTH, s[NOW]
    r[EVENT] += 1
    row = row_of(r, r[told + E_JOB])
    if row < 0:
        return
    j = job(r, row)
    if r[told + E_KIND] == STARTED:
        begin_job(now, r, j)
        start_tasks(now, r, j)
        return
    if r[j + STAGE] == RUNNING:
        r[NODE_S] += r[j + NODES] * (now - r[j + BEGAN])
    else:
        r[WAITING_JOBS] -= 1
    if r[told + E_KIND] != CANCELLED and r[j + OPEN] > 0:
        lose(s, nobody, r, row)
    leave(r, row)


@kernel
def row_of(r: Ints, number: int) -> int:
    """The row of a job; -1 where it is not one of this run."""
    row = r[FIRST_CLIENT] - number
    if row >= r[OWN]:
        return row
    for own in range(r[OWN]):
        if r[job(r, own) + NUMBER] == number:
            return own
    return -1


@kernel
def begin_job(now: int, r: Ints, j: int) -> None:
    """The job whose row begins at `j` has its nodes; its tasks whose parents are done may start."""
    r[WAITING_JOBS] -= 1
    r[QUEUE_WAIT] += now - r[j + SUBMITTED]
    r[j + EXPECTED_END] = now + r[j + REQUESTED] if r[BUSY_IS_REQUEST] == 1 else max(now, busy_until(r)) + r[j + RUN]
    r[j + STAGE], r[j + BEGAN] = RUNNING, now
    vacate(r, j)
    open_job(r, j)


@kernel
def busy_until(r: Ints) -> int:
    """When this run's running jobs are expected to end; 0 where none runs.

    A job without open tasks counts until it is gone, unless the run is PLAYED.
    """
    until, closed = 0, 1 - r[PLAYED]
    for i in range(r[ACTIVE]):
        j = job(r, r[r[ACTIVE_AT] + i])
        if r[j + STAGE] == RUNNING and r[j + OPEN] + closed > 0:
            until = max(until, r[j + EXPECTED_END])
    return until
