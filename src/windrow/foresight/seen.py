"""The queue as one run saw it, in a small file of its own: what `windrow report --what-if` replays.

It has the first reading whole, and what later readings tell: who came, when they started, when they
were gone.
Rule 1: it names no users, and is for its owner alone. Rule 2: it is bounded, as observations are
(`observed`); of a longer queue there is none. Rule 3: nothing here stops a run.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import numpy as np

from windrow.errors import OutsideError
from windrow.files import replacing
from windrow.forecast.twin import OVERDUE_S, Readable, waiting_jobs
from windrow.foresight.observed import Observed
from windrow.model import Log, NodeShape
from windrow.model.resources import Counts
from windrow.model.site import Site
from windrow.queues.port import OthersJob, PastJob, Snapshot

FORMAT = 1
MOST_JOBS = 10_000
"""A queue with more jobs than these at once is not kept."""
KEEP_S = 60.0
"""How often the file is written while the run lasts."""
_LONGEST_S = 365 * 86_400  # stands for requests without a limit

_First = tuple[str, int, int, float | None]
"""A job of the first reading: id, nodes, requested time, when it started."""
_Later = tuple[str, int, int, float, float | None, float | None]
"""A job as it was last seen: id, nodes, requested time, submitted, started, ended."""


class Seen(msgspec.Struct, kw_only=True):
    """What one run saw. Times are seconds since the epoch."""

    format: int = FORMAT
    policy: str
    nodes: int
    cores: int
    memory_bytes: int | None
    disk_bytes: int | None
    counts: Counts
    max_nodes: int | None
    max_request_s: int | None
    at_s: float
    until_s: float
    first: tuple[_First, ...]
    later: tuple[_Later, ...] = ()

    def site(self, cap: int, max_nodes: int | None) -> Site:
        """Where the run was, with what its user wanted."""
        shape = NodeShape(self.cores, self.memory_bytes, self.disk_bytes, self.counts)
        bounds = [most for most in (self.max_nodes, max_nodes) if most is not None]
        return Site.of(
            self.nodes,
            shape,
            cap=cap,
            max_nodes=min(bounds, default=None),
            max_request_s=self.max_request_s,
        )

    def log(self, own: Collection[str]) -> Log:
        """The others' jobs as a log: it begins with the first reading, at second 0. `own` are the
        ids of jobs of the run itself.

        A job that was not seen to end holds its nodes for all of the requested time.
        """
        rows = sorted(self._rows(own), key=lambda row: row[0])
        submit, nodes, requested, run = np.array(rows, dtype=np.int64).reshape(-1, 4).T
        user = np.zeros(len(rows), dtype=np.int64)
        return Log("seen", self.nodes, np.arange(len(rows)), submit, nodes, requested, run, user)

    def held(self, own: Collection[str]) -> Iterator[tuple[float, float | None, float | None, int]]:
        """When jobs of others came, started and ended, as far as that was seen, and their
        nodes."""
        last = {row[0]: row for row in self.later}
        for job, nodes, _, started_s in self.first:
            if job not in own:
                begun_s, ended_s = last[job][4:] if job in last else (started_s, None)
                yield self.at_s, begun_s, ended_s, nodes
        known = {row[0] for row in self.first}
        for job, nodes, _, submitted_s, begun_s, ended_s in self.later:
            if job not in own and job not in known:
                yield submitted_s, begun_s, ended_s, nodes

    def _rows(self, own: Collection[str]) -> Iterator[tuple[int, int, int, int]]:
        """When each was submitted, its nodes, its requested time, how long it ran; those that ran
        at first come first."""
        last = {row[0]: row for row in self.later}
        known = {row[0] for row in self.first}
        for job, nodes, requested_s, started_s in self.first:
            if job in own:
                continue
            ended_s = last[job][5] if job in last else None
            if started_s is None:
                begun_s = last[job][4] if job in last else None
                yield 0, nodes, requested_s, _ran(begun_s, ended_s, requested_s)
                continue
            left_s = math.ceil(started_s + requested_s - self.at_s)
            if left_s < 1:
                left_s = OVERDUE_S
            yield 0, nodes, left_s, _ran(self.at_s, ended_s, left_s)
        for job, nodes, requested_s, submitted_s, started_s, ended_s in self.later:
            if job in own or job in known or not 1 <= nodes <= self.nodes:
                continue
            came_s = max(0, math.ceil(submitted_s - self.at_s))
            yield came_s, nodes, requested_s, _ran(started_s, ended_s, requested_s)


def _ran(started_s: float | None, ended_s: float | None, most_s: int) -> int:
    """How long a job ran, in whole seconds; all that it may if that was not seen."""
    if started_s is None or ended_s is None:
        return most_s
    return max(1, min(most_s, round(ended_s - started_s)))


class WatchedQueue:
    """A queue whose readings are kept for this run. It is read as the queue itself is."""

    def __init__(self, queue: Readable, path: Path, site: Site, policy: str) -> None:
        self._queue = queue
        self._path = path
        self._site = site
        self._policy = policy
        self._seen: Seen | None = read_seen(path)
        self._observed = Observed()
        if self._seen is not None:
            self._observed.jobs = {row[0]: _past(row) for row in self._seen.later}
        self._kept_s = -math.inf
        self._is_over = False

    def snapshot(self) -> Snapshot:
        """The queue now, noted on the way."""
        snapshot = self._queue.snapshot()
        if not self._is_over:
            self._note(snapshot)
        return snapshot

    def keep(self) -> None:
        """Write down what is known so far; a disk that does not take it is no trouble of the
        run."""
        if self._seen is None:
            return
        self._seen.later = tuple(_later(job) for job in self._observed.jobs.values())
        with suppress(OSError, OutsideError), replacing(self._path, lasting=False) as file:
            file.write(msgspec.json.encode(self._seen))

    def _note(self, snapshot: Snapshot) -> None:
        if self._seen is None:
            self._seen = _first(snapshot, self._site, self._policy)
            self._is_over = self._seen is None
        if self._seen is None or snapshot.at_s < self._seen.at_s:
            return
        self._observed.look(snapshot)
        self._seen.until_s = snapshot.at_s
        if not 0 <= snapshot.at_s - self._kept_s < KEEP_S:
            self._kept_s = snapshot.at_s
            self.keep()


def read_seen(path: Path) -> Seen | None:
    """What was kept; None if nothing was, or nothing that can be understood."""
    try:
        seen = msgspec.json.decode(path.read_bytes(), type=Seen)
    except (OSError, msgspec.DecodeError):
        return None
    if seen.format == FORMAT:
        return seen
    return None


def _first(snapshot: Snapshot, site: Site, policy: str) -> Seen | None:
    """Of a first reading; None if it cannot be replayed: no nodes, too many jobs, or jobs on more
    nodes than there are."""
    running = [job for job in snapshot.jobs if job.is_running and job.nodes > 0]
    jobs = [*running, *waiting_jobs(snapshot)]
    is_much = len(jobs) > MOST_JOBS or sum(job.nodes for job in running) > snapshot.nodes
    if snapshot.nodes < 1 or is_much or site.sharing is not None:
        return None
    shape = site.shape
    return Seen(
        policy=policy,
        nodes=snapshot.nodes,
        cores=shape.cores,
        memory_bytes=shape.memory_bytes,
        disk_bytes=shape.disk_bytes,
        counts=shape.counts,
        max_nodes=site.max_nodes,
        max_request_s=site.max_request_s,
        at_s=snapshot.at_s,
        until_s=snapshot.at_s,
        first=tuple(_at_first(job, snapshot.at_s) for job in jobs),
    )


def _at_first(job: OthersJob, at_s: float) -> _First:
    started_s = None
    if job.is_running:
        started_s = at_s if job.started_s is None else job.started_s
    return job.id, job.nodes, _within(job.requested_s), started_s


def _later(job: PastJob) -> _Later:
    asked_s = _within(job.requested_s)
    return job.id, job.nodes, asked_s, job.submitted_s, job.started_s, job.ended_s


def _past(row: _Later) -> PastJob:
    job, nodes, requested_s, submitted_s, started_s, ended_s = row
    return PastJob(job, "", nodes, requested_s, submitted_s, started_s, ended_s)


def _within(requested_s: int) -> int:
    return max(1, min(requested_s, _LONGEST_S))
