"""Which task goes first, and how long a workflow would take."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from tests.unit.streams.small import workflows

from windrow.errors import UserError
from windrow.model import Task, Workflow
from windrow.recipes import generate_workflow
from windrow.streams import find_estimates, find_selection
from windrow.streams.estimates import Exact, Learned, Noisy, length_s
from windrow.streams.selection import RandomReady, by_descendants, by_longest_path, first_draw
from windrow_lab.stream.simulation import Simulator
from windrow_lab.stream.workload import Workload


def graph_of(workflow: Workflow) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(workflow)))
    graph.add_edges_from((int(p), v) for v in range(len(workflow)) for p in workflow.parents.of(v))
    return graph


@given(workflows())
def test_ranks_follow_descendants_and_paths(workflow: Workflow) -> None:
    graph = graph_of(workflow)
    below = [len(nx.descendants(graph, v)) for v in range(len(workflow))]
    tails = [
        nx.dag_longest_path_length(graph.subgraph({v} | nx.descendants(graph, v)))
        for v in range(len(workflow))
    ]
    for ranks, keys in ((by_descendants(workflow), below), (by_longest_path(workflow), tails)):
        assert sorted(ranks) == list(range(len(workflow)))
        inorder = sorted(range(len(workflow)), key=lambda v: ranks[v])
        assert [keys[v] for v in inorder] == sorted(keys, reverse=True)


def test_random_draws_are_even() -> None:
    """Chi-square of 6,000 first picks among five: with four degrees of freedom above 18.5 once in a
    thousand."""
    counts = Counter[int]()
    for number in range(6000):
        ready = RandomReady(first_draw(7, number))
        for task in range(5):
            ready.add(task)
        counts[ready.choose()] += 1
    assert sum((counts[t] - 1200) ** 2 / 1200 for t in range(5)) < 18.5


def test_random_draws_take_each_task_once() -> None:
    ready = RandomReady(first_draw(1, 1))
    for task in range(50):
        ready.add(task)
    taken = []
    while ready:
        taken.append(ready.choose())
        ready.take()
    assert sorted(taken) == list(range(50))
    assert taken != sorted(taken)


@pytest.mark.slow
@given(workflows())
def test_the_exact_length_is_a_lower_bound_of_the_makespan_alone(workflow: Workflow) -> None:
    workload = Workload("one", (workflow,), np.zeros(1, dtype=np.int64), np.ones(1))
    for slots in (1, 2, 50):
        alone = float(Simulator(workload, slots).empty_s[0])
        bound = length_s(workflow, Exact().runtimes_s(0, workflow), slots)
        assert bound <= alone + 1e-9
        if slots in (1, 50):  # one at a time, or all that can: both bounds are met
            assert bound == pytest.approx(alone)


def test_learnt_estimates_converge_to_shares_by_kind() -> None:
    """Two kinds, one task of each taking 3 and 1 of every 4 seconds of work; the work is 40 on
    average."""
    source = Learned()
    for work_s in (20.0, 60.0):
        tasks = [Task("a", 0.75 * work_s, kind="long"), Task("b", 0.25 * work_s, kind="short")]
        workflow = Workflow.from_tasks("w", tasks)
        source.learn(workflow, workflow.runtime_s.tolist())
    fresh = Workflow.from_tasks(
        "fresh", [Task("a", 1.0, kind="long"), Task("b", 1.0, kind="short")]
    )
    assert source.runtimes_s(0, fresh) == pytest.approx([30.0, 10.0])


def test_learnt_estimates_know_nothing_at_first_and_fall_back_for_new_kinds() -> None:
    workflow = Workflow.from_tasks("w", [Task(f"t{i}", 5.0, kind="new") for i in range(4)])
    assert Learned().runtimes_s(0, workflow) == pytest.approx([0.25] * 4)


def test_noisy_estimates_are_off_by_the_noise_asked_for() -> None:
    workflow = generate_workflow("montage", tasks=2000, seed=1)
    ratio = np.log(np.array(Noisy(0.5, seed=3).runtimes_s(4, workflow)) / workflow.runtime_s)
    assert abs(float(ratio.mean())) < 0.05
    assert float(ratio.std()) == pytest.approx(0.5, abs=0.03)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UserError, match="did you mean random"):
        find_selection("randon")
    with pytest.raises(UserError, match="did you mean learned"):
        find_estimates("learnt")
