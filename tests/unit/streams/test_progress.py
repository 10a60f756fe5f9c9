"""Eligible sets and levels of parallelism, kept up to date, against the same computed anew and by
brute force."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.streams.small import orders, workflows

from windrow.model import Workflow
from windrow.recipes import generate_workflow
from windrow.shape import level_of_parallelism, token_parallelism
from windrow.streams import Progress


def waves(workflow: Workflow, done: set[int]) -> list[set[int]]:
    """The definition of section III-A, word by word: complete the whole eligible set, see what is
    eligible then."""
    completed, found = set(done), []
    while len(completed) < len(workflow):
        wave = {
            v
            for v in range(len(workflow))
            if v not in completed and set(workflow.parents.of(v).tolist()) <= completed
        }
        found.append(wave)
        completed |= wave
    return found


def heaviest_antichain(workflow: Workflow, done: set[int]) -> int:
    """All sets of tasks left, tried one by one."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(workflow)))
    graph.add_edges_from((int(p), v) for v in range(len(workflow)) for p in workflow.parents.of(v))
    comparable = nx.transitive_closure_dag(graph)
    left = [v for v in range(len(workflow)) if v not in done]
    best = 0
    for size in range(1, len(left) + 1):
        for chosen in combinations(left, size):
            if not any(comparable.has_edge(a, b) for a, b in combinations(chosen, 2)):
                best = max(best, int(workflow.cores[list(chosen)].sum()))
    return best


@given(st.data())
def test_generations_follow_every_completion(data: st.DataObject) -> None:
    workflow = data.draw(workflows(most_cores=3))
    progress, done = Progress(workflow), set[int]()
    for task in data.draw(orders(workflow)):
        before = waves(workflow, done)
        assert progress.generations == [
            -1 if v in done else next(g for g, wave in enumerate(before) if v in wave)
            for v in range(len(workflow))
        ]
        cores = [int(workflow.cores[sorted(wave)].sum()) for wave in before]
        assert progress.sizes[: len(cores)] == cores
        assert not any(progress.sizes[len(cores) :])
        assert (progress.eligible, progress.parallelism) == (cores[0], max(cores))
        assert [progress.widest(d) for d in range(4)] == [max(cores[: d + 1]) for d in range(4)]
        fresh = progress.finish(task)
        done.add(task)
        after = waves(workflow, done)
        assert fresh == sorted((after[0] if after else set()) - before[0])
    assert progress.left == 0


@pytest.mark.slow
@given(st.data())
def test_exact_parallelism_is_the_heaviest_antichain_at_every_step(data: st.DataObject) -> None:
    workflow = data.draw(workflows(most_tasks=8, most_cores=3))
    progress, done = Progress(workflow), set[int]()
    for task in data.draw(orders(workflow)):
        exact = progress.exact_parallelism
        assert exact == heaviest_antichain(workflow, done)
        assert progress.parallelism <= exact
        progress.finish(task)
        done.add(task)
    assert progress.exact_parallelism == 0


@given(st.data())
def test_exact_parallelism_asked_for_late_is_the_same(data: st.DataObject) -> None:
    workflow = data.draw(workflows(most_cores=2))
    order = data.draw(orders(workflow))
    late, early = Progress(workflow), Progress(workflow)
    assert early.exact_parallelism > 0
    for task in order[: len(order) // 2]:
        late.finish(task)
        early.finish(task)
    assert late.exact_parallelism == early.exact_parallelism


def test_real_shapes_agree_with_the_one_shot_measures_while_they_run() -> None:
    for recipe in ("montage", "inspiral", "sipht", "cybershake", "genome"):
        workflow = generate_workflow(recipe, tasks=40, seed=3)
        progress, done = Progress(workflow), list[int]()
        for k, task in enumerate(workflow.order.tolist()):
            if k % 13 == 0:
                assert progress.parallelism == token_parallelism(workflow, done)
                assert progress.exact_parallelism == level_of_parallelism(workflow, done)
            progress.finish(task)
            done.append(task)


def test_tokens_miss_what_waits_on_paths_of_unlike_length() -> None:
    """Figure 1 of the paper: the wave passes the short branch before the long one has opened."""
    from windrow.model import Task

    tasks = [Task("a", 1.0), Task("b", 1.0, parents=("a",)), Task("c", 1.0, parents=("a",))]
    tasks += [Task(f"d{i}", 1.0, parents=("c",)) for i in range(2)]
    tasks += [Task(f"e{i}", 1.0, parents=("b",)) for i in range(1)]
    tasks += [Task(f"f{i}", 1.0, parents=("e0",)) for i in range(2)]
    progress = Progress(Workflow.from_tasks("unlike", tasks))
    assert (progress.parallelism, progress.exact_parallelism) == (3, 4)
