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
    from windrow.strategies.levels import Ints, Work

MOST_TASKS = k.MOST_TASKS


def run_times_s(work: Work, tasks: Ints, least_nodes: int, most_nodes: int) -> Ints:
    """How long the tasks run on `least_nodes` to `most_nodes` nodes; -1 where some task does not fit."""
    answers, alike = np.empty(most_nodes - least_nodes + 1, dtype=np.int64), work.are_alike(tasks)
    run = work.kept_runs.get(alike)
    if run is None or run[k.NODES_AT + 1] < most_nodes:
        n, nodes = len(work.workflow), max(most_nodes, work.cluster_nodes)
        rooms = {k.JOBS_AT: 1, k.ENDS_AT: n, k.POOL_AT: n, k.NODES_AT: nodes}
        run = work.kept_runs[alike] = tables(work, rooms, are_alike=alike)
        run[k.PLAYED] = 1
    if alike:
        run[k.PER_NODE] = _places(work, int(tasks[0]))
    run_times(run, k.position(tasks), least_nodes, answers)
    return answers


def tables(work: Work, rooms: dict[int, int], *, are_alike: bool) -> Ints:
    """A run of the workflow. Room is counted in places where all tasks of a job need alike, else node by node."""
    w, shape = work.workflow, work.shape
    run = k.new_run(work.expected_s, w.children.start, w.children.index, rooms)
    if are_alike:
        run[k.PER_NODE] = _places(work, 0)
        return run
    rows, more = k.tasks_of(run), k.more_of(run)
    rows[:, k.UNITS] = np.where(w.nodes > 0, w.nodes * shape.cores, w.cores)
    more[:, k.MEMORY], more[:, k.WHOLE] = w.memory_bytes, w.nodes
    run[k.PACKED], run[k.PER_NODE], run[k.NODE_MEMORY] = 1, shape.cores, _memory(work)
    return run


def _places(work: Work, task: int) -> int:
    """How many tasks like this one run on a node at once."""
    w = work.workflow
    return min(work.shape.cores // int(w.cores[task]), _memory(work) // max(1, int(w.memory_bytes[task])))


def _memory(work: Work) -> int:
    return FOREVER if work.shape.memory_bytes is None else work.shape.memory_bytes
