"""A workflow that exists is valid; one that is not is refused with the offending names."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import UserError
from windrow.model import File, NodeShape, Task, Workflow, WorkflowError


def diamond() -> Workflow:
    return Workflow.from_tasks(
        "diamond",
        [
            Task("a", 1.0, outputs=("f",)),
            Task("b", 2.0, parents=("a",), inputs=("f",)),
            Task("c", 3.0, parents=("a",), cores=2, memory_bytes=5),
            Task("d", 4.0, parents=("b", "c"), command=("run", "d"), nodes=1),
        ],
        [File("f", 7)],
    )


def test_tasks_come_back_as_they_went_in() -> None:
    workflow = diamond()
    assert list(workflow) == [workflow.task(i) for i in range(4)]
    assert workflow.task(3) == Task("d", 4.0, parents=("b", "c"), command=("run", "d"), nodes=1)
    assert workflow.files == (File("f", 7),)
    assert (workflow.number("c"), workflow.depth, workflow.work_s, len(workflow)) == (2, 3, 10.0, 4)


def test_a_task_is_freed_by_the_last_parent_that_it_misses() -> None:
    workflow = diamond()
    missing = workflow.parents.degrees().tolist()
    assert list(workflow.children.freed_by(0, missing)) == [1, 2]
    assert list(workflow.children.freed_by(2, missing)) == []
    assert list(workflow.children.freed_by(1, missing)) == [3]
    assert missing == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ([], "no tasks"),
        ([Task("a", 1), Task("a", 2)], "more than once: a"),
        ([Task("a", 1, parents=("x", "y"))], "task a has unknown parents: x, y"),
        ([Task("a", -1.0)], r"negative: a \(-1.0\)"),
        ([Task("a", math.nan)], "must be a number: a"),
        ([Task("a", math.inf)], "must be a number: a"),
        ([Task("a", 1, cores=0)], "at least one core: a"),
        ([Task("a", 1, memory_bytes=-1)], "memory must not be negative: a"),
        ([Task("a", 1, parents=("a",))], "in a cycle: a -> a"),
        (
            [
                Task("a", 1, parents=("c",)),
                Task("b", 1, parents=("a",)),
                Task("c", 1, parents=("b",)),
            ],
            "a -> b -> c -> a",
        ),
        ([Task("a", 1), Task("b", 1, parents=("a", "a"))], "given twice: b after a"),
    ],
)
def test_what_is_refused(tasks: list[Task], message: str) -> None:
    with pytest.raises(WorkflowError, match=message):
        Workflow.from_tasks("bad", tasks)


def test_file_sizes_and_nodes_are_checked() -> None:
    with pytest.raises(WorkflowError, match="file size must not be negative: f"):
        Workflow.from_tasks("bad", [Task("a", 1)], [File("f", -1)])
    with pytest.raises(UserError, match="1 to 1,000,000 cores, not 0"):
        NodeShape(0)


def test_nothing_can_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        diamond().runtime_s[0] = 5


@given(st.integers(1, 25), st.floats(0, 0.5), st.randoms(use_true_random=False))
def test_levels_are_longest_paths(n: int, density: float, random: object) -> None:
    rng = np.random.default_rng(random.getrandbits(32))  # type: ignore[attr-defined]
    graph = nx.DiGraph((i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < density)
    graph.add_nodes_from(range(n))
    names = rng.permutation(n)
    tasks = [
        Task(f"t{names[v]}", 1.0, parents=tuple(f"t{names[p]}" for p in graph.predecessors(v)))
        for v in range(n)
    ]
    workflow = Workflow.from_tasks("random", [tasks[i] for i in rng.permutation(n)])
    for level, generation in enumerate(nx.topological_generations(graph)):
        assert all(workflow.levels[workflow.number(f"t{names[v]}")] == level for v in generation)
    place = np.argsort(workflow.order)
    assert all(place[p] < place[v] for v in range(n) for p in workflow.parents.of(v))


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.sets(st.integers(0, 5)), st.integers(0, 9)), max_size=8
    ),
    st.data(),
)
def test_bytes_on_edges_are_of_files_from_parent_to_child(
    written: list[tuple[int, set[int], int]], data: st.DataObject
) -> None:
    """Each file has a writer and readers; who reads what its parent has not written reads it from
    elsewhere."""
    parents = [data.draw(st.sets(st.integers(0, i - 1))) if i else set() for i in range(6)]
    tasks = [
        Task(
            str(i),
            1.0,
            parents=tuple(map(str, parents[i])),
            inputs=tuple(f"f{k}" for k, (_, readers, _) in enumerate(written) if i in readers),
            outputs=tuple(f"f{k}" for k, (by, _, _) in enumerate(written) if i == by),
        )
        for i in range(6)
    ]
    workflow = Workflow.from_tasks(
        "w", tasks, [File(f"f{k}", size) for k, (_, _, size) in enumerate(written)]
    )
    edges = zip(workflow.parents.sources().tolist(), workflow.parents.index.tolist(), strict=True)
    expected = [
        sum(size for by, readers, size in written if by == a and b in readers) for b, a in edges
    ]
    assert workflow.edge_bytes.tolist() == expected
