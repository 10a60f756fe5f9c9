"""The compiled way of a trial against the core, allocation and driver that it must agree with,
figure by figure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.strategies.test_listing import NODE, workflows
from tests.unit.trials.test_trials import ALL, SOME_FAILURES, fork_join, some_world

from windrow.kernels.run import tables as k
from windrow.manager.terms import Terms
from windrow.model import NodeShape, Task, Workflow
from windrow.model.failures import NO_FAILURES, Failures
from windrow.model.site import Site
from windrow.sim import Cluster
from windrow.strategies import Decision, Individual, Strategy, View, Work, whole_seconds
from windrow.strategies.base import habits_of
from windrow.strategies.compiled import tables
from windrow.trials.figures import Figures, trial_figures
from windrow.trials.trial import Additions, run_trial

WITH_HABITS = [strategy for strategy in ALL if habits_of(strategy)]


def by_both_ways(
    cluster: Cluster,
    workflow: Workflow,
    strategy: Strategy,
    terms: Terms,
    work: Work,
    actual: np.ndarray,
    additions: Additions = (),
) -> tuple[Figures, Figures]:
    rest: dict[str, Any] = {
        "terms": terms,
        "actual_s": actual,
        "work": work,
        "additions": additions,
    }
    quick = trial_figures(cluster.clone(), workflow, strategy, **rest)
    slow = run_trial(cluster.clone(), workflow, strategy, checked=True, **rest)
    return quick, Figures.of(slow)


@pytest.mark.slow
@examples(600)
@given(
    st.sampled_from([0, 1, 2]).flatmap(lambda mixed: workflows(mixed=mixed)),
    st.sampled_from(WITH_HABITS),
    st.integers(0, 10**6),
    st.sampled_from([1.0, 1.1, 2.0]),
    st.sampled_from([0.0, 0.5, 2.0]),
    st.integers(1, 4),
    st.sampled_from(["conservative", "easy", "fcfs"]),
)
def test_figures_are_those_of_the_core(
    workflow: Workflow,
    strategy: Strategy,
    seed: int,
    margin: float,
    noise: float,
    cap: int,
    policy: str,
) -> None:
    """Tasks that need alike, and tasks that differ in cores, memory, disk, named resources and
    whole nodes."""
    _compare(workflow, strategy, seed, margin, noise, cap, policy, NO_FAILURES, "count")


@pytest.mark.slow
@examples(150)
@given(
    st.sampled_from([0, 1, 2]).flatmap(lambda mixed: workflows(mixed=mixed)),
    st.sampled_from(WITH_HABITS),
    st.integers(0, 10**6),
    st.sampled_from([0.0, 0.5]),
    st.integers(1, 4),
    st.sampled_from(["conservative", "easy", "depth:2"]),
    SOME_FAILURES,
    st.sampled_from(["count", "leftmost"]),
)
def test_figures_are_those_of_the_core_where_nodes_fail(
    workflow: Workflow,
    strategy: Strategy,
    seed: int,
    noise: float,
    cap: int,
    policy: str,
    failures: Failures,
    placement: str,
) -> None:
    _compare(workflow, strategy, seed, 1.1, noise, cap, policy, failures, placement)


@pytest.mark.slow
@examples(120)
@given(
    st.booleans().flatmap(lambda mixed: workflows(mixed=mixed)),
    st.sampled_from(WITH_HABITS),
    st.integers(0, 10**6),
    st.sampled_from([0.0, 0.5, 2.0]),
    st.integers(1, 4),
    st.sampled_from(["conservative", "easy"]),
    st.one_of(st.just(NO_FAILURES), SOME_FAILURES),
)
def test_figures_are_those_of_the_core_where_tasks_join_the_run(
    workflow: Workflow,
    strategy: Strategy,
    seed: int,
    noise: float,
    cap: int,
    policy: str,
    failures: Failures,
) -> None:
    _compare(workflow, strategy, seed, 1.1, noise, cap, policy, failures, "count", grows=True)


def _some_join(
    workflow: Workflow, rng: np.random.Generator, now_s: int
) -> tuple[Workflow, Additions]:
    """The first tasks, and when the others join them: at one instant, when tasks may end, or when
    all is done."""
    tasks = [replace(task, runtime_s=60 * task.runtime_s) for task in workflow]
    cuts = sorted(
        {1 + int(cut) for cut in rng.integers(0, len(tasks), size=int(rng.integers(1, 5)))}
        | {len(tasks)}
    )
    choices = np.array([-5, 0, 60, 60, 120, int(rng.integers(0, 2000)), 10**6])
    times = sorted((now_s + rng.choice(choices, size=len(cuts) - 1)).tolist())
    joins = [
        (time, tasks[first:last]) for time, first, last in zip(times, cuts, cuts[1:], strict=False)
    ]
    return Workflow.from_tasks("base", tasks[: cuts[0]]), joins


def _compare(
    workflow: Workflow,
    strategy: Strategy,
    seed: int,
    margin: float,
    noise: float,
    cap: int,
    policy: str,
    failures: Failures,
    placement: str,
    *,
    grows: bool = False,
) -> None:
    rng = np.random.default_rng(seed)
    cluster, expected, actual = some_world(rng, seed, workflow, noise, policy, failures, placement)
    shape = (
        NodeShape(int(rng.integers(1, 4)))
        if workflow.fits(NodeShape()).all() and rng.random() < 0.5
        else NODE
    )
    terms = Terms(
        margin=margin,
        round_s=int(rng.choice([1, 60])),
        overhead_s=int(rng.choice([0, 7])),
        forecast_with_margin=bool(rng.random() < 0.7),
        busy_is_request=bool(rng.random() < 0.3),
    )
    most_s = None if rng.random() < 0.7 else int(actual.sum()) + 60
    workflow, additions = _some_join(workflow, rng, cluster.now_s) if grows else (workflow, ())
    work = Work(
        workflow, expected[: len(workflow)], Site.of(6, shape, cap=cap, max_request_s=most_s)
    )
    quick, slow = by_both_ways(cluster, workflow, strategy, terms, work, actual, additions)
    assert quick == slow


@pytest.mark.slow
@pytest.mark.parametrize("strategy", WITH_HABITS, ids=lambda s: s.name)
def test_kills_of_wide_workflows_and_growing_tables(strategy: Strategy) -> None:
    """Hundreds of jobs at once, most of them killed at first: every table must grow in the midst of
    things."""
    tasks = [Task("a", 50)] + [Task(f"b{i}", 20 + i % 7, parents=("a",)) for i in range(300)]
    tasks += [Task(f"c{i}", 30, parents=(f"b{i}", f"b{(7 * i + 1) % 300}")) for i in range(300)]
    workflow = Workflow.from_tasks("wide", tasks)
    actual = whole_seconds(workflow) * np.random.default_rng(3).integers(1, 6, size=len(workflow))
    terms = Terms(margin=1.0, round_s=1)
    work = Work(workflow, whole_seconds(workflow), Site.of(40, cap=10_000))
    quick, slow = by_both_ways(Cluster(nodes=40), workflow, strategy, terms, work, actual)
    assert quick == slow
    assert quick.killed_jobs > 0


def test_a_strategy_without_habits_takes_the_long_way() -> None:
    asked: list[View] = []

    class Watched:
        name = "watched"

        def decide(self, view: View) -> Decision:
            asked.append(view)
            return Individual().decide(view)

    workflow = fork_join()
    terms = Terms()
    work = Work(workflow, whole_seconds(workflow), Site.of(10))
    quick, slow = by_both_ways(
        Cluster(nodes=10), workflow, Watched(), terms, work, whole_seconds(workflow)
    )
    assert quick == slow
    assert asked


@pytest.mark.parametrize(
    ("cores", "memory", "shape", "places"),
    [
        (1, 0, NodeShape(), 1),
        (1, 0, NodeShape(64), 64),
        (3, 0, NodeShape(8), 2),
        (1, 4, NodeShape(8, 10), 2),
        (1, 4, NodeShape(8), 8),
        (1, 4, NodeShape(8, 100, 5, (("gpus", 3),)), 3),
        (1, 4, NodeShape(8, 100, 1, (("gpus", 3),)), 1),
    ],
)
def test_places_on_a_node(cores: int, memory: int, shape: NodeShape, places: int) -> None:
    named = {"disk_bytes": 1, "counts": (("gpus", 1),)} if shape.counts else {}
    run = made([Task(n, 5, cores=cores, memory_bytes=memory, **named) for n in "ab"], shape)  # type: ignore[arg-type]
    assert (run[k.PER_NODE], run[k.PACKED], k.tasks_of(run)[:, k.UNITS].tolist()) == (
        places,
        0,
        [1, 1],
    )


def test_tasks_that_differ_are_put_on_nodes_one_by_one() -> None:
    others = (
        ("cores", 2, 2),
        ("memory_bytes", 1, 1),
        ("nodes", 3, 6),
        ("disk_bytes", 1, 1),
        ("counts", (("b", 1),), 1),
    )
    for what, amount, units in others:
        run = made([Task("a", 5), Task("b", 5, **{what: amount})], NodeShape(2, 9, 9, (("b", 1),)))  # type: ignore[arg-type]
        assert (run[k.PER_NODE], run[k.PACKED], k.tasks_of(run)[:, k.UNITS].tolist()) == (
            2,
            1,
            [1, units],
        )


def made(tasks: list[Task], shape: NodeShape) -> np.ndarray:
    workflow = Workflow.from_tasks("pair", tasks)
    work = Work(workflow, whole_seconds(workflow), Site.of(4, shape))
    return tables(work, {}, shape, are_alike=work.are_alike(np.arange(len(workflow))))
