"""The story of a run, told from its records: what became of each job and each task. Pure.

What people see (status, report, explanations) comes from here, never from the core, whose memory
ends with a job. A journal keeps the records of a real run; a simulated run (`trials.trial`) makes
the same ones, so that its story is told by the same code. States and what may follow what are in
`story.states`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from windrow.model import Workflow
from windrow.model.attempt import Attempt
from windrow.model.cause import Cause
from windrow.story import events as e
from windrow.story.avoidance import Avoidance
from windrow.story.journal import Record
from windrow.story.local_places import LocalPlaces
from windrow.story.lost_files import LostFile
from windrow.story.states import JOB_MOVES, TASK_MOVES, AttemptState, JobStage, TaskState
from windrow.strategies import Decision, JobPlan


@dataclass(slots=True)
class TaskAttempt(Attempt):
    """One try at a task: what its agent says of it, and what became of it. `job`: in which it
    ran."""

    started_s: float = 0.0
    ended_s: float | None = None
    outcome: AttemptState = AttemptState.RUNNING


@dataclass(frozen=True, slots=True)
class Kept:
    """If a task had finished before the run began that this story is of: in which run, when, on
    which hosts."""

    run: str
    started_s: float
    ended_s: float
    hosts: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()


@dataclass(slots=True)
class TaskStory:
    """What became of a task."""

    state: TaskState = TaskState.PENDING
    job: int | None = None
    attempts: list[TaskAttempt] = field(default_factory=list)
    dropped: list[tuple[int, str]] = field(default_factory=list)
    refused: list[tuple[int, str]] = field(default_factory=list)
    """Jobs in which a disk refused what it made, each with why."""
    undone: list[tuple[float, LostFile]] = field(default_factory=list)
    """When it was to run again although it had finished or failed, and for which file."""
    kept: Kept | None = None
    """If it had finished before, if it has not run in this run."""
    saved_s: float = 0.0
    """What is done of it by its last checkpoint, and when that was heard."""
    saved_at_s: float = 0.0
    amended_s: list[float] = field(default_factory=list)
    """When it was changed."""
    ranked: list[tuple[float, int]] = field(default_factory=list)
    """When it was given another priority, and which."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bytes of its outputs, in their order, as they were when it made them; empty if it has
        not."""
        made = self.kept or self.last
        if made is None:
            return ()
        return made.sizes

    @property
    def last(self) -> TaskAttempt | None:
        """The attempt that tells how it stands: the one that finished it, else the latest."""
        is_done = self.state is TaskState.FINISHED
        done = (
            a for a in reversed(self.attempts) if is_done and a.outcome is AttemptState.FINISHED
        )
        return next(done, self.attempts[-1] if self.attempts else None)


@dataclass(slots=True)
class JobStory:
    """What became of a job. `outcome`: None while it is in the system."""

    plan: JobPlan
    decision: int
    planned_s: float
    id: str | None = None
    submitted_s: float | None = None
    started_s: float | None = None
    ended_s: float | None = None
    outcome: JobStage | None = None
    why: str = ""
    cause: str = ""
    hosts: tuple[str, ...] = ()
    is_asked_to_stop: bool = False
    reason: str = ""
    """The queue's latest word for why it waits."""
    limit_s: int | None = None
    """The time after which it is ended; None if there is no limit."""

    taken_by: int | None = None
    """The job that took it over and ran its tasks on its own nodes."""
    kept_s: float = 0.0
    """How long it kept its nodes for tasks to come, of a run that was held."""

    @property
    def note(self) -> str:
        """What is to be said of it beside its state."""
        return self.why or ("" if self.taken_by is None else f"taken over by job {self.taken_by}")

    @property
    def queue_started_s(self) -> float | None:
        """When the queue gave it nodes; None if it has not, or another job took it over
        before."""
        if self.taken_by is None:
            return self.started_s
        return None

    @property
    def state(self) -> JobStage:
        """In one word."""
        if self.outcome is not None:
            return self.outcome
        if self.started_s is not None:
            return JobStage.RUNNING
        if self.id is not None:
            return JobStage.WAITING
        return JobStage.PLANNED


@dataclass(slots=True)
class DecisionStory:
    """One decision, and whose forecast it was based on."""

    at_s: float
    decision: Decision
    forecast: str


@dataclass(frozen=True, slots=True)
class Addition:
    """Tasks that joined the run: when, the first of them, how many, and the event that tells all of
    them."""

    at_s: float
    first: int
    count: int
    event: e.TasksAdded


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
    held: e.RunHeld | None = None
    """Who keeps the run open for tasks to come; None: no one does."""
    additions: list[Addition] = field(default_factory=list)
    counts: Counter[TaskState] = field(default_factory=Counter)
    """How many tasks are in each state."""
    has_refusals: bool = False
    """Whether a disk refused what some task made."""
    changes: list[e.TasksAmended] = field(default_factory=list)
    """How tasks were changed."""
    _additions: dict[str, int] = field(default_factory=dict)
    avoidance: Avoidance = field(default_factory=Avoidance, compare=False)
    """Nodes on which jobs failed."""
    copied: dict[int, set[int]] = field(default_factory=dict)
    """The jobs that have a task, or a copy of it, if any was planned with a copy."""
    transfers: list[e.FileEvent] = field(default_factory=list)
    """What became of files that had to be moved, in order."""
    local: LocalPlaces = field(default_factory=LocalPlaces)
    """Files that are on nodes of jobs alone."""
    _failing: tuple[Workflow, dict[int, frozenset[int]]] | None = field(default=None, repr=False)
    strays: list[tuple[str, str]] = field(default_factory=list)
    """States that followed each other although the tables say that they do not."""

    @staticmethod
    def of(workflow: Workflow, records: Iterable[Record]) -> RunStory:
        """The story that these records tell of the workflow."""
        tasks = [TaskStory() for _ in range(len(workflow))]
        story = RunStory(workflow, tasks, counts=Counter({TaskState.PENDING: len(tasks)}))
        for record in records:
            story.hear(record)
        return story

    def count(self, state: TaskState) -> int:
        """How many tasks are in this state."""
        return self.counts[state]

    def addition(self, name: str) -> Addition | None:
        """What was added by the request of this id; None: nothing was."""
        number = self._additions.get(name)
        if number is None:
            return None
        return self.additions[number]

    def belonging_to(self, maker: str) -> list[Addition]:
        """What was added in the name of this task."""
        return [one for one in self.additions if one.event.maker == maker]

    @property
    def unread_makers(self) -> list[int]:
        """Tasks that have finished, and whose files say which tasks come after them; no one has
        read these yet."""
        rules = ((n, one) for n, one in self.workflow.rules.items() if n < len(self.tasks))
        makers = [n for n, one in rules if one.expands]
        done = (n for n in makers if self.tasks[n].state is TaskState.FINISHED)
        read = {one.event.maker for one in self.additions if one.event.is_expansion}
        return [n for n in done if self.workflow.ids[n] not in read]

    @property
    def added(self) -> int:
        """How many tasks joined the run."""
        return sum(one.count for one in self.additions)

    @property
    def kept(self) -> int:
        """How many tasks had finished in the run that this one continues."""
        return sum(task.kept is not None for task in self.tasks)

    def sizes(self) -> dict[int, int]:
        """Bytes of the files of the workflow, by number: as measured when they were made, else as
        declared."""
        found = {
            number: file.size_bytes
            for number, file in enumerate(self.workflow.files)
            if file.size_bytes
        }
        return found | self.measured()

    def measured(self) -> dict[int, int]:
        """Bytes of the files that were made, by number."""
        found = dict[int, int]()
        for number, task in enumerate(self.tasks):
            found |= zip(self.workflow.outputs.of(number).tolist(), task.sizes, strict=False)
        return found

    def transferred(self, event: e.FileEvent) -> None:
        """Files came or went; what jobs had on their nodes was not at a place of its own."""
        self.transfers += [] if e.is_local(event) else [event]

    @property
    def elsewhere(self) -> set[str]:
        """Places of files, beside home, that have something of the run."""
        places: set[str] = set()
        for event in self.transfers:
            if isinstance(event, e.FilesMoved):
                places |= {event.origin, event.to} - {""}
            elif isinstance(event, e.FilesGone) and not event.files:
                places.discard(event.place)
        return places

    @property
    def is_complete(self) -> bool:
        """Whether every task is done, or not needed."""
        done = self.counts[TaskState.FINISHED] + self.counts[TaskState.SKIPPED]
        return done == len(self.tasks)

    @property
    def has_open(self) -> bool:
        """Whether something may happen to a task by itself."""
        return any(self.counts[state] for state in TaskState if not state.is_out)

    def hear(self, record: Record) -> None:
        """One record more."""
        self.local.note(record)
        self.take_in(record.event, record.at_s, record.detail, record.attempt)

    def take_in(
        self,
        event: e.Event,
        at_s: float,
        detail: Mapping[str, Any] | None = None,
        attempt: Attempt | None = None,
    ) -> None:
        """One event more, with its exact time and what is known of it beyond what the core needs:
        of the attempt at a task, if that is what it is about."""
        if (
            not isinstance(event, e.RunBegan) or self.begun_s is None
        ):  # to look again is no progress
            self.last_s = max(self.last_s, at_s)
        if isinstance(event, AttemptEvent):
            _OF_ATTEMPTS[type(event)](self, event, at_s, attempt or Attempt(event.task))
        else:
            _TOLD[type(event)](self, event, at_s, detail or _NOTHING)
        if self.workflow.rules and not isinstance(event, e.TaskStarted | e.FileEvent):
            self._follow_skipped()

    def _follow_skipped(self) -> None:
        """What must fail for some tasks has succeeded, or may fail after all."""
        failing = self._failing_parents()
        if not failing:
            return
        wanted = self._to_skip(failing)
        is_back = False
        if self.counts[TaskState.SKIPPED]:
            for number, task in enumerate(self.tasks):
                if task.state is TaskState.SKIPPED and number not in wanted:
                    self._move(task, TaskState.PENDING)
                    is_back = True
        for number in wanted:
            self._move(self.tasks[number], TaskState.SKIPPED)
        if is_back:
            self._block_again()

    def _failing_parents(self) -> dict[int, frozenset[int]]:
        if self._failing is None or self._failing[0] is not self.workflow:
            mine = (n for n, one in self.workflow.rules.items() if one.if_failed)
            found = {n: self.workflow.failing_parents(n) for n in mine if n < len(self.tasks)}
            self._failing = self.workflow, found
        return self._failing[1]

    def _to_skip(self, failing: Mapping[int, frozenset[int]]) -> set[int]:
        """Tasks that are for a failure which has not come, and what needs them."""
        found = set[int]()
        while True:
            stack = [
                task
                for task, parents in failing.items()
                if any(self._is_met(parent, found) for parent in parents)
            ]
            below = set(stack)
            while stack:
                new = [one for one in self._needing(stack.pop()) if one not in below]
                below.update(new)
                stack += [one for one in new if self.tasks[one].state is not TaskState.FINISHED]
            wanted = {task for task in below if self.tasks[task].state in _MAY_SKIP}
            if wanted == found:
                return found
            found = wanted

    def _is_met(self, parent: int, skipped: set[int]) -> bool:
        return self.tasks[parent].state is TaskState.FINISHED or parent in skipped

    def _move(self, task: TaskStory, state: TaskState) -> None:
        if state is not task.state and state not in TASK_MOVES[task.state]:
            self.strays.append((task.state, state))
        self.counts[task.state] -= 1
        self.counts[state] += 1
        task.state = state

    def _run_began(self, event: e.RunBegan, at_s: float, _detail: Any) -> None:
        if self.begun_s is None:
            self.begun_s = at_s
        else:
            self.resumed_s.append(at_s)
        self.is_stopped = False
        self.trouble = ""
        for number, task in enumerate(self.tasks) if event.retry else ():
            if task.state in (TaskState.FAILED, TaskState.BLOCKED):
                self._move(task, TaskState.PENDING)
                if where := self.copied.get(number):  # it was blocked there, and no longer is
                    self._move(task, TaskState.SUBMITTED)
                    task.job = min(where)
        if self.counts[TaskState.CANCELLED]:
            self._block_again()

    def _run_stopped(self, _event: e.RunStopped, _at_s: float, _detail: Any) -> None:
        self.is_stopped = True
        for job in self.jobs.values():
            job.is_asked_to_stop |= job.outcome is None

    def _held(self, event: e.RunHeld | e.RunClosed, _at_s: float, _detail: Any) -> None:
        if isinstance(event, e.RunHeld):
            self.held = event
        else:
            self.held = None

    def kept_jobs(self) -> list[int]:
        """Jobs that run nothing now, and keep their nodes for tasks to come."""
        if self.held is None:
            return []
        running = [n for n, job in self.jobs.items() if job.state is JobStage.RUNNING]
        busy = {
            host
            for n in running
            for host in (n, self.jobs[n].taken_by)
            if any(not self.tasks[task].state.is_out for task in self.jobs[n].plan.all_tasks)
        }
        return [n for n in running if n not in busy and self.jobs[n].taken_by is None]

    @property
    def kept_node_s(self) -> float:
        """How long nodes were kept for tasks to come, as far as their agents have told."""
        return sum(job.kept_s * job.plan.nodes for job in self.jobs.values())

    def _tasks_added(self, event: e.TasksAdded, at_s: float, _detail: Any) -> None:
        first = len(self.tasks)
        self.workflow = event.to(self.workflow)
        self.tasks += [TaskStory() for _ in event.added.tasks]
        self.counts[TaskState.PENDING] += len(event.added.tasks)
        self._additions.setdefault(event.id, len(self.additions))
        self.additions.append(Addition(at_s, first, len(event.added.tasks), event))
        for number in range(first, len(self.tasks)):
            self._block_if_waiting(number)

    def _tasks_cancelled(self, event: e.TasksCancelled, _at_s: float, _detail: Any) -> None:
        for number in event.tasks:
            if self.tasks[number].state is not TaskState.FINISHED:
                self._move(self.tasks[number], TaskState.CANCELLED)
        for number in event.tasks:
            if self.tasks[number].state is TaskState.CANCELLED:
                self._block(number)

    def _tasks_amended(self, event: e.TasksAmended, at_s: float, _detail: Any) -> None:
        self.workflow = event.to(self.workflow)
        self.changes.append(event)
        for task in event.now.tasks:
            told = self.tasks[self.workflow.number(task.id)]
            told.amended_s.append(at_s)
            told.job = None
            self._move(told, TaskState.PENDING)
        self._block_again()

    def _tasks_ranked(self, event: e.TasksRanked, at_s: float, _detail: Any) -> None:
        for number in event.tasks:
            self.tasks[number].ranked.append((at_s, event.priority))

    def _block_again(self) -> None:
        """What is blocked by what has failed or was cancelled, and nothing else."""
        for other in self.tasks:
            if other.state is TaskState.BLOCKED:
                self._move(other, TaskState.PENDING)
        for number, other in enumerate(self.tasks):
            if other.state in (TaskState.FAILED, TaskState.CANCELLED):
                self._block(number)

    def _jobs_planned(self, event: e.JobsPlanned, at_s: float, detail: Any) -> None:
        self.decisions.append(DecisionStory(at_s, event.decision, str(detail.get("forecast", ""))))
        for plan in event.decision.jobs:
            number = len(self.jobs)
            limit_s = detail.get("limit_s", plan.requested_s)
            self.jobs[number] = JobStory(plan, len(self.decisions) - 1, at_s, limit_s=limit_s)
            for member in plan.tasks:
                task = self.tasks[member]
                self._move(task, TaskState.SUBMITTED)
                task.job = number
                if member in self.copied:
                    self.copied[member].add(number)
            for copy in plan.copies:
                if (home := self.tasks[copy].job) is not None:
                    self.copied.setdefault(copy, {home}).add(number)

    def _job(self, event: e.JobEvent, at_s: float, detail: Any) -> None:
        job = self.jobs[event.job]
        job.kept_s = detail.get("kept_s", job.kept_s)
        before = job.state
        match event:
            case e.JobSubmitted():
                job.id = event.id
                if job.submitted_s is None:  # else it was found again: the first counts
                    job.submitted_s = at_s
            case e.JobStarted() | e.JobTaken():
                job.started_s = at_s
                job.hosts = tuple(detail.get("hosts", ()))
                if isinstance(event, e.JobTaken):
                    job.taken_by = event.by
            case e.JobEnded():
                self._close(event.job, at_s, self._end_of(job), job.why)
            case e.JobWithdrawn():
                job.why = event.why
            case e.JobKilled():
                self._job_killed(event, at_s)
            case e.JobRejected():
                if not job.plan.site:  # else one of several sites gets no more
                    self.trouble = event.why
                self._close(event.job, at_s, JobStage.REJECTED, event.why)
        after = job.state
        if after is not before and after not in JOB_MOVES[before]:
            self.strays.append((before, after))

    def _end_of(self, job: JobStory) -> JobStage:
        """What became of a job that has ended by itself, or because it was asked to."""
        tasks = [self.tasks[number] for number in job.plan.all_tasks]
        if job.is_asked_to_stop and any(task.state != TaskState.FINISHED for task in tasks):
            return JobStage.CANCELLED
        if job.started_s is None:
            return JobStage.STOPPED
        return JobStage.ENDED

    def _job_killed(self, event: e.JobKilled, at_s: float) -> None:
        job = self.jobs[event.job]
        job.cause = str(event.cause)
        if event.node:
            site = job.plan.site
            self.avoidance.failed(f"{event.node} ({site})" if site else event.node, event.at_s)
        self._close(event.job, at_s, JobStage.KILLED, event.why)

    def _close(self, number: int, at_s: float, outcome: JobStage, why: str) -> None:
        job = self.jobs[number]
        job.ended_s = at_s
        job.outcome = outcome
        job.why = why
        for member in job.plan.all_tasks:
            task = self.tasks[member]
            for attempt in task.attempts if member in self.copied else task.attempts[-1:]:
                if attempt.job == number and attempt.outcome == AttemptState.RUNNING:
                    self._cut_short(task, attempt, at_s, why or "its job ended", job.cause)
                    if member in self.copied and task.state is TaskState.FINISHED:
                        attempt.outcome = AttemptState.SUPERSEDED
                        attempt.why = _BEATEN
            self._leave(member, number, (TaskState.SUBMITTED, TaskState.RUNNING))

    @staticmethod
    def _cut_short(
        task: TaskStory, attempt: TaskAttempt, at_s: float, why: str, cause: str
    ) -> None:
        """An attempt ended through no fault of its own; what it had done is lost, unless it wrote a
        checkpoint."""
        if task.saved_s > attempt.before_s:
            attempt.outcome = AttemptState.KEPT
        else:
            attempt.outcome = AttemptState.LOST
        attempt.ended_s = at_s
        attempt.why = why
        attempt.cause = cause

    def _leave(self, number: int, job: int, states: tuple[TaskState, ...]) -> None:
        """The task is in this job no more; if it was in one of these states there, then it is where
        a copy of it is."""
        task = self.tasks[number]
        if number in self.copied:
            states = (*states, TaskState.RUNNING)
        elsewhere = self.copied.get(number, set())
        elsewhere.discard(job)
        if elsewhere:
            running = [a.job for a in task.attempts if a.outcome is AttemptState.RUNNING]
        else:
            running = []
        if task.job == job and task.state in states:
            task.job = min(running or elsewhere, default=None)
            if task.job is None:
                state = TaskState.PENDING
            else:
                state = TaskState.SUBMITTED
            self._move(task, TaskState.RUNNING if running else state)
            if task.job is None:
                self._block_if_waiting(number)

    def _task_started(self, event: e.TaskStarted, at_s: float, told: Attempt) -> None:
        task = self.tasks[event.task]
        task.job = event.job
        # it has finished in a job that was given up, or is about to be ended
        if task.state not in (TaskState.FINISHED, TaskState.CANCELLED):
            self._move(task, TaskState.RUNNING)
        task.attempts.append(
            TaskAttempt(
                event.task,
                told.number or len(task.attempts) + 1,
                before_s=task.saved_s,
                nodes=told.nodes,
                near_bytes=told.near_bytes,
                job=event.job,
                started_s=at_s,
            )
        )

    def _task_checkpointed(self, event: e.TaskCheckpointed, at_s: float, _detail: Any) -> None:
        task = self.tasks[event.task]
        task.saved_s = event.done_s
        task.saved_at_s = at_s
        for attempt in task.attempts[-1:]:
            attempt.before_s = min(attempt.before_s, event.done_s)
            if event.ended:
                self._cut_short(task, attempt, at_s, "its time in this job was over", "")
                if task.state is not TaskState.CANCELLED:  # which may end with a checkpoint, too
                    self._move(task, TaskState.SUBMITTED)

    def _task_finished(self, event: e.TaskFinished, at_s: float, told: Attempt) -> None:
        task = self.tasks[event.task]
        self.copied.get(event.task, set()).clear()
        _attempt_over(task, AttemptState.FINISHED, at_s, told)
        was_cancelled = task.state is TaskState.CANCELLED
        self._move(task, TaskState.FINISHED)
        if was_cancelled:  # it had finished before it could be ended
            self._block_again()

    def _task_kept(self, event: e.TaskKept, _at_s: float, detail: Any) -> None:
        task = self.tasks[event.task]
        self._move(task, TaskState.FINISHED)
        lists: Any = {key: tuple(detail.get(key, ())) for key in ("hosts", "sizes")}
        task.kept = Kept(**{**detail, **lists})

    def _task_retried(self, event: e.TaskRetried, at_s: float, told: Attempt) -> None:
        task = self.tasks[event.task]
        _attempt_over(task, AttemptState.FAILED, at_s, told)
        runs = any(one.outcome is AttemptState.RUNNING for one in task.attempts)
        # else it has finished in a job that was given up, or another attempt continues
        is_open = task.state not in (TaskState.FINISHED, TaskState.CANCELLED)
        if is_open and not runs:
            self._move(task, TaskState.SUBMITTED)

    def _task_failed(self, event: e.TaskFailed, at_s: float, told: Attempt) -> None:
        task = self.tasks[event.task]
        _attempt_over(task, AttemptState.FAILED, at_s, told)
        if task.state != TaskState.FINISHED:
            self._move(task, TaskState.FAILED)
            self._block(event.task)

    def _task_dropped(self, event: e.TaskDropped, at_s: float, told: Attempt) -> None:
        task = self.tasks[event.task]
        left: tuple[TaskState, ...] = (TaskState.SUBMITTED,)
        if told.cause == Cause.SUPERSEDED:
            _attempt_over(task, AttemptState.SUPERSEDED, at_s, replace(told, job=event.job))
        elif told.cause in (Cause.VOLUME, Cause.MEMORY, Cause.DISMISSED):
            _attempt_over(task, AttemptState.LOST, at_s, replace(told, job=event.job))
            left = (TaskState.SUBMITTED, TaskState.RUNNING)
        else:
            task.dropped.append((event.job, told.why))
        self._leave(event.task, event.job, left)

    def _copy_failed(self, event: e.CopyFailed, _at_s: float, told: Attempt) -> None:
        task = self.tasks[event.task]
        task.dropped.append((event.job, told.why))
        self._leave(event.task, event.job, (TaskState.SUBMITTED,))
        if task.state is TaskState.PENDING:
            self._move(task, TaskState.FAILED)
            self._block(event.task)

    def _disk_refused(self, event: e.DiskRefused, at_s: float, told: Attempt) -> None:
        task = self.tasks[event.task]
        task.refused.append((event.job, event.why))
        self.has_refusals = True
        if event.is_final:
            refused = replace(told, job=event.job, why=event.why)
            _attempt_over(task, AttemptState.FAILED, at_s, refused)
            self._move(task, TaskState.FAILED)
            self._block(event.task)
        elif task.state is TaskState.RUNNING:
            _attempt_over(task, AttemptState.LOST, at_s, replace(told, job=event.job))
            self._move(task, TaskState.SUBMITTED)

    def _task_undone(self, event: e.TaskUndone, at_s: float, detail: Any) -> None:
        number = event.task
        task = self.tasks[number]
        had_failed = task.state in (TaskState.FAILED, TaskState.CANCELLED)
        self._move(task, TaskState.PENDING)
        task.job = None
        task.kept = None
        task.saved_s = 0.0
        task.undone.append((at_s, LostFile(**detail)))
        if not had_failed:
            self._block_if_waiting(number)
            return
        self._block_again()

    def _block_if_waiting(self, number: int) -> None:
        """A task that is pending waits for one that has failed, or that waits for such a one."""
        parents = set(self.workflow.parents.of(number).tolist())
        parents -= self.workflow.loose_parents(number)
        is_below = any(self.tasks[parent].state.is_never for parent in parents)
        if is_below or (self._has_stopped and not self.workflow.loose_parents(number)):
            self._move(self.tasks[number], TaskState.BLOCKED)
            self._block(number)

    def _block(self, failed: int) -> None:
        stack = self._needing(failed)
        while stack:
            number = stack.pop()
            if self.tasks[number].state in (TaskState.PENDING, TaskState.SUBMITTED):
                self._move(self.tasks[number], TaskState.BLOCKED)
                stack += self._needing(number)
        if self.tasks[failed].state is TaskState.FAILED and self._stops(failed):
            self._stop_the_rest()

    def _needing(self, number: int) -> list[int]:
        """The tasks that cannot run without this one."""
        children: list[int] = self.workflow.children.of(number).tolist()
        if not self.workflow.rules:
            return children
        return [child for child in children if number not in self.workflow.loose_parents(child)]

    def _stops(self, number: int) -> bool:
        rules = self.workflow.rules.get(number)
        return rules is not None and rules.stops

    @property
    def _has_stopped(self) -> bool:
        """Whether a task has failed after which nothing more starts."""
        if not self.workflow.rules:
            return False
        rules = ((n, one) for n, one in self.workflow.rules.items() if n < len(self.tasks))
        return any(one.stops and self.tasks[n].state is TaskState.FAILED for n, one in rules)

    def _stop_the_rest(self) -> None:
        """A task has failed after which nothing more starts, but what runs whatever happens."""
        for number, task in enumerate(self.tasks):
            is_waiting = task.state in (TaskState.PENDING, TaskState.SUBMITTED)
            if is_waiting and not self.workflow.loose_parents(number):
                self._move(task, TaskState.BLOCKED)
                self._block(number)


def _attempt_over(task: TaskStory, outcome: AttemptState, at_s: float, told: Attempt) -> None:
    """The latest attempt is over, or the one of this number, or in the job that was given up and
    has finished it."""
    mine = [one for one in reversed(task.attempts) if told.job in (one.job, -1)]
    attempt = next((one for one in mine if one.number == told.number), mine[0] if mine else None)
    if attempt is None:
        return
    attempt.outcome = outcome
    attempt.ended_s = at_s
    attempt.started_s = told.begun or attempt.started_s
    attempt.sizes = attempt.local = attempt.moved = ()
    of_its_start = ("task", "number", "job", "nodes", "near_bytes", "before_s", "begun")
    for name, value in told.told().items():
        if name not in of_its_start:
            setattr(attempt, name, value)


_MAY_SKIP = (TaskState.PENDING, TaskState.BLOCKED, TaskState.SKIPPED)
_BEATEN = "another attempt finished first"
_NOTHING: Mapping[str, Any] = {}
_TOLD: Mapping[type[e.Event], Callable[[RunStory, Any, float, Any], None]] = {
    e.RunBegan: RunStory._run_began,
    e.RunStopped: RunStory._run_stopped,
    e.RunHeld: RunStory._held,
    e.RunClosed: RunStory._held,
    e.TasksAdded: RunStory._tasks_added,
    e.TasksCancelled: RunStory._tasks_cancelled,
    e.TasksAmended: RunStory._tasks_amended,
    e.TasksRanked: RunStory._tasks_ranked,
    e.JobsPlanned: RunStory._jobs_planned,
    **dict.fromkeys(get_args(e.JobEvent), RunStory._job),
    e.TaskCheckpointed: RunStory._task_checkpointed,
    e.TaskKept: RunStory._task_kept,
    e.TaskUndone: RunStory._task_undone,
    **dict.fromkeys(
        get_args(e.FileEvent), lambda story, event, _at_s, _detail: story.transferred(event)
    ),
}
"""What each event says."""
AttemptEvent = (
    e.TaskStarted
    | e.TaskFinished
    | e.TaskRetried
    | e.TaskFailed
    | e.TaskDropped
    | e.CopyFailed
    | e.DiskRefused
)
_OF_ATTEMPTS: Mapping[type[AttemptEvent], Callable[[RunStory, Any, float, Attempt], None]] = {
    e.TaskStarted: RunStory._task_started,
    e.TaskFinished: RunStory._task_finished,
    e.TaskRetried: RunStory._task_retried,
    e.TaskFailed: RunStory._task_failed,
    e.TaskDropped: RunStory._task_dropped,
    e.CopyFailed: RunStory._copy_failed,
    e.DiskRefused: RunStory._disk_refused,
}
"""The same of events of attempts."""
