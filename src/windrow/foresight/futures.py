"""Futures of a simulated cluster, and courses of action played in them.

Each future is a copy of the cluster as it is, in which the others' run times are drawn from the
past and past days arrive again (`past`); own tasks err as those that are done did. A course is
played to the end of the workflow by one call of a kernel (`kernels.run.play`).

Rule 1: the cluster that is looked at does not change. Rule 2: neither true run times nor the log's
future are read (`TrueFutures` apart, which is there to measure what that costs). Nodes fail as
often as the site's hazard says, or as the simulated cluster's did so far.
Rule 3: the same cluster, past and sampling give the same futures; all courses meet the same ones.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from windrow.foresight.course import LONG_QUEUE, LONGEST_QUEUE, Course, CourseEnd, Sampling
from windrow.foresight.past import (
    DAY_S,
    TURNS,
    QueuePast,
    RunPredictor,
    arrivals,
    failures_of,
    past_of,
)
from windrow.foresight.task_errors import OwnErrors
from windrow.kernels.cluster.state import FOREVER
from windrow.kernels.run import play
from windrow.kernels.run import tables as r
from windrow.kernels.run.estimate import latest_end
from windrow.model import NEVER_S, Adjacency
from windrow.model.failures import NO_FAILURES, Failures
from windrow.model.requests import Requests
from windrow.sim.cluster import Cluster
from windrow.strategies.base import JobPlan, OwnJob, View

Ints = NDArray[np.int64]

_DAYS = 14  # for which others still arrive
_SIZES_WITHOUT_PLAN = 8  # numbers of nodes that later jobs look at where each look is a simulation
_LEEWAY_ROUNDS = 3
# Coarser plays: events of others fall together in steps of _STEP_S for each _PER_STEP jobs of
# theirs, so that a play takes some hundred passes; and a pass looks for earlier starts for the
# first _LOOKS and for our own, as batch systems bound theirs. Those behind fill holes too late.
_STEP_S = 60
_PER_STEP = 2000
_LOOKS = 500
# then it is not the room: jobs too short for their tasks are killed and submitted again for ever
_ROOM_DOUBLES = 10
_HOW = {
    "when started": play.WHEN_STARTED,
    "when done": play.WHEN_DONE,
    "by task": play.BY_TASK,
    "dealt": play.DEALT,
}
_NOBODY: Ints = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class _Beginning:
    """What a play begins with, without a course. Rows of tasks are open tasks, the longest first.

    `fixed` is a run without regions. `jobs` are own jobs, and `pool` has their tasks, one job after
    the other. `running` are the rows of running tasks, `since_s` their starts.
    """

    fixed: Ints
    jobs: Ints
    pool: Ints
    running: Ints
    since_s: Ints
    row_of: Ints

    @property
    def tasks(self) -> Ints:
        return r.tasks_of(self.fixed)

    def named(self, tasks: Sequence[int]) -> Ints:
        """These tasks of the workflow as the kernel names them."""
        return r.position(self.row_of[list(tasks)])


class SampledFutures:
    """Futures at one decision; see the head of this file."""

    def __init__(
        self,
        cluster: Cluster,
        view: View,
        own: Sequence[OwnJob],
        done: NDArray[np.bool_],
        requests: Requests,
        sampling: Sampling,
        past: QueuePast | None = None,
        errors: NDArray[np.float64] | None = None,
    ) -> None:
        """`done` marks tasks that have done their work. `past` is by default the simulated
        cluster's own.

        `errors` are what own tasks took, as parts of what was expected: others are drawn to err
        alike.
        """
        self._cluster = cluster
        self._view = view
        self._done = done
        self._own = _still_there(own, cluster)
        self._lost = len(own) - len(self._own)
        self._requests = requests
        self._sampling = sampling
        self._past = past_of(cluster) if past is None else past
        ways = TURNS if sampling.runs == "mixed" else (sampling.runs,)
        self._runs = [RunPredictor(self._past, way) for way in ways]
        self._known_errors = errors
        self._failures = self._failures_to_draw()
        self._drawn: dict[int, Cluster] = {}
        self._drawing = Lock()
        self._erring: dict[int, tuple[Ints, Ints]] = {}
        self._late_s: dict[tuple[tuple[int, ...], int], int] = {}
        self._room = 2 * (view.cap + 8)

    def _failures_to_draw(self) -> Failures:
        if self._sampling.failures != "seen":
            return self._sampling.failures or NO_FAILURES
        hazard = self._view.work.site.hazard
        if hazard:
            return Failures.of(hazard)
        return failures_of(self._cluster, self._past.since_s)

    @property
    def waiting(self) -> tuple[JobPlan, ...]:
        """Own jobs that wait."""
        return tuple(job.plan for job in self._own if not job.is_running)

    @property
    def is_exact(self) -> bool:
        """Whether own tasks are known to keep their expected times: enough of them have."""
        return self._errors.are_excluded

    def late_s(self, job: JobPlan) -> int:
        """How much longer than expected the job may run, as far as own tasks may err."""
        if not self._errors.are_possible:
            return 0
        key = job.tasks, job.nodes
        if key not in self._late_s:
            run = r.laid_out(
                self._tables.fixed,
                {r.JOBS_AT: 1, r.ENDS_AT: len(job.tasks), r.POOL_AT: len(job.tasks)},
            )
            run[[r.PLAYED, r.PER_NODE]] = 1, job.nodes * self._view.work.shape.cores
            end = latest_end(run, self._tables.named(job.tasks), self._worse_s)
            self._late_s[key] = max(0, int(end) - job.run_s)
        return self._late_s[key]

    @cached_property
    def _errors(self) -> OwnErrors:
        seed = (self._sampling.seed, self._cluster.now_s)
        return OwnErrors(len(self._tables.tasks), self._known_errors, self._sampling.spread, seed)

    @cached_property
    def _worse_s(self) -> Ints:
        """What the open tasks may take, a row for each draw."""
        return _times(self._tables.tasks, self._errors.draws())

    @property
    def others_waiting(self) -> int:
        """How many jobs of others wait: what a play costs depends on it."""
        return self._cluster.jobs_waiting - len(self.waiting)

    def play(self, course: Course, future: int, within_s: int | None = None) -> CourseEnd:
        """What comes of the course in that future. One that gets stuck, or submits without end,
        never ends."""
        if any(
            job.nodes > self._cluster.nodes for job in course.jobs
        ):  # the kernel would start them all the same
            return CourseEnd(NEVER_S, NEVER_S)
        if within_s is None:
            limit = NEVER_S
        else:
            limit = within_s
        room = self._room
        for _ in range(_ROOM_DOUBLES):
            if (end := self._play(course, future, limit)).makespan_s != play.NO_ROOM:
                return end
            self._room *= 2
            self._drawn.clear()
        self._room = room  # which was not what it lacked; the next course needs no more for it
        self._drawn.clear()
        return CourseEnd(NEVER_S, NEVER_S)

    def _play(self, course: Course, future: int, limit_s: int) -> CourseEnd:
        cluster = self._future(future).clone()
        run = self._started(course, future, cluster.events_room)
        run[r.LIMIT] = self._cluster.now_s + limit_s
        run[r.HORIZON] = FOREVER
        if self.others_waiting > LONG_QUEUE:
            run[r.HORIZON] = run[r.LIMIT] + 1
        terms = self._requests.numbers(self._errors.late(future))
        end = cluster.play(play.rollout, run, *self._groups(course), terms)
        return self._course_end(int(end), int(run[r.NODE_S]))

    def _course_end(self, end: int, node_s: int) -> CourseEnd:
        if end == play.STUCK:
            return CourseEnd(NEVER_S, NEVER_S)
        if end == play.NO_ROOM:
            return CourseEnd(play.NO_ROOM, 0)
        return CourseEnd(end - self._cluster.now_s, node_s)

    def _started(self, course: Course, future: int, events: int) -> Ints:
        """The run as it is, with the course's first jobs about to be submitted, and room for
        more."""
        base = self._tables
        own = len(self._own)
        fixed, ends = self._own_tasks(future)
        jobs = own + len(course.jobs) + 2 * len(base.tasks) + 16
        names = len(base.tasks) + jobs
        room = {r.JOBS_AT: jobs, r.ACTIVE_AT: jobs, r.NEWS_AT: events}
        room |= {r.READY_AT: names, r.POOL_AT: names, r.ENDS_AT: 2 * names}
        run = r.laid_out(fixed, room)
        r.region(run, r.JOBS_AT)[:own] = base.jobs
        r.region(run, r.POOL_AT)[: len(base.pool)] = base.pool
        r.region(run, r.ENDS_AT)[: len(ends)] = ends
        self._submit(run, course.jobs)
        self._set_terms(run, course)
        return run

    def _set_terms(self, run: Ints, course: Course) -> None:
        base = self._tables
        view = self._view
        cluster = self._cluster
        run[r.PLAYED] = 1
        run[r.OWN] = len(self._own)
        run[r.FIRST_CLIENT] = len(self._own) - 1 - cluster.clients
        run[r.RUNNING_TASKS] = len(base.running)
        run[r.OPEN_TASKS] = len(base.tasks)
        run[r.KILLS] = self._lost
        run[r.CAP] = view.cap
        run[r.OWNER] = cluster.log_users
        run[r.MOST_NODES] = self._most_nodes(course)
        run[r.PER_NODE] = view.work.shape.cores
        run[r.LEEWAY_ROUNDS] = _LEEWAY_ROUNDS
        run[r.SIZES] = cluster.nodes if cluster.keeps_plan else _SIZES_WITHOUT_PLAN
        run[r.LONGEST] = self._requests.longest_s

    def _submit(self, run: Ints, plans: Sequence[JobPlan]) -> None:
        """Rows for these jobs behind the own ones, and their tasks in the pool behind theirs."""
        base = self._tables
        rows = r.region(run, r.JOBS_AT)
        pool = r.region(run, r.POOL_AT)
        own = len(self._own)
        at = len(base.pool)
        for row, plan in enumerate(plans, own):
            mine = base.named(plan.tasks)
            size = len(plan.tasks)
            run[mine + r.HOME] = row
            pool[at : at + size] = mine
            rows[row] = 0
            rows[row, [r.NODES, r.REQUESTED, r.RUN]] = _numbers(plan)
            rows[row, [r.OPEN, r.AT, r.SIZE]] = size, at, size
            at += size
        run[r.JOBS] = own + len(plans)
        run[r.USED_POOL] = at

    def _own_tasks(self, future: int) -> tuple[Ints, Ints]:
        """The open tasks with what they take in that future, and the heap of the ends of those that
        run."""
        if future not in self._erring:
            base = self._tables
            now = self._cluster.now_s
            under_way = self._tables.running
            fixed = base.fixed.copy()
            tasks = r.tasks_of(fixed)
            tasks[:, r.ACTUAL] = _times(base.tasks, self._errors.factors(future))
            soonest = now + (
                not self.is_exact
            )  # what is known to end now may not have been heard yet
            tasks[under_way, r.UNTIL] = np.maximum(
                soonest, base.since_s + tasks[under_way, r.ACTUAL]
            )
            ends = (tasks[under_way, r.UNTIL] << r.BITS) + r.position(under_way)
            self._erring[future] = fixed, np.sort(ends)
        return self._erring[future]

    def _luck(self, number: int) -> int:
        """The seed of one future."""
        seed = f"{self._sampling.seed}/{self._cluster.now_s}/{number}"
        return int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "big")

    def _future(self, number: int) -> Cluster:
        """The cluster of one future, with those who arrive; kept, since many courses are played in
        it."""
        with self._drawing:
            if number not in self._drawn:
                self._drawn[number] = self._draw(number)
            return self._drawn[number]

    def _draw(self, number: int) -> Cluster:
        """All futures are different: from the second turn on, ways without chance have some."""
        luck = self._luck(number)
        draw = np.random.default_rng(luck)
        runs = self._runs[number % len(self._runs)]
        turn = 0
        if self._sampling.runs == "mixed":
            turn = number // len(TURNS)
        now = self._cluster.now_s
        cluster = self._cluster.redrawn(
            lambda asked, elapsed_s: runs.draw(asked, elapsed_s, draw, turn), self._room
        )
        days = _DAYS if self._sampling.arrivals else 0
        coming = arrivals(self._past, now, runs, days, draw, turn)
        failing = self._failures.draw(luck, self._cluster.nodes, now, now + _DAYS * DAY_S)
        cluster = cluster.with_arrivals(coming, failing)
        if self.others_waiting > LONGEST_QUEUE:
            there = cluster.jobs_waiting + cluster.jobs_running
            cluster = cluster.coarser(_STEP_S * -(-there // _PER_STEP), _LOOKS)
        return cluster

    @cached_property
    def _tables(self) -> _Beginning:
        """The open tasks, as the kernel wants them."""
        work = self._view.work
        levels = self._view.levels
        order = np.flatnonzero(~self._done)
        row_of = np.full(len(work.workflow), -1, dtype=np.int64)
        row_of[order] = np.arange(len(order))
        children = self._open_children(row_of, len(order))
        fixed = r.new_run(work.expected_s[order], children.start, children.index, {})
        tasks = r.tasks_of(fixed)
        tasks[:, r.UNITS] = self._units(order)
        r.more_of(fixed)[:, r.LEVEL] = -1
        r.more_of(fixed)[row_of[levels.tasks], r.LEVEL] = levels.level
        jobs, pool, since = self._own_rows(tasks, row_of)
        starts = np.array(list(since.items()), dtype=np.int64).reshape(-1, 2)
        return _Beginning(fixed, jobs, pool, starts[:, 0], starts[:, 1], row_of)

    def _units(self, tasks: Ints) -> Ints:
        """The cores that each keeps from others; what is larger than a usual node runs on one that
        is, too."""
        work = self._view.work
        held = work.workflow.cores_held(work.shape)[tasks]
        is_small = work.workflow.nodes[tasks] == 0
        return np.where(is_small, np.minimum(held, work.shape.cores), held)

    def _own_rows(self, tasks: Ints, row_of: Ints) -> tuple[Ints, Ints, dict[int, int]]:
        """Rows of the jobs that are in the system, the pool of their tasks, and when the running
        ones of these started."""
        jobs = np.zeros((len(self._own), r.JOB_WIDTH), dtype=np.int64)
        since = dict[int, int]()
        pool = [_NOBODY]
        for number, job in enumerate(self._own):
            mine = row_of[list(job.open_tasks)]
            tasks[mine, r.HOME] = number
            jobs[number, [r.AT, r.SIZE, r.OPEN]] = sum(map(len, pool)), len(mine), len(mine)
            pool.append(r.position(mine))
            since |= self._own_row(jobs[number], job, tasks, row_of)
        return jobs, np.concatenate(pool), since

    def _open_children(self, row_of: Ints, rows: int) -> Adjacency:
        """Of each open task those that wait for it. For tasks in jobs at other sites none waits:
        when they end is known."""
        parents = self._view.work.workflow.parents
        child = parents.sources()
        parent = parents.index
        kept = (row_of[child] >= 0) & (row_of[parent] >= 0)
        elsewhere = [
            task for job in self._own if job.number == r.ELSEWHERE for task in job.open_tasks
        ]
        kept &= ~np.isin(child, elsewhere)
        return Adjacency.from_edges(rows, row_of[parent[kept]], row_of[child[kept]])

    def _own_row(self, row: Ints, job: OwnJob, tasks: Ints, row_of: Ints) -> dict[int, int]:
        """Fill in a job that is in the system; returns the rows of running tasks and their
        starts."""
        now = self._cluster.now_s
        since = {int(row_of[task]): at for task, at in job.running_since_s.items()}
        running = list(since)
        tasks[running, r.UNTIL] = now + 1  # of which each future says more
        row[r.NUMBER] = job.number
        row[[r.NODES, r.REQUESTED, r.RUN]] = _numbers(job.plan)
        row[r.STAGE] = r.RUNNING if job.is_running else r.WAITING
        row[r.BEGAN] = now
        row[r.EXPECTED_END] = job.expected_end_s
        row[r.FREE] = max(
            0, job.plan.nodes * self._view.work.shape.cores - int(tasks[running, r.UNITS].sum())
        )
        return since

    def _most_nodes(self, course: Course) -> int:
        return min(course.max_nodes or self._cluster.nodes, self._cluster.nodes)

    def _groups(self, course: Course) -> tuple[Ints, Ints]:
        """The later groups, and their run times one after the other."""
        levels = self._view.levels
        most = self._most_nodes(course)
        rows = []
        tables = [_NOBODY]
        at = 0
        for group in course.then:
            if group.how in ("by task", "dealt"):
                runs = _NOBODY
            else:
                runs = levels.run_s(group.first, group.last)[:most]
            rows.append((group.first, group.last, _HOW[group.how], at, len(runs)))
            tables.append(runs)
            at += len(runs)
        return np.array(rows, dtype=np.int64).reshape(-1, play.GROUP_WIDTH), np.concatenate(tables)


class TrueFutures(SampledFutures):
    """The one future that comes, as often as it is asked for. No user of a real cluster could see
    it."""

    @property
    def is_exact(self) -> bool:
        """Own tasks are taken to be known."""
        return True

    @cached_property
    def _errors(self) -> OwnErrors:
        return OwnErrors(
            len(self._tables.tasks), None, 0.0, (0,)
        )  # none: own tasks are taken to be known

    def _draw(self, _number: int) -> Cluster:
        return self._cluster.roomy_clone(self._room + 64)


def _times(tasks: Ints, factors: NDArray[np.float64]) -> Ints:
    """What tasks take, in whole seconds, if they are off by these factors."""
    times: Ints = np.maximum(1, np.ceil(tasks[:, r.EXPECTED] * factors)).astype(np.int64)
    return times


def _still_there(own: Sequence[OwnJob], cluster: Cluster) -> tuple[OwnJob, ...]:
    """A run hears of several changes one by one: some jobs are not there any more."""
    runs = cluster.clients_there()
    runs[r.ELSEWHERE] = True
    return tuple(replace(job, is_running=runs[job.number]) for job in own if job.number in runs)


def _numbers(plan: JobPlan) -> tuple[int, int, int]:
    """What a row has of it: nodes, requested time and run time."""
    return plan.nodes, plan.requested_s, plan.run_s
