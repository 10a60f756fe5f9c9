"""Futures of a live queue: what `foresight` plays its courses in, from what anybody can see of the
queue.

The twin's reading becomes a simulated cluster in which our own jobs are clients, so that courses
may wait for them, end them and submit more. How long others run, and who comes, is drawn from what
was seen of them (`observed`).

Rule: a look ahead that knows little is worse than none (docs/reproductions/real-slurm.md). While
others are there, there are no futures before enough of them was seen; nor if earlier looks ahead
have promised too much.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from windrow.forecast.twin import Twin, simulated, waiting_jobs
from windrow.foresight.course import Course, CourseEnd, Futures, Sampling
from windrow.foresight.futures import SampledFutures
from windrow.foresight.observed_file import ObservedFile
from windrow.foresight.observer import Observer
from windrow.kernels.jit import in_python, is_small
from windrow.model import NEVER_S
from windrow.model.requests import Requests
from windrow.queues.port import Accounts, Queue, Snapshot
from windrow.sim.cluster import Cluster
from windrow.strategies.base import JobPlan, OwnJob, View, best_nodes

Floats = NDArray[np.float64]

START_S = 2
"""What it takes to pass work on from one job to the next: a round of the scheduler, the start of an
agent."""
_MANY = 3  # a job of others is met in every play, for longer than a task of ours
GLANCE_S = 90.0
"""How often the queue is read between decisions."""
_FRESH_S = 2.0  # how old a reading may be: which of our jobs run must be right


class Ahead:
    """Looks ahead from the twin's readings.

    `errors` tells what own tasks took so far, as parts of what was expected. `is_trusted` False:
    only watch.
    """

    def __init__(
        self,
        twin: Twin,
        observer: Observer | None = None,
        errors: Callable[[], Floats | None] = lambda: None,
        *,
        is_trusted: bool = True,
    ) -> None:
        self._twin = twin
        self._errors = errors
        self._is_trusted = is_trusted
        self.observer = observer or Observer()
        self._last: Snapshot | None = None
        self._mine: set[str] = set()
        self._looked_s = -math.inf

    @classmethod
    def on(
        cls,
        queue: Queue,
        twin: Twin,
        errors: Callable[[], Floats | None] = lambda: None,
        *,
        is_trusted: bool = True,
        keeps: bool = True,
    ) -> Ahead:
        """A look ahead on this queue; `keeps` False: what is seen meanwhile is not kept for other
        runs."""
        if isinstance(queue, Accounts):
            accounts = queue
        else:
            accounts = None
        if accounts is None:
            place = queue.name
        else:
            place = accounts.place
        return cls(
            twin,
            Observer(ObservedFile(place), accounts, keeps=keeps),
            errors,
            is_trusted=is_trusted,
        )

    def futures(
        self,
        view: View,
        own: Mapping[str, OwnJob],
        done: NDArray[np.bool_],
        requests: Requests,
        elsewhere: Sequence[OwnJob] = (),
    ) -> Callable[[Sampling], Futures] | None:
        """Futures as of the twin's last reading; None if it cannot be played, or need not be.
        `own` are own jobs by queue id.

        `elsewhere`: jobs at other sites, whose tasks are done when they should end.
        Times of own jobs are seconds since the epoch, as everywhere outside.
        """
        snapshot = self._read_as_known(own)
        if self._is_alone_on_one(view, snapshot):
            return None
        if not view.can_submit or not self._knows_enough(view, snapshot):
            return None
        by_state = sorted(snapshot.jobs, key=lambda job: not job.is_running)
        known = [job.id for job in by_state if job.id in own]
        cluster = with_clients(snapshot, known, self.observer.observed.user, self._twin.policy)
        if cluster is None or len(known) < len(own):  # just submitted, and not in the reading yet
            return None
        numbered = [(-number, own[job_id]) for number, job_id in enumerate(known, 1)]
        numbered += [(job.number, job) for job in elsewhere]
        mine = [_shifted(job, number, snapshot.at_s) for number, job in numbered]
        past = self.observer.observed.past()
        errors = self._errors()
        return lambda sampling: LiveFutures(
            cluster, view, mine, done, requests, sampling, past, errors
        )

    def _read_as_known(self, own: Mapping[str, OwnJob]) -> Snapshot:
        """A reading in which own jobs are as the run knows them. If the last one is older,
        something of ours has happened since, which is why we are asked."""
        self._twin.freshen(_FRESH_S)
        snapshot = self._read(own)
        running = {job.id: job.is_running for job in snapshot.jobs}
        if any(running.get(job_id) != job.is_running for job_id, job in own.items()):
            self._twin.forget()
            snapshot = self._read(own)
        return snapshot

    def glance(self, own: Collection[str], now_s: float) -> None:
        """Between decisions: read the queue, if that is worth it and the last time is long enough
        ago."""
        is_due = not 0 <= now_s - self._looked_s < GLANCE_S  # below zero the clock was set back
        if is_due and self.observer.needs_readings:
            self._looked_s = now_s
            self._twin.freshen(GLANCE_S / 2)
            self._read(own)

    def _read(self, own: Collection[str]) -> Snapshot:
        """The twin's reading, taken in once. What was ever ours is not another user's."""
        self._mine.update(own)
        snapshot = self._twin.snapshot()
        if snapshot is not self._last:
            self.observer.look(snapshot, self._mine)
            self._last = snapshot
        return snapshot

    def _is_alone_on_one(self, view: View, snapshot: Snapshot) -> bool:
        """Whether there is one node and no one else: then nothing is ahead that a look could tell,
        and kernels need not be loaded, or compiled, for it."""
        is_alone = all(job.id in self._mine for job in snapshot.jobs)
        return is_alone and view.work.cluster_nodes == 1 and not snapshot.closures

    def _knows_enough(self, view: View, snapshot: Snapshot) -> bool:
        """Whether there are no other jobs, or enough is known of them for as long as what is left
        should take."""
        if all(job.id in self._mine for job in snapshot.jobs):
            return True
        _, wait_s, run_s = best_nodes(view, 0, view.levels.last, view.busy_s)
        length_s = max(wait_s, view.busy_s) + run_s
        return (
            self._is_trusted and length_s < NEVER_S and self.observer.observed.is_enough(length_s)
        )


class LiveFutures(SampledFutures):
    """Futures in which real jobs have to be started: each time that work is passed on from job to
    job takes `START_S`.

    Without that, two jobs that end with one in a play would be taken for as good, and be late each
    time.
    """

    @cached_property
    def _handovers(self) -> dict[Course, int]:
        return {}

    def play(self, course: Course, future: int, within_s: int | None = None) -> CourseEnd:
        """What comes of the course in that future, and of starting its jobs."""
        if course not in self._handovers:
            self._handovers[course] = handovers(course, self._view)
        with in_python(really=self._is_small):
            outcome = super().play(course, future, within_s)
        return replace(outcome, makespan_s=outcome.makespan_s + START_S * self._handovers[course])

    def late_s(self, job: JobPlan) -> int:
        """How much longer than expected the job may run, as far as own tasks may err."""
        with in_python(really=self._is_small):
            return super().late_s(job)

    @cached_property
    def _is_small(self) -> bool:
        """Whether there is so little to play that kernels need not be loaded."""
        jobs = self._cluster.jobs_running + self._cluster.jobs_waiting + len(self._past.rows)
        return is_small(len(self._tables.tasks) + _MANY * jobs)


def handovers(course: Course, view: View) -> int:
    """How often work is passed on from one job of the course to the next: levels by task do so
    after each level."""
    later = 0
    for group in course.then:
        has_begun = group.first == 0 and bool(course.jobs)  # its first level is in the jobs of now
        if group.how in ("by task", "dealt"):
            later += group.last - group.first + 1 - has_begun
        else:
            later += 1
    if len(course.jobs) < 2 or later:
        return later
    first = set(course.jobs[0].tasks)
    rest = course.jobs[-1].tasks
    parents = view.work.workflow.parents
    return int(any(parent in first for task in rest for parent in parents.of(task).tolist()))


def with_clients(
    snapshot: Snapshot,
    own: Collection[str],
    user: Callable[[str], int],
    policy: str = "conservative",
) -> Cluster | None:
    """The simulated cluster of a reading, in which own jobs are clients' jobs -1, -2, ... None: it
    is inconsistent."""
    running = [job for job in snapshot.jobs if job.is_running and job.nodes > 0]
    if sum(job.nodes for job in running) > snapshot.nodes:
        return None
    if not {job.id for job in (*running, *waiting_jobs(snapshot))}.issuperset(own):
        return None  # one of ours is too wide for the nodes that are left
    return simulated(snapshot, policy=policy, own=own, user=user)


def _shifted(job: OwnJob, number: int, base_s: float) -> OwnJob:
    """The same job, with the twin's number and with times that count from its reading."""
    base = int(base_s)
    since = {task: at - base for task, at in job.running_since_s.items()}
    return replace(
        job, number=number, expected_end_s=job.expected_end_s - base, running_since_s=since
    )
