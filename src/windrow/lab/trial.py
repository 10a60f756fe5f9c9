"""One trial: a workflow run by a strategy on a simulated cluster. The driver between the core and virtual time.

Tasks take whole seconds. At one instant the log comes first, then tasks that finish, then what the queue says of jobs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from windrow.foresight.course import Futures, Sampling
from windrow.foresight.futures import SampledFutures, TrueFutures
from windrow.manager.actions import Abandon, Action, Decide, StopJob, SubmitJob
from windrow.manager.core import Core
from windrow.manager.events import (
    Event,
    JobEnded,
    JobKilled,
    JobsPlanned,
    JobStarted,
    RunBegan,
    TaskFinished,
    TaskStarted,
)
from windrow.manager.terms import Terms
from windrow.model import Workflow
from windrow.model.allocation import Allocation
from windrow.sim.cluster import Cluster, EventKind
from windrow.strategies import Decision, JobPlan, Strategy, View, Work
from windrow.strategies import whole_seconds as whole_seconds  # noqa: PLC0414  (others take it from here)

Ints = NDArray[np.int64]


@dataclass(slots=True)
class JobRecord:
    """What became of one job. Times are None where it never came so far."""

    plan: JobPlan
    submitted_s: int
    started_s: int | None = None
    ended_s: int | None = None
    outcome: str = ""


@dataclass(slots=True)
class TaskRecord:
    """One attempt at a task."""

    task: int
    job: int
    nodes: tuple[int, ...]
    started_s: int
    ended_s: int | None = None


@dataclass
class Trial:
    """A finished run: its jobs, its tasks, its decisions."""

    workflow: Workflow
    strategy: str
    begun_s: int
    ended_s: int = 0
    jobs: list[JobRecord] = field(default_factory=list)
    attempts: list[TaskRecord] = field(default_factory=list)
    decisions: list[tuple[int, Decision]] = field(default_factory=list)

    @property
    def makespan_s(self) -> int:
        """From the first submission to the end of the last task."""
        return self.ended_s - self.begun_s

    @property
    def used_node_s(self) -> int:
        """Node-seconds that jobs held."""
        return sum(j.plan.nodes * (j.ended_s - j.started_s) for j in self.jobs if j.started_s is not None and j.ended_s)

    @property
    def work_s(self) -> int:
        """Node-seconds in which tasks did work that counted; a task on part of a node counts for the whole node."""
        return sum(max(1, len(a.nodes)) * (a.ended_s - a.started_s) for a in self.attempts if a.ended_s is not None)

    @property
    def queue_wait_s(self) -> int:
        """All waits in the queue, hidden or not."""
        return sum(j.started_s - j.submitted_s for j in self.jobs if j.started_s is not None)

    @property
    def visible_wait_s(self) -> int:
        """Time in which no task ran."""
        spans = sorted((a.started_s, a.ended_s) for a in self.attempts if a.ended_s is not None)
        covered, until = 0, self.begun_s
        for begin, end in spans:
            if end > until:
                covered += end - max(begin, until)
                until = end
        return self.makespan_s - covered


class _Driver:
    """Feeds the core from a cluster. Lives for one trial."""

    def __init__(self, cluster: Cluster, core: Core, strategy: Strategy, actual_s: Ints, trial: Trial) -> None:
        self.cluster, self.core, self.strategy, self.trial = cluster, core, strategy, trial
        self.actual_s = actual_s.tolist()
        self.expected_s = core.work.expected_s.tolist()
        self.number_of: dict[int, int] = {}
        self.id_of: dict[int, int] = {}
        self.allocations: dict[int, Allocation] = {}
        self.finishing: list[tuple[int, int, TaskRecord]] = []

    def run(self, check: Callable[[], None] | None) -> None:
        self.feed(RunBegan(self.cluster.now_s))
        while not self.core.is_complete:
            until = self.finishing[0][0] if self.finishing else None
            happened = self.cluster.advance(until)
            self.finish_tasks()
            for event in happened:
                self.job_event(event.kind, event.job)
            assert happened or until is not None, "nothing will ever happen again, and tasks are left"
            if check is not None:
                check()
        self.trial.ended_s = max(a.ended_s for a in self.trial.attempts if a.ended_s is not None)
        self.release_all()

    def release_all(self) -> None:
        """The last task is done: whatever is still in the system goes."""
        for job_id in list(self.number_of):
            self.cluster.cancel(job_id)
        for event in self.cluster.advance(self.cluster.now_s):
            self.close_job(event.kind, event.job)

    def finish_tasks(self) -> None:
        while self.finishing and self.finishing[0][0] <= self.cluster.now_s:
            at, _, record = heappop(self.finishing)
            if record.job in self.allocations:  # else it was lost with its job, which was killed or stopped
                record.ended_s = at
                self.finish_task(record.task, record.job)

    def finish_task(self, task: int, job: int) -> None:
        """Tell the allocations, as agents would tell each other; then the core."""
        self.allocations[job].finish(task)
        touched = {job: None}
        for child in self.core.children_of(task):
            home = self.core.job_of[child]
            if home is not None and home != job and home in self.allocations:
                self.allocations[home].parent_done((child,))
                touched[home] = None
        for number in touched:
            self.start_tasks(number)
        if not self.allocations[job].open:
            self.cluster.cancel(self.id_of[job])
        self.feed(TaskFinished(self.cluster.now_s, task))

    def start_tasks(self, job: int) -> None:
        now = self.cluster.now_s
        for task, nodes in self.allocations[job].start():
            record = TaskRecord(task, job, nodes, now)
            self.trial.attempts.append(record)
            heappush(self.finishing, (now + self.actual_s[task], len(self.trial.attempts), record))
            self.core.handle(TaskStarted(now, job, task))

    def job_event(self, kind: EventKind, job_id: int) -> None:
        number, now = self.number_of[job_id], self.cluster.now_s
        if kind is EventKind.STARTED:
            self.trial.jobs[number].started_s = now
            plan = self.trial.jobs[number].plan
            self.allocations[number] = Allocation(plan.nodes, self.core.terms.shape, self.core.members(number))
            actions = self.core.handle(JobStarted(now, number))
            self.start_tasks(number)
            self.perform(actions)
            return
        self.close_job(kind, job_id)
        self.feed(JobKilled(now, number) if kind is EventKind.KILLED else JobEnded(now, number))

    def close_job(self, kind: EventKind, job_id: int) -> None:
        number = self.number_of.pop(job_id)
        self.allocations.pop(number, None)
        record = self.trial.jobs[number]
        record.ended_s = self.cluster.now_s
        if record.started_s is None:
            record.outcome = "cancelled"
        else:  # a job whose last task ends just when its time is up has done what it was for
            is_lost = kind is EventKind.KILLED and bool(self.core.jobs[number].open_tasks)
            record.outcome = "killed" if is_lost else "ended"

    def feed(self, event: Event) -> None:
        self.perform(self.core.handle(event))

    def perform(self, wanted: list[Action]) -> None:
        actions = deque(wanted)
        while actions:
            actions.extend(self.act(actions.popleft()))

    def act(self, action: Action) -> list[Action]:
        match action:
            case SubmitJob():
                job_id = self.cluster.submit(action.plan.nodes, action.plan.requested_s)
                self.number_of[job_id], self.id_of[action.job] = action.job, job_id
                self.trial.jobs.append(JobRecord(action.plan, self.cluster.now_s))
                return []
            case StopJob():
                self.cluster.cancel(self.id_of[action.job])
                return []
            case Abandon():
                raise AssertionError("no task fails in a trial")
            case Decide():
                decision = self.strategy.decide(self.view())
                if decision.jobs or decision.candidates:
                    self.trial.decisions.append((self.cluster.now_s, decision))
                return self.core.handle(JobsPlanned(self.cluster.now_s, decision))
            case _:
                assert_never(action)

    def view(self) -> View:
        """What the strategy may know, with a look ahead for those that want one: it costs nothing before."""
        plain = self.core.view(self.cluster.now_s, self.forecast)
        elapsed = self.cluster.now_s - self.trial.begun_s
        return replace(plain, elapsed_s=elapsed, futures=lambda sampling: self.futures(plain, sampling))

    def futures(self, view: View, sampling: Sampling) -> Futures:
        """Ways in which the cluster may go on, as far as a user could tell."""
        core = self.core
        own = [replace(job, number=self.id_of[number]) for number, job in core.own_jobs().items()]
        ahead = TrueFutures if sampling.runs == "truth" else SampledFutures
        return ahead(self.cluster, view, own, core.done(), core.terms.requests(), sampling, errors=self.errors())

    def errors(self) -> NDArray[np.float64]:
        """What the tasks that are done took, as parts of what was expected at first."""
        done = [
            (a.ended_s - a.started_s) / self.expected_s[a.task] for a in self.trial.attempts if a.ended_s is not None
        ]
        return np.array(done, dtype=np.float64)

    def forecast(self, nodes: Ints, requested_s: Ints) -> Ints:
        return self.cluster.estimate(nodes, requested_s, exact=False) - self.cluster.now_s


def run_trial(
    cluster: Cluster,
    workflow: Workflow,
    strategy: Strategy,
    *,
    terms: Terms | None = None,
    actual_s: Ints | None = None,
    work: Work | None = None,
    checked: bool = False,
) -> Trial:
    """Run the workflow on this cluster from its present time on; the cluster moves along (give it a clone).

    `actual_s` is what each task takes: by default the workflow's run times, rounded up. `work` is what strategies
    believe: by default the same; trials that share one share its estimates. `checked` asserts the core's invariants at
    every step.
    """
    terms = terms or Terms(cluster.nodes)
    work = work or Work(workflow, whole_seconds(workflow), terms.shape, terms.cluster_nodes)
    core = Core(work, terms)
    trial = Trial(workflow, strategy.name, cluster.now_s)
    actual = whole_seconds(workflow) if actual_s is None else actual_s
    _Driver(cluster, core, strategy, actual, trial).run(core.check if checked else None)
    return trial
