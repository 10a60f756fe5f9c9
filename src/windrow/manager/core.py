"""The core of a run: events in, actions out.

Rule 1: only `handle` changes it. Rule 2: no clock, chance or I/O in this file; time comes with the events.
Rule 3: it does not know whether the queue is real.

A job that starts before its predecessors are done waits inside its allocation; one whose tasks are done is stopped.
When a job is killed, its running tasks are lost and start again from zero in a later job; jobs that wait for them, and
have not begun, are stopped, and all that is left is cut anew.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import assert_never

import numpy as np

from windrow.errors import UserError
from windrow.manager.actions import Action, Decide, StartTask, StopJob, SubmitJob
from windrow.manager.events import (
    Event,
    JobEnded,
    JobKilled,
    JobsPlanned,
    JobStarted,
    RunBegan,
    TaskFailed,
    TaskFinished,
)
from windrow.model import NodeShape
from windrow.packing import Need, Packing
from windrow.strategies import Forecast, JobPlan, View, Work


@dataclass(slots=True)
class Job:
    """A job of this run that is in the system."""

    plan: JobPlan
    open_tasks: set[int]
    packing: Packing | None = None
    expected_end_s: int = 0
    has_begun: bool = False
    is_stopping: bool = False


@dataclass(frozen=True, slots=True)
class Terms:
    """How a run deals with its cluster.

    cap: the most jobs in the system. margin, round_s: a requested time is the run times `margin`, in whole `round_s`.
    forecast_with_margin: waits are asked for the time that will be requested, or (as in the GLUME thesis code) for the
    bare run. busy_is_request: a running job is taken to last as long as it asked for (also as there), or as it should.
    """

    cluster_nodes: int
    shape: NodeShape = field(default_factory=NodeShape)
    cap: int = 16
    margin: float = 1.1
    round_s: int = 60
    forecast_with_margin: bool = True
    busy_is_request: bool = False

    def __post_init__(self) -> None:
        if self.cap < 1 or self.margin < 1 or self.round_s < 1:
            raise UserError("a run needs a cap of at least 1 job, a margin of at least 1 and whole seconds of rounding")

    def request_s(self, run_s: int) -> int:
        """How long to ask for, for a job that should run this long."""
        return max(1, -int(-run_s * self.margin // self.round_s)) * self.round_s


class Core:
    """What one run believes and wants."""

    def __init__(self, work: Work, terms: Terms) -> None:
        """A run that has not begun. `work` is not changed, so that runs of the same workflow can share it."""
        workflow = work.workflow
        self.terms = terms
        self.work = work
        self.jobs: dict[int, Job] = {}
        self.individually = False
        self.submitted = 0
        needs = zip(workflow.cores.tolist(), workflow.memory_bytes.tolist(), workflow.nodes.tolist(), strict=True)
        self._needs = [Need(*need) for need in needs]
        self._expected = work.expected_s.tolist()
        self._open_parents = workflow.parents.degrees().tolist()
        start, index = workflow.children.start.tolist(), workflow.children.index.tolist()
        self._children = [index[start[v] : start[v + 1]] for v in range(len(workflow))]
        self._job_of: list[int | None] = [None] * len(workflow)
        self._started_s: dict[int, int] = {}
        self._left = np.ones(len(workflow), dtype=bool)
        self._ready: list[tuple[int, int]] = []  # by expected time, the longest first, then by number
        for task, parents in enumerate(self._open_parents):
            if parents == 0:
                insort(self._ready, (-self._expected[task], task))
        self._open = len(workflow)

    @property
    def is_finished(self) -> bool:
        """Whether every task is done."""
        return self._open == 0

    def handle(self, event: Event) -> list[Action]:
        """Take in what happened; what is to be done about it, in order."""
        match event:
            case TaskFinished():
                return self._task_finished(event)
            case JobStarted():
                return self._job_started(event)
            case JobsPlanned():
                return self._jobs_planned(event)
            case JobEnded():
                return self._job_left(event.job)
            case JobKilled():
                return self._job_killed(event)
            case TaskFailed():
                return self._task_failed(event)
            case RunBegan():
                return [Decide()]
            case _:
                assert_never(event)

    def view(self, at_s: int, forecast: Forecast) -> View:
        """What a strategy may know at this time."""
        running = [job for job in self.jobs.values() if job.packing is not None]
        busy = max((job.expected_end_s - at_s for job in running if not job.is_stopping), default=0)
        return View(
            work=self.work,
            left=self._left.copy(),
            ready=tuple(task for _, task in self._ready),
            jobs_waiting=len(self.jobs) - len(running),
            jobs_running=len(running),
            busy_s=max(0, busy),
            cap=self.terms.cap,
            individually=self.individually,
            request=self.terms.request_s,
            forecast_with_margin=self.terms.forecast_with_margin,
            forecast=forecast,
        )

    def check(self) -> None:
        """Assert what must always hold; for tests."""
        placed = [task for job in self.jobs.values() for task in job.open_tasks]
        assert len(placed) == len(set(placed)), "a task is in two jobs"
        assert all(self._job_of[task] is not None for task in placed)
        assert not self._left[placed].any() if placed else True
        assert int(self._left.sum()) + len(placed) == self._open, "a task was lost"
        assert len(self.jobs) <= self.terms.cap, "more jobs than the cap allows"

    def _jobs_planned(self, event: JobsPlanned) -> list[Action]:
        self.individually |= event.decision.individually
        actions: list[Action] = []
        for plan in event.decision.jobs:
            number = self.submitted
            self.submitted += 1
            self.jobs[number] = Job(plan, set(plan.tasks))
            self._left[list(plan.tasks)] = False
            for task in plan.tasks:
                self._job_of[task] = number
                if self._open_parents[task] == 0:
                    self._ready.remove((-self._expected[task], task))
            actions.append(SubmitJob(number, plan))
        return actions

    def _job_started(self, event: JobStarted) -> list[Action]:
        job = self.jobs[event.job]
        job.packing = Packing(job.plan.nodes, self.terms.shape)
        others = [j.expected_end_s for j in self.jobs.values() if j is not job and j.packing is not None]
        if self.terms.busy_is_request:
            job.expected_end_s = event.at_s + job.plan.requested_s
        else:
            job.expected_end_s = max(event.at_s, *others, 0) + job.plan.run_s
        for task in sorted(job.open_tasks):
            if self._open_parents[task] == 0:
                job.packing.offer(task, self._expected[task], self._needs[task])
        return [*self._start_tasks(event.job, event.at_s), *self._decide_if_useful()]

    def _task_finished(self, event: TaskFinished) -> list[Action]:
        number = self._close(event.task)
        self._open -= 1
        touched = [number]
        became_ready = False
        for child in self._children[event.task]:
            self._open_parents[child] -= 1
            if self._open_parents[child] == 0:
                home = self._job_of[child]
                if home is None:
                    insort(self._ready, (-self._expected[child], child))
                    became_ready = True
                elif (packing := self.jobs[home].packing) is not None:
                    packing.offer(child, self._expected[child], self._needs[child])
                    touched.append(home)
        actions: list[Action] = [a for home in dict.fromkeys(touched) for a in self._start_tasks(home, event.at_s)]
        actions += self._stop_if_done(number)
        return actions + (self._decide_if_useful() if became_ready else [])

    def _task_failed(self, event: TaskFailed) -> list[Action]:
        """It tries again, in the same allocation."""
        job = self.jobs[self._close(event.task)]
        assert job.packing is not None
        job.open_tasks.add(event.task)
        self._job_of[event.task] = number = next(n for n, j in self.jobs.items() if j is job)
        job.packing.offer(event.task, self._expected[event.task], self._needs[event.task])
        return self._start_tasks(number, event.at_s)

    def _close(self, task: int) -> int:
        """The task runs no more. Returns its job."""
        number = self._job_of[task]
        assert number is not None, "a task that is in no job cannot end"
        job = self.jobs[number]
        assert job.packing is not None
        job.packing.finish(task)
        job.open_tasks.discard(task)
        self._job_of[task] = None
        self._started_s.pop(task, None)
        return number

    def _start_tasks(self, number: int, at_s: int) -> list[Action]:
        job = self.jobs[number]
        if job.packing is None or job.is_stopping:
            return []
        started = job.packing.start()
        job.has_begun |= bool(started)
        for task, _ in started:
            self._started_s[task] = at_s
        return [StartTask(number, task, nodes) for task, nodes in started]

    def _stop_if_done(self, number: int) -> list[Action]:
        job = self.jobs[number]
        if job.open_tasks or job.is_stopping:
            return []
        job.is_stopping = True
        return [StopJob(number)]

    def _job_killed(self, event: JobKilled) -> list[Action]:
        job = self.jobs[event.job]
        lost = set(job.open_tasks)
        if job.packing is not None:
            self._expect_longer(job.packing.running, event.at_s)
        blocked = self._descendants(lost)
        stops: list[Action] = []
        for number, other in self.jobs.items():
            if other is not job and not other.has_begun and not other.is_stopping and other.open_tasks & blocked:
                other.is_stopping = True
                stops.append(StopJob(number))
        return [*stops, *self._job_left(event.job)]

    def _job_left(self, number: int) -> list[Action]:
        """A job is gone; what it had not done is left again."""
        job = self.jobs.pop(number)
        for task in sorted(job.open_tasks):
            self._job_of[task] = None
            self._left[task] = True
            self._started_s.pop(task, None)
            if self._open_parents[task] == 0:
                insort(self._ready, (-self._expected[task], task))
        return self._decide_if_useful()

    def _decide_if_useful(self) -> list[Action]:
        """A decision is due where tasks are left, the cap has room, and no job is about to give more tasks back."""
        if len(self.jobs) >= self.terms.cap or not self._left.any():
            return []
        stopping = any(job.is_stopping and job.open_tasks for job in self.jobs.values())
        return [] if stopping else [Decide()]

    def _expect_longer(self, tasks: Iterable[int], at_s: int) -> None:
        """A task lost while running takes at least twice as long as it had; else it might be lost forever."""
        longer = {task: 2 * (at_s - self._started_s[task]) for task in tasks}
        changed = {task: time for task, time in longer.items() if time > self._expected[task]}
        if changed:
            expected = self.work.expected_s.copy()
            for task, time in changed.items():
                self._expected[task] = expected[task] = time
            self.work = Work(self.work.workflow, expected, self.terms.shape, self.terms.cluster_nodes)

    def _descendants(self, tasks: set[int]) -> set[int]:
        found = set(tasks)
        stack = list(tasks)
        while stack:
            for child in self._children[stack.pop()]:
                if child not in found:
                    found.add(child)
                    stack.append(child)
        return found - tasks
