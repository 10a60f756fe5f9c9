"""A limit on space in simulation: the same rules decide in estimates, trials and agents."""

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st
from tests.examples import examples

from windrow.app.strategies import find_strategy
from windrow.manager.terms import Terms
from windrow.model import File, NodeShape, Task, Workflow
from windrow.model.site import Site
from windrow.report.run.page import run_page
from windrow.sim import Cluster
from windrow.storage.admission import ORDERS
from windrow.storage.demand import AUTO, SpaceLimit, demand_of, with_likely_sizes
from windrow.story.events import TaskFinished, TaskStarted
from windrow.strategies import Work, whole_seconds
from windrow.strategies.probing import Probing
from windrow.trials.figures import trial_figures
from windrow.trials.trial import run_trial


def pipelines(width: int, depth: int, size: int, run_s: int = 60) -> Workflow:
    """Pipelines that each hold one volume from their first task to their last, and leave little."""
    tasks, files = [], []
    for p in range(width):
        for d in range(depth):
            inputs = (f"v{p}", *((f"m{p}-{d - 1}",) if d else ())) if d else ()
            outputs = (*((f"v{p}",) if d == 0 else ()), f"m{p}-{d}")
            parents = (f"t{p}-{d - 1}",) if d else ()
            tasks.append(Task(f"t{p}-{d}", run_s, f"stage{d}", parents, inputs, outputs))
            files += [File(f"m{p}-{d}", 0, keep=d + 1 == depth)]
        files.append(File(f"v{p}", size, keep=False))
    return Workflow.from_tasks("pipelines", tasks, files)


def peak_of(workflow: Workflow, limit: SpaceLimit | None, nodes: int) -> tuple[int, int, int]:
    """The makespan of a trial, what its files took at most, and what was estimated."""
    work = Work(workflow, whole_seconds(workflow), Site.of(nodes, NodeShape(1)), space=limit)
    trial = run_trial(
        Cluster(nodes=nodes, policy="fcfs"),
        workflow,
        find_strategy("giant"),
        work=work,
        checked=True,
    )
    sizes, started, done, peak = [f.size_bytes for f in workflow.files], set[int](), set[int](), 0
    users = {
        f: {*np.flatnonzero([f in workflow.inputs.of(t) for t in range(len(workflow))]).tolist()}
        for f in range(len(sizes))
    }
    ordered = sorted(
        (event for event, _ in trial.events),
        key=lambda e: (e.at_s, not isinstance(e, TaskFinished)),
    )
    for event in ordered:  # at one instant, what ends makes room for what starts
        if isinstance(event, TaskStarted):
            started.add(event.task)
        elif isinstance(event, TaskFinished):
            done.add(event.task)
        used = 0
        for task in started:
            for f in workflow.outputs.of(task).tolist():
                is_over = workflow.files[f].keep is False and task in done and users[f] <= done
                used += 0 if is_over else sizes[f]
        peak = max(peak, used)
    estimate = int(work.run_s(np.arange(len(workflow)), nodes, nodes)[0])
    return trial.makespan_s, peak, estimate


@pytest.mark.parametrize("share", [20, 25, 30, 33, 40, 50, 51, 80, 100])
def test_the_staircase(share: int) -> None:
    """Figure 3.5: as many pipelines go at a time as have room for their data, and none fails."""
    workflow = pipelines(8, 4, share)
    makespan_s, peak, estimate = peak_of(workflow, SpaceLimit(100), 4)
    at_a_time = min(4, 100 // share)
    assert makespan_s == estimate == -(-8 // at_a_time) * 4 * 60
    assert peak == at_a_time * share


def test_without_a_limit_nothing_changes() -> None:
    workflow = pipelines(6, 3, 40)
    assert peak_of(workflow, None, 3)[::2] == peak_of(workflow, SpaceLimit(10_000), 3)[::2]


@examples(20)
@drawn(
    st.integers(1, 5),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(0, 60),
    st.sampled_from(ORDERS),
    st.data(),
)
def test_trials_keep_to_the_limit(
    width: int, depth: int, nodes: int, more: int, rule: str, data: st.DataObject
) -> None:
    workflow = pipelines(width, depth, 20)
    files = [File(f.id, data.draw(st.integers(0, 20)), keep=f.keep) for f in workflow.files]
    workflow = workflow.changed(files=files)
    demand = demand_of(workflow)
    limit = SpaceLimit(demand.peak(demand.order()) + more, rule)
    assert peak_of(workflow, limit, nodes)[1] <= limit.size


@examples(20)
@drawn(
    st.integers(0, 2**32), st.integers(1, 4), st.integers(0, 30), st.sampled_from([*ORDERS, AUTO])
)
def test_a_trial_takes_as_long_as_was_estimated(
    seed: int, nodes: int, more: int, rule: str
) -> None:
    """Whatever the graph, run times and sizes: also where several tasks end at one instant, and
    make room together."""
    chance, tasks, files = random.Random(seed), list[Task](), list[File]()
    for n in range(chance.randint(3, 14)):
        near = [m for m in range(max(0, n - 4), n) if chance.random() < 0.4]
        parents, inputs = tuple(f"t{m}" for m in near), tuple(f"f{m}" for m in near)
        tasks.append(
            Task(f"t{n}", chance.randint(1, 4) * 10, f"kind{n % 3}", parents, inputs, (f"f{n}",))
        )
        files.append(File(f"f{n}", chance.randint(0, 20), keep=chance.random() < 0.3))
    workflow = Workflow.from_tasks("any", tasks, files)
    demand = demand_of(workflow)
    limit = SpaceLimit(demand.peak(demand.order()) + more, rule)
    work = Work(workflow, whole_seconds(workflow), Site.of(nodes, NodeShape(1)), space=limit)
    trial = run_trial(
        Cluster(nodes=nodes, policy="fcfs"),
        workflow,
        find_strategy("giant"),
        work=work,
        checked=True,
    )
    (job,) = trial.recorded.story.jobs.values()
    assert trial.makespan_s == job.plan.run_s


@examples(20)
@drawn(st.integers(2, 5), st.integers(2, 4), st.integers(1, 4), st.integers(0, 60), st.data())
def test_by_auto_a_trial_ends_as_by_the_best_order(
    width: int, depth: int, nodes: int, more: int, data: st.DataObject
) -> None:
    workflow = pipelines(width, depth, 20)
    sizes = [File(f.id, data.draw(st.integers(1, 20)), keep=f.keep) for f in workflow.files]
    workflow = workflow.changed(files=sizes)
    demand = demand_of(workflow)
    least = demand.peak(demand.order()) + more
    by_order = [peak_of(workflow, SpaceLimit(least, rule), nodes)[2] for rule in ORDERS]
    _, peak, estimate = peak_of(workflow, SpaceLimit(least, AUTO), nodes)
    assert peak <= least
    assert estimate == min(by_order)


def test_where_sizes_are_unknown_a_few_pipelines_go_first() -> None:
    workflow = pipelines(6, 3, 0)
    work = Work(workflow, whole_seconds(workflow), Site.of(6, NodeShape(1)), space=SpaceLimit(100))
    trial = run_trial(Cluster(nodes=6, policy="fcfs"), workflow, Probing(), work=work, checked=True)
    plans = [job.plan for job in trial.recorded.story.jobs.values()]
    assert [len(plan.tasks) for plan in plans] == [6, 12]
    first = {workflow.ids[task].split("-")[0] for task in plans[0].tasks}
    assert len(first) == 2
    known = workflow.changed(files=[File(f.id, 1, keep=f.keep) for f in workflow.files])
    work = Work(known, whole_seconds(known), Site.of(6, NodeShape(1)), space=SpaceLimit(100))
    trial = run_trial(Cluster(nodes=6, policy="fcfs"), known, Probing(), work=work, checked=True)
    assert len(trial.recorded.story.jobs) == 1


def test_files_of_which_nothing_is_known_are_like_those_of_their_kind() -> None:
    workflow = pipelines(3, 2, 0)
    number = {file.id: f for f, file in enumerate(workflow.files)}
    likely = with_likely_sizes(workflow, {number["v0"]: 7, number["v1"]: 9})
    assert [likely[number[f"v{p}"]] for p in range(3)] == [7, 9, 9]
    assert number["m2-1"] not in likely
    known = workflow.changed(files=[File(f.id, 5, keep=f.keep) for f in workflow.files])
    assert with_likely_sizes(known, {number["v0"]: 7}) == {number[f"v{p}"]: 7 for p in range(3)}, (
        "declared too small"
    )
    assert with_likely_sizes(known, {number["v0"]: 3})[number["v1"]] == 5


def test_figures_of_a_campaign_obey_it_too() -> None:
    workflow = pipelines(6, 3, 40)
    work = Work(workflow, whole_seconds(workflow), Site.of(6, NodeShape(1)), space=SpaceLimit(100))
    given: dict[str, Any] = {"terms": Terms(), "actual_s": whole_seconds(workflow), "work": work}
    found = trial_figures(
        Cluster(nodes=6, policy="fcfs"), workflow, find_strategy("giant"), **given
    )
    assert found.makespan_s == 3 * 3 * 60


def test_the_page_of_a_run_draws_planned_and_actual_space() -> None:
    workflow, limit = pipelines(4, 3, 40_000_000), SpaceLimit(100_000_000)
    work = Work(workflow, whole_seconds(workflow), Site.of(4, NodeShape(1)), space=limit)
    told = run_trial(
        Cluster(nodes=4, policy="fcfs"), workflow, find_strategy("giant"), work=work
    ).recorded
    assert "At most: planned 80 MB, actual 80 MB; they were allowed 100 MB" in run_page(
        replace(told, space=limit)
    )
    assert "Space" not in run_page(told)
