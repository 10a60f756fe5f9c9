"""Estimated run times agree with what the packing of an allocation really does."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from windrow.errors import UserError
from windrow.model import NodeShape, Task, Workflow
from windrow.model.packing import Packing
from windrow.model.site import Site
from windrow.strategies import Work, levels


def played(workflow: Workflow, nodes: int, shape: NodeShape) -> int | None:
    """Run the whole workflow in one allocation, event by event; None where it cannot."""
    packing = Packing(nodes, shape)
    needs = [t.need for t in workflow]
    open_parents = workflow.parents.degrees().tolist()
    ends: list[tuple[int, int]] = []
    now, done = 0, 0
    for v in range(len(workflow)):
        if open_parents[v] == 0:
            packing.offer(v, workflow.runtime_s[v], needs[v])
    while done < len(workflow):
        for v, places in packing.start():
            assert len(set(places)) == max(1, needs[v].nodes)
            heappush(ends, (now + int(workflow.runtime_s[v]), v))
        if not ends:
            return None
        now = ends[0][0]
        while ends and ends[0][0] == now:
            v = heappop(ends)[1]
            packing.finish(v)
            done += 1
            for c in workflow.children.of(v).tolist():
                open_parents[c] -= 1
                if open_parents[c] == 0:
                    packing.offer(c, workflow.runtime_s[c], needs[c])
    return now


NAMES = ("a", "b", "c", "d", "gpus")
NODE = NodeShape(4, 8, 5, tuple((name, 3) for name in NAMES))


@st.composite
def workflows(draw: st.DrawFn, *, mixed: int) -> Workflow:
    """mixed 0: tasks need one core. 1: cores, memory and whole nodes differ. 2: disk and named
    resources as well."""
    n = draw(st.integers(1, 14))
    names = draw(st.lists(st.sampled_from(NAMES), unique=True)) if mixed > 1 else []
    tasks = []
    for i in range(n):
        parents = draw(st.lists(st.integers(0, i - 1), max_size=3, unique=True)) if i else []
        tasks.append(
            Task(
                f"t{i}",
                draw(st.integers(1, 9)),
                parents=tuple(f"t{p}" for p in parents),
                cores=draw(st.integers(1, 4)) if mixed else 1,
                memory_bytes=draw(st.integers(0, 8)) if mixed else 0,
                nodes=draw(st.sampled_from([0, 0, 0, 1, 2])) if mixed else 0,
                disk_bytes=draw(st.integers(0, 3)) if mixed > 1 else 0,
                counts=tuple((name, k) for name in sorted(names) if (k := draw(st.integers(0, 3)))),
            )
        )
    return Workflow.from_tasks("random", tasks)


def _with_modules(known: dict[str, int], call: Callable[[], list[int]]) -> list[int]:
    """What it answers where only these modules seem to be loaded."""
    with mock.patch.object(levels, "sys", mock.Mock(modules=known)):
        return call()


@pytest.mark.slow
@examples(500)
@given(st.sampled_from([0, 1, 2]).flatmap(lambda mixed: workflows(mixed=mixed)), st.integers(1, 6))
def test_run_times_are_those_of_the_packing(workflow: Workflow, most: int) -> None:
    shape = NODE
    work = Work(workflow, workflow.runtime_s.astype(np.int64), Site.of(6, shape))
    compiled, in_python = (
        _with_modules(known, lambda: work.run_s(np.arange(len(workflow)), most).tolist())
        for known in ({"numba": 0}, {})
    )
    expected = [played(workflow, nodes, shape) for nodes in range(1, most + 1)]
    assert compiled == in_python == [2**40 if time is None else time for time in expected]


@given(workflows(mixed=0), st.integers(1, 20))
def test_graham_bounds_on_single_cores(workflow: Workflow, nodes: int) -> None:
    """List scheduling needs at least work / nodes and the critical path, at most their sum."""
    work = Work(workflow, workflow.runtime_s.astype(np.int64), Site.of(nodes))
    ends: dict[int, float] = {}
    for v in workflow.order.tolist():
        ends[v] = max((ends[p] for p in workflow.parents.of(v).tolist()), default=0.0) + float(
            workflow.runtime_s[v]
        )
    longest, total = max(ends.values()), workflow.work_s
    time = work.run_s(np.arange(len(workflow)), nodes)[nodes - 1]
    assert max(longest, total / nodes) <= time <= total / nodes + longest


def test_a_wide_level_on_large_nodes_is_narrow() -> None:
    level = Workflow.from_tasks("level", [Task(f"t{i}", 60) for i in range(200)])
    work = Work(level, np.full(200, 60), Site.of(128, NodeShape(64)))
    level_by_level = work.levels(np.ones(200, dtype=bool))
    assert level_by_level.usable(0, 0) == 4
    assert level_by_level.run_s(0, 0).tolist() == [240, 120, 120, 60]


def test_levels_of_what_is_left() -> None:
    chain = Workflow.from_tasks(
        "chain", [Task("a", 5), Task("b", 7, parents=("a",)), Task("c", 9, parents=("b",))]
    )
    work = Work(chain, np.array([5, 7, 9]), Site.of(4))
    left = work.levels(np.array([False, True, True]))
    assert (left.count, left.between(0, 0).tolist(), left.run_s(0, 1).tolist()) == (2, [1], [16])
    assert work.levels(np.array([False, True, True])) is left


def test_tasks_that_fit_nowhere_are_refused() -> None:
    big = Workflow.from_tasks("big", [Task("ok", 1), Task("wide", 1, cores=9)])
    with pytest.raises(UserError, match=r"task wide needs"):
        Work(big, np.array([1, 1]), Site.of(4, NodeShape(8)))
