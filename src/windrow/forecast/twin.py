"""The twin: the live queue, read once, simulated by our own cluster.

Rule 1: the batch system is asked one question, for the whole queue, at most once per `refresh_s`;
all else is computed.
Rule 2: what runs now runs in the twin at its second 0, for what is left of its requested time; what
waits, waits in the queue's own order. Requests are believed, as the batch system believes them, so
real starts are often earlier.
Rule 3: a job that cannot start on the usable nodes is left out; a candidate that cannot never
starts (`NEVER_S`).
Rule 4: what cannot end before announced maintenance starts after it, ours and all others. Since
only a plan for every job knows of times to come, the policy is then conservative backfilling.

A fresh twin under `conservative` plans every waiting job at its first fit, in order. That is what
backfilling schedulers that plan again in each cycle do, Slurm's among them (for as many jobs as its
cycle looks at). What is absent: limits per user, dependencies, reservations but for maintenance,
nodes of several kinds, jobs that share a node.
"""

import math
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

import numpy as np

from windrow.errors import OutsideError
from windrow.forecast.base import Clock, Ints
from windrow.kernels.jit import in_python, is_small
from windrow.model import NEVER_S
from windrow.queues.port import OthersJob, Snapshot
from windrow.sim.cluster import Closures, Cluster, EventKind, QueueEntry
from windrow.sim.settings import parse_policy

# what a job that has outlived its time gets yet: Slurm sends the last kill 30 s after the first
OVERDUE_S = 30
_LONGEST_S = 10 * 365 * 86400  # stands for requests without a limit

_MANY = 10  # a job in the queue is met by many candidates, a task by one


class Readable(Protocol):
    """The part of a queue that the twin needs."""

    def snapshot(self) -> Snapshot:
        """The whole queue now."""


@runtime_checkable
class Forgetting(Protocol):
    """A queue that may answer with what it knows from a while ago."""

    def forget(self) -> None:
        """Do so no more."""


class Twin:
    """Forecasts from the live queue, thousands per call, with no load on the batch system.

    `priority` is that of our own next job, if it is known: waiting jobs of lower priority then
    do not count, since it goes before them. Without it, it goes last. `stale_s` is how old a
    reading may get while new ones fail.
    """

    name = "twin"

    def __init__(
        self,
        queue: Readable,
        clock: Clock,
        *,
        policy: str = "conservative",
        refresh_s: float = 30.0,
        stale_s: float = 600.0,
        priority: float | None = None,
    ) -> None:
        parse_policy(policy)  # a wrong name is refused now, not at the first question
        self.policy = policy
        self.refresh_s = refresh_s
        self.stale_s = stale_s
        self.priority = priority
        self._queue = queue
        self._clock = clock
        self._snapshot: Snapshot | None = None
        self._cluster: Cluster | None = None
        self._read_at_s = self._tried_at_s = -math.inf

    def waits_s(self, nodes: Ints, requested_s: Ints) -> Ints:
        """How long each candidate would wait if it alone were submitted now. OutsideError if
        nothing can be read."""
        cluster = self._current()
        nodes, requested_s = np.broadcast_arrays(np.asarray(nodes), np.asarray(requested_s))
        waits = np.full(nodes.shape, NEVER_S, dtype=np.int64)
        fits = nodes <= (
            0 if cluster is None or self._snapshot is None else self._snapshot.open_nodes
        )
        if cluster is not None and fits.any():
            with _unhurried(self._snapshot):
                waits[fits] = cluster.estimate(nodes[fits], requested_s[fits]) - cluster.now_s
        return waits

    def waits_of(self, ids: Collection[str]) -> dict[str, int]:
        """How long these jobs, which wait, will wait yet, if all others run as long as they
        requested."""
        snapshot = self.snapshot()
        age_s = self._clock() - snapshot.at_s
        starts = starts_of(snapshot, ids, policy=self.policy)
        return {one: max(0, math.floor(at_s - age_s)) for one, at_s in starts.items()}

    def snapshot(self) -> Snapshot:
        """The reading that answers are made from."""
        self._current()
        assert self._snapshot is not None, "a reading that failed raises"
        return self._snapshot

    def add(self, nodes: int, requested_s: int) -> None:
        """We have just submitted such a job: it counts from now on, although the last reading does
        not know it."""
        if self._cluster is not None and nodes <= self._cluster.nodes:
            with _unhurried(self._snapshot):
                self._cluster.submit(nodes, requested_s, requested_s)

    def freshen(self, age_s: float) -> None:
        """Read again at the next question, unless the last reading is younger than this."""
        if not 0 <= self._clock() - self._read_at_s < age_s:
            self._tried_at_s = -math.inf

    def forget(self) -> None:
        """What was read is out of date: read again at the next question."""
        self._tried_at_s = -math.inf
        if isinstance(self._queue, Forgetting):
            self._queue.forget()

    def _current(self) -> Cluster | None:
        """The twin, moved on to now: a reading that is some seconds old has lived on as requested.
        None: no nodes."""
        now = self._clock()
        if not 0 <= now - self._tried_at_s < self.refresh_s:  # below zero the clock was set back
            self._read(now)
        if self._cluster is not None:
            age = max(self._cluster.now_s, math.floor(now - self._read_at_s))
            with _unhurried(self._snapshot):
                while self._cluster.advance(age):
                    pass  # events are those of jobs that were added; they are not needed
        return self._cluster

    def _read(self, now: float) -> None:
        self._tried_at_s = now
        try:
            snapshot = self._queue.snapshot()
        except OutsideError:
            if not 0 <= now - self._read_at_s <= self.stale_s:
                self._tried_at_s = (
                    -math.inf
                )  # nothing to answer from: the next question tries again
                raise
            return
        self._snapshot = snapshot
        self._read_at_s = now
        self._cluster = simulated(snapshot, policy=self.policy, priority=self.priority)


def simulated(
    snapshot: Snapshot,
    *,
    policy: str = "conservative",
    priority: float | None = None,
    own: Collection[str] = (),
    user: Callable[[str], int] = lambda _: 0,
) -> Cluster | None:
    """A cluster at second 0 that is in the state of the snapshot. None if no node is usable.

    The jobs with the ids `own` are clients' jobs -1, -2, ... in the snapshot's order. `user` gives
    users numbers.
    """
    if snapshot.nodes < 1:
        return None
    waiting = [
        job for job in waiting_jobs(snapshot) if priority is None or job.priority >= priority
    ]
    # While all end as requested, planning again changes nothing; estimates from a standing plan are
    # a thousand times quicker.
    is_planned = parse_policy(policy) == parse_policy("conservative-replan")
    plan = "conservative" if is_planned or snapshot.closures else policy
    entries = _entries(snapshot, waiting, own, user)
    rows = [
        (math.floor(start_s - snapshot.at_s), math.ceil(end_s - snapshot.at_s), nodes)
        for start_s, end_s, nodes in snapshot.closures
    ]
    closures = Closures(rows, running=len(entries) - len(waiting))
    with _unhurried(snapshot):
        return Cluster.of_queue(
            snapshot.nodes,
            entries,
            policy=plan,
            closures=closures,
        )


def starts_of(
    snapshot: Snapshot, ids: Collection[str], *, policy: str = "conservative"
) -> dict[str, int]:
    """How long after the reading these jobs, which wait, start, if none comes and all others run as
    long as they requested. Jobs that cannot start on the usable nodes are not in it."""
    own = [job.id for job in waiting_jobs(snapshot) if job.id in ids]
    found = dict[str, int]()
    cluster = simulated(snapshot, policy=policy, own=own)
    with _unhurried(snapshot):
        while (
            cluster is not None
            and len(found) < len(own)
            and (events := cluster.advance(_LONGEST_S))
        ):
            found |= {
                own[-event.job - 1]: event.at_s
                for event in events
                if event.kind is EventKind.STARTED
            }
    return found


def _unhurried(snapshot: Snapshot | None) -> AbstractContextManager[None]:
    """Of a short queue all is simulated in Python: that takes less time than to load kernels, or to
    compile them."""
    return in_python(really=is_small(_MANY * len(snapshot.jobs) if snapshot is not None else 0))


def left_out(snapshot: Snapshot) -> list[OthersJob]:
    """The waiting jobs that are too wide for the usable nodes: the twin does as if they were not
    there."""
    return [job for job in snapshot.jobs if not job.is_running and job.nodes > snapshot.nodes]


def waiting_jobs(snapshot: Snapshot) -> list[OthersJob]:
    """The waiting jobs that count, in the order in which the queue takes them."""
    return [job for job in snapshot.jobs if not job.is_running and 1 <= job.nodes <= snapshot.nodes]


def _entries(
    snapshot: Snapshot,
    waiting: Sequence[OthersJob],
    own: Collection[str] = (),
    user: Callable[[str], int] = lambda _: 0,
) -> list[QueueEntry]:
    """Everybody who counts: the running jobs on the usable nodes, then those that wait.

    If jobs hold more nodes than are usable (some run on nodes that are being drained, or share
    nodes), we cannot know who sits where. Then those that end last keep their nodes: a forecast is
    rather too late than too early.
    """

    def entry(job: OthersJob, left_s: int) -> QueueEntry:
        return QueueEntry(
            job.nodes, left_s, max(left_s, job.requested_s), user(job.user), job.id in own
        )

    running = [
        entry(job, _left_s(job, snapshot.at_s))
        for job in snapshot.jobs
        if job.is_running and job.nodes > 0
    ]
    if sum(job.nodes for job in running) > snapshot.nodes:
        running = _within(snapshot.nodes, running)
    return running + [entry(job, min(max(job.requested_s, 1), _LONGEST_S)) for job in waiting]


def _left_s(job: OthersJob, at_s: float) -> int:
    """What is left of a running job's requested time, in whole seconds."""
    if job.started_s is None:
        started = at_s
    else:
        started = job.started_s
    left = math.ceil(min(started + job.requested_s - at_s, _LONGEST_S))
    if left > 0:
        return left
    return OVERDUE_S


def _within(nodes: int, running: Sequence[QueueEntry]) -> list[QueueEntry]:
    """Those that end last, on no more than these nodes."""
    kept: list[QueueEntry] = []
    for job in sorted(running, key=lambda job: -job.left_s):
        if nodes > 0:
            kept.append(job._replace(nodes=min(job.nodes, nodes)))
            nodes -= kept[-1].nodes
    return kept
