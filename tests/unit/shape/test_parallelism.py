"""Level of parallelism: exact against brute force, networkx and matching on the transitive closure;
tokens below it."""

from __future__ import annotations

import random
from collections.abc import Sequence

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import UserError
from windrow.model import Task, Workflow
from windrow.shape import largest_antichain, level_of_parallelism, shape, token_parallelism


def workflow_of(parents: Sequence[Sequence[int]]) -> Workflow:
    tasks = [Task(f"t{v}", 1.0, parents=tuple(f"t{p}" for p in ps)) for v, ps in enumerate(parents)]
    return Workflow.from_tasks("small", tasks)


def graph_of(workflow: Workflow) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(workflow)))
    graph.add_edges_from(
        (p, v) for v in range(len(workflow)) for p in workflow.parents.of(v).tolist()
    )
    return graph


@st.composite
def dags(draw: st.DrawFn, most: int) -> Workflow:
    """Random DAGs whose task numbers are not a topological order, so that no algorithm can lean on
    it."""
    n = draw(st.integers(1, most))
    density = draw(st.sampled_from([0.1, 0.25, 0.5]))
    chance = random.Random(draw(st.integers(0, 2**32)))
    rank = draw(st.permutations(range(n)))
    return workflow_of(
        [[p for p in range(n) if rank[p] < rank[v] and chance.random() < density] for v in range(n)]
    )


def by_brute_force(workflow: Workflow, among: Sequence[int]) -> int:
    closure = nx.transitive_closure_dag(graph_of(workflow))
    comparable = {v: set(closure.successors(v)) | set(closure.predecessors(v)) for v in closure}

    def grow(chosen: int, candidates: list[int]) -> int:
        best = chosen
        for i, v in enumerate(candidates):
            best = max(
                best, grow(chosen + 1, [w for w in candidates[i + 1 :] if w not in comparable[v]])
            )
        return best

    return grow(0, list(among))


def by_matching(workflow: Workflow) -> int:
    """Dilworth by the book: tasks minus a maximum matching between the two copies of the transitive
    closure."""
    n = len(workflow)
    closure = nx.transitive_closure_dag(graph_of(workflow))
    bipartite = nx.Graph()
    bipartite.add_nodes_from(range(2 * n))
    bipartite.add_edges_from((a, n + b) for a, b in closure.edges)
    return n - len(nx.bipartite.maximum_matching(bipartite, top_nodes=range(n))) // 2


def assert_antichain(workflow: Workflow, members: Sequence[int]) -> None:
    below = nx.transitive_closure_dag(graph_of(workflow))
    assert len(set(members)) == len(members)
    assert not [(a, b) for a in members for b in members if below.has_edge(a, b)]


@given(dags(9))
def test_exact_equals_brute_force_and_comes_with_a_witness(workflow: Workflow) -> None:
    members = largest_antichain(workflow)
    assert_antichain(workflow, members)
    assert (
        len(members)
        == level_of_parallelism(workflow)
        == by_brute_force(workflow, range(len(workflow)))
    )


@given(dags(7))
def test_exact_equals_the_longest_antichain_of_networkx(workflow: Workflow) -> None:
    assert level_of_parallelism(workflow) == max(len(a) for a in nx.antichains(graph_of(workflow)))


@given(dags(40))
def test_exact_equals_matching_on_the_closure(workflow: Workflow) -> None:
    members = largest_antichain(workflow)
    assert_antichain(workflow, members)
    assert len(members) == by_matching(workflow)


@given(dags(30))
def test_tokens_never_exceed_the_exact_value(workflow: Workflow) -> None:
    assert token_parallelism(workflow) <= level_of_parallelism(workflow)


@given(dags(30))
def test_the_first_waves_of_tokens_are_the_levels(workflow: Workflow) -> None:
    assert token_parallelism(workflow) == shape(workflow).width


@given(dags(9), st.data())
def test_with_tasks_done_the_rest_is_measured(workflow: Workflow, data: st.DataObject) -> None:
    order = workflow.order.tolist()
    done = order[: data.draw(st.integers(0, len(order)))]
    rest = [v for v in range(len(workflow)) if v not in done]
    members = largest_antichain(workflow, done)
    assert_antichain(workflow, members)
    assert set(members) <= set(rest)
    assert len(members) == by_brute_force(workflow, rest)
    assert token_parallelism(workflow, done) == widest_wave(workflow, set(done))


def widest_wave(workflow: Workflow, completed: set[int]) -> int:
    """Section III-A word by word: eligible is who is not completed and has all parents
    completed."""
    widest = 0
    while len(completed) < len(workflow):
        eligible = {
            v
            for v in range(len(workflow))
            if v not in completed and set(workflow.parents.of(v).tolist()) <= completed
        }
        widest = max(widest, len(eligible))
        completed = completed | eligible
    return widest


def test_tokens_of_a_workflow_under_way_do_not_follow_its_levels() -> None:
    # a -> b -> c and d -> e -> f, with a, b done: c (level 2) is eligible together with d (level
    # 0), and e, f follow.
    workflow = workflow_of([[], [0], [1], [], [3], [4]])
    assert token_parallelism(workflow, done=[0, 1]) == 2
    assert token_parallelism(workflow, done=[0, 1, 2]) == 1


def test_tokens_can_fall_short() -> None:
    # Two entries, of which one forks into three at once and the other only after a step: at most 4
    # in a wave, 6 in all.
    workflow = workflow_of([[], [0], [0], [0], [], [4], [5], [5], [5]])
    assert token_parallelism(workflow) == 4
    assert level_of_parallelism(workflow) == 6


def test_a_done_task_needs_done_parents() -> None:
    workflow = workflow_of([[], [0]])
    with pytest.raises(UserError, match="t1 cannot be done: its parent t0 is not"):
        token_parallelism(workflow, done=[1])


@pytest.mark.parametrize(
    ("parents", "exact"),
    [
        ([[]], 1),
        ([[] for _ in range(6)], 6),
        ([[], *([v] for v in range(99))], 1),
        ([[], *([0] for _ in range(50)), list(range(1, 51)), *([51] for _ in range(30))], 50),
    ],
    ids=["one task", "no edges", "chain", "fork-join-fork"],
)
def test_known_values(parents: list[list[int]], exact: int) -> None:
    assert level_of_parallelism(workflow_of(parents)) == exact
