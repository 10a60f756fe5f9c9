"""Tasks one after the other, by HEFT or DSH, and copies of them where TOP wants them (Zhang 2009,
figure 6.1).

Rule 1: when the last child of a task is placed, TOP says on which clusters it should run as well;
exits come last of all. Clusters that run it already count, for TOP and for the limit. Rule 2: a
copy goes into the first gap that is long enough, and delays nothing that is placed; what is placed
later plans around it. Rule 3: it must end by the deadline, a multiple of the task's end (from the
start of the workflow or, relative, of its run from its begin).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from windrow.kernels.jit import kernel, lean
from windrow.kernels.top import choose_copies
from windrow.model.graph import Ints
from windrow_lab.kernels.grid.duplicates import Executions, add, arrival, keep, place_with_ancestors
from windrow_lab.kernels.grid.reliability import Beliefs, failure
from windrow_lab.kernels.grid.rooms import (
    Floats,
    Given,
    PlacedTasks,
    arrivals,
    best_node,
    choose,
    first_room,
    occupy,
    put,
)


class Aims(NamedTuple):
    """How likely each task should end, by when (times its end), and on how many clusters it may
    run."""

    wanted: float
    late: float
    is_relative: bool
    limit: int


@kernel
def place_reliably(
    given: Given,
    plan: PlacedTasks,
    runs: Executions,
    order: Ints,
    left: Ints,
    beliefs: Beliefs,
    aims: Aims,
    is_dsh: bool,
) -> bool:
    """Put all tasks somewhere, in this order, with copies; `left`: of each, its children. False:
    too few rows."""
    clusters = len(given.first) - 1
    tasks = len(order)
    times = np.zeros((3, clusters))
    places = np.zeros((2, clusters), dtype=np.int64)
    exits = np.flatnonzero(left == 0)
    for i in order:
        if runs.size[0] + (1 + aims.limit) * tasks > len(runs.task):
            return False
        if is_dsh:
            place_with_ancestors(given, plan, runs, i, False)
        else:
            arrivals(given, plan, i, times[0])
            c = put(given, plan, i, choose(given, plan, i, times[0], 0, clusters))
            keep_one(given, runs, i, plan.processor[i], c, plan.begin[i])
        for a in given.parent[given.start[i] : given.start[i + 1]]:
            left[a] -= 1
            if left[a] == 0:
                copy(given, plan, runs, a, beliefs, aims, times, places)
    for a in exits:
        copy(given, plan, runs, int(a), beliefs, aims, times, places)
    return True


@lean
def keep_one(given: Given, runs: Executions, task: int, p: int, c: int, begin: float) -> None:
    """One more execution of the task."""
    runs.size[1] = runs.size[0]
    add(given, runs, task, p, c, begin)
    keep(runs, runs.size[0])
    runs.size[0] = runs.size[1]


@lean
def copy(
    given: Given,
    plan: PlacedTasks,
    runs: Executions,
    task: int,
    beliefs: Beliefs,
    aims: Aims,
    times: Floats,
    places: Ints,
) -> None:
    """Put copies of the task where TOP wants them."""
    ready = times[0]
    ends = times[1]
    risks = times[2]
    nodes = places[0]
    chosen = places[1]
    held = 0
    d = runs.used[task]
    end = plan.end[task]
    nodes[:] = -1
    runs.size[1] = runs.size[0]
    while d >= 0:
        n = runs.head[task, d]
        nodes[d] = runs.processor[n]
        chosen[held] = d
        held = held + 1
        ends[d] = runs.end[n]
        risks[d] = failure(beliefs, d, runs.begin[n], runs.end[n])
        d = runs.after[task, d]
    if held >= aims.limit:
        return
    for c in range(len(ends)):
        if nodes[c] < 0:
            ready[c] = 0.0
            run_s = given.run_s[task, c]
            for e in range(given.start[task], given.start[task + 1]):
                ready[c] = max(ready[c], arrival(given, runs, e, c, -1)[0])
            ends[c], nodes[c] = best_node(given, plan, task, c, ready[c], ready[c] + run_s)
            risks[c] = failure(beliefs, c, ends[c] - run_s, ends[c])
    if aims.is_relative:
        deadline = plan.begin[task] + aims.late * (end - plan.begin[task])
    else:
        deadline = aims.late * end
    for k in range(
        held, choose_copies(ends, risks, deadline, aims.wanted, chosen[: aims.limit], held)
    ):
        c = chosen[k]
        p = nodes[chosen[k]]
        run_s = given.run_s[task, chosen[k]]
        begin = first_room(plan, p, ready[c], run_s)
        keep_one(given, runs, task, p, c, begin)
        occupy(plan, p, begin, begin + run_s)
        plan.touched[c] = max(plan.touched[c], p - given.first[c] + 1)
