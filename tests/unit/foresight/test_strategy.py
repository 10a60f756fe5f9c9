"""Foresight: which course it takes, within which limits, and what it says about it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import cast

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.sim.test_invariants import random_log
from tests.unit.strategies.test_listing import workflows

from windrow.app.strategies import STRATEGIES
from windrow.errors import UserError
from windrow.foresight import strategy as strategy_module
from windrow.foresight.course import Course, CourseEnd, Futures, Sampling
from windrow.foresight.courses import Courses, deal, independent_parts, unhurried
from windrow.foresight.strategy import Foresight, Tried
from windrow.model import Task, Workflow
from windrow.model.site import Site
from windrow.sim import Cluster
from windrow.strategies import Decision, Glume, JobPlan, View, Work
from windrow.trials.trial import run_trial
from windrow_lab.reproductions.foresight.oracle import HINDSIGHT

Ends = dict[str, list[tuple[int, int]]]


@dataclass
class Told:
    """Futures in which a course, by its name, ends as told; all others never end."""

    ends: Ends
    waiting: tuple[JobPlan, ...] = ()
    others_waiting: int = 0
    late: float = 0.0
    is_exact: bool = True
    played: list[str] = field(default_factory=list)

    def late_s(self, job: JobPlan) -> int:
        return round(job.run_s * self.late)

    def play(self, course: Course, future: int, within_s: int | None = None) -> CourseEnd:
        assert within_s is None or within_s > 0
        self.played.append(course.name)
        told = self.ends.get(course.name, [(10**9, 10**9)])
        return CourseEnd(*told[future % len(told)])


def chain_of_forks() -> Workflow:
    """One task, then eight, then one, then eight."""
    tasks = [Task("a", 100)]
    tasks += [Task(f"b{i}", 100, parents=("a",)) for i in range(8)]
    tasks += [Task("c", 100, parents=tuple(f"b{i}" for i in range(8)))]
    tasks += [Task(f"d{i}", 100, parents=("c",)) for i in range(8)]
    return Workflow.from_tasks("forks", tasks)


def view_with(futures: Futures | None, **changes: object) -> View:
    workflow = chain_of_forks()
    work = Work(workflow, np.full(len(workflow), 100, dtype=np.int64), Site.of(16))
    view = View(
        work=work,
        left=np.ones(len(workflow), dtype=bool),
        ready=(0,),
        jobs_waiting=0,
        jobs_running=0,
        busy_s=0,
        cap=4,
        individually=False,
        request=lambda run_s: run_s,
        requests=lambda run_s: run_s,
        forecast_with_margin=True,
        forecast=lambda nodes, _: 50 * nodes,
        futures=None if futures is None else lambda _: futures,
    )
    return replace(view, **changes)  # type: ignore[arg-type]


WHOLE, CUT, SINGLE = "all levels", "levels 0-1, then the rest", "task by task"


def test_takes_what_ends_first_on_the_mean() -> None:
    told = Told(
        {WHOLE: [(1000, 5), (1000, 5)], CUT: [(700, 9), (1100, 9)], SINGLE: [(900, 1), (950, 1)]}
    )
    decision = Foresight(kinds=("cuts", "single")).decide(view_with(told))
    assert len(decision.jobs[0].tasks) == 9  # levels 0 and 1
    assert decision.candidates[0].makespan_s == 900
    assert "task by task: 25 s later" in decision.why  # the regret of task by task
    assert "± 3.3 min over 8 simulated futures" in decision.why  # 200 s
    assert [c.makespan_s for c in decision.candidates[:3]] == [900, 925, 1000]


def test_a_decision_by_two_plays_says_so() -> None:
    told = Told({WHOLE: [(1000, 5)], CUT: [(700, 9)], SINGLE: [(900, 1)]})
    why = Foresight(kinds=("cuts", "single"), plays=2).decide(view_with(told)).why
    assert "in the only simulated future (2 courses were compared in it; " in why
    assert "±" not in why


@pytest.mark.parametrize("waiting", [71, 1_000, 10_000])
def test_the_longest_queue_leaves_time_to_tell_courses_apart(waiting: int) -> None:
    """The last four courses meet eight futures, and at least 64 plays are made."""
    told = Told({WHOLE: [(1000, 5)], CUT: [(700, 9)], SINGLE: [(900, 1)]}, others_waiting=waiting)
    strategy = Foresight()
    ranked = strategy.ranked(view_with(told), told)
    assert [len(one.makespan_s) for one in ranked[:4]] == [8, 8, 8, 8]
    assert len({one.course.name for one in ranked}) == len(set(told.played))
    assert len(told.played) >= 64 or len(ranked) < 40


@pytest.mark.parametrize("cores", [1, 2, 5])
def test_how_many_plays_are_under_way_at_once_changes_nothing(
    cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def played() -> list[tuple[str, list[int]]]:
        told = Told({WHOLE: [(1000, 5)], CUT: [(700, 9)]}, others_waiting=5_000)
        ranked = Foresight().ranked(view_with(told), told)
        return [(one.course.name, one.makespan_s) for one in ranked]

    expected = played()
    monkeypatch.setattr(strategy_module, "_cores", lambda: cores)
    assert played() == expected


@pytest.mark.parametrize(
    ("objective", "tasks"),
    [("makespan", 18), ("node-hours", 1), ("balanced", 9)],
)
def test_objectives(objective: str, tasks: int) -> None:
    told = Told({WHOLE: [(1000, 9000)], CUT: [(1200, 3000)], SINGLE: [(9000, 2500)]})
    decision = Foresight(objective=objective).decide(view_with(told))  # type: ignore[arg-type]
    assert len(decision.jobs[0].tasks) == tasks


def test_of_nearly_equal_ends_the_cheaper_course() -> None:
    told = Told({WHOLE: [(1000, 9000)], CUT: [(1001, 3000)], SINGLE: [(1100, 100)]})
    assert len(Foresight().decide(view_with(told)).jobs[0].tasks) == 9
    assert len(Foresight(slack=0.0).decide(view_with(told)).jobs[0].tasks) == 18


def test_a_deadline_rules_out_what_may_miss_it() -> None:
    """The cheap course is late in one future of four; 300 s of the time are gone already."""
    told = Told({WHOLE: [(1000, 9000)], CUT: [(900, 3000), (900, 3000), (900, 3000), (1300, 3000)]})
    thrifty = Foresight(objective="node-hours", deadline_s=1500)
    assert len(thrifty.decide(view_with(told)).jobs[0].tasks) == 9
    assert len(thrifty.decide(view_with(told, elapsed_s=300)).jobs[0].tasks) == 18
    hopeless = replace(thrifty, deadline_s=10).decide(view_with(told))
    assert "no course meets the deadline" in hopeless.why
    assert hopeless.jobs


def test_no_job_is_wider_than_allowed() -> None:
    told = Told({})
    Foresight(max_nodes=3).decide(view_with(told))
    options = Foresight(max_nodes=3).ranked(view_with(told), told)
    assert options
    assert all(job.nodes <= 3 for one in options for job in one.course.jobs)
    trial = run_trial(Cluster(nodes=16), chain_of_forks(), Foresight(max_nodes=3), site=Site.of(16))
    assert max(job.plan.nodes for job in trial.story.jobs.values()) <= 3


def test_says_so_where_no_job_may_be_wide_enough() -> None:
    workflow = Workflow.from_tasks("wide", [Task("a", 10, nodes=4)])
    with pytest.raises(UserError, match="at most 3 nodes"):
        run_trial(Cluster(nodes=8), workflow, Foresight(max_nodes=3), site=Site.of(8))


@pytest.mark.parametrize("plays", [2, 7, 40, 400])
def test_thinks_no_longer_than_it_may(plays: int) -> None:
    told = Told({WHOLE: [(1000, 5)]})
    decision = Foresight(plays=plays).decide(view_with(told))
    assert 0 < len(told.played) <= plays
    assert len(decision.jobs[0].tasks) == 18


def test_uses_the_time_that_it_is_given() -> None:
    """More work is more plays and more futures; with next to none there is still an answer."""
    told = [Told({WHOLE: [(1000, 5), (1100, 5)]}) for _ in range(3)]
    for times, one in zip((0.001, 1, 16), told, strict=True):
        thinker = Foresight().aimed(think=times)
        decision = thinker.decide(view_with(one))
        assert len(decision.jobs[0].tasks) == 18
        assert len(one.played) <= thinker.plays
    played = [len(one.played) for one in told]
    assert played[0] < played[1] < played[2]
    best = [one.played.count(WHOLE) for one in told]
    assert best[0] < best[1] < best[2]


def test_without_futures_it_is_glume_and_says_so() -> None:
    ours, glume = Foresight().decide(view_with(None)), Glume().decide(view_with(None))
    assert ours.jobs == glume.jobs
    assert "as glume" in ours.why


def test_waits_for_a_group_that_waits_but_lets_single_tasks_follow() -> None:
    group, single = JobPlan((0, 1), 1, 200, 200), JobPlan((1,), 1, 100, 100)
    ready = {"ready": (2, 3), "jobs_waiting": 1}
    assert Foresight().decide(view_with(Told({}, (group,)), **ready)) == Decision()
    assert (
        Foresight().decide(view_with(Told({}, (group,)), **ready, individually=True)) == Decision()
    )
    follow = Foresight().decide(view_with(Told({}, (single,)), **ready, individually=True))
    assert [job.tasks for job in follow.jobs] == [(2,), (3,)]
    wary = Foresight().decide(view_with(Told({}, (single,), late=0.5), **ready, individually=True))
    assert [job.requested_s for job in wary.jobs] == [150, 150]


@pytest.mark.parametrize("late", [0.0, 0.4])
def test_every_job_asks_for_the_time_that_it_may_need(late: float) -> None:
    """What waits for a running job must outlast it, or it is killed before it has begun; and all
    may be late."""
    view = view_with(Told({}), ready=(), jobs_running=1, busy_s=5000, left=np.arange(18) > 0)
    told = Told({}, late=late)
    courses = Courses(view, late_s=told.late_s).all(most=10_000)
    firsts = [job for course in courses if course.jobs for job in [course.jobs[0]]]
    assert {len(course.jobs) for course in courses} == {0, 1, 2, 3}
    for job in firsts:
        assert view.wait_s(job.nodes, job.requested_s) + job.requested_s >= 5000 + job.run_s * (
            1 + late
        )


def test_refuses_what_makes_no_sense() -> None:
    with pytest.raises(UserError, match="speed"):
        Foresight(objective="speed")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="at least"):
        Foresight(max_nodes=0)


@given(workflows(mixed=False), st.integers(0, 20), st.integers(1, 5))
def test_parts_are_independent_and_dealt_out_whole(
    workflow: Workflow, upto: int, count: int
) -> None:
    work = Work(workflow, workflow.runtime_s.astype(np.int64), Site.of(8))
    view = replace(view_with(None), work=work, left=np.ones(len(workflow), dtype=bool))
    last = min(upto, view.levels.last)
    parts = independent_parts(view, last)
    graph = nx.Graph()
    tasks = set(view.levels.between(0, last).tolist())
    graph.add_nodes_from(tasks)
    graph.add_edges_from(
        (t, p) for t in tasks for p in workflow.parents.of(t).tolist() if p in tasks
    )
    assert sorted(map(sorted, parts)) == sorted(map(sorted, nx.connected_components(graph)))
    heaps = deal(parts, work.expected_s, count)
    assert sorted(t for heap in heaps for t in heap) == sorted(tasks)
    assert all(
        set(part) <= set(heap) or not set(part) & set(heap) for part in parts for heap in heaps
    )
    loads = [int(work.expected_s[heap].sum()) for heap in heaps]
    heaviest = max(int(work.expected_s[part].sum()) for part in parts)
    assert max(loads) <= sum(loads) / count + heaviest  # Graham's bound


@pytest.mark.slow
def test_who_knows_the_future_is_not_beaten() -> None:
    """On the true future the courses' ends are exact: no fixed strategy is ahead on the mean, nor
    is likely better."""
    site = Site.of(12, cap=4)
    workflow = chain_of_forks()
    ends: dict[str, list[int]] = {}
    for seed in range(12):
        cluster = Cluster(random_log(seed, 80, 12), nodes=12)
        cluster.advance(400 + 350 * seed)
        for name in ("individual", "one-job", "level-by-level", "zhang", "glume"):
            trial = run_trial(cluster.clone(), workflow, STRATEGIES[name], site=site)
            ends.setdefault(name, []).append(trial.makespan_s)
        known = run_trial(cluster.clone(), workflow, HINDSIGHT, site=site)
        ends.setdefault("known", []).append(known.makespan_s)
    means = {name: np.mean(times) for name, times in ends.items()}
    assert means["known"] <= min(means.values()) + 1e-9


def test_sampling_is_part_of_what_it_is() -> None:
    """Ablations show in the name that chunks of a campaign are kept under."""
    assert repr(Foresight(sampling=Sampling("requests", arrivals=False))) != repr(Foresight())


def test_asks_for_more_time_where_that_costs_no_wait_until_tasks_have_kept_theirs() -> None:
    """The forecast has a hole of 250 s now, and nodes without end from 1,000 s on."""

    def forecast(_nodes: np.ndarray, requested_s: np.ndarray) -> np.ndarray:
        return np.where(requested_s <= 250, 0, 1000)

    def asked_s(run_s: int) -> int:
        view = view_with(None, forecast=forecast)
        return unhurried(view, (JobPlan((0,), 1, run_s, run_s),))[0].requested_s

    assert asked_s(100) == 200  # starts at once: twice its run still fits
    assert asked_s(150) == 187  # twice would not fit into the hole, a quarter more does
    assert asked_s(240) == 240  # nothing more fits
    assert asked_s(400) == 500  # waits anyway: a quarter more, and no more than that
    told = Told({WHOLE: [(700, 5)]}, is_exact=True)
    exact = Foresight(kinds=("cuts",)).decide(view_with(told, forecast=forecast)).jobs
    told.is_exact = False
    unsure = Foresight(kinds=("cuts",)).decide(view_with(told, forecast=forecast)).jobs
    assert [job.requested_s for job in exact] < [job.requested_s for job in unsure]
    assert [job.tasks for job in exact] == [job.tasks for job in unsure]


@pytest.mark.parametrize(
    ("chosen", "rival", "words"),
    [
        (
            (1000, 50),
            (999, 60),
            ", but with 20 % more node time; of courses that end within 0.2 % of the earliest, "
            "the ",
        ),
        ((1000, 50), (999, 50), ", but with more jobs; of courses"),
        ((1000, 50), (1001, 60), ""),
    ],
)
def test_a_rival_that_ends_earlier_comes_with_the_rule_that_put_it_behind(
    chosen: tuple[int, int], rival: tuple[int, int], words: str
) -> None:
    best, other = (
        Tried(Course(name, ()), [end_s], [node_s])
        for name, (end_s, node_s) in (("a", chosen), ("b", rival))
    )
    assert (Foresight()._but(cast(View, None), other, best) or "nothing").startswith(
        words or "nothing"
    )
    if words:
        frugal = Foresight(objective="node-hours")._but(cast(View, None), other, best)
        assert "which counts as well (--objective node-hours)" in frugal
