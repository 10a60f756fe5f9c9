"""DSH (Kruatrachue and Lewis 1988): ancestors run once more where that lets a task start earlier.

By descending static level (the longest way to an exit without transfers). The processor is that on which the task ends
first; the text's, on which it starts first, is worse where clusters differ in speed (`by="start"`). Copies may have
copies of their own parents, `depth` deep (0: as deep as it goes).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from windrow.grid.costs import Costs
from windrow.grid.schedule import Schedule
from windrow.kernels.grid.duplicates import Executions, Frames, place_with_copies
from windrow.kernels.grid.tables import Plan, empty_plan
from windrow.kernels.jit import in_python
from windrow.model.graph import Ints


def dsh(costs: Costs, *, by: Literal["end", "start"] = "end", depth: int = 0) -> Schedule:
    """The schedule, with copies."""
    tasks, depth = len(costs.workflow), depth or costs.workflow.depth
    order, rows = costs.by(-costs.static_level), 4 * tasks
    plan, runs = empty_plan(costs.given, rows), _none(rows, tasks)
    frames = Frames(_ints(depth + 1), np.zeros(depth + 1), _ints(depth + 1), _ints(depth + 1))
    with in_python(really=costs.is_small):
        done = place_with_copies(costs.given, plan, order, runs, frames, by == "start", depth)
        while done < tasks:
            plan, runs = _wider(plan, runs)
            done += place_with_copies(costs.given, plan, order[done:], runs, frames, by == "start", depth)
    return _schedule(costs, plan, runs)


def _ints(n: int) -> Ints:
    return np.full(n, -1, dtype=np.int64)


def _none(rows: int, tasks: int) -> Executions:
    columns = _ints(rows), _ints(rows), _ints(rows), np.zeros(rows), np.zeros(rows), _ints(rows)
    return Executions(*columns, _ints(tasks), np.zeros(2, dtype=np.int64))


def _wider(plan: Plan, runs: Executions) -> tuple[Plan, Executions]:
    """With room for twice as many executions."""
    longer = {name: np.concatenate((getattr(runs, name),) * 2) for name in runs._fields[:6]}
    gap, after = np.concatenate((plan.gap, plan.gap)), np.concatenate((plan.after, plan.after))
    return plan._replace(gap=gap, after=after), runs._replace(**longer)


def _schedule(costs: Costs, plan: Plan, runs: Executions) -> Schedule:
    """A row of `runs` is the task's own if it is where the plan has the task; the others are copies."""
    used = slice(0, int(runs.size[0]))
    task, processor, begin = runs.task[used], runs.processor[used], runs.begin[used]
    copy = processor != plan.processor[task]
    rows = (np.arange(len(plan.begin)), task[copy]), (plan.processor, processor[copy]), (plan.begin, begin[copy])
    return Schedule(costs, *(np.concatenate(row) for row in rows))
