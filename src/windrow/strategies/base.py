"""What a strategy is given and what it answers.

Rule 1: a strategy is pure. It is given a View and returns a Decision; the same View gives the same
Decision.
Rule 2: it is asked whenever something has changed, and answers with the jobs to submit now, often
none.
Rule 3: it does not know whether the cluster is real.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from windrow.model import is_never
from windrow.model.graph import Ints
from windrow.model.resources import NodeShape
from windrow.strategies.levels import Levels, Mask, Work

Forecast = Callable[[Ints, Ints], Ints]
"""For numbers of nodes and requested times: how long each such job would wait if it were submitted
now, in seconds."""


@dataclass(frozen=True, slots=True)
class JobPlan:
    """One job to submit: its tasks, how many nodes, how long they should run, and how much time to
    request.

    `site` is the name of the site to which it goes; empty if there is only one. (Strategies know
    one and leave it empty.) `copies`: tasks of other jobs that it runs as well; the first attempt
    to finish counts. `offered_s`: how long running jobs with idle nodes may take it over before it
    is submitted. `part`: if it asks for parts of nodes, what each has; `nodes` is then how many.
    (Strategies count parts as nodes, and leave it empty: see `decided`.) `takes`: when it is done
    it takes the tasks of other jobs that have not started.
    """

    tasks: tuple[int, ...]
    nodes: int
    run_s: int
    requested_s: int
    leeway_s: int = 0
    site: str = ""
    copies: tuple[int, ...] = ()
    offered_s: int = 0
    part: NodeShape | None = None
    takes: bool = False

    def nodes_held(self, node_cores: int) -> float:
        """How many nodes with that many cores it holds: whole ones, or the share that its parts
        are."""
        if self.part is None:
            return self.nodes
        return self.nodes * self.part.cores / node_cores

    @property
    def unit(self) -> str:
        """What `nodes` counts, for people."""
        if self.part is None:
            return "node"
        return "part"

    @property
    def all_tasks(self) -> tuple[int, ...]:
        """Its tasks and copies."""
        if self.copies:
            return (*self.tasks, *self.copies)
        return self.tasks


@dataclass(frozen=True, slots=True)
class OwnJob:
    """A job of this run that is in the system. `running_since_s` are its running tasks with their
    starts."""

    number: int
    plan: JobPlan
    open_tasks: tuple[int, ...]
    is_running: bool
    expected_end_s: int
    running_since_s: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that was considered, in numbers. Times count from now; `makespan_s` is the end of
    all tasks left.

    `site`: what is considered is this site, one of several; `data_s` is how long the job's inputs
    take to get there.
    """

    what: str
    nodes: int
    wait_s: int
    run_s: int
    leeway_s: int
    makespan_s: int | None
    note: str = ""
    site: str = ""
    data_s: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """What to submit now, and why. `individually` is remembered: from then on tasks are submitted
    one by one.

    `is_played`: the makespans of its candidates come from a look ahead; the first is that of what
    was chosen.
    """

    jobs: tuple[JobPlan, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    why: str = ""
    individually: bool = False
    is_played: bool = False


LookAhead = Callable[[Any], Any]
"""Draws ways in which the cluster may continue. Of what kind they are is between those who draw and
those who look ahead (`foresight.course`); no other needs to know."""


@dataclass(frozen=True)
class View:
    """What a strategy may know.

    `left` marks the tasks that are in no job; `ready` are those of them whose parents are all done,
    the longest first. `busy_s` is how long the running jobs should still need: the next job has
    nothing to do before that. `request` turns a run time into a requested time (it adds the
    margin), `requests` many at once. `individually` is what an earlier decision set. `futures`
    draws likely futures of the cluster, if that is possible. `elapsed_s` is how long ago the run
    started.
    """

    work: Work
    left: Mask
    ready: tuple[int, ...]
    jobs_waiting: int
    jobs_running: int
    busy_s: int
    cap: int
    individually: bool
    request: Callable[[int], int]
    requests: Callable[[Ints], Ints]
    forecast_with_margin: bool
    forecast: Forecast
    futures: LookAhead | None = None
    elapsed_s: int = 0

    @cached_property
    def levels(self) -> Levels:
        """The tasks that are left, by levels."""
        return self.work.levels(self.left)

    def within(self, nodes: int) -> View:
        """The same view if no new job can have more than these nodes."""
        return replace(self, work=self.work.within(nodes))

    @property
    def widest(self) -> int:
        """The most nodes that one of the tasks takes, of those that are left."""
        return int(self.work.workflow.nodes[self.left].max(initial=1))

    @property
    def jobs(self) -> int:
        """Own jobs in the system."""
        return self.jobs_waiting + self.jobs_running

    @property
    def can_submit(self) -> bool:
        """Whether tasks are left and the cap allows one more job."""
        return self.jobs < self.cap and bool(self.left.any())

    def waits_s(self, nodes: Ints, run_s: Ints) -> Ints:
        """The waits of jobs with these nodes and run times."""
        if not self.forecast_with_margin:
            return self.forecast(nodes, np.maximum(run_s, 1))
        return self.forecast(nodes, self.requests(run_s))

    def wait_s(self, nodes: int, run_s: int) -> int:
        """The wait of one such job."""
        return int(self.waits_s(np.array([nodes]), np.array([run_s]))[0])

    def plan(self, first: int, last: int, nodes: int, leeway_s: int = 0) -> JobPlan:
        """A job of these levels on these nodes."""
        run = self.levels.run_on_s(first, last, nodes)
        tasks = tuple(self.levels.between(first, last).tolist())
        return JobPlan(tasks, nodes, run, self.request(run + leeway_s), leeway_s)


@dataclass(frozen=True, slots=True)
class Habits:
    """What may be taken for granted of a strategy, so that it is asked less often.

    quiet: it answers with no jobs then, whatever the view. by_task: its answer is `single_jobs`,
    always or since it decided so.
    """

    quiet: Literal["never", "while jobs wait", "while jobs are there"] = "never"
    by_task: Literal["never", "always", "once individually"] = "never"


class Strategy(Protocol):
    """Cuts a workflow into jobs."""

    @property
    def name(self) -> str:
        """What users call it."""

    def decide(self, view: View) -> Decision:
        """The jobs to submit now."""


Objective = Literal["makespan", "node-hours", "balanced", "cost"]


@runtime_checkable
class LooksAhead(Strategy, Protocol):
    """A strategy that wants `View.futures`, and can be told what to aim at and how hard to
    think."""

    def has_to_wait(self, view: View) -> bool:
        """Whether it decides nothing now, however the queue looks: then no one need look."""

    def aimed(
        self,
        *,
        objective: Objective,
        deadline_s: int | None,
        think: float,
        max_nodes: int | None,
        job_s: float,
    ) -> Strategy:
        """The same strategy with that aim. `think`: how many times the usual work a decision may
        take.

        `job_s` are node-seconds by which one job more must pay for itself.
        """


def decided(strategy: Strategy, view: View) -> Decision:
    """What the strategy decides, without jobs that could never start as the queue stands; then
    `why` says so."""
    decision = _decided(strategy, view)
    if view.work.site.sharing is None:
        return decision
    jobs = (replace(job, part=view.work.part_of(np.array(job.all_tasks))) for job in decision.jobs)
    return replace(decision, jobs=tuple(jobs))


def _decided(strategy: Strategy, view: View) -> Decision:
    nodes = view.work.cluster_nodes
    if nodes < 1:
        return Decision(why="no node accepts new jobs now")
    decision = strategy.decide(view)
    able = tuple(job for job in decision.jobs if job.nodes <= nodes and not is_never(job.run_s))
    if len(able) == len(decision.jobs):
        return decision
    return _without_stuck(decision, view, able)


def _without_stuck(decision: Decision, view: View, able: tuple[JobPlan, ...]) -> Decision:
    """The jobs that some nodes hold; the others in a job for each kind of nodes, if that does."""
    nodes = view.work.cluster_nodes
    stuck = [job for job in decision.jobs if job not in able]
    parts = [part for job in stuck for part in _by_kind(view, job)]
    if parts:
        why = f"{decision.why}; in a job for each kind of nodes".removeprefix("; ")
        return replace(decision, jobs=(*able, *parts)[: view.cap - view.jobs], why=why)
    w = view.work.workflow
    who = w.ids[max(stuck[0].tasks, key=lambda task: int(w.nodes[task]))]
    why = f"task {who} needs more than the {nodes} nodes that accept new jobs now"
    return replace(decision, jobs=able, why=why)


def _by_kind(view: View, job: JobPlan) -> list[JobPlan]:
    """The job as several, each of which some kind of nodes holds, if none holds all its tasks.

    A task that must wait for one in another of them stays left.
    """
    work = view.work
    groups = work.by_kind(np.array(job.tasks))
    if len(groups) < 2:
        return []
    late = _across(work, groups)
    plans = []
    for group in groups:
        tasks = np.array(sorted(set(group.tolist()) - late), dtype=np.int64)
        if len(tasks) and (plan := _of_one_kind(view, job.nodes, tasks)) is not None:
            plans.append(plan)
    return plans


def _of_one_kind(view: View, most_nodes: int, tasks: Ints) -> JobPlan | None:
    """A job of tasks that the same kind of nodes holds; None if too few of these are left."""
    work = view.work
    most = min(most_nodes, work.nodes_for(tasks)[1], work.nodes_needed(tasks))
    nodes = max(most, int(work.workflow.nodes[tasks].max(initial=0)))
    if not most or is_never(run := int(work.run_s(tasks, nodes, nodes)[0])):
        return None
    return JobPlan(tuple(tasks.tolist()), nodes, run, view.request(run))


def _across(work: Work, groups: Sequence[Ints]) -> set[int]:
    """The tasks that wait for one of another group, or for one that does."""
    w = work.workflow
    group_of = {task: number for number, tasks in enumerate(groups) for task in tasks.tolist()}
    late: set[int] = set()
    for task in w.order.tolist():
        if task in group_of:
            parents = [parent for parent in w.parents.of(task).tolist() if parent in group_of]
            if any(p in late or group_of[p] != group_of[task] for p in parents):
                late.add(task)
    return late


def habits_of(strategy: Strategy) -> Habits | None:
    """The `habits` of a strategy that has some; None for one that must always be asked, or that
    looks at futures."""
    habits: Habits | None = getattr(strategy, "habits", None)
    return habits


def best_nodes(view: View, first: int, last: int, busy_s: int) -> tuple[int, int, int]:
    """The number of nodes on which these levels would end first, with their wait and run.

    GLUME's Algorithm 3 (its loop runs to the most usable nodes, not to `nodes`, which it does not
    define). Among equals the fewest nodes.
    """
    return best_nodes_each(view, [(first, last)], [busy_s])[0]


def best_nodes_each(
    view: View, spans: Sequence[tuple[int, int]], busy_s: Sequence[int]
) -> list[tuple[int, int, int]]:
    """The same for several spans of levels, each for itself; all waits are asked for at once."""
    runs = [view.levels.run_s(first, last) for first, last in spans]
    nodes = np.concatenate([np.arange(1, len(run) + 1, dtype=np.int64) for run in runs])
    waits = np.split(
        view.waits_s(nodes, np.concatenate(runs)), np.cumsum([len(run) for run in runs])[:-1]
    )
    found = []
    for run, wait, busy in zip(runs, waits, busy_s, strict=True):
        best = int(np.argmin(np.maximum(wait, busy) + run))
        found.append((best + 1, int(wait[best]), int(run[best])))
    return found
