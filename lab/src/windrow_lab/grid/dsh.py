"""DSH (Kruatrachue and Lewis 1988): ancestors run once more if that lets a task start earlier.

By descending static level (the longest way to an exit without transfers). The processor is that on
which the task ends first; the text's, on which it starts first, is worse if clusters differ in
speed (`by="start"`). Copies may have copies of their own parents, `depth` deep (0: as deep as it
goes).
"""

from collections.abc import Callable
from functools import partial
from typing import Literal

import numpy as np

from windrow.kernels.jit import in_python
from windrow_lab.grid.costs import Costs
from windrow_lab.grid.schedule import Schedule
from windrow_lab.kernels.grid.duplicates import Executions, place_with_copies
from windrow_lab.kernels.grid.rooms import PlacedTasks, empty_plan


def dsh(costs: Costs, *, by: Literal["end", "start"] = "end", depth: int = 0) -> Schedule:
    """The schedule, with copies: rows of executions that are not where the plan has the task
    itself."""
    order = costs.by(-costs.static_level)
    return executed(
        costs,
        lambda plan, runs: place_with_copies(costs.given, plan, order, runs, by == "start"),
        depth,
    )


def executed(
    costs: Costs, place: Callable[[PlacedTasks, Executions], bool], depth: int = 0, rows: int = 2
) -> Schedule:
    """What `place` fills in, which is given twice as many rows for each task whenever it says that
    these are few."""
    tasks = len(costs.workflow)
    depth = 1 + (depth or costs.workflow.depth)
    is_done = False
    while not is_done:
        rows *= 2
        runs = _no_executions(tasks, len(costs.grid.clusters), rows * tasks, depth)
        plan = empty_plan(costs.given, rows * tasks)
        with in_python(really=costs.is_small):
            is_done = place(plan, runs)
    return _with_copies(costs, plan, runs)


def _no_executions(tasks: int, clusters: int, rows: int, depth: int) -> Executions:
    """Room for that many rows, and copies of that depth."""
    ints = partial(np.full, fill_value=-1, dtype=np.int64)
    return Executions(
        task=ints(rows),
        processor=ints(rows),
        cluster=ints(rows),
        begin=np.zeros(rows),
        end=np.zeros(rows),
        next_one=ints(rows),
        used=ints(tasks),
        latest=ints(tasks),
        head=ints((tasks, clusters)),
        after=ints((tasks, clusters)),
        first_end=np.full((tasks, clusters), np.inf),
        size=np.zeros(2, np.int64),
        stack=ints((depth, 3)),
        begins=np.zeros(depth),
    )


def _with_copies(costs: Costs, plan: PlacedTasks, runs: Executions) -> Schedule:
    """The plan, and behind it the executions that are not where the plan has the task itself."""
    size = int(runs.size[0])
    copy = np.flatnonzero(runs.processor[:size] != plan.processor[runs.task[:size]])
    task = np.append(np.arange(len(costs.workflow)), runs.task[copy])
    processor = np.append(plan.processor, runs.processor[copy])
    return Schedule(costs, task, processor, np.append(plan.begin, runs.begin[copy]))
