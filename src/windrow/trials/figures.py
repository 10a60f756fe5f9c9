"""What a trial comes to in figures, without its records: the quick way for campaigns.

Between two decisions everything is compiled (`windrow.kernels.run.trial`); decisions are taken by
the very strategies. If the compiled way does not apply, `recorded_trial` runs the trial, and
gives the same figures.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.cluster.state import FOREVER
from windrow.kernels.run import tables as b
from windrow.kernels.run import trial
from windrow.kernels.run.requests import submit_job
from windrow.manager.terms import NO_COPIES, CopyRules, Terms
from windrow.model import Workflow
from windrow.model.cause import Cause
from windrow.model.checkpoint import Checkpoint
from windrow.model.failures import NO_FAILURES, Failures
from windrow.model.rules import PLAIN
from windrow.sim.cluster import Cluster
from windrow.story.figures import NodeTime, node_time, queue_waits_s, visible_wait_s
from windrow.strategies.base import Habits, JobPlan, Strategy, View, habits_of
from windrow.strategies.compiled import tables
from windrow.strategies.levels import Work
from windrow.trials.trial import Additions, Trial, grown, recorded_trial

Ints = NDArray[np.int64]

_MOST_TASKS = 1 << 16  # what the keys of heaps have room for, restarts included
_QUIET = {
    "never": trial.NEVER,
    "while jobs wait": trial.WHILE_WAITING,
    "while jobs are there": trial.WHILE_IN_SYSTEM,
}
_NOBODY: Ints = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Figures:
    """In seconds, as `story.figures` says; node time in its words."""

    makespan_s: int
    visible_wait_s: int
    queue_wait_s: int
    hidden_wait_s: int
    allocated_node_s: int
    used_node_s: float
    lost_node_s: float
    jobs: int
    killed_jobs: int
    individually: bool
    node_failures: int = 0
    """How many of the killed jobs lost a node."""

    @property
    def node_time(self) -> NodeTime:
        """Where the node time went."""
        return NodeTime(self.allocated_node_s, self.used_node_s, self.lost_node_s)

    @classmethod
    def of(cls, trial: Trial) -> Figures:
        """Those of a trial with records."""
        run = trial.recorded
        waited, hidden = queue_waits_s(run)
        nodes = node_time(run)
        return cls(
            makespan_s=trial.makespan_s,
            visible_wait_s=int(visible_wait_s(run)),
            queue_wait_s=int(waited),
            hidden_wait_s=round(hidden),
            allocated_node_s=int(nodes.allocated_s),
            used_node_s=nodes.used_s,
            lost_node_s=nodes.lost_s,
            jobs=len(run.story.jobs),
            killed_jobs=run.killed_jobs,
            individually=any(told.decision.individually for told in run.story.decisions),
            node_failures=sum(job.cause == Cause.NODE_FAILED for job in run.story.jobs.values()),
        )


def trial_figures(
    cluster: Cluster,
    workflow: Workflow,
    strategy: Strategy,
    *,
    terms: Terms,
    actual_s: Ints,
    work: Work,
    additions: Additions = (),
    failures: Failures = NO_FAILURES,
    seed: int = 0,
    copies: CopyRules = NO_COPIES,
    checkpoints: Mapping[int, Checkpoint] | None = None,
) -> Figures:
    """Run the workflow on this cluster from its present time on, as `recorded_trial` does (give it
    a clone)."""
    is_plain = terms.patience is None and work.space is None and len(actual_s) <= _MOST_TASKS
    if (
        is_plain
        and habits_of(strategy) is not None
        and not (failures.in_shell or copies or checkpoints)
        and not (work.workflow.rules or _have_rules(additions))
    ):
        return _Run(cluster, strategy, terms, actual_s, work, additions).figures()
    given: dict[str, Any] = {
        "terms": terms,
        "actual_s": actual_s,
        "work": work,
        "additions": additions,
    }
    given |= {"failures": failures, "seed": seed, "copies": copies, "checkpoints": checkpoints}
    return Figures.of(recorded_trial(cluster, workflow, strategy, **given))


def _have_rules(additions: Additions) -> bool:
    return any(task.rules != PLAIN for _, tasks in additions for task in tasks)


class _Run:
    """One trial: tables, and what it asks the strategy."""

    def __init__(
        self,
        cluster: Cluster,
        strategy: Strategy,
        terms: Terms,
        actual_s: Ints,
        work: Work,
        additions: Additions,
    ) -> None:
        self.habits = habits = habits_of(strategy) or Habits()
        self.cluster = cluster
        self.strategy = strategy
        self.terms = terms
        self.work = work
        self.begun_s = cluster.now_s
        self.requests = terms.requests(work.site)
        self.individually = False
        self.numbers = self.requests.numbers()
        self.coming = deque(sorted(additions, key=lambda one: one[0]))
        # All tasks have their rows from the beginning: those that have not joined the run yet are
        # in no one's way.
        if additions:
            whole = work.extended(grown(work.workflow, additions))
        else:
            whole = work
        self.run = run = _tables(whole, actual_s, cluster.events_room)
        self.known = 0
        b.tasks_of(run)[:, b.HOME] = b.NOT_YET
        self.take_in(work)
        run[[b.CAP, b.OWNER, b.MOST_NODES]] = work.site.cap, cluster.log_users, cluster.nodes
        run[[b.FIRST_CLIENT, b.QUIET]] = -1 - cluster.clients, _QUIET[habits.quiet]
        run[b.LONGEST] = self.requests.longest_s
        run[[b.BUSY_IS_REQUEST, b.SINGLY]] = terms.busy_is_request, habits.by_task == "always"

    def figures(self) -> Figures:
        """Run to the end."""
        while (outcome := self.cluster.play(trial.go_on, self.run, self.numbers)) != trial.COMPLETE:
            assert outcome != trial.STUCK, "nothing will ever happen again, and tasks are left"
            if outcome == trial.DECIDE:
                self.decide()
            elif outcome == trial.GROW:
                workflow = self.work.workflow.extended(self.coming.popleft()[1])
                self.take_in(self.work.extended(workflow))
                self.run[b.PHASE] = trial.BEGINNING
            else:
                self.make_room(0)
        return self.measured()

    def take_in(self, work: Work) -> None:
        """The tasks of this work that are not yet in the run join it."""
        run = self.run
        new = slice(self.known, len(work.workflow))
        self.work = work
        self.known = len(work.workflow)
        b.tasks_of(run)[new, b.HOME] = b.IN_NO_JOB
        run[[b.LEFT, b.OPEN_TASKS]] += self.known - new.start
        run[[b.GROWTH_S, b.NEW_TASKS]] = self.coming[0][0] if self.coming else FOREVER, new.start

    def decide(self) -> None:
        if self.run[b.LONGER]:
            self.run[b.LONGER] = 0
            expected = b.tasks_of(self.run)[: self.known, b.EXPECTED].copy()
            self.work = self.work.expecting(expected)
        decision = self.strategy.decide(self.view())
        self.individually |= decision.individually
        if self.individually and self.habits.by_task == "once individually":
            self.run[b.SINGLY] = 1
        for plan in decision.jobs:
            self.submit(plan)

    def submit(self, plan: JobPlan) -> None:
        size = len(plan.tasks)
        self.make_room(size)
        used = self.run[b.USED_POOL]
        b.region(self.run, b.POOL_AT)[used : used + size] = b.position(
            np.array(plan.tasks, dtype=np.int64)
        )
        self.cluster.play(_submit, self.run, size, plan.nodes, plan.run_s, plan.requested_s)

    def view(self) -> View:
        run = self.run
        now = self.cluster.now_s
        tasks = b.tasks_of(self.run)[: self.known]
        own = b.region(run, b.JOBS_AT)[b.region(run, b.ACTIVE_AT)[: run[b.ACTIVE]]]
        runs = own[:, b.STAGE] == b.RUNNING
        ends = own[runs & (own[:, b.STOPPING] == 0), b.EXPECTED_END]
        left = tasks[:, b.HOME] == b.IN_NO_JOB
        ready = np.flatnonzero(left & (tasks[:, b.PARENTS] == 0))
        by_length = np.argsort(-tasks[ready, b.EXPECTED], kind="stable")
        return View(
            work=self.work,
            left=left,
            ready=tuple(ready[by_length].tolist()),
            jobs_waiting=int(run[b.WAITING_JOBS]),
            jobs_running=int(runs.sum()),
            busy_s=max(0, int(ends.max(initial=now)) - now),
            cap=self.work.site.cap,
            individually=self.individually,
            request=self.requests.request_s,
            requests=self.requests.requests_s,
            forecast_with_margin=self.terms.forecast_with_margin,
            forecast=self.cluster.waits_s,
        )

    def make_room(self, more: int) -> None:
        """Room in every table for a step of any size, and for a job of `more` tasks."""
        run = self.run
        n = len(b.tasks_of(self.run))
        jobs = int(run[b.JOBS]) + n + 1
        ends = int(run[b.RUNNING_TASKS]) + n
        self.cluster.make_room(n + 2)
        rooms = {
            b.JOBS_AT: jobs,
            b.ACTIVE_AT: jobs,
            b.ENDS_AT: ends,
            b.READY_AT: int(run[b.FREE_TASKS]) + n,
            b.POOL_AT: int(run[b.USED_POOL]) + n + more,
            b.NEWS_AT: self.cluster.events_room,
        }
        if run[b.PACKED]:
            rooms |= {b.NODES_AT: int(run[b.USED_NODES]) + self.cluster.nodes}
        self.run = b.grown(run, rooms)

    def measured(self) -> Figures:
        run = self.run
        workflow = self.work.workflow
        jobs = b.region(run, b.JOBS_AT)[: run[b.JOBS]]
        until, took_s = b.tasks_of(run)[:, [b.UNTIL, b.ACTUAL]].T
        makespan = int(until.max()) - self.begun_s
        corners, worked = _worked_s(until - took_s, until, self.begun_s)
        waited = jobs[jobs[:, b.BEGAN] > jobs[:, b.SUBMITTED]][:, [b.SUBMITTED, b.BEGAN]]
        cores = self.work.shape.cores
        taken = _cores_taken(workflow, cores)
        lost_s = b.more_of(run)[: len(workflow), b.LOST]
        return Figures(
            makespan_s=makespan,
            visible_wait_s=makespan - int(worked[-1]),
            queue_wait_s=int(run[b.QUEUE_WAIT]),
            hidden_wait_s=round(float(np.diff(np.interp(waited, corners, worked)).sum())),
            allocated_node_s=int(run[b.NODE_S] + _held_node_s(jobs, self.cluster.now_s)),
            used_node_s=int((taken * took_s).sum()) / cores,
            lost_node_s=int((taken * lost_s).sum()) / cores,
            jobs=len(jobs),
            killed_jobs=int(run[b.KILLS]),
            individually=self.individually,
            node_failures=int(run[b.NODE_FAILURES]),
        )


def _submit(
    s: Ints, _log: Ints, run: Ints, size: int, nodes: int, run_s: int, requested_s: int
) -> int:
    submit_job(s, _NOBODY, run, size, nodes, run_s, requested_s)
    return 0


def _tables(work: Work, actual_s: Ints, events: int) -> Ints:
    """The run before it begins, with room that most runs need not make larger."""
    n = len(work.workflow)
    rooms = {b.JOBS_AT: 2 * n + 1, b.ACTIVE_AT: 2 * n + 1, b.NEWS_AT: 2 * events}
    rooms |= dict.fromkeys((b.ENDS_AT, b.READY_AT, b.POOL_AT), 2 * n)
    run = tables(work, rooms, work.shape, are_alike=work.are_alike(np.arange(n)))
    b.tasks_of(run)[:, b.ACTUAL] = actual_s
    return run


def _worked_s(since: Ints, until: Ints, begun_s: int) -> tuple[Ints, Ints]:
    """For how long since the beginning some task had been at work: it grows evenly from corner to
    corner, or rests."""
    order = np.argsort(since, kind="stable")
    ends = np.maximum.accumulate(np.concatenate([[begun_s], until[order]]))
    corners = np.stack([np.clip(since[order], ends[:-1], ends[1:]), ends[1:]])
    worked = np.repeat(np.cumsum(corners[1] - corners[0]), 2)
    worked[::2] -= corners[1] - corners[0]
    return corners.T.ravel(), worked


def _cores_taken(workflow: Workflow, cores: int) -> Ints:
    """By each task, of nodes that have that many."""
    whole = workflow.nodes * cores
    return np.where(workflow.nodes > 0, whole, np.minimum(workflow.cores, cores))


def _held_node_s(jobs: Ints, now_s: int) -> int:
    """Node time of jobs that run yet."""
    held = jobs[jobs[:, b.STAGE] == b.RUNNING]
    return int((held[:, b.NODES] * (now_s - held[:, b.BEGAN])).sum())
