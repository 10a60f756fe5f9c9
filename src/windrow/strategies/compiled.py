"""A workflow's tasks as kernels want them, and how long they run by the kernels' copy of the rules.

A module of its own, so that a run that needs no kernels need not load them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windrow.kernels.cluster.state import FOREVER
from windrow.kernels.run import tables as k
from windrow.kernels.run.estimate import run_times
from windrow.model import Adjacency

if TYPE_CHECKING:
    from windrow.strategies.levels import Ints, Work

MOST_TASKS = k.MOST_TASKS


def run_times_s(work: Work, tasks: Ints, children: Adjacency, least_nodes: int, most_nodes: int) -> Ints:
    """How long the tasks run on `least_nodes` to `most_nodes` nodes; -1 where some task does not fit."""
    answers, n = np.empty(most_nodes - least_nodes + 1, dtype=np.int64), len(tasks)
    run = tables(work, tasks, children, {k.JOBS_AT: 1, k.ENDS_AT: n, k.POOL_AT: n, k.NODES_AT: most_nodes})
    run[k.PLAYED] = 1
    run_times(run, k.position(np.arange(n)), least_nodes, answers)
    return answers


def tables(work: Work, tasks: Ints, children: Adjacency, rooms: dict[int, int]) -> Ints:
    """A run of these tasks. Room is counted in places where all need alike, else node by node."""
    w, shape = work.workflow, work.shape
    there = FOREVER if shape.memory_bytes is None else shape.memory_bytes
    run = k.new_run(work.expected_s[tasks], children.start, children.index, rooms)
    if work.are_alike(tasks):
        run[k.PER_NODE] = min(shape.cores // w.cores[tasks[0]], there // max(1, w.memory_bytes[tasks[0]]))
        return run
    rows, more, whole = k.tasks_of(run), k.more_of(run), w.nodes[tasks]
    rows[:, k.UNITS] = np.where(whole > 0, whole * shape.cores, w.cores[tasks])
    more[:, k.MEMORY], more[:, k.WHOLE] = w.memory_bytes[tasks], whole
    run[k.PACKED], run[k.PER_NODE], run[k.NODE_MEMORY] = 1, shape.cores, there
    return run
