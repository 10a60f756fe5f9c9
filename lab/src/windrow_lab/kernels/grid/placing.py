"""Tasks one after the other, each to its best processor: in a given order, or of a level the one
that a rule wants.

An order has parents before children; `rank` is what to order by. A task with a `pinned` processor
goes there. One that is pinned to `FASTEST` goes where it would end first if all data were already
there: speed and idle processors count, and the data take their way afterwards.

Rules: MIN_MIN takes the task whose best end is earliest, MAX_MIN the one whose best end is latest,
SUFFERAGE the one that loses most if it gets its second-best processor instead of its best,
CLUSTER_SUFFERAGE its second-best cluster; of equals the first. Tasks come behind those that are on
their processors: no gaps are filled.

A level's parents are all placed when it begins, so that when data arrive is found once. What
changes afterwards is the room of the cluster that was used last: only its column of `ends` is found
again, and a task's two best clusters only if they may be others now. A level costs width x
clusters, and width^2 x (edges of a task).
"""

from __future__ import annotations

import numpy as np

from windrow.kernels.jit import kernel, lean
from windrow.model.graph import Ints
from windrow_lab.kernels.grid.rooms import Floats, Given, PlacedTasks, arrivals, choose, put

MIN_MIN, MAX_MIN, SUFFERAGE, CLUSTER_SUFFERAGE = range(4)
FASTEST = -2


@kernel
def place(given: Given, plan: PlacedTasks, order: Ints, pinned: Ints) -> None:
    """Put all tasks somewhere, in this order."""
    ready = np.zeros(len(given.first) - 1)
    for i in order:
        p = pinned[i]
        if p == FASTEST:
            parents_end(given, plan, i, ready)
        elif p < 0:
            arrivals(given, plan, i, ready)
        if p < 0:
            p = choose(given, plan, i, ready, 0, len(ready))
        put(given, plan, i, p)


@lean
def parents_end(given: Given, plan: PlacedTasks, task: int, ready: Floats) -> None:
    """When all parents of the task have ended, as if their data were everywhere by then."""
    ready[:] = 0.0
    for e in range(given.start[task], given.start[task + 1]):
        ready[:] = max(ready[0], plan.end[given.parent[e]])
    for e in range(given.start[task], given.start[task + 1]):
        plan.at[e] = ready[0]


@kernel
def rank(
    order: Ints, start: Ints, parent: Ints, run_s: Floats, way: Floats, up: Floats, down: Floats
) -> None:
    """The longest paths from each task to an exit, its own run included, and from an entry to it,
    without."""
    for i in order[::-1]:
        up[i] += run_s[i]
        for e in range(start[i], start[i + 1]):
            up[parent[e]] = max(up[parent[e]], way[e] + up[i])
    for i in order:
        for e in range(start[i], start[i + 1]):
            down[i] = max(down[i], down[parent[e]] + run_s[parent[e]] + way[e])


@kernel
def place_level(given: Given, plan: PlacedTasks, level: Ints, rule: int) -> float:
    """Put the level's tasks somewhere. When the last one ends."""
    shape = len(level), len(given.first) - 1
    ready = np.zeros(shape)
    ends = np.zeros(shape)
    best = np.zeros((len(level), 4))
    last = 0.0
    for t in range(len(level)):
        arrivals(given, plan, level[t], ready[t])
        for c in range(shape[1]):
            ends[t, c] = earliest(given, plan, level[t], c, ready[t, c])
        two_best(given, plan, level[t], rule, ready[t], ends[t], best[t])
    for _ in range(len(level)):
        t = int(np.argmax(best[:, 2]))
        home = int(best[t, 1])
        c = put(given, plan, level[t], choose(given, plan, level[t], ready[t], home, home + 1))
        last = max(last, plan.end[level[t]])
        best[t, 1] = -1.0
        best[t, 2] = -np.inf
        for u in range(len(level)):
            if best[u, 1] >= 0.0:
                ends[u, c] = earliest(given, plan, level[u], c, ready[u, c])
                first = best[u, 1] == c
                other = best[u, 3] == c
                if (first and ends[u, c] > best[u, 0]) or (rule >= SUFFERAGE and (first or other)):
                    two_best(given, plan, level[u], rule, ready[u], ends[u], best[u])
    return last


@lean
def earliest(given: Given, plan: PlacedTasks, task: int, c: int, ready: float) -> float:
    """The task's best end in the cluster."""
    run_s = given.run_s[task, c]
    best = max(ready, plan.least[c, 0]) + run_s
    for e in range(given.start[task], given.start[task + 1]):
        if plan.cluster[given.parent[e]] == c:
            best = min(best, max(plan.at[e], plan.free[plan.processor[given.parent[e]]]) + run_s)
    return best


@lean
def second(given: Given, plan: PlacedTasks, task: int, c: int, ready: float, best: float) -> float:
    """The task's best end in the cluster on any processor but one on which it has its best."""
    run_s = given.run_s[task, c]
    p = -1
    found = np.inf
    edges = range(given.start[task], given.start[task + 1])
    for is_found in (False, True):
        for e in edges:
            q = plan.processor[given.parent[e]]
            end = max(plan.at[e], plan.free[q]) + run_s
            if plan.cluster[given.parent[e]] == c and is_found and q != p:
                found = min(found, end)
            elif plan.cluster[given.parent[e]] == c and end == best:
                p = q
    if p < 0 or plan.free[p] == plan.least[c, 0]:
        others = plan.least[c, 1]
    else:
        others = plan.least[c, 0]
    return min(found, max(ready, others) + run_s)


@lean
def two_best(
    given: Given, plan: PlacedTasks, task: int, rule: int, ready: Floats, ends: Floats, best: Floats
) -> None:
    """Into `best`: the task's best end and its cluster, how much the rule wants it, and its
    second-best cluster."""
    c = 0
    d = -1
    for k in range(1, len(ends)):
        if ends[k] < ends[c]:
            c, d = k, c
        elif d < 0 or ends[k] < ends[d]:
            d = k
    if d < 0:
        other = np.inf
    else:
        other = ends[d]
    if rule == SUFFERAGE:
        other = min(other, second(given, plan, task, c, ready[c], ends[c]))
    if rule == MIN_MIN:
        wanted = -ends[c]
    elif rule == MAX_MIN:
        wanted = ends[c]
    else:
        wanted = other - ends[c]
    best[0] = ends[c]
    best[1] = c
    best[2] = wanted
    best[3] = d
