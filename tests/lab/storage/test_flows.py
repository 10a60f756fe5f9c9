"""The simulation of flows against its law in plain Python, and what must hold of any run."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.lab.storage.flow_law import Law
from tests.lab.storage.simgrid_cases import FIGURES

from windrow.model import File, Task, Workflow
from windrow_lab.kernels.flows.advance import OVER, PAUSED
from windrow_lab.reproductions.bent.baselines import BASELINES, WHERE
from windrow_lab.storage.allocations import (
    ALL_BATCH,
    ALLOCATIONS,
    MINIMAL,
    SLICE,
    Environment,
    PipelineWorkload,
    least_storage,
    possible,
)
from windrow_lab.storage.flows import (
    DataFlow,
    FlowSimulation,
    Played,
    alone,
    canonical,
    of_workflow,
    play,
    play_all,
    through_home,
)

NO_FAILURES = (np.zeros(0), np.zeros(0, dtype=np.int64))
sizes = st.integers(1, 30)
works = st.builds(
    PipelineWorkload,
    st.integers(1, 6),
    st.integers(2, 4),
    sizes,
    sizes,
    st.integers(0, 40),
    st.just(0.5),
)


@st.composite
def workflows(draw: st.DrawFn) -> Workflow:
    """Any graph of a few tasks: files that one writes and later ones read, batch data, inputs and
    results."""
    n = draw(st.integers(1, 9))
    files = list[File]()
    inputs, outputs = [list[str]() for _ in range(n)], [list[str]() for _ in range(n)]
    for v in range(draw(st.integers(0, 3))):
        files.append(File(f"b{v}", draw(sizes)))
        for task in draw(st.sets(st.integers(0, n - 1), min_size=1)):
            inputs[task].append(f"b{v}")
    for task in range(n):
        for k in range(draw(st.integers(1, 2))):
            files.append(File(name := f"f{task}-{k}", draw(sizes)))
            outputs[task].append(name)
            for later in draw(st.sets(st.integers(0, n - 1), max_size=2)):
                if later > task:
                    inputs[later].append(name)
    tasks = [
        Task(
            f"t{i}",
            kind=f"k{i % 2}",
            runtime_s=draw(st.integers(0, 30)),
            inputs=(*inputs[i],),
            outputs=(*outputs[i],),
        )
        for i in range(n)
    ]
    return Workflow.from_tasks("any", tasks, files)


environments = st.builds(
    Environment,
    st.integers(1, 4),
    st.integers(1, 300),
    st.integers(1, 9).map(float),
    st.integers(1, 20).map(float),
    latency_s=st.sampled_from([0.0, 0.0, 0.25]),
)
failures = st.lists(st.tuples(st.floats(0.01, 60), st.integers(0, 3)), max_size=4)
flows = st.one_of(st.builds(canonical, works, st.integers(0, 9)), workflows().map(of_workflow))


def shaken(flow: DataFlow, seed: int) -> DataFlow:
    """With run times that end nothing at the same instant by chance."""
    return replace(flow, run_s=flow.run_s + np.random.default_rng(seed).random(len(flow.run_s)))


@examples(60)
@given(flows, environments, st.sampled_from(ALLOCATIONS), failures, st.integers(0, 99))
def test_the_kernel_does_what_the_law_says(
    flow: DataFlow, where: Environment, allocation: str, hits: list[tuple[float, int]], seed: int
) -> None:
    flow = shaken(flow, seed)
    some = sorted((when, node) for when, node in hits if node < where.nodes)
    whens, nodes = (
        np.array([when for when, _ in some]),
        np.array([node for _, node in some], dtype=np.int64),
    )
    law = Law(flow, allocation, where, some)
    told = law.run()
    run = FlowSimulation(flow, allocation, where, (np.append(whens, 1e9), np.append(nodes, 0)))
    found = run.played(run.advance())
    assert found.time_s == pytest.approx(told, rel=1e-7)
    assert found.hits == law.hits
    if told < inf:
        assert found.fetches == law.fetches
        assert found.moved == pytest.approx(law.crossed, rel=1e-6)
        holds(found, flow, where)
    assert law.fastest <= where.remote * (1 + 1e-12)


def holds(found: Played, flow: DataFlow, where: Environment) -> None:
    """Bytes are conserved, the wide area is never overfull, nor is the space."""
    assert found.moved == pytest.approx(
        found.of_batch + found.of_inputs + found.of_results, rel=1e-6, abs=1e-3
    )
    assert found.moved <= where.remote * found.time_s * (1 + 1e-9)
    assert found.most_used <= where.storage
    assert (found.end_s - found.start_s >= flow.run_s - 1e-6).all()
    running = np.concatenate([[(t, 1) for t in found.start_s], [(t, -1) for t in found.end_s]])
    running = running[np.lexsort((running[:, 1], running[:, 0].round(6)))]
    assert np.cumsum(running[:, 1]).max() <= where.nodes
    for child, parent in zip(flow.parents.sources(), flow.parents.index, strict=True):
        assert found.start_s[child] >= found.end_s[parent] - 1e-6


@given(works, environments)
def test_canonical_workloads_are_possible_where_the_formulas_say_and_never_stuck(
    work: PipelineWorkload, where: Environment
) -> None:
    flow = canonical(work)
    assert flow.peaks.tolist() == [2 * work.private] * work.width
    for one in ALLOCATIONS:
        assert flow.least_storage(one) == least_storage(one, work)
    played = play_all(flow, where)
    assert tuple(played) == possible(work, where.storage)
    for one, found in played.items():
        assert found.time_s < inf
        assert found.of_inputs == found.of_results == work.width * work.private
        if one != MINIMAL:  # batch data cross the wide area once
            assert (found.fetches, found.of_batch) == (work.depth, work.depth * work.batch)


@given(workflows(), environments)
def test_any_workflow_moves_what_it_must(workflow: Workflow, where: Environment) -> None:
    flow = of_workflow(workflow)
    assert len(flow.level) == len(workflow)
    assert flow.files.sum() + flow.volumes.sum() == sum(file.size_bytes for file in workflow.files)
    roomy = replace(where, storage=10_000)
    for found in play_all(flow, roomy).values():
        assert found.time_s < inf
        assert found.of_batch == flow.volumes.sum()
        assert found.of_results == flow.files[flow.is_kept].sum()
    assert flow.least_storage(MINIMAL) <= flow.least_storage(ALL_BATCH)


@given(
    st.integers(1, 9), st.integers(1, 4), st.integers(0, 50), st.integers(1, 50), st.integers(1, 4)
)
def test_bytes_by_way_of_home_are_those_of_figure_3_3(
    width: int, depth: int, batch: int, private: int, nodes: int
) -> None:
    flow, where = (
        canonical(PipelineWorkload(width, depth, batch, private, 1.0)),
        Environment(nodes, 10**9, 10.0, 100.0),
    )
    endpoint, pipeline, read = (
        2 * width * private,
        2 * width * (depth - 1) * private,
        width * depth * batch,
    )
    for is_local, is_cached in ((False, False), (True, False), (False, True), (True, True)):
        run = play(through_home(flow, is_local=is_local, is_cached=is_cached), ALL_BATCH, where)
        moved = endpoint + (0 if is_local else pipeline) + (depth * batch if is_cached else read)
        assert run.moved == pytest.approx(moved)
    assert play(alone(flow, nodes), ALL_BATCH, where).of_batch == pytest.approx(
        min(width, nodes) * depth * batch
    )


def test_a_clone_goes_on_by_itself() -> None:
    flow = canonical(BASELINES["mixed"], 1)
    whole = play(flow, SLICE, WHERE)
    run = FlowSimulation(flow, SLICE, WHERE, NO_FAILURES)
    assert run.advance(400_000) == PAUSED
    other = run.clone()
    for one in (other, run):
        assert one.advance() == OVER
        assert one.played(OVER).time_s == pytest.approx(whole.time_s, rel=1e-9)


def test_the_orders_of_figures_4_17_to_4_19() -> None:
    times = {
        name: {one: p.time_s for one, p in play_all(canonical(work, 1), WHERE).items()}
        for name, work in BASELINES.items()
    }
    mixed, private, batch = times["mixed"], times["private"], times["batch, V as printed"]
    assert mixed[SLICE] < mixed[ALL_BATCH] < mixed[MINIMAL]
    assert 1 - mixed[SLICE] / mixed[ALL_BATCH] == pytest.approx(0.18, abs=0.04)
    assert 1 - mixed[SLICE] / mixed[MINIMAL] == pytest.approx(0.22, abs=0.04)
    assert private[ALL_BATCH] < private[MINIMAL]
    assert 1 - batch[MINIMAL] / batch[SLICE] == pytest.approx(0.247, abs=0.02)
    assert play(canonical(BASELINES["mixed"], 1), MINIMAL, WHERE).of_batch == 450e6


def test_flows_on_one_link_by_hand() -> None:
    """Two jobs read 12 and 4 from home over 2 per second: both get 1 until 4 s, then one gets 2 and
    ends at 8 s."""
    files = [File("a", 12), File("b", 4), File("x", 0), File("y", 0)]
    tasks = [
        Task("1", inputs=("a",), outputs=("x",), runtime_s=0.0),
        Task("2", inputs=("b",), outputs=("y",), runtime_s=0.0),
    ]
    found = play(
        of_workflow(Workflow.from_tasks("two", tasks, files)),
        ALL_BATCH,
        Environment(2, 100, 2.0, 50.0),
    )
    assert sorted(found.end_s) == pytest.approx([4.0, 8.0])


def shared_link(case: dict[str, Any]) -> list[float]:
    """When transfers end that begin after tasks of so many seconds; those of a weight are batch
    data for as many."""
    tasks, files = list[Task](), list[File]()
    for number, (begin, size, weight) in enumerate(case["transfers"]):
        files += [File(f"data{number}", size * 1000)]
        for part in range(weight):
            name = f"{number}-{part}"
            files.append(File(f"go{name}", 0))
            tasks.append(Task(f"wait{name}", runtime_s=begin, outputs=(f"go{name}",)))
            reads = (f"go{name}", f"data{number}")
            tasks.append(Task(f"read{name}", runtime_s=0, inputs=reads, parents=(f"wait{name}",)))
    where = Environment(len(tasks), 10**9, 1000 * case["remote"], 1000 * case["local"])
    flow = of_workflow(Workflow.from_tasks("link", tasks, files))
    found = play(flow, ALL_BATCH, where)
    return sorted(found.end_s[flow.level == 1].tolist())


@pytest.mark.parametrize(
    "case", json.loads(FIGURES.read_text()), ids=lambda case: f"{len(case['transfers'])}-transfers"
)
def test_a_shared_link_is_shared_as_simgrid_shares_it(case: dict[str, Any]) -> None:
    """Figures of SimGrid 4.1, which need not be installed; who reads batch data is done no sooner
    than alone."""
    told = []
    for (begin, size, weight), end in zip(case["transfers"], case["ends"], strict=True):
        told += [max(end, begin + size / case["local"]) if weight > 1 else end] * weight
    assert shared_link(case) == pytest.approx(sorted(told), rel=1e-6)


def test_simgrid_still_says_so() -> None:
    pytest.importorskip(
        "simgrid", reason="SimGrid is not installed: its figures are those that are kept"
    )
    for case in json.loads(FIGURES.read_text())[:3]:
        command = [sys.executable, "-m", "tests.lab.storage.simgrid_cases", json.dumps(case)]
        found = json.loads(subprocess.check_output(command, text=True))
        assert found == pytest.approx(case["ends"])
