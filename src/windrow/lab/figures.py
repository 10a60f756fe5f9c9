"""What a trial comes to in figures, without its records: the quick way for campaigns.

Between two decisions everything is compiled (`windrow.kernels.run.trial`); decisions are taken by the very strategies.
Where the compiled way does not apply, `run_trial` runs the trial, and gives the same figures.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.cluster import state as k
from windrow.kernels.run import trial as b
from windrow.lab.trial import Trial, run_trial
from windrow.manager.figures import attempt_s, attempts, node_time, queue_waits_s, visible_wait_s
from windrow.manager.states import AttemptState
from windrow.manager.terms import Terms
from windrow.model import Workflow
from windrow.sim.cluster import Cluster
from windrow.strategies import Decision, Habits, JobPlan, Strategy, View, Work, habits_of

Ints = NDArray[np.int64]

_MOST_TASKS = 1 << 16  # what the keys of heaps have room for, restarts included
_QUIET = {"never": b.NEVER, "while jobs wait": b.WHILE_WAITING, "while jobs are there": b.WHILE_IN_SYSTEM}
_NOBODY: Ints = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Figures:
    """In whole seconds, as `manager.figures` says. `used_node_s` was held by jobs.

    `work_s` are node-seconds of work that counted, where a task on part of a node counts for the whole node.
    """

    makespan_s: int
    visible_wait_s: int
    queue_wait_s: int
    used_node_s: int
    work_s: int
    jobs: int
    killed_jobs: int
    individually: bool

    @classmethod
    def of(cls, trial: Trial) -> Figures:
        """Those of a trial with records."""
        run = trial.recorded
        done = [a for _, a in attempts(run.story) if a.outcome is AttemptState.FINISHED]
        return cls(
            makespan_s=trial.makespan_s,
            visible_wait_s=int(visible_wait_s(run)),
            queue_wait_s=int(queue_waits_s(run)[0]),
            used_node_s=int(node_time(run).held_s),
            work_s=int(sum(max(1, len(a.nodes)) * attempt_s(a, run.until_s) for a in done)),
            jobs=len(run.story.jobs),
            killed_jobs=run.killed_jobs,
            individually=any(told.decision.individually for told in run.story.decisions),
        )


def trial_figures(
    cluster: Cluster, workflow: Workflow, strategy: Strategy, *, terms: Terms, actual_s: Ints, work: Work
) -> Figures:
    """Run the workflow on this cluster from its present time on, as `run_trial` does (give it a clone)."""
    habits, places = habits_of(strategy), places_per_node(workflow, work)
    if habits is None or places is None or terms.patience is not None or len(workflow) > _MOST_TASKS:
        return Figures.of(run_trial(cluster, workflow, strategy, terms=terms, actual_s=actual_s, work=work))
    return _Run(cluster, strategy, habits, terms, actual_s, work, places).figures()


def places_per_node(workflow: Workflow, work: Work) -> int | None:
    """How many tasks fit on a node where all tasks need the same; None where they differ."""
    if workflow.nodes.any() or np.ptp(workflow.cores) or np.ptp(workflow.memory_bytes):
        return None
    cores, memory = int(workflow.cores[0]), int(workflow.memory_bytes[0])
    by_cores = work.shape.cores // cores
    if memory == 0 or work.shape.memory_bytes is None:
        return by_cores
    return min(by_cores, work.shape.memory_bytes // memory)


class _Run:
    """One trial: tables, and what it asks the strategy."""

    def __init__(
        self,
        cluster: Cluster,
        strategy: Strategy,
        habits: Habits,
        terms: Terms,
        actual_s: Ints,
        work: Work,
        places_per_node: int,
    ) -> None:
        self.cluster, self.strategy, self.habits, self.terms, self.work = cluster, strategy, habits, terms, work
        self.begun_s = cluster.now_s
        self.individually = False
        self.numbers = terms.requests().numbers()
        self.t = _tables(work, actual_s)
        book = self.t.book
        book[b.CAP], book[b.OWNER], book[b.PER_NODE] = terms.cap, cluster.log_users, places_per_node
        book[b.FIRST_CLIENT] = -1 - cluster.clients
        book[b.QUIET], book[b.BUSY_IS_REQUEST] = _QUIET[habits.quiet], terms.busy_is_request
        book[b.BY_TASK] = habits.by_task == "always"

    def figures(self) -> Figures:
        """Run to the end."""
        while (outcome := self.cluster.play(b.go_on, self.t, self.numbers)) != b.COMPLETE:
            assert outcome != b.STUCK, "nothing will ever happen again, and tasks are left"
            if outcome == b.DECIDE:
                self.decide()
            else:
                self.make_room(0)
        return self.measured()

    def decide(self) -> None:
        if self.t.book[b.LONGER]:
            self.t.book[b.LONGER] = 0
            expected = self.t.tasks[:, b.EXPECTED].copy()
            self.work = Work(self.work.workflow, expected, self.work.shape, self.work.cluster_nodes)
        decision = self.strategy.decide(self.view())
        self.heed(decision)

    def heed(self, decision: Decision) -> None:
        """Submit what was decided."""
        self.individually |= decision.individually
        if self.individually and self.habits.by_task == "once individually":
            self.t.book[b.BY_TASK] = 1
        for plan in decision.jobs:
            self.submit(plan)

    def submit(self, plan: JobPlan) -> None:
        members = np.array(plan.tasks, dtype=np.int64)
        self.make_room(len(members))
        self.cluster.play(_submit, self.t, members, plan.nodes, plan.run_s, plan.requested_s)

    def view(self) -> View:
        t, now = self.t, self.cluster.now_s
        own = t.jobs[t.active[: t.book[b.ACTIVE]]]
        runs = own[:, b.STAGE] == b.RUNNING
        ends = own[runs & (own[:, b.STOPPING] == 0), b.EXPECTED_END]
        left = t.tasks[:, b.HOME] == b.IN_NO_JOB
        ready = np.flatnonzero(left & (t.tasks[:, b.PARENTS] == 0))
        by_length = np.argsort(-t.tasks[ready, b.EXPECTED], kind="stable")
        return View(
            work=self.work,
            left=left,
            ready=tuple(ready[by_length].tolist()),
            jobs_waiting=int(t.book[b.WAITING_JOBS]),
            jobs_running=int(runs.sum()),
            busy_s=max(0, int(ends.max(initial=now)) - now),
            cap=self.terms.cap,
            individually=self.individually,
            request=self.terms.request_s,
            requests=self.terms.requests_s,
            forecast_with_margin=self.terms.forecast_with_margin,
            forecast=self.forecast,
        )

    def forecast(self, nodes: Ints, requested_s: Ints) -> Ints:
        return self.cluster.estimate(nodes, requested_s, exact=False) - self.cluster.now_s

    def make_room(self, more: int) -> None:
        """Room in every table for a step of any size, and for a job of so many tasks."""
        t, n = self.t, len(self.t.tasks)
        self.cluster.make_room(n + 2)
        self.t = t._replace(
            jobs=_roomy(t.jobs, int(t.book[b.JOBS]) + n + 1),
            active=_roomy(t.active, int(t.book[b.JOBS]) + n + 1),
            attempts=_roomy(t.attempts, int(t.book[b.ATTEMPTS]) + n),
            ends=_roomy(t.ends, int(t.book[b.ATTEMPTS]) + n),
            ready=_roomy(t.ready, int(t.book[b.FREE_TASKS]) + n),
            pool=_roomy(t.pool, int(t.book[b.USED_AT]) + n + more),
            happened=_roomy(t.happened, self.cluster.events_room),
        )

    def measured(self) -> Figures:
        t, now = self.t, self.cluster.now_s
        jobs = t.jobs[: t.book[b.JOBS]]
        held = jobs[jobs[:, b.STAGE] == b.RUNNING]
        since, until = t.tasks[:, b.SINCE], t.tasks[:, b.UNTIL]
        makespan = int(until.max()) - self.begun_s
        return Figures(
            makespan_s=makespan,
            visible_wait_s=makespan - _covered_s(since, until, self.begun_s),
            queue_wait_s=int(t.book[b.QUEUE_WAIT]),
            used_node_s=int(t.book[b.NODE_S] + (held[:, b.NODES] * (now - held[:, b.BEGAN])).sum()),
            work_s=int((until - since).sum()),
            jobs=len(jobs),
            killed_jobs=int(t.book[b.KILLED_JOBS]),
            individually=self.individually,
        )


def _submit(s: Ints, _log: Ints, t: b.Tables, members: Ints, nodes: int, run_s: int, requested_s: int) -> int:
    return b.submit_job(s, _NOBODY, t, members, nodes, run_s, requested_s)


def _tables(work: Work, actual_s: Ints) -> b.Tables:
    """The run before it begins."""
    workflow = work.workflow
    n = len(workflow)
    tasks = np.zeros((n, b.TASK_WIDTH), dtype=np.int64)
    tasks[:, b.EXPECTED], tasks[:, b.ACTUAL] = work.expected_s, actual_s
    tasks[:, b.PARENTS], tasks[:, b.HOME] = workflow.parents.degrees(), b.IN_NO_JOB
    book = np.zeros(b.BOOK_WIDTH, dtype=np.int64)
    book[b.LEFT] = book[b.OPEN_TASKS] = n
    return b.Tables(
        first_child=workflow.children.start,
        children=workflow.children.index,
        tasks=tasks,
        jobs=np.zeros((n + 1, b.JOB_WIDTH), dtype=np.int64),
        active=np.zeros(n + 1, dtype=np.int64),
        attempts=np.zeros((2 * n, 2), dtype=np.int64),
        ends=np.zeros(2 * n, dtype=np.int64),
        ready=np.zeros(2 * n, dtype=np.int64),
        pool=np.zeros(2 * n, dtype=np.int64),
        happened=np.zeros((64, k.EVENT_WIDTH), dtype=np.int64),
        book=book,
    )


def _roomy(table: Ints, rows: int) -> Ints:
    """The table with at least so many rows; where it must grow, it doubles."""
    if len(table) >= rows:
        return table
    more = np.zeros((max(rows, 2 * len(table)) - len(table), *table.shape[1:]), dtype=np.int64)
    return np.concatenate([table, more])


def _covered_s(since: Ints, until: Ints, begun_s: int) -> int:
    """In how much of the time since the beginning some task was at work."""
    order = np.argsort(since, kind="stable")
    begin, end = since[order], until[order]
    before = np.maximum.accumulate(np.concatenate([[begun_s], end[:-1]]))
    return int(np.maximum(0, end - np.maximum(begin, before)).sum())
