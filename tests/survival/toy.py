"""A whole run in virtual time: the real manager, journal, job files and agents' decisions on a toy cluster.

What is not real: processes and clocks. So a run takes milliseconds, and can be broken at every place where something
outside the manager's memory changes (`Fate`): before and after each write to the journal, each job file and each call
to the queue. What the cluster knows survives the manager, as it would.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from windrow.agent import event_file
from windrow.agent.claim import claim, is_fenced
from windrow.agent.core import AgentCore
from windrow.agent.desk import Desk
from windrow.agent.folder import RunFolder
from windrow.agent.job_file import read_job
from windrow.agent.order import Result
from windrow.app.strategies import find_strategy
from windrow.forecast.base import Ints
from windrow.manager.core import Core
from windrow.manager.dispatch import Dispatch
from windrow.manager.journal import PredictedStart, Record, RunJournal
from windrow.manager.losses import PATIENCE
from windrow.manager.manager import Manager
from windrow.manager.outpost import Outpost
from windrow.manager.story import RunStory
from windrow.manager.terms import Terms
from windrow.model import NodeShape, Runnable, Step, Task, Workflow
from windrow.model.site import Site
from windrow.queues.port import JobSpec, JobState, JobStatus, Limits, OutcomeUnknown, QueueError, Snapshot
from windrow.strategies import Strategy, Work, whole_seconds

PATIENCE_TICKS = 5000


class Killed(BaseException):
    """The manager's process is gone, as after kill -9. No `except` for errors may stop it."""


@dataclass
class Fate:
    """Counts the places at which a manager can die. At the `deadly`-th it does."""

    deadly: int | None = None
    passed: int = 0

    def reach(self) -> None:
        """One place more."""
        if self.passed == self.deadly:
            raise Killed
        self.passed += 1


class ToyAgent:
    """An agent without processes: it decides, claims, reads and writes as the real one; its tasks only take time."""

    def __init__(self, folder: RunFolder, number: int, queue_id: str, at_s: float, cluster: ToyCluster) -> None:
        self._cluster, self.queue_id = cluster, queue_id
        self._ends_s: dict[int, tuple[float, int]] = {}
        is_over = is_fenced(folder, number)
        self.is_over = is_over or bool(claim(folder.claim(number), "toy", queue_id, at_s))
        if self.is_over:  # given up, or begun before: nothing to do here
            cluster.turned_away.append(queue_id)
            return
        job = read_job(folder.job_file(number))
        self._core = AgentCore(job, at_s)
        hosts = ("toy",) * job.nodes
        self._desk = Desk(folder, job, self._core, event_file.Writer(folder.events(number)), hosts, queue_id)
        self._desk.begin(at_s)
        self.advance(at_s)

    def advance(self, now_s: float) -> None:
        """Up to this time."""
        for task, (end_s, attempt) in sorted(self._ends_s.items()):
            if end_s <= now_s:
                del self._ends_s[task]
                why = "" if self._cluster.succeeds(task) else "exit code 1"
                self._core.ended(Result(task, attempt, 1 if why else 0, None, why), now_s)
                self._cluster.finished[task] += not why
        self._core.drop_late(now_s)
        self._desk.take_over(now_s)
        self._desk.hear(now_s)
        for start in self._core.start(now_s):
            self._cluster.started[start.spec.task] += 1
            self._cluster.starts.append((now_s, self.queue_id, start.spec.task))
            self._ends_s[start.spec.task] = now_s + self._cluster.takes_s(start.spec.task), start.attempt
        self._desk.write(now_s)
        if self._core.is_done:
            self.leave("nothing is left to do", now_s)
        elif now_s >= self._core.deadline:
            self.leave("the walltime is nearly over", now_s)

    def leave(self, why: str, now_s: float) -> None:
        """End in good order."""
        self._desk.end(why, now_s)
        self.is_over = True


@dataclass
class ToyJob:
    """A job of the toy cluster."""

    id: str
    spec: JobSpec
    submitted_s: float
    state: JobState = JobState.WAITING
    started_s: float | None = None
    ended_s: float | None = None
    exit_code: int | None = None
    agent: ToyAgent | None = None

    def end(self, state: JobState, at_s: float, code: int | None) -> None:
        """It is over."""
        self.state, self.ended_s, self.exit_code, self.agent = state, at_s, code, None


@dataclass
class ToyCluster:
    """A queue of whole nodes, first come, first served, which forgets jobs `memory_s` after their end."""

    nodes: int = 4
    memory_s: float = float("inf")
    now_s: float = 1_000_000.0
    jobs: list[ToyJob] = field(default_factory=list)
    started: Counter[int] = field(default_factory=Counter)
    finished: Counter[int] = field(default_factory=Counter)
    starts: list[tuple[float, str, int]] = field(default_factory=list)
    """Every start of a task: when, in which job of the queue, which task."""
    turned_away: list[str] = field(default_factory=list)
    held: set[str] = field(default_factory=set)
    """Jobs that do not start for now, whoever is behind them."""
    unseen: list[tuple[ToyAgent, float]] = field(default_factory=list)
    """Agents that live on though the queue calls their jobs failed, and until when."""
    succeeds: Callable[[int], bool] = lambda _: True
    takes_s: Callable[[int], float] = lambda _: 3.0
    mood: Callable[[str], str] = lambda _: ""
    """How the queue takes a call: "" well, "down", or for submissions "silent" (taken) and "deaf" (not taken)."""
    name: str = "toy"

    # The port

    def limits(self) -> Limits:
        return Limits(self.nodes, NodeShape(1), max_array=3)

    def submit(self, spec: JobSpec) -> str:
        return self.submit_array([spec])[0]

    def submit_array(self, specs: Sequence[JobSpec]) -> list[str]:
        mood = self._answer("submit")
        if mood == "deaf":
            raise OutcomeUnknown("no answer in time")
        taken = []
        for spec in specs:
            self.jobs.append(ToyJob(str(len(self.jobs) + 1), spec, self.now_s))
            taken.append(self.jobs[-1].id)
        if mood == "silent":
            raise OutcomeUnknown("no answer in time")
        return taken

    def status(self, ids: Collection[str]) -> Mapping[str, JobStatus]:
        self._answer("status")
        return {
            job.id: JobStatus(job.id, job.state, job.submitted_s, job.started_s, job.ended_s, job.exit_code)
            for job in self._known()
            if job.id in ids
        }

    def cancel(self, ids: Collection[str]) -> None:
        self._answer("cancel")
        for job in self.jobs:
            if job.id in ids and not job.state.is_over:
                self.remove(job)

    def find(self, tags: Collection[str]) -> Mapping[str, str]:
        self._answer("find")
        return {job.spec.tag: job.id for job in self._known() if job.spec.tag in tags}

    def snapshot(self) -> Snapshot:
        raise QueueError("a toy has no picture of itself")

    def probe(self, nodes: int, walltime_s: int) -> float | None:  # noqa: ARG002
        return None

    def commands(self, specs: Sequence[JobSpec]) -> list[str]:
        return [spec.tag for spec in specs]

    def _answer(self, call: str) -> str:
        mood = self.mood(call)
        if mood == "down":
            raise QueueError("the toy does not answer")
        return mood

    def _known(self) -> list[ToyJob]:
        return [job for job in self.jobs if job.ended_s is None or self.now_s - job.ended_s <= self.memory_s]

    # Time and trouble

    def tick(self) -> None:
        """A second goes by."""
        self.now_s += 1
        for job in [job for job in self.jobs if job.agent is not None]:
            assert job.agent is not None
            assert job.started_s is not None
            if self.now_s - job.started_s >= job.spec.limit_s:
                job.end(JobState.TIMED_OUT, self.now_s, None)
                continue
            job.agent.advance(self.now_s)
            if job.agent.is_over:
                job.end(JobState.ENDED, self.now_s, 0)
        for agent, until_s in self.unseen:
            if not agent.is_over and self.now_s < until_s:
                agent.advance(self.now_s)
        self._start_waiting()

    def remove(self, job: ToyJob, state: JobState = JobState.CANCELLED) -> None:
        """A job is cancelled, or preempted; its agent leaves in good order."""
        if job.agent is not None:
            job.agent.leave("stopped by signal SIGTERM", self.now_s)
        job.end(state, self.now_s, None if job.started_s is None else 143)

    def lose_sight(self, job: ToyJob) -> None:
        """A node is cut off: to the queue its job failed, but its agent lives."""
        assert job.agent is not None
        self.unseen.append((job.agent, self.now_s + job.spec.limit_s))
        job.end(JobState.NODE_FAILED, self.now_s, None)

    def break_job(self, job: ToyJob, state: JobState) -> None:
        """A running job ends without a word of its agent."""
        job.end(state, self.now_s, 137)

    @property
    def running(self) -> list[ToyJob]:
        return [job for job in self.jobs if job.agent is not None]

    @property
    def left(self) -> list[ToyJob]:
        return [job for job in self.jobs if not job.state.is_over]

    def _start_waiting(self) -> None:
        free = self.nodes - sum(job.spec.nodes for job in self.running)
        for job in [job for job in self.jobs if job.state is JobState.WAITING and job.id not in self.held]:
            if job.spec.nodes > free:
                return
            free -= job.spec.nodes
            folder, number = job.spec.command[-2:]
            job.state, job.started_s = JobState.RUNNING, self.now_s
            job.agent = ToyAgent(RunFolder.at(folder), int(number), job.id, self.now_s, self)
            if job.agent.is_over:
                job.end(JobState.ENDED, self.now_s, 0)


class MortalQueue:
    """The toy cluster as a manager calls it, who may die before and after each call that matters."""

    def __init__(self, cluster: ToyCluster, fate: Fate) -> None:
        self._cluster, self._fate = cluster, fate
        self.name, self.policy = cluster.name, "conservative"
        self.limits, self.status, self.find = cluster.limits, cluster.status, cluster.find
        self.snapshot, self.probe, self.commands = cluster.snapshot, cluster.probe, cluster.commands

    def submit(self, spec: JobSpec) -> str:
        return self.submit_array([spec])[0]

    def submit_array(self, specs: Sequence[JobSpec]) -> list[str]:
        self._fate.reach()
        taken = self._cluster.submit_array(specs)
        self._fate.reach()
        return taken

    def cancel(self, ids: Collection[str]) -> None:
        self._fate.reach()
        self._cluster.cancel(ids)
        self._fate.reach()


class MortalJournal(RunJournal):
    """A journal whose writer may die before and after each commit. Commits themselves are SQLite's promise."""

    fate: Fate

    def append(self, records: Sequence[Record], offsets: Mapping[int, int] | None = None) -> None:
        self.fate.reach()
        super().append(records, offsets)
        self.fate.reach()

    def predict(self, predictions: Sequence[PredictedStart]) -> None:
        super().predict(predictions)
        self.fate.reach()


@dataclass
class MortalDispatch(Dispatch):
    """Writes job files; the writer may die after each."""

    fate: Fate = field(default_factory=Fate)

    def prepare(self, core: Core, number: int, heard: Mapping[int, int], avoid: tuple[str, ...]) -> JobSpec:
        spec = super().prepare(core, number, heard, avoid)
        self.fate.reach()
        return spec

    def fence(self, number: int) -> None:
        super().fence(number)
        self.fate.reach()

    def abandon(self, tasks: Iterable[int]) -> None:
        super().abandon(tasks)
        self.fate.reach()


class NoWait:
    """Expects every job to start at once."""

    name = "none"

    def waits_s(self, nodes: Ints, requested_s: Ints) -> Ints:  # noqa: ARG002
        return np.zeros_like(nodes)


def braid(width: int = 3, runtime_s: int = 3) -> Runnable:
    """First, then `width` chains of two that meet, then last: four levels."""
    ups = [f"up-{i}" for i in range(width)]
    downs = [f"down-{i}" for i in range(width)]
    tasks = [
        Task("first", runtime_s),
        *(Task(name, runtime_s, parents=("first",)) for name in ups),
        *(Task(name, runtime_s, parents=(up,)) for name, up in zip(downs, ups, strict=True)),
        Task("last", runtime_s, parents=tuple(downs)),
    ]
    return Runnable(Workflow.from_tasks("braid", tasks), tuple(Step(("true",), "/", ()) for _ in tasks))


@dataclass
class ToyRun:
    """One run of a workflow on a toy cluster, and the managers that it goes through."""

    path: Path
    cluster: ToyCluster
    strategy: str | Strategy = "individual"
    runnable: Runnable = field(default_factory=braid)
    clock_step_s: float = 0.0
    """How far the wall clock is off; the steady clock never is."""
    manager: Manager | None = None

    def __post_init__(self) -> None:
        self.path.mkdir(mode=0o700)
        RunJournal.create(self.path / "journal.sqlite", {"uid": "toy"}).close()

    def hire(self, fate: Fate) -> Manager:
        """A new manager in the place of the old one, restored from the journal."""
        if self.manager is not None:
            self.manager.journal.close()  # what was not committed goes, as with its process
        journal = MortalJournal.open(self.path / "journal.sqlite", writable=True)
        journal._db.execute("PRAGMA synchronous=OFF")  # processes die here, not machines
        journal.fate = fate
        workflow, terms = self.runnable.workflow, Terms(round_s=1, overhead_s=8, patience=PATIENCE)
        site = Site.of(self.cluster.nodes, max_array=self.cluster.limits().max_array)
        folder = RunFolder.at(self.path)
        self.manager = Manager(
            folder=folder,
            journal=journal,
            core=Core(Work(workflow, whole_seconds(workflow), site), terms),
            outposts=[Outpost(MortalQueue(self.cluster, fate), forecasters=[NoWait()])],
            strategy=find_strategy(self.strategy) if isinstance(self.strategy, str) else self.strategy,
            dispatch=MortalDispatch(folder, self.runnable, "toy", "toy-1", fate=fate),
            now_s=lambda: self.cluster.now_s + self.clock_step_s,
            steady_s=lambda: self.cluster.now_s,
        )
        self.manager.restore()
        return self.manager

    def go_on(self, fate: Fate, each_tick: Callable[[], None] = lambda: None) -> bool:
        """Manage the run until it is over, or the manager dies; which of the two."""
        try:
            manager = self.hire(fate)
            manager.begin()
            self._drive(manager, each_tick)
        except Killed:
            return False
        return True

    def call_off(self, fate: Fate) -> bool:
        """Stop the run as `windrow cancel` does where nobody manages it; False where the canceller dies."""
        try:
            manager = self.hire(fate)
            manager.stop()
            self._drive(manager, lambda: None)
        except Killed:
            return False
        return True

    def _drive(self, manager: Manager, each_tick: Callable[[], None]) -> None:
        for _ in range(PATIENCE_TICKS):
            if manager.core.is_over:
                return
            manager.step()
            manager.core.check()
            self.cluster.tick()
            each_tick()
        raise AssertionError(f"the run does not end: {self.story().jobs}")

    def wait(self, seconds: int) -> None:
        """Nobody manages the run; the cluster goes on."""
        for _ in range(seconds):
            self.cluster.tick()

    def records(self) -> list[Record]:
        journal = RunJournal.open(self.path / "journal.sqlite")
        found = [record for _, record in journal.records()]
        journal.close()
        return found

    def story(self) -> RunStory:
        story = RunStory.of(self.runnable.workflow, self.records())
        assert not story.strays, "states that do not follow each other by the tables"
        return story

    def check_nothing_twice(self) -> None:
        """No finished task ran again, no job was submitted twice, none is left, and the journal tells it so."""
        tags = Counter(job.spec.tag for job in self.cluster.jobs)
        assert max(tags.values(), default=1) == 1, f"submitted twice: {tags}"
        unseen = {agent.queue_id for agent, _ in self.cluster.unseen}
        doubtful = {task for _, queue_id, task in self.cluster.starts if queue_id in unseen}
        again = {task: count for task, count in self.cluster.finished.items() if count > 1 and task not in doubtful}
        assert not again, f"ran again: {again}"
        assert not self.cluster.left, f"left in the queue: {self.cluster.left}"
        assert all(job.outcome for job in self.story().jobs.values())

    def check_complete(self) -> None:
        """And every task is done."""
        self.check_nothing_twice()
        assert self.story().is_complete
        assert sorted(self.cluster.finished) == list(range(len(self.story().tasks)))


def abandoned(path: Path) -> list[int]:
    """The tasks that agents were told not to wait for."""
    return [json.loads(line)["task"] for line in path.read_text().splitlines()]
