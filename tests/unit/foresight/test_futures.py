"""Futures: courses end in them as runs really end; they know no more than a user does."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.unit.sim.test_invariants import random_log
from tests.unit.strategies.test_listing import workflows

from windrow.foresight.course import Course, CourseEnd, Futures, Later, Sampling
from windrow.foresight.courses import dealt_jobs
from windrow.foresight.futures import SampledFutures
from windrow.foresight.past import QueuePast, RunPredictor, arrivals, failures_of, past_of
from windrow.kernels.cluster import state as k
from windrow.manager.core import Core
from windrow.manager.terms import Terms
from windrow.model import NEVER_S, Log, NodeShape, Task, Workflow
from windrow.model.cause import Cause
from windrow.model.failures import NO_FAILURES, Failures
from windrow.model.hazard import Hazard
from windrow.model.site import Site
from windrow.sim import Cluster
from windrow.sim.job_rows import heap_rows, running_rows, waiting_rows
from windrow.story.events import JobsPlanned, TaskFinished
from windrow.story.figures import node_time
from windrow.strategies import (
    Decision,
    Individual,
    JobPlan,
    OneJob,
    Strategy,
    View,
    Work,
    whole_seconds,
)
from windrow.strategies.level_by_level import LevelByLevel
from windrow.trials.trial import run_trial

NODES = 6
TERMS, SITE = Terms(round_s=3), Site.of(NODES, NodeShape(4, 8), cap=4)


@dataclass(frozen=True)
class Dealt:
    """Whatever is ready goes out at once, in as many jobs as the cap allows."""

    name: str = "dealt"

    def decide(self, view: View) -> Decision:
        return Decision(dealt_jobs(view) if view.can_submit else ())


@dataclass
class Playing:
    """Decides as another strategy, and plays a course where it decides for the `turn`-th time."""

    inner: Strategy
    turn: int = 0
    how: Sampling = field(default_factory=Sampling)
    name: str = "playing"
    asked: int = 0
    outcomes: list[CourseEnd] = field(default_factory=list)

    def decide(self, view: View) -> Decision:
        decision = self.inner.decide(view)
        if decision.jobs:
            if self.asked == self.turn:
                assert view.futures is not None
                futures, course = view.futures(self.how), self.course(view, decision)
                self.outcomes = [futures.play(course, k) for k in range(2)]
                end = self.outcomes[0].makespan_s
                assert (
                    futures.play(course, 0, end) == self.outcomes[0]
                )  # in time, so the bound does not show
                assert futures.play(course, 0, end // 2).makespan_s > end // 2
            self.asked += 1
        return decision

    def course(self, view: View, decision: Decision) -> Course:
        last = view.levels.last
        match self.inner:
            case Dealt():
                return Course("dealt", decision.jobs, (Later(0, last, "dealt"),))
            case Individual():
                return Course("by task", decision.jobs, (Later(0, last, "by task"),))
            case LevelByLevel():
                return Course(
                    "levels",
                    decision.jobs,
                    tuple(Later(k, k, "when done") for k in range(1, last + 1)),
                )
            case _:
                return Course("whole", decision.jobs)


def cluster_at(log: Log, at: float, policy: str = "conservative") -> Cluster:
    cluster = Cluster(log, nodes=NODES, policy=policy)
    cluster.advance(int(at * (log.submit_s[-1] + 10)))
    return cluster


@pytest.mark.slow
@given(
    workflows(mixed=False),
    st.integers(0, 10**6),
    st.floats(0, 1),
    st.sampled_from([Individual(), OneJob(), LevelByLevel(), Dealt()]),
    st.sampled_from([0, 0, 1, 3]),
)
def test_a_course_ends_in_the_true_future_as_the_run_does(
    workflow: Workflow, seed: int, at: float, strategy: Strategy, turn: int
) -> None:
    """At the first decision, and at later ones, with jobs in the system and tasks under way."""
    playing = Playing(strategy, turn, Sampling("truth"))
    trial = run_trial(
        cluster_at(random_log(seed, 60, NODES), at),
        workflow,
        playing,
        terms=TERMS,
        site=SITE,
        checked=True,
    )
    if playing.outcomes:
        decided = [told.at_s for told in trial.story.decisions if told.decision.jobs][turn]
        planned = [k for k, (event, _) in enumerate(trial.events) if isinstance(event, JobsPlanned)]
        if any(
            isinstance(e, TaskFinished) and e.at_s == decided
            for e, _ in trial.events[planned[turn] :]
        ):
            # a play counts no jobs that are about to leave, which matters to what is decided in the
            # same second
            return
        ends = [decided + outcome.makespan_s for outcome in playing.outcomes]
        assert ends == [trial.recorded.until_s] * 2
        if turn == 0:
            assert playing.outcomes[0].node_s == node_time(trial.recorded).allocated_s


@dataclass
class Again:
    """All in one job; what a failed node leaves of it goes out again on as many nodes, for as
    long."""

    name: str = "again"
    first: JobPlan | None = None

    def decide(self, view: View) -> Decision:
        if self.first is None:
            decision = OneJob().decide(view)
            self.first = decision.jobs[0] if decision.jobs else None
            return decision
        left = tuple(np.flatnonzero(view.left).tolist())
        return Decision((replace(self.first, tasks=left),) if left and view.can_submit else ())


@pytest.mark.slow
@given(
    workflows(mixed=False),
    st.integers(0, 10**6),
    st.floats(0, 1),
    st.lists(
        st.tuples(st.integers(1, 60), st.integers(0, NODES - 1), st.integers(1, 30)),
        min_size=9,
        max_size=18,
    ),
)
def test_a_job_that_loses_a_node_in_a_future_is_submitted_again(
    workflow: Workflow, seed: int, at: float, failing: list[tuple[int, int, int]]
) -> None:
    """Failures come while it would run, and for twice as long after that."""
    log = random_log(seed, 60, NODES)
    now = int(at * (log.submit_s[-1] + 10))
    cluster = Cluster(log, nodes=NODES)
    cluster.advance(now)
    job = run_trial(cluster, workflow, Again(), terms=TERMS, site=SITE).story.jobs[0]
    assert job.started_s is not None
    assert job.ended_s is not None
    run_s = job.ended_s - job.started_s
    drawn = [(round(job.started_s + part * run_s / 20), node, out) for part, node, out in failing]
    rows = sorted((since, node, since + out) for since, node, out in drawn)
    cluster = Cluster(log, nodes=NODES, failures=np.array(rows, dtype=np.int64).reshape(-1, 3))
    cluster.advance(now)
    playing = Playing(Again(), 0, Sampling("truth"))
    trial = run_trial(cluster, workflow, playing, terms=TERMS, site=SITE)
    if not any(job.cause == Cause.TIME_LIMIT for job in trial.story.jobs.values()):
        assert now + playing.outcomes[0].makespan_s == trial.recorded.until_s
        assert playing.outcomes[0].node_s == node_time(trial.recorded).allocated_s


def test_futures_have_failures_where_some_were_seen_and_only_there() -> None:
    """One in three days on four nodes: one in twelve days of a node. Told otherwise, that
    counts."""
    log = random_log(1, 60, 4)
    log = replace(log, submit_s=log.submit_s + np.linspace(0, 9 * 86400, 60).astype(np.int64))
    rows = np.array([(day * 86400, 1, day * 86400 + 600) for day in (1, 4, 7)])
    cluster = Cluster(log, failures=rows)
    cluster.advance(9 * 86400)
    since_s = int(log.submit_s[0])
    assert failures_of(cluster, since_s) == Failures(4 * (9 * 86400 - since_s) / 3, 600.0)
    assert failures_of(cluster, 8 * 86400) == failures_of(Cluster(log), 0) == NO_FAILURES
    workflow, ends = Workflow.from_tasks("one", [Task("a", 3 * 86400)]), {}
    for failures in ("seen", None, NO_FAILURES, Failures(3600, 60)):
        ends[failures] = seen_from(
            cluster.clone(), workflow, Sampling("requests", failures=failures)
        )[0]
    assert ends[None] == ends[NO_FAILURES]
    assert ends[None].makespan_s < ends[Failures(3600, 60)].makespan_s
    long = Workflow.from_tasks("one", [Task("a", 20 * 86400)])
    seen, none = (
        seen_from(cluster.clone(), long, Sampling("requests", failures=f)) for f in ("seen", None)
    )
    assert sum(a.makespan_s for a in seen) > sum(a.makespan_s for a in none)
    quiet = Cluster(log)
    quiet.advance(9 * 86400)
    risky = Probe(Sampling("requests"))
    run_trial(
        quiet.clone(),
        workflow,
        risky,
        terms=TERMS,
        site=replace(SITE, hazard=Hazard.of_mean(3600.0)),
    )
    assert risky.outcomes[0].makespan_s > ends[None].makespan_s
    unaware = Sampling(failures=None)
    assert seen_from(quiet.clone(), workflow, Sampling()) == seen_from(quiet, workflow, unaware)


@dataclass
class Probe:
    """Submits everything in one job, and keeps what it sees of the futures at the first
    decision."""

    how: Sampling = field(default_factory=Sampling)
    name: str = "probe"
    outcomes: list[CourseEnd] = field(default_factory=list)

    def decide(self, view: View) -> Decision:
        decision = OneJob().decide(view)
        if decision.jobs and not self.outcomes:
            assert view.futures is not None
            levels = tuple(Later(k, k, "when done") for k in range(view.levels.count))
            courses = [Course("now", decision.jobs), Course("levels", (), levels)]
            self.outcomes = [view.futures(self.how).play(c, k) for c in courses for k in range(3)]
        return decision


def seen_from(cluster: Cluster, workflow: Workflow, how: Sampling) -> list[CourseEnd]:
    probe = Probe(how)
    run_trial(cluster, workflow, probe, terms=TERMS, site=SITE)
    return probe.outcomes


def without_knowledge(log: Log, cluster: Cluster, seed: int) -> Log:
    """The same log up to now, with other run times for whoever has not ended, and other jobs to
    come."""
    rng = np.random.default_rng(seed)
    now = cluster.now_s
    run, wide = log.run_s.copy(), log.nodes.copy()
    for job in cluster.running():
        elapsed = now - (job.expected_end_s - job.requested_s)
        run[job.job] = rng.integers(elapsed + 1, max(elapsed + 2, 2 * job.requested_s))
    for queued in cluster.queue():
        run[queued.job] = rng.integers(1, 500)
    later = log.submit_s > now
    wide[later] = rng.integers(1, NODES, int(later.sum()), endpoint=True)
    run[later] = rng.integers(1, 400, int(later.sum()))
    return Log("other", NODES, log.job, log.submit_s, wide, log.requested_s, run, log.user)


@pytest.mark.slow
@given(
    workflows(mixed=False),
    st.integers(0, 10**6),
    st.floats(0.1, 0.9),
    st.sampled_from(["shares", "last two", "requests"]),
    st.booleans(),
    st.sampled_from(["conservative", "easy"]),
)
def test_futures_know_neither_true_run_times_nor_who_will_come(
    workflow: Workflow, seed: int, at: float, runs: str, arriving: bool, policy: str
) -> None:
    log = random_log(seed, 60, NODES)
    cluster = cluster_at(log, at, policy)
    other_log = without_knowledge(log, cluster, seed)
    other = Cluster(other_log, nodes=NODES, policy=policy)
    other.advance(cluster.now_s)
    assert (other.queue(), other.running()) == (cluster.queue(), cluster.running())
    how = Sampling(runs, arriving)  # type: ignore[arg-type]
    assert seen_from(cluster, workflow, how) == seen_from(other, workflow, how)


def redrawn(cluster: Cluster, runs: str, seed: int) -> Cluster:
    predictor, draw = RunPredictor(past_of(cluster), runs), np.random.default_rng(seed)
    return cluster.redrawn(lambda asked, elapsed_s: predictor.draw(asked, elapsed_s, draw), 8)


@given(
    st.integers(0, 10**6), st.floats(0.1, 0.9), st.sampled_from(["shares", "last two", "requests"])
)
def test_drawn_run_times_are_possible(seed: int, at: float, runs: str) -> None:
    """Whoever runs goes on to run, and nobody runs longer than requested; the queue is as it
    was."""
    cluster = cluster_at(random_log(seed, 60, NODES), at)
    twin = redrawn(cluster, runs, seed)
    assert (twin.queue(), twin.running()) == (cluster.queue(), cluster.running())
    rows = heap_rows(twin._state)
    slots = running_rows(twin._state)
    assert (rows[:, k.END] > cluster.now_s).all()
    assert (rows[:, k.END] <= slots[:, k.EXPECTED]).all()
    waiting = waiting_rows(twin._state)
    assert (waiting[:, k.RUN] >= 1).all()
    assert (waiting[:, k.RUN] <= waiting[:, k.REQUESTED]).all()
    keys = [tuple(row) for row in rows[:, [k.END, k.STARTED_AS]].tolist()]
    assert all(keys[(i - 1) // 2] <= keys[i] for i in range(1, len(keys)))  # it is a heap


@given(st.integers(0, 10**6), st.floats(0.3, 0.9))
def test_exact_requests_leave_nothing_to_chance(seed: int, at: float) -> None:
    """Where requests were exact so far, so are the futures: without arrivals, all end alike."""
    cluster = cluster_at(random_log(seed, 60, NODES).accurate(), at)
    past = past_of(cluster)
    if not len(past.shares):
        return
    exact = redrawn(cluster, "requests", 0)
    assert all((redrawn(cluster, "shares", seed)._state == exact._state).all() for seed in range(3))


def test_a_course_that_cannot_succeed_never_ends() -> None:
    """A task that needs more time than may be asked for is killed and submitted again, for ever."""
    workflow = Workflow.from_tasks("long", [Task("a", 1000)])
    futures: list[Futures] = []

    class AskedError(Exception): ...

    class Asks:
        name = "asks"

        def decide(self, view: View) -> Decision:
            assert view.futures is not None
            futures.append(view.futures(Sampling()))
            raise AskedError

    with pytest.raises(AskedError):
        run_trial(Cluster(nodes=2), workflow, Asks(), site=Site.of(2, max_request_s=60))
    assert (
        futures[0].play(Course("by task", (), (Later(0, 0, "by task"),)), 0).makespan_s == NEVER_S
    )


@dataclass
class Late:
    """Submits task by task, and notes how late its job is said to be, and how long the whole would
    take now."""

    told: float
    name: str = "late"
    said: list[int] = field(default_factory=list)
    spread: list[int] = field(default_factory=list)

    def decide(self, view: View) -> Decision:
        decision = Individual().decide(view)
        assert view.futures is not None
        futures = view.futures(Sampling(arrivals=False, spread=self.told))
        next_one = int(np.flatnonzero(view.left)[0])
        self.said.append(futures.late_s(JobPlan((next_one,), 1, 100, 110)))
        course = Course("by task", decision.jobs, (Later(0, view.levels.last, "by task"),))
        self.spread.append(len({futures.play(course, k).makespan_s for k in range(4)}))
        return decision


@pytest.mark.slow
def test_own_tasks_are_taken_to_err_as_they_did() -> None:
    """At first as told, so that futures differ or not; ten tasks later, all half as long again, as
    they all were."""
    tasks = [Task(f"t{i}", 100, parents=(f"t{i - 1}",) if i else ()) for i in range(12)]
    workflow = Workflow.from_tasks("chain", tasks)
    actual = np.full(12, 150, dtype=np.int64)
    for told in (0.0, 0.2):
        late = Late(told)
        run_trial(Cluster(nodes=2), workflow, late, terms=Terms(margin=3), actual_s=actual)
        assert (late.said[0] > 0) == (told > 0)
        assert late.said[-1] == 50
        assert (late.spread[0] > 1) == (told > 0)
        assert late.spread[-1] == 1


@given(workflows(mixed=False), st.integers(1, NODES), st.integers(0, 10**6))
def test_a_job_of_tasks_that_are_all_late_is_as_late(
    workflow: Workflow, nodes: int, seed: int
) -> None:
    """Tasks that take three times as long make a job that does: list scheduling does not care for
    the unit."""
    work = Work(workflow, whole_seconds(workflow), SITE)
    tasks = np.arange(len(workflow))
    run = int(work.run_s(tasks, nodes)[-1])
    futures = futures_of(Cluster(nodes=NODES), work, np.full(5, 3.0), seed)
    late = futures.late_s(JobPlan(tuple(tasks.tolist()), nodes, run, run))
    assert late == (2 * run if run < NEVER_S else 0)


@pytest.mark.parametrize("future", [1, 3, 5])
def test_no_request_knows_how_late_tasks_will_be(future: int) -> None:
    """A job that is too short for its longest task is killed, and that task starts again from
    zero."""
    tasks = [Task(f"t{i}", 1000) for i in range(6)]
    workflow = Workflow.from_tasks("flat", tasks)
    work = Work(workflow, whole_seconds(workflow), Site.of(NODES))
    futures = futures_of(Cluster(nodes=NODES), work, None, 1)

    def end_s(requested_s: int, ahead: int = future) -> int:
        job = JobPlan(tuple(range(6)), NODES, 1000, requested_s)
        return futures.play(Course("one", (job,)), ahead).makespan_s

    longest = end_s(10_000)
    assert longest != 1000
    assert end_s(longest) == longest
    assert [end_s(short) for short in (longest - 1, longest * 3 // 4)] == [
        2 * longest - 1,
        longest * 3 // 4 + longest,
    ]
    assert end_s(10_000, future - 1) == 1000  # every other future believes in what is expected


def futures_of(
    cluster: Cluster, work: Work, errors: NDArray[np.float64] | None, seed: int
) -> SampledFutures:
    """Futures at the begin of a run, in which own tasks took as much longer as `errors` say, or may
    be off by 0.2."""
    core = Core(work, Terms())
    view = core.view(0, lambda nodes, _: np.zeros(len(nodes), dtype=np.int64))
    done = np.zeros(len(work.workflow), dtype=bool)
    sampling = Sampling(spread=0.2, seed=seed)
    return SampledFutures(
        cluster, view, (), done, Terms().requests(work.site), sampling, errors=errors
    )


def test_past_days_arrive_again_at_the_same_hours() -> None:
    day = 86_400
    log = Log(
        "days", 4, np.arange(3), np.array([100, day + 200, 2 * day + 300]), np.array([1, 2, 3]),
        np.array([500, 600, 700]), np.array([50, 60, 70]), np.zeros(3, dtype=np.int64),
    )  # fmt: skip
    cluster = Cluster(log, nodes=4)
    cluster.advance(3 * day)
    past = past_of(cluster)
    coming = arrivals(
        past, cluster.now_s, RunPredictor(past, "shares"), 30, np.random.default_rng(1)
    )
    hours = {1: 100, 2: 200, 3: 300}
    assert {int(nodes) for nodes in coming[:, 1]} <= set(hours)
    assert len({int(nodes) for nodes in coming[:, 1]}) > 1
    for submit, nodes, requested, run, _ in coming.tolist():
        assert (submit % day, requested, run) == (hours[nodes], 400 + 100 * nodes, 40 + 10 * nodes)
        assert submit > cluster.now_s
    assert (np.diff(coming[:, 0]) >= 0).all()


@pytest.mark.slow
@given(
    workflows(mixed=True),
    st.integers(0, 10**6),
    st.floats(0, 1),
    st.sampled_from([Individual(), LevelByLevel()]),
)
def test_looking_ahead_changes_nothing(
    workflow: Workflow, seed: int, at: float, strategy: Strategy
) -> None:
    """The run goes on as if nobody had looked, and the same look shows the same."""
    cluster = cluster_at(random_log(seed, 60, NODES), at)
    alone = run_trial(cluster.clone(), workflow, strategy, terms=TERMS, site=SITE)
    looking = [Playing(strategy, 1), Playing(strategy, 1)]
    watched = [run_trial(cluster.clone(), workflow, one, terms=TERMS, site=SITE) for one in looking]
    assert watched[0].story.jobs == watched[1].story.jobs == alone.story.jobs
    assert looking[0].outcomes == looking[1].outcomes


@pytest.mark.parametrize("how", ["requests", "last two"])
def test_no_way_to_predict_comes_again_the_same(how: str) -> None:
    """From the second turn on, ways that leave nothing to chance leave something."""
    draw = np.random.default_rng(1)
    count = 40
    run = draw.integers(10, 1000, count)
    columns = [np.arange(count), np.ones(count), np.full(count, 1000), run, np.zeros(count)]
    predictor = RunPredictor(QueuePast(np.column_stack(columns).astype(np.int64), 0), how)
    asked = np.array([[1000, 0]] * 5)
    none = np.zeros(5, dtype=np.int64)
    first, again, second, third = (
        predictor.draw(asked, none, np.random.default_rng(seed), turn).tolist()
        for seed, turn in ((1, 0), (2, 0), (3, 1), (4, 2))
    )
    assert first == again
    assert second not in (first, third)
    assert third != first
