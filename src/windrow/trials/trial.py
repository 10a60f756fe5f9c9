"""One trial: a workflow run by a strategy on a simulated cluster. The driver between the core and
virtual time.

It keeps what a journal would keep, in memory. What is to be known of the run is told from there, as
of a real one (`story.story`, `story.figures`), and only if someone asks: most trials are run
for their makespan. Tasks take whole seconds. At one instant the log comes first, then tasks that
finish, then what the queue says of jobs, then tasks that join the run.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import heappop, heappush
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from windrow.errors import UserError
from windrow.foresight.course import Futures, Sampling
from windrow.foresight.futures import SampledFutures, TrueFutures
from windrow.manager.core import Core
from windrow.manager.space import space_for
from windrow.manager.terms import NO_COPIES, CopyRules, Terms
from windrow.model import Task, Workflow
from windrow.model.allocation import Allocation
from windrow.model.attempt import Attempt
from windrow.model.cause import Cause
from windrow.model.checkpoint import Checkpoint
from windrow.model.failures import NO_FAILURES, Failures
from windrow.model.site import Site
from windrow.records.runnable_file import RunnableRecord
from windrow.sim.cluster import Cluster, EventKind
from windrow.story import events as e
from windrow.story.figures import RecordedRun
from windrow.story.journal import Record
from windrow.story.states import RunState
from windrow.story.story import RunStory
from windrow.strategies import Strategy, View, Work
from windrow.strategies import whole_seconds as whole_seconds  # noqa: PLC0414  (others take it from here)

Ints = NDArray[np.int64]
Nodes = tuple[int, ...]
Additions = Sequence[tuple[int, Sequence[Task]]]
"""Tasks that join a run, and when: not before it begins, and in this order at one instant."""

_CAUSES = {
    EventKind.KILLED: (Cause.TIME_LIMIT, ""),
    EventKind.FAILED: (Cause.NODE_FAILED, "a node failed"),
}
"""Why a cluster ends a job that has not done its work, and in which words."""


def _attempt(event: e.Event, nodes: Nodes) -> Attempt | None:
    """What an agent would say of an attempt that has started."""
    if isinstance(event, e.TaskStarted) and nodes:
        return Attempt(event.task, nodes=nodes)
    return None


@dataclass
class Trial:
    """A finished run in simulation: its events, with the nodes of each task that started."""

    workflow: Workflow
    strategy: str
    cores: int
    events: list[tuple[e.Event, Nodes]] = field(default_factory=list)

    def records(self) -> Iterator[Record]:
        """As a journal would have them."""
        for event, nodes in self.events:
            yield Record(event, attempt=_attempt(event, nodes))

    @cached_property
    def story(self) -> RunStory:
        """What became of its jobs and tasks."""
        story = RunStory.of(self.workflow, ())
        for event, nodes in self.events:
            story.take_in(event, event.at_s, attempt=_attempt(event, nodes))
        return story

    @cached_property
    def recorded(self) -> RecordedRun:
        """The run as figures, pages and explanations take it."""
        name = self.workflow.name
        until_s = self.story.last_s
        return RecordedRun(
            name,
            RunState.COMPLETE,
            self.strategy,
            "simulated",
            self.story,
            (),
            until_s,
            self.cores,
            is_simulated=True,
        )

    @property
    def makespan_s(self) -> int:
        """From the first submission to the end of the last task, when the last jobs go. A manager
        that looks again after that is not progress."""
        return int(self.story.last_s) - self.events[0][0].at_s


class _Driver:
    """Feeds the core from a cluster. Lives for one trial."""

    def __init__(
        self,
        cluster: Cluster,
        core: Core,
        strategy: Strategy,
        actual_s: Ints,
        trial: Trial,
        additions: Additions,
    ) -> None:
        self.checkpoints: Mapping[int, Checkpoint] = {}
        self.cluster = cluster
        self.core = core
        self.strategy = strategy
        self.trial = trial
        self.coming = deque(sorted(additions, key=lambda one: one[0]))
        self.actual_s = actual_s.tolist()
        self.expected_s = core.work.expected_s.tolist()
        self.number_of: dict[int, int] = {}
        self.id_of: dict[int, int] = {}
        self.allocations: dict[int, Allocation] = {}
        self.finishing: list[tuple[int, int, int]] = []  # when, which task, in which job

    def run(self, check: Callable[[], None] | None) -> None:
        self.feed(e.RunBegan(self.cluster.now_s))
        self.take_tasks()
        while not self.core.is_complete or self.coming:
            if self.finishing:
                until = self.finishing[0][0]
            else:
                until = None
            if self.coming:
                if until is None:
                    until = self.coming[0][0]
                else:
                    until = min(until, self.coming[0][0])
            happened = self.cluster.advance(until)
            self.finish_tasks()
            for event in happened:
                self.job_event(event.kind, event.job)
            self.take_tasks()
            assert happened or until is not None, (
                "nothing will ever happen again, and tasks are left"
            )
            if check is not None:
                check()
        self.release_all()

    def take_tasks(self) -> None:
        """Tasks join the run."""
        while self.coming and self.coming[0][0] <= self.cluster.now_s:
            tasks = self.coming.popleft()[1]
            name = f"{len(self.core.additions)}"
            self.feed(
                e.TasksAdded(self.cluster.now_s, name, RunnableRecord("", list(tasks), [], []))
            )
            self.expected_s += self.core.work.expected_s.tolist()[len(self.expected_s) :]

    def release_all(self) -> None:
        """The last task is done: whatever is still in the system goes."""
        for job_id in list(self.number_of):
            self.cluster.cancel(job_id)
        for event in self.cluster.advance(self.cluster.now_s):
            self.job_event(event.kind, event.job)

    def finish_tasks(self) -> None:
        while self.finishing and self.finishing[0][0] <= self.cluster.now_s:
            _, task, job = heappop(self.finishing)
            if (
                job in self.allocations
            ):  # else it was lost with its job, which was killed or stopped
                self.finish_task(task, job)
        if (
            self.core.work.space is not None
        ):  # what ends at one instant makes room together, as in estimates
            for job in self.allocations:
                self.start_tasks(job)

    def finish_task(self, task: int, job: int) -> None:
        """Tell the allocations, as agents would tell each other; then the core."""
        self.allocations[job].finish(task)
        touched = {job: None}
        for child in self.core.children_of(task):
            home = self.core.job_of[child]
            if home is not None and home != job and home in self.allocations:
                self.allocations[home].parent_done((child,))
                touched[home] = None
        for number in touched if self.core.work.space is None else ():
            self.start_tasks(number)
        if not self.allocations[job].open:
            self.cluster.cancel(self.id_of[job])
        self.feed(e.TaskFinished(self.cluster.now_s, task))

    def start_tasks(self, job: int) -> None:
        now = self.cluster.now_s
        for task, nodes in self.allocations[job].start():
            left_s = max(1, self.actual_s[task] - self.core.pieces.saved.get(task, (0, 0))[0])
            heappush(self.finishing, (now + left_s, task, job))
            event = e.TaskStarted(now, job, task)
            self.trial.events.append((event, nodes))
            self.core.handle(event)

    def job_event(self, kind: EventKind, job_id: int) -> None:
        number = self.number_of[job_id]
        now = self.cluster.now_s
        job = self.core.jobs[number]
        if kind is EventKind.STARTED:
            shape = self.core.work.shape
            members = self.core.members(number)
            space = space_for(self.core, number, shape)
            allocation = Allocation(job.plan.nodes, shape, {}, space)
            allocation.grant(number, tuple(job.shares.items()))
            allocation.add(members)
            self.allocations[number] = allocation
            actions = self.heard(e.JobStarted(now, number))
            self.start_tasks(number)
            self.perform(actions)
            return
        del self.number_of[job_id]
        self.allocations.pop(number, None)
        # A job whose last task ends just when its time is up has done what it was for.
        cause, why = _CAUSES.get(kind, (None, "")) if job.open_tasks else (None, "")
        if cause and self.checkpoints:
            self.keep(number, now, has_notice=cause is Cause.TIME_LIMIT)
        self.feed(
            e.JobKilled(now, number, why=why, cause=cause) if cause else e.JobEnded(now, number)
        )

    def keep(self, number: int, now: int, *, has_notice: bool) -> None:
        """What tasks with checkpoints keep of a job that is ended: up to their notice, or the last
        periodic one."""
        for task, since_s in sorted(self.core.jobs[number].running_since_s.items()):
            if (kept := self.checkpoints.get(task)) is not None:
                ran_s = now - since_s
                every_s = kept.every_s
                if has_notice:
                    more_s = max(0.0, ran_s - kept.notice_s)
                elif every_s:
                    more_s = ran_s // every_s * every_s
                else:
                    more_s = 0
                if more_s:
                    done_s = self.core.pieces.saved.get(task, (0, 0))[0] + int(more_s)
                    self.heard(e.TaskCheckpointed(now, number, task, done_s))

    def heard(self, event: e.Event) -> list[e.Action]:
        self.trial.events.append((event, ()))
        return self.core.handle(event)

    def feed(self, event: e.Event) -> None:
        self.perform(self.heard(event))

    def perform(self, wanted: list[e.Action]) -> None:
        actions = deque(wanted)
        while actions:
            actions.extend(self.act(actions.popleft()))

    def act(self, action: e.Action) -> list[e.Action]:
        match action:
            case e.SubmitJob():
                job_id = self.cluster.submit(action.plan.nodes, action.plan.requested_s)
                self.number_of[job_id] = action.job
                self.id_of[action.job] = job_id
                return self.heard(e.JobSubmitted(self.cluster.now_s, action.job, str(job_id)))
            case e.StopJob():
                self.cluster.cancel(self.id_of[action.job])
                return []
            case e.Abandon() | e.Rank():
                raise AssertionError("no task fails in a trial, and no one asks for anything")
            case e.Decide():
                decision = self.strategy.decide(self.view())
                if any(plan.copies for plan in decision.jobs):
                    raise UserError(
                        f"{self.strategy.name} copies whole jobs, of which trials know nothing; "
                        "leave the copies out"
                    )
                decision = self.core.fitted(decision)
                planned = e.JobsPlanned(self.cluster.now_s, decision)
                if decision.jobs or decision.candidates:
                    return self.heard(planned)
                return self.core.handle(planned)
            case _:
                assert_never(action)

    def view(self) -> View:
        """What the strategy may know, with a look ahead for those that want one: it costs nothing
        before."""
        now_s = self.cluster.now_s
        elapsed_s = now_s - self.trial.events[0][0].at_s
        view = self.core.view(
            now_s,
            self.cluster.waits_s,
            elapsed_s=elapsed_s,
            futures=lambda sampling: self.futures(view, sampling),
        )
        return view

    def futures(self, view: View, sampling: Sampling) -> Futures:
        """Ways in which the cluster may continue, as far as a user could tell."""
        core = self.core
        own = [replace(job, number=self.id_of[number]) for number, job in core.own_jobs().items()]
        ahead = TrueFutures if sampling.runs == "truth" else SampledFutures
        return ahead(
            self.cluster,
            view,
            own,
            core.done(),
            core.terms.requests(view.work.site),
            sampling,
            errors=self.errors(),
        )

    def errors(self) -> NDArray[np.float64]:
        """What the tasks that are done took, as parts of what was expected at first, in the order
        of their starts."""
        since: dict[int, int] = {}
        took: dict[int, int] = {}
        for event, _ in self.trial.events:
            if isinstance(event, e.TaskStarted):
                since.pop(event.task, None)  # an attempt that was lost
                since[event.task] = event.at_s
            elif isinstance(event, e.TaskFinished):
                took[event.task] = event.at_s - since[event.task]
        done = [took[task] / self.expected_s[task] for task in since if task in took]
        return np.array(done, dtype=np.float64)


def run_trial(
    cluster: Cluster,
    workflow: Workflow,
    strategy: Strategy,
    *,
    terms: Terms | None = None,
    site: Site | None = None,
    actual_s: Ints | None = None,
    work: Work | None = None,
    additions: Additions = (),
    checkpoints: Mapping[int, Checkpoint] | None = None,
    checked: bool = False,
) -> Trial:
    """Run the workflow on this cluster from its current time; the cluster advances with it (give it
    a clone).

    `actual_s` is what each task takes, those that join it by `additions` behind the others: by
    default the run times of the workflow, rounded up. `work` is what strategies believe: by default
    the same, on `site`, by default the whole cluster; trials that share one share its estimates.
    `checkpoints`: tasks that continue from them. `checked` asserts the core's invariants at every
    step.
    """
    work = work or Work(workflow, whole_seconds(workflow), site or Site.of(cluster.nodes))
    core = Core(work, terms or Terms())
    trial = Trial(workflow, strategy.name, work.shape.cores)
    if actual_s is None:
        actual = whole_seconds(grown(workflow, additions))
    else:
        actual = actual_s
    driver = _Driver(cluster, core, strategy, actual, trial, additions)
    driver.checkpoints = checkpoints or {}
    driver.run(core.check if checked else None)
    return trial


def recorded_trial(
    cluster: Cluster,
    workflow: Workflow,
    strategy: Strategy,
    *,
    failures: Failures = NO_FAILURES,
    seed: int = 0,
    copies: CopyRules = NO_COPIES,
    additions: Additions = (),
    checkpoints: Mapping[int, Checkpoint] | None = None,
    **given: Any,
) -> Trial:
    """The same, whatever fails: `failures` beyond those of nodes, which the cluster knows, are
    drawn from the seed.

    Then the shell runs it, as it does if tasks get `copies`. UserError if tasks are to join the
    run there.
    """
    if failures.in_shell or copies:
        from windrow.trials.virtual.trials import virtual_trial  # noqa: PLC0415  (with all that a real run needs)

        _refuse_unknown_there(additions, given["work"])
        return virtual_trial(
            cluster,
            strategy,
            failures=failures,
            seed=seed,
            copies=copies,
            checkpoints=checkpoints or {},
            **given,
        )
    return run_trial(
        cluster, workflow, strategy, additions=additions, checkpoints=checkpoints, **given
    )


def _refuse_unknown_there(additions: Additions, work: Work) -> None:
    """UserError for what trials by the shell know nothing of."""
    if additions:
        what = "tasks that join the run"
    elif work.space is not None:
        what = "a limit on space"
    else:
        return
    raise UserError(
        f"trials in which more than nodes fails, or tasks get copies, know nothing of {what}; "
        "leave out one of the two"
    )


def grown(workflow: Workflow, additions: Additions) -> Workflow:
    """The workflow as it is when all have joined."""
    for _, tasks in sorted(additions, key=lambda one: one[0]):
        workflow = workflow.extended(tasks)
    return workflow
