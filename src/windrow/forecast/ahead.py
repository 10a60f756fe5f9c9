"""Futures of a live queue: what `foresight` plays its courses in, from what anybody can see of the queue.

The twin's reading becomes a simulated cluster in which our own jobs are clients, so that courses may wait for them, end
them and submit more. How long others run is drawn from what was seen of them: a job that was running in one reading and
is gone in the next has run until then. While others are there, and before a day was seen and twenty of them to end,
there are no futures: a look ahead that knows little of others is worse than none (docs/reproductions/real-slurm.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from windrow.forecast.twin import Twin, simulated, waiting_jobs
from windrow.kernels import state as k
from windrow.queues.port import OthersJob, Snapshot
from windrow.sim.cluster import Cluster
from windrow.sim.futures import OwnJob, Requests, SampledFutures
from windrow.sim.futures_past import DAY_S, Past, heap_rows, waiting_rows
from windrow.strategies.base import Futures, Sampling, View

_REMEMBERED = 4000
_ENOUGH = 20  # jobs of others that were seen to end, before they tell how others run
_FRESH_S = 2.0  # how old a reading may be: which of our jobs run must be right


@dataclass
class Seen:
    """The others' jobs that were seen to run and to be gone: our own past of the queue."""

    running: dict[str, OthersJob] = field(default_factory=dict)
    rows: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    """Of each ended job: when it was first seen, its nodes, request, run and user."""
    users: dict[str, int] = field(default_factory=dict)
    since_s: float | None = None

    def user(self, name: str) -> int:
        """A number for a user."""
        return self.users.setdefault(name, len(self.users))

    def look(self, snapshot: Snapshot) -> None:
        """Take in a reading. Readings come in the order of time."""
        self.since_s = snapshot.at_s if self.since_s is None else self.since_s
        now = {job.id: job for job in snapshot.jobs if job.is_running and job.started_s is not None}
        for gone in [job for job_id, job in self.running.items() if job_id not in now]:
            assert gone.started_s is not None
            ran = max(1, min(gone.requested_s, round(snapshot.at_s - gone.started_s)))
            row = (int(gone.started_s), gone.nodes, gone.requested_s, ran, self.user(gone.user))
            self.rows = [*self.rows[-_REMEMBERED:], row]
        self.running = now

    def is_enough(self, now_s: float) -> bool:
        """Whether it says how long others run, and how many come in a day."""
        known_s = 0.0 if self.since_s is None else now_s - self.since_s
        return len(self.rows) >= _ENOUGH and known_s >= DAY_S

    def past(self, now_s: float) -> Past:
        """The past as futures want it, with times counted from now."""
        rows = np.array(self.rows, dtype=np.int64).reshape(-1, 5).T
        since = int(now_s) if self.since_s is None else int(self.since_s)
        order = np.argsort(rows[0], kind="stable")
        submit, nodes, requested, run, user = (column[order] for column in rows)
        return Past(submit - int(now_s), nodes, requested, run, user, since - int(now_s))


class Ahead:
    """Looks ahead from the twin's readings."""

    def __init__(self, twin: Twin, seen: Seen | None = None) -> None:
        self._twin = twin
        self.seen = seen or Seen()
        self._last: Snapshot | None = None

    def futures(
        self, view: View, own: Mapping[str, OwnJob], done: NDArray[np.bool_], requests: Requests
    ) -> Callable[[Sampling], Futures] | None:
        """Futures as of the twin's last reading; None where it cannot be played. `own` are own jobs by queue id.

        Times of own jobs are seconds since the epoch, as everywhere outside.
        """
        self._twin.freshen(_FRESH_S)
        snapshot = self._twin.snapshot()
        if snapshot is not self._last:
            self.seen.look(snapshot)
            self._last = snapshot
        has_others = any(job.id not in own for job in snapshot.jobs)
        if has_others and not self.seen.is_enough(snapshot.at_s):
            return None
        known = [job.id for job in snapshot.jobs if job.id in own]
        cluster = with_clients(snapshot, known, self.seen.user, self._twin.policy)
        if cluster is None or len(known) < len(own):  # just submitted, and not in the reading yet
            return None
        mine = [_shifted(own[job_id], -number, snapshot.at_s) for number, job_id in enumerate(known, 1)]
        past = self.seen.past(snapshot.at_s)
        return lambda sampling: SampledFutures(cluster, view, mine, done, requests, sampling, past)


def with_clients(
    snapshot: Snapshot, own: Sequence[str], user: Callable[[str], int], policy: str = "conservative"
) -> Cluster | None:
    """The simulated cluster of a reading, in which these jobs are clients' jobs -1, -2, ... None: it cannot be told."""
    running = [job for job in snapshot.jobs if job.is_running and job.nodes > 0]
    if sum(job.nodes for job in running) > snapshot.nodes:
        return None
    cluster = simulated(snapshot, policy=policy)
    if cluster is None:
        return None
    jobs = [*running, *waiting_jobs(snapshot)]  # the rows of the cluster's log
    number = {job_id: -i for i, job_id in enumerate(own, 1)}
    if any(job_id not in {job.id for job in jobs} for job_id in own):
        return None  # one of ours is too wide for the nodes that are left
    users = [user(job.user) for job in jobs]
    s = k.grown(cluster._state, more=len(own) + 1, users=max(users, default=0) + 2)
    for slot in heap_rows(s)[:, k.SLOT].tolist():
        row = s[s[k.RUNNING_AT] + slot * k.RUNNING_WIDTH :][: k.RUNNING_WIDTH]
        job = jobs[int(row[k.JOB])]
        row[k.REQUESTED] = max(job.requested_s, row[k.REQUESTED])  # of which the twin knows only what is left
        row[k.KILLED] = job.id in number  # at its request, unless its tasks are done before
        row[k.USER], row[k.JOB] = users[int(row[k.JOB])], number.get(job.id, int(row[k.JOB]))
    for row in waiting_rows(s):
        job = jobs[int(row[k.JOB])]
        if job.id in number:
            row[k.RUN] = k.FOREVER  # until its tasks are done
        row[k.USER], row[k.JOB] = users[int(row[k.JOB])], number.get(job.id, int(row[k.JOB]))
    s[k.CLIENTS] = s[k.ALIVE] = len(own)
    cluster._state = s
    return cluster


def _shifted(job: OwnJob, number: int, base_s: float) -> OwnJob:
    """The same job, with the twin's number and with times that count from its reading."""
    base = int(base_s)
    since = {task: at - base for task, at in job.running_since_s.items()}
    return OwnJob(number, job.plan, job.open_tasks, job.is_running, job.expected_end_s - base, since)
