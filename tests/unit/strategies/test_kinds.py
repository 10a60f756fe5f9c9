"""Kinds of nodes: on which a job of some tasks can run, what it requests, and how a job is split
that fits none."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import UserError
from windrow.manager.core import Core
from windrow.manager.terms import Terms
from windrow.model import NodeShape, Task, Workflow
from windrow.model.nodes import Need
from windrow.model.resources import meet
from windrow.model.site import NodeKind, Site
from windrow.strategies import Work, whole_seconds
from windrow.strategies.base import decided
from windrow.strategies.giant import Giant
from windrow.strategies.individual import Individual

THIN, GPU, FAT = NodeShape(2, 10), NodeShape(4, 20, None, (("gpus", 2),)), NodeShape(8, 80, 50)
SITE = Site("s", (NodeKind(THIN, 4), NodeKind(GPU, 2), NodeKind(FAT, 1)))
NEEDS: tuple[dict[str, Any], ...] = (
    {},
    {"counts": (("gpus", 1),)},
    {"cores": 8},
    {"memory_bytes": 15},
    {"disk_bytes": 60},
    {"nodes": 2},
)


def work(
    *needs: dict[str, Any], parents: dict[int, tuple[str, ...]] | None = None, site: Site = SITE
) -> Work:
    tasks = [
        Task(f"t{i}", 10, parents=(parents or {}).get(i, ()), **need)
        for i, need in enumerate(needs)
    ]
    workflow = Workflow.from_tasks("w", tasks)
    return Work(workflow, whole_seconds(workflow), site)


def test_the_nodes_of_a_job_are_those_that_hold_all_its_tasks() -> None:
    plain, gpu, wide, memory = (work(*NEEDS[:4]).nodes_for(np.array([task])) for task in range(4))
    assert plain == (NodeShape(2, 10, None, (("gpus", 0),)), 7)
    assert gpu == (GPU, 2)
    assert wide == (NodeShape(8, 80, None, (("gpus", 0),)), 1)
    assert memory == (NodeShape(4, 20, None, (("gpus", 0),)), 3)


def test_a_job_requests_what_not_every_node_has() -> None:
    w = work(*NEEDS[:4], {"disk_bytes": 9})
    asked = [w.job_shape(np.array([task]))[1] for task in range(5)]
    assert asked == [
        Need(0),
        Need(4, 20, 0, 0, (("gpus", 2),)),
        Need(8, 80),
        Need(4, 20),
        Need(0, 0, 0, 50),
    ]
    assert w.job_shape(np.array([0]))[0] == NodeShape(
        2, 10, None, (("gpus", 0),)
    )  # and its tasks see none
    assert work({}).job_shape(np.array([0])) == (
        THIN,
        Need(0),
    )  # as if nobody had ever heard of GPUs


def test_a_job_that_no_kind_holds_is_split_and_what_depends_on_another_part_stays() -> None:
    w = work(NEEDS[1], NEEDS[2], NEEDS[1], NEEDS[2], parents={2: ("t0",), 3: ("t2",)})
    core = Core(w, Terms())
    view = core.view(0, lambda nodes, _: np.zeros(len(nodes), dtype=np.int64))
    decision = decided(Giant(), view)
    assert [job.tasks for job in decision.jobs] == [(0, 2), (1,)]
    assert "in a job for each kind of nodes" in decision.why
    assert [job.tasks for job in decided(Individual(), view).jobs] == [(0,), (1,)]
    assert len(decided(Giant(), replace(view, cap=1)).jobs) == 1


@given(st.lists(st.sampled_from(NEEDS), min_size=1, max_size=5), st.integers(1, 4))
def test_against_every_choice_of_kinds(needs: list[dict[str, Any]], most: int) -> None:
    """A task is refused where no choice of nodes holds it; else its nodes are what the kinds that
    do have in common."""
    site = replace(SITE, max_nodes=most)
    tasks = [Task("t", 1, **need).need for need in needs]
    able = [[kind for kind in SITE.kinds if need.fits(kind.shape)] for need in tasks]
    short = [
        max(1, n.nodes) > min(most, sum(k.count for k in kinds))
        for n, kinds in zip(tasks, able, strict=True)
    ]
    if any(short):
        with pytest.raises(UserError, match=f"task t{short.index(True)} needs"):
            work(*needs, site=site)
        return
    w = work(*needs, site=site)
    groups = w.by_kind(np.arange(len(needs)))
    assert sorted(task for group in groups for task in group.tolist()) == list(range(len(needs)))
    assert len(groups) <= min(len(chosen) for chosen in product(*able) if chosen)
    for group in groups:
        shape, nodes = w.nodes_for(group)
        kinds = [kind for kind in SITE.kinds if all(kind in able[task] for task in group.tolist())]
        assert nodes == min(most, sum(kind.count for kind in kinds))
        assert shape == meet(kind.shape.only(w.workflow.resources) for kind in kinds)
        assert all(tasks[task].fits(shape) for task in group.tolist())
