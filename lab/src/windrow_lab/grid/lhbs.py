"""LHBS (Mandal and others 2005, as Zhang has it): level by level, inside a level greedily or by
heuristics.

Greedy takes tasks in their order, each where it ends first; `fastest`, which is greedy by the
letter of the thesis, each on the fastest of the idle processors, wherever its data are. A heuristic
takes the task next whose best end is earliest (min-min) or latest (max-min), or that loses most
without its best processor (sufferage; nodes of one cluster are twins, so this is mostly 0, and the
`cluster` variant compares clusters). Of several the best is kept for each level: whose last task
ends first.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from windrow.kernels.jit import in_python
from windrow_lab.grid.costs import Costs
from windrow_lab.grid.schedule import Schedule, listed
from windrow_lab.kernels.grid.placing import (
    CLUSTER_SUFFERAGE,
    FASTEST,
    MAX_MIN,
    MIN_MIN,
    SUFFERAGE,
    place_level,
)
from windrow_lab.kernels.grid.rooms import PlacedTasks, empty_plan

_RULES = {
    "min-min": MIN_MIN,
    "max-min": MAX_MIN,
    "sufferage": SUFFERAGE,
    "cluster-sufferage": CLUSTER_SUFFERAGE,
}


def greedy(costs: Costs, *, insertion: bool = False) -> Schedule:
    """The schedule without heuristics; with `insertion` tasks fill gaps."""
    return listed(costs, costs.by(), insertion=insertion)


def fastest(costs: Costs, *, insertion: bool = False) -> Schedule:
    """The same, without a look at where the data are."""
    blind = np.full(len(costs.workflow), FASTEST)
    return listed(costs, costs.by(), blind, insertion=insertion)


def lhbs(
    costs: Costs, *, heuristics: Sequence[str] = ("min-min", "max-min", "sufferage")
) -> Schedule:
    """The schedule by these heuristics, the best of them on each level."""
    plan = empty_plan(costs.given)
    last = np.cumsum(np.bincount(costs.workflow.levels))
    with in_python(really=costs.is_small):
        for level in np.split(costs.by(), last[:-1]):
            tried = [
                PlacedTasks._make(column.copy() for column in plan) for _ in heuristics[1:]
            ] + [plan]
            ends = [
                place_level(costs.given, one, level, _RULES[h])
                for one, h in zip(tried, heuristics, strict=True)
            ]
            plan = tried[int(np.argmin(ends))]
    return Schedule(costs, np.arange(len(costs.workflow)), plan.processor, plan.begin)


min_min, max_min, sufferage, cluster_sufferage = (
    partial(lhbs, heuristics=(name,)) for name in _RULES
)
