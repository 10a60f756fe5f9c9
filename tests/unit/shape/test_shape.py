"""Levels, widths, work and critical path, against independent computations."""

from __future__ import annotations

import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.model import Adjacency, File, Task, Workflow
from windrow.shape import critical_path, shape


@st.composite
def timed_dags(draw: st.DrawFn) -> Workflow:
    n = draw(st.integers(1, 8))
    # Whole seconds keep sums exact, so that oracles may add in any order; zero makes ties.
    times = draw(st.lists(st.integers(0, 5), min_size=n, max_size=n))
    parents = [draw(st.sets(st.integers(0, v - 1))) if v else set() for v in range(n)]
    tasks = [
        Task(
            f"t{v}",
            times[v],
            parents=tuple(f"t{p}" for p in sorted(parents[v])),
            outputs=(f"f{v}",),
        )
        for v in range(n)
    ]
    return Workflow.from_tasks("timed", tasks, [File(f"f{v}", 10 * v) for v in range(n)])


def all_chains(workflow: Workflow) -> list[list[int]]:
    chains: list[list[int]] = []

    def walk(chain: list[int]) -> None:
        chains.append(chain)
        for c in workflow.children.of(chain[-1]).tolist():
            walk([*chain, c])

    for v in range(len(workflow)):
        walk([v])
    return chains


@given(timed_dags())
def test_critical_path_is_the_longest_of_all_chains(workflow: Workflow) -> None:
    path = critical_path(workflow)
    times = workflow.runtime_s
    assert path.length_s == max(times[chain].sum() for chain in all_chains(workflow))
    assert times[list(path.tasks)].sum() == path.length_s
    assert list(path.tasks) in all_chains(workflow)
    assert len(workflow.parents.of(path.tasks[0])) == 0


@given(timed_dags())
def test_figures_agree_with_the_tasks(workflow: Workflow) -> None:
    figures = shape(workflow)
    graph = nx.DiGraph((p, task.id) for task in workflow for p in task.parents)
    graph.add_nodes_from(workflow.ids)
    generations = list(nx.topological_generations(graph))
    assert figures.widths == tuple(len(g) for g in generations)
    assert figures.level_work_s == tuple(
        sum(workflow.task(workflow.number(v)).runtime_s for v in g) for g in generations
    )
    assert figures.width == max(figures.widths)
    assert (figures.tasks, figures.edges, figures.levels) == (
        len(graph),
        graph.number_of_edges(),
        len(generations),
    )
    assert sum(figures.level_work_s) == figures.work_s == sum(task.runtime_s for task in workflow)
    assert figures.size_bytes == sum(10 * v for v in range(len(workflow)))
    assert figures.files == len(workflow)


def test_equal_paths_are_decided_by_the_order_of_tasks() -> None:
    tasks = [Task("b", 1), Task("a", 1), Task("end", 1, parents=("a", "b"))]
    assert shape(Workflow.from_tasks("tie", tasks)).critical_tasks == ("b", "end")


def test_measuring_loads_no_numba() -> None:
    program = (
        "import sys, windrow.model as m; from windrow.shape import shape, token_parallelism;"
        "w = m.Workflow.from_tasks('w', [m.Task('a', 1)]); shape(w); token_parallelism(w);"
        "sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.slow
def test_a_hundred_thousand_tasks_in_a_chain_and_side_by_side() -> None:
    n = 100_000
    chain = np.arange(1, n)
    times = np.ones(n)
    ids = [str(v) for v in range(n)]
    deep = Workflow(
        "deep", ids=ids, runtime_s=times, parents=Adjacency.from_edges(n, chain, chain - 1)
    )
    assert (shape(deep).levels, shape(deep).critical_path_s) == (n, float(n))
    none = np.zeros(0, dtype=np.int64)
    wide = Workflow("wide", ids=ids, runtime_s=times, parents=Adjacency.from_edges(n, none, none))
    assert (shape(wide).width, shape(wide).critical_path_s) == (n, 1.0)
