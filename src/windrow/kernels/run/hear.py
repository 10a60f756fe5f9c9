"""What the batch system says of this run's jobs: they start, and they go. The rules of
`manager.core`."""

from __future__ import annotations

from windrow.kernels.cluster import state as c
from windrow.kernels.cluster.state import Ints
from windrow.kernels.jit import lean
from windrow.kernels.run import tables as t
from windrow.kernels.run.lose import leave, lose
from windrow.kernels.run.room import vacate
from windrow.kernels.run.start import open_job, start_tasks


@lean
def take_news(s: Ints, r: Ints) -> None:
    """Take what happened over from the cluster, which says it once: to act upon it makes more
    happen."""
    r[t.EVENT], r[t.EVENTS] = 0, s[c.HAPPENED]
    for i in range(s[c.HAPPENED] * c.EVENT_WIDTH):
        r[r[t.NEWS_AT] + i] = s[s[c.EVENTS_AT] + i]
    s[c.HAPPENED] = 0


@lean
def hear(s: Ints, no_starts: Ints, r: Ints) -> None:
    """The next piece of news: a job of this run started, or is gone."""
    told = r[t.NEWS_AT] + r[t.EVENT] * c.EVENT_WIDTH
    now = s[c.NOW]
    r[t.EVENT] += 1
    row = row_of(r, r[told + c.E_JOB])
    if row < 0:
        return
    j = t.job(r, row)
    if r[told + c.E_KIND] == c.STARTED:
        begin_job(now, r, j)
        start_tasks(now, r, j)
        return
    if r[j + t.STAGE] == t.RUNNING:
        r[t.NODE_S] += r[j + t.NODES] * (now - r[j + t.BEGAN])
    else:
        r[t.WAITING_JOBS] -= 1
    if r[told + c.E_KIND] != c.CANCELLED and r[j + t.OPEN] > 0:
        lose(s, no_starts, r, row, r[told + c.E_KIND] == c.FAILED)
    leave(r, row)


@lean
def row_of(r: Ints, number: int) -> int:
    """The row of a job; -1 if it is not one of this run."""
    row = r[t.FIRST_CLIENT] - number
    if row >= r[t.OWN]:
        return row
    for own in range(r[t.OWN]):
        if r[t.job(r, own) + t.NUMBER] == number:
            return own
    return -1


@lean
def begin_job(now: int, r: Ints, j: int) -> None:
    """The job whose row begins at `j` has its nodes; its tasks whose parents are done may start."""
    r[t.WAITING_JOBS] -= 1
    r[t.QUEUE_WAIT] += now - r[j + t.SUBMITTED]
    expected = max(now, busy_until(r)) + r[j + t.RUN]
    r[j + t.EXPECTED_END] = now + r[j + t.REQUESTED] if r[t.BUSY_IS_REQUEST] == 1 else expected
    r[j + t.STAGE], r[j + t.BEGAN] = t.RUNNING, now
    vacate(r, j)
    open_job(r, j)


@lean
def busy_until(r: Ints) -> int:
    """When this run's running jobs are expected to end; 0 if none runs.

    A job without open tasks counts until it is gone, unless the run is PLAYED.
    """
    until = 0
    closed = 1 - r[t.PLAYED]
    for i in range(r[t.ACTIVE]):
        j = t.job(r, r[r[t.ACTIVE_AT] + i])
        if r[j + t.STAGE] == t.RUNNING and r[j + t.OPEN] + closed > 0:
            until = max(until, r[j + t.EXPECTED_END])
    return until
