"""The story of a run, told from its journal: what became of each job and each task. Pure.

What people see (status, report, explanations) comes from here, never from the core, whose memory ends with a job.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from windrow.manager import events as e
from windrow.manager.avoidance import Avoidance
from windrow.manager.journal import Record
from windrow.manager.lost_files import LostFile
from windrow.model import Workflow
from windrow.strategies import Decision, JobPlan


@dataclass(slots=True)
class TaskAttempt:
    """One try at a task. `outcome` is "running", "finished", "failed" or "lost"."""

    job: int
    started_s: float
    nodes: tuple[int, ...] = ()
    ended_s: float | None = None
    outcome: str = "running"
    exit: int | None = None
    signal: int | None = None
    why: str = ""
    cause: str = ""
    tail: str = ""
    peak_bytes: int = 0
    cpu_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Kept:
    """Where a task had finished before the run began that this story is of: in which run, when, on which hosts."""

    run: str
    started_s: float
    ended_s: float
    hosts: tuple[str, ...] = ()


@dataclass(slots=True)
class TaskStory:
    """What became of a task. `state` is "left", "in a job", "running", "finished", "failed" or "blocked"."""

    state: str = "left"
    job: int | None = None
    attempts: list[TaskAttempt] = field(default_factory=list)
    dropped: list[tuple[int, str]] = field(default_factory=list)
    undone: list[tuple[float, LostFile]] = field(default_factory=list)
    """When it was to run again although it had finished or failed, and for which file."""
    kept: Kept | None = None
    """Where it had finished before, where it has not run in this run."""


@dataclass(slots=True)
class JobStory:
    """What became of a job.

    `outcome`: "" while it is in the system, else "ended", "killed", "cancelled", "stopped" or "rejected".
    """

    plan: JobPlan
    decision: int
    planned_s: float
    id: str | None = None
    submitted_s: float | None = None
    started_s: float | None = None
    ended_s: float | None = None
    outcome: str = ""
    why: str = ""
    cause: str = ""
    hosts: tuple[str, ...] = ()
    is_asked_to_stop: bool = False
    reason: str = ""
    """The queue's latest word for why it waits."""
    limit_s: int | None = None
    """The time after which it is ended; None where there is no limit."""

    taken_by: int | None = None
    """The job that took it over and ran its tasks on its own nodes."""

    @property
    def note(self) -> str:
        """What is to be said of it beside its state."""
        return self.why or ("" if self.taken_by is None else f"taken over by job {self.taken_by}")

    @property
    def queue_started_s(self) -> float | None:
        """When the queue gave it nodes; None where it has not, or another job took it over before."""
        return self.started_s if self.taken_by is None else None

    @property
    def state(self) -> str:
        """In one word."""
        if self.outcome:
            return self.outcome
        if self.started_s is not None:
            return "running"
        return "waiting" if self.id is not None else "planned"


@dataclass(slots=True)
class DecisionStory:
    """One decision, and whose forecast it was based on."""

    at_s: float
    decision: Decision
    forecast: str


@dataclass
class RunStory:
    """Everything that happened in a run so far."""

    workflow: Workflow
    tasks: list[TaskStory]
    jobs: dict[int, JobStory] = field(default_factory=dict)
    decisions: list[DecisionStory] = field(default_factory=list)
    begun_s: float | None = None
    resumed_s: list[float] = field(default_factory=list)
    last_s: float = 0.0
    trouble: str = ""
    is_stopped: bool = False
    avoidance: Avoidance = field(default_factory=Avoidance)
    """Nodes on which jobs failed."""

    @staticmethod
    def of(workflow: Workflow, records: Iterable[Record]) -> RunStory:
        """The story that these records tell of the workflow."""
        story = RunStory(workflow, [TaskStory() for _ in range(len(workflow))])
        for record in records:
            story.hear(record)
        return story

    def count(self, state: str) -> int:
        """How many tasks are in this state."""
        return sum(task.state == state for task in self.tasks)

    @property
    def kept(self) -> int:
        """How many tasks had finished in the run that this one continues."""
        return sum(task.kept is not None for task in self.tasks)

    @property
    def is_complete(self) -> bool:
        """Whether every task is done."""
        return all(task.state == "finished" for task in self.tasks)

    def hear(self, record: Record) -> None:
        """One record more."""
        event, detail = record.event, record.detail or {}
        at = record.at_s
        self.last_s = max(self.last_s, at)
        match event:
            case e.RunBegan() | e.RunStopped() | e.JobsPlanned():
                self._run(event, at, detail)
            case e.JobSubmitted() | e.JobStarted() | e.JobTaken() | e.JobEnded() | e.JobKilled() | e.JobRejected():
                self._job(event, at, detail)
            case _:
                self._task(event, at, detail)

    def _run(self, event: e.RunBegan | e.RunStopped | e.JobsPlanned, at_s: float, detail: Any) -> None:
        match event:
            case e.RunBegan():
                if self.begun_s is None:
                    self.begun_s = at_s
                else:
                    self.resumed_s.append(at_s)
                self.is_stopped, self.trouble = False, ""
                for task in self.tasks:
                    if task.state in ("failed", "blocked"):
                        task.state = "left"
            case e.RunStopped():
                self.is_stopped = True
                for job in self.jobs.values():
                    job.is_asked_to_stop |= not job.outcome
            case e.JobsPlanned():
                self.decisions.append(DecisionStory(at_s, event.decision, str(detail.get("forecast", ""))))
                for plan in event.decision.jobs:
                    number = len(self.jobs)
                    limit_s = detail.get("limit_s", plan.requested_s)
                    self.jobs[number] = JobStory(plan, len(self.decisions) - 1, at_s, limit_s=limit_s)
                    for member in plan.tasks:
                        self.tasks[member].state, self.tasks[member].job = "in a job", number

    def _job(
        self,
        event: e.JobSubmitted | e.JobStarted | e.JobTaken | e.JobEnded | e.JobKilled | e.JobRejected,
        at_s: float,
        detail: Any,
    ) -> None:
        job = self.jobs[event.job]
        match event:
            case e.JobSubmitted():
                job.id = event.id
                job.submitted_s = at_s if job.submitted_s is None else job.submitted_s  # found again: the first counts
            case e.JobStarted() | e.JobTaken():
                job.started_s = at_s
                job.hosts = tuple(detail.get("hosts", ()))
                job.taken_by = event.by if isinstance(event, e.JobTaken) else job.taken_by
            case e.JobEnded():
                has_more = any(self.tasks[task].state != "finished" for task in job.plan.tasks)
                ended = "ended" if job.started_s is not None else "stopped"
                self._close(event.job, at_s, "cancelled" if job.is_asked_to_stop and has_more else ended, "")
            case e.JobKilled():
                job.cause = str(event.cause)
                if event.node:
                    self.avoidance.failed(event.node, event.at_s)
                self._close(event.job, at_s, "killed", event.why)
            case e.JobRejected():
                self.trouble = event.why
                self._close(event.job, at_s, "rejected", event.why)

    def _close(self, number: int, at_s: float, outcome: str, why: str) -> None:
        job = self.jobs[number]
        job.ended_s, job.outcome, job.why = at_s, outcome, why
        for task in [self.tasks[t] for t in job.plan.tasks]:
            for attempt in task.attempts[-1:]:
                if attempt.job == number and attempt.outcome == "running":
                    attempt.outcome, attempt.ended_s = "lost", at_s
                    attempt.why, attempt.cause = why or "its job ended", job.cause
            if task.job == number and task.state in ("in a job", "running"):
                task.state, task.job = "left", None

    def _task(self, event: e.Event, at_s: float, detail: Any) -> None:
        match event:
            case e.TaskStarted():
                task = self.tasks[event.task]
                task.job = event.job
                task.state = "running" if task.state != "finished" else task.state  # by a job that was given up
                nodes = tuple(detail.get("nodes", ()))
                task.attempts.append(TaskAttempt(event.job, at_s, nodes))
            case e.TaskFinished():
                self._attempt_over(event.task, "finished", at_s, detail)
                self.tasks[event.task].state = "finished"
            case e.TaskUndone():
                self._undone(self.tasks[event.task], at_s, LostFile(**detail))
            case e.TaskKept():
                self.tasks[event.task].state = "finished"
                self.tasks[event.task].kept = Kept(**{**detail, "hosts": tuple(detail.get("hosts", ()))})
            case e.TaskRetried():
                self._attempt_over(event.task, "failed", at_s, detail)
                if self.tasks[event.task].state != "finished":
                    self.tasks[event.task].state = "in a job"
            case e.TaskFailed():
                self._attempt_over(event.task, "failed", at_s, detail)
                if self.tasks[event.task].state != "finished":
                    self.tasks[event.task].state = "failed"
                    self._block(event.task)
            case e.TaskDropped():
                task = self.tasks[event.task]
                task.dropped.append((event.job, str(detail.get("why", ""))))
                if task.job == event.job and task.state == "in a job":
                    task.state, task.job = "left", None
            case _:
                raise AssertionError(f"unknown event {event}")

    def _undone(self, task: TaskStory, at_s: float, why: LostFile) -> None:
        had_failed = task.state == "failed"
        task.state, task.job, task.kept = "left", None, None
        task.undone.append((at_s, why))
        if had_failed:
            for other in self.tasks:
                other.state = "left" if other.state == "blocked" else other.state
            for number, other in enumerate(self.tasks):
                if other.state == "failed":
                    self._block(number)

    def _block(self, failed: int) -> None:
        stack = self.workflow.children.of(failed).tolist()
        while stack:
            number = stack.pop()
            if self.tasks[number].state in ("left", "in a job"):
                self.tasks[number].state = "blocked"
                stack += self.workflow.children.of(number).tolist()

    def _attempt_over(self, number: int, outcome: str, at_s: float, detail: Any) -> None:
        """The latest attempt is over, or the one in the job that was given up and has finished it all the same."""
        task = self.tasks[number]
        job = detail.get("job")
        attempts = [a for a in task.attempts if job is None or a.job == job]
        if not attempts:
            return
        attempt = attempts[-1]
        attempt.outcome, attempt.ended_s = outcome, at_s
        attempt.started_s = detail.get("begun", attempt.started_s)
        for name in ("exit", "signal", "why", "cause", "tail", "peak_bytes", "cpu_s"):
            if name in detail:
                setattr(attempt, name, detail[name])
