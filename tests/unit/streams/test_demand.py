"""Cores and memory as processors of a pool."""

from __future__ import annotations

import pytest

from windrow.errors import UserError
from windrow.model import NodeShape, Task, Workflow
from windrow.streams import Pool, Start, WorkflowArrived, find_policy, in_processors

_NODE = NodeShape(8, 64)  # eight bytes of memory to each core


@pytest.mark.parametrize(
    ("task", "processors"),
    [
        (Task("t", 1.0, cores=3), 3),
        (Task("t", 1.0, cores=1, memory_bytes=8), 1),
        (Task("t", 1.0, cores=1, memory_bytes=9), 2),
        (Task("t", 1.0, cores=4, memory_bytes=9), 4),
        (Task("t", 1.0, cores=1, memory_bytes=64), 8),
        (Task("t", 1.0, nodes=3), 24),
    ],
)
def test_a_task_takes_what_it_uses_most_of(task: Task, processors: int) -> None:
    assert in_processors(Workflow.from_tasks("w", [task]), _NODE).cores.tolist() == [processors]


def test_unlimited_memory_counts_for_nothing() -> None:
    workflow = Workflow.from_tasks("w", [Task("t", 1.0, cores=2, memory_bytes=10**15)])
    assert in_processors(workflow, NodeShape(4)).cores.tolist() == [2]


@pytest.mark.parametrize("task", [Task("big", 1.0, cores=9), Task("big", 1.0, memory_bytes=65)])
def test_what_no_node_can_hold_is_refused(task: Task) -> None:
    with pytest.raises(UserError, match="w: task big needs"):
        in_processors(Workflow.from_tasks("w", [task]), _NODE)


def test_memory_limits_how_many_tasks_start() -> None:
    """Two nodes: sixteen processors. Tasks of one core that fill half a node's memory take four
    each."""
    hungry = Workflow.from_tasks("hungry", [Task(f"t{i}", 1.0, memory_bytes=32) for i in range(9)])
    started = Pool(16, find_policy("bf")).handle(
        WorkflowArrived(0, in_processors(hungry, _NODE), 0.0)
    )
    assert len(started) == 4
    assert all(isinstance(start, Start) for start in started)
