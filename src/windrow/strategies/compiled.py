"""A workflow's tasks as kernels want them, and how long they run by the kernels' copy of the rules.

A module of its own, so that a run that needs no kernels need not load them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windrow.kernels.cluster.state import FOREVER
from windrow.kernels.run import tables as k
from windrow.kernels.run.estimate import run_times

if TYPE_CHECKING:
    from windrow.model import NodeShape
    from windrow.strategies.levels import Ints, Work

MOST_TASKS = k.MOST_TASKS


def _kept_run(work: Work, shape: NodeShape, most_nodes: int, *, are_alike: bool) -> Ints:
    """Tables for one job on at most that many nodes; made once."""
    run = work.kept_runs.get((are_alike, shape))
    if run is None or run[k.NODES_AT + 1] < most_nodes:
        n = len(work.workflow)
        nodes = max(most_nodes, work.cluster_nodes)
        rooms = {k.JOBS_AT: 1, k.ENDS_AT: n, k.POOL_AT: n, k.NODES_AT: nodes}
        run = work.kept_runs[are_alike, shape] = tables(work, rooms, shape, are_alike=are_alike)
        run[k.PLAYED] = 1
    return run


def run_times_s(work: Work, tasks: Ints, least_nodes: int, most_nodes: int) -> Ints:
    """How long the tasks run on `least_nodes` to `most_nodes` nodes; -1 if some task does not
    fit."""
    answers = np.empty(most_nodes - least_nodes + 1, dtype=np.int64)
    alike = work.are_alike(tasks)
    shape = work.nodes_for(tasks)[0]
    run = _kept_run(work, shape, most_nodes, are_alike=alike)
    if alike:
        run[k.PER_NODE] = _places(work, shape, int(tasks[0]))
    run_times(run, k.position(tasks), least_nodes, answers)
    return answers


def tables(work: Work, rooms: dict[int, int], shape: NodeShape, *, are_alike: bool) -> Ints:
    """A run of the workflow on such nodes. Room is counted in places where all tasks of a job need
    alike, else by node.

    A node that has no limit of something has FOREVER of it.
    """
    w = work.workflow
    there = _amounts(shape)
    extras = () if are_alike else w.resources
    run = k.new_run(work.expected_s, w.children.start, w.children.index, rooms, len(extras))
    if are_alike:
        run[k.PER_NODE] = _places(work, shape, 0)
        return run
    rows = k.tasks_of(run)
    more = k.more_of(run)
    rows[:, k.UNITS] = np.where(w.nodes > 0, w.nodes * shape.cores, w.cores)
    more[:, k.MEMORY] = w.memory_bytes
    more[:, k.WHOLE] = w.nodes
    run[k.PACKED] = 1
    run[k.PER_NODE] = shape.cores
    run[k.NODE_MEMORY] = there["memory"]
    for number, name in enumerate(extras):
        if name == "disk":
            needed = w.disk_bytes
        else:
            needed = w.counts[name]
        k.extra_of(run, number)[:] = np.append(needed, there.get(name, 0))
    return run


def _places(work: Work, shape: NodeShape, task: int) -> int:
    """How many tasks like this one run on a node at once."""
    there = _amounts(shape)
    needed = work.workflow.needs(np.array([task]))[0].amounts()
    return int(
        min((there.get(name, 0) // amount for name, amount in needed.items() if amount), default=1)
    )


def _amounts(shape: NodeShape) -> dict[str, int]:
    return {name: int(min(amount, FOREVER)) for name, amount in shape.amounts().items()}
