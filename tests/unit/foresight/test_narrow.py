"""Many narrow jobs where users share nodes: what is expected of them is held against playing it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from windrow.foresight.narrow import START_S, best_end_s, narrow
from windrow.foresight.strategy import Foresight
from windrow.manager.core import Core
from windrow.manager.terms import Terms
from windrow.model import Task, Workflow
from windrow.model.graph import Ints
from windrow.model.parts import Sharing
from windrow.model.resources import NodeShape
from windrow.model.site import NodeKind, Site
from windrow.strategies.base import View, decided
from windrow.strategies.glume import Glume
from windrow.strategies.levels import Work, whole_seconds

MIB = 1 << 20
KINDS = (NodeKind(NodeShape(4, 2000 * MIB), 4),)
SHARING = Sharing(400 * MIB, 500 * MIB)
"""Sixteen cores on four nodes."""


def view(tasks: list[Task], free_at_s: list[int], *, sharing: Sharing | None = SHARING) -> View:
    """What a strategy sees if the k-th part becomes free at the k-th of these times."""
    workflow = Workflow.from_tasks("w", tasks)
    site = Site("here", KINDS, sharing=sharing)
    work = Work(workflow, whole_seconds(workflow), site)

    def waits_s(nodes: Ints, _: Ints) -> Ints:
        return np.array([free_at_s[n - 1] for n in np.atleast_1d(nodes)], dtype=np.int64)

    return Core(work, Terms()).view(0, waits_s)


def flat(runs: list[int]) -> list[Task]:
    return [Task(f"t{i}", runtime_s=run) for i, run in enumerate(runs)]


def test_narrow_jobs_start_where_a_wide_one_waits() -> None:
    there = view(flat([60] * 8), [0, 60, 120, *[600] * 13])
    decision = decided(Foresight(), there)
    assert {job.nodes for job in decision.jobs} == {1}
    assert all(job.takes and job.part == NodeShape(1, 400 * MIB) for job in decision.jobs)
    assert sorted(task for job in decision.jobs for task in job.tasks) == list(range(8))


def test_one_job_where_there_is_room_for_all() -> None:
    decision = decided(Foresight(), view(flat([60] * 8), [0] * 16))
    assert [job.nodes for job in decision.jobs] == [8]
    assert not decision.jobs[0].takes


def test_whole_nodes_have_no_narrow_jobs() -> None:
    assert narrow(view(flat([60] * 8), [0] * 16, sharing=None)) is None


def test_what_all_need_first_is_a_job_before() -> None:
    tasks = [Task("first", runtime_s=60)]
    tasks += [Task(f"t{i}", parents=("first",), runtime_s=60) for i in range(8)]
    there = view(tasks, [0, *[900] * 15])
    decision = decided(Foresight(), there)
    assert [job.nodes for job in decision.jobs] == [1]


@examples(60)
@given(
    st.lists(st.integers(1, 300), min_size=2, max_size=12),
    st.lists(st.integers(0, 900), min_size=16, max_size=16).map(sorted),
)
def test_no_worse_is_expected_than_of_one_job(runs: list[int], free_at_s: list[int]) -> None:
    there = view(flat(runs), free_at_s)
    found = narrow(there)
    assert found is not None
    assert sorted(t for job in found.jobs for t in job.tasks) == list(range(len(runs)))
    assert len(found.jobs) <= there.cap
    chosen = decided(Foresight(), there)
    assert best_end_s(chosen) <= min(best_end_s(decided(Glume(), there)), found.end_s)
    least = sum(job.run_s for job in found.jobs)
    assert found.end_s >= START_S + free_at_s[0] + max(job.run_s for job in found.jobs)
    assert found.end_s <= START_S + free_at_s[-1] + least
