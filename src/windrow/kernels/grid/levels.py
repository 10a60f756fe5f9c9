"""The tasks of one level after the other; inside a level, the one next that a rule wants.

Rules: MIN_MIN takes the task whose best end is earliest, MAX_MIN the one whose best end is latest, SUFFERAGE the one
that loses most if it gets its second-best processor instead of its best, CLUSTER_SUFFERAGE its second-best cluster; of
equals the first. Tasks come behind those that are on their processors: no gaps are filled.

A level's parents are all placed when it begins, so that when data arrive is found once. What changes afterwards is the
room of the cluster that was used last: only its column of `ends` is found again, and a task's two best clusters only
where they may be others now. A level costs width x clusters, and width^2 x (edges of a task).
"""

from __future__ import annotations

import numpy as np

from windrow.kernels.grid.rooms import arrivals, best_node, measure, put
from windrow.kernels.grid.tables import Floats, Given, Plan
from windrow.kernels.jit import kernel, lean
from windrow.model.graph import Ints

MIN_MIN, MAX_MIN, SUFFERAGE, CLUSTER_SUFFERAGE = range(4)


@kernel
def place_levels(given: Given, plan: Plan, tasks: Ints, borders: Ints, rules: Ints) -> None:
    """Put all somewhere, by the rule whose last task of a level ends first; levels are `tasks` between borders."""
    clusters, most = len(given.first) - 1, np.diff(borders).max()
    ready, first_ends = np.zeros((most, clusters)), np.zeros((most, clusters))
    ends, best = np.zeros((most, clusters)), np.zeros((most, 4))
    kept, better, old = np.zeros((2, most), dtype=np.int64), np.zeros((2, most), dtype=np.int64), np.zeros(most)
    for k in range(len(borders) - 1):
        level = tasks[borders[k] : borders[k + 1]]
        for t in range(len(level)):
            arrivals(given, plan, level[t], ready[t])
            for c in range(clusters):
                first_ends[t, c] = earliest(given, plan, level[t], c, ready[t, c])
        done, winner = np.inf, 0
        for r in range(len(rules)):
            if r > 0:
                undo(given, plan, level, kept, old)
            ends[: len(level)] = first_ends[: len(level)]
            last = place_level(given, plan, level, rules[r], ready, ends, best, kept, old)
            if last < done:
                done, winner, better[:] = last, r, kept
        if winner < len(rules) - 1:
            undo(given, plan, level, kept, old)
            for n in range(len(level)):
                c = np.searchsorted(given.first, better[1, n], side="right") - 1
                put(given, plan, better[0, n], c, better[1, n])


@lean
def earliest(given: Given, plan: Plan, task: int, c: int, ready: float) -> float:
    """The task's best end in the cluster."""
    run_s = given.run_s[task, c]
    best = max(ready, plan.least[c, 0]) + run_s
    for e in range(given.start[task], given.start[task + 1]):
        if plan.cluster[given.parent[e]] == c:
            best = min(best, max(plan.at[e], plan.free[plan.processor[given.parent[e]]]) + run_s)
    return best


@lean
def second(given: Given, plan: Plan, task: int, c: int, ready: float, best: float) -> float:
    """The task's best end in the cluster on any processor but one on which it has its best."""
    run_s, p = given.run_s[task, c], -1
    edges = range(given.start[task], given.start[task + 1])
    for e in edges:
        q = plan.processor[given.parent[e]]
        if plan.cluster[given.parent[e]] == c and max(plan.at[e], plan.free[q]) + run_s == best:
            p = q
    others = plan.least[c, 1] if p < 0 or plan.free[p] == plan.least[c, 0] else plan.least[c, 0]
    found = max(ready, others) + run_s
    for e in edges:
        q = plan.processor[given.parent[e]]
        if plan.cluster[given.parent[e]] == c and q != p:
            found = min(found, max(plan.at[e], plan.free[q]) + run_s)
    return found


@lean
def place_level(
    given: Given, plan: Plan, level: Ints, rule: int, ready: Floats, ends: Floats, best: Floats, kept: Ints, old: Floats
) -> float:
    """Put the level's tasks somewhere by one rule; `kept` has them in order, and where. When the last one ends."""
    last = 0.0
    for t in range(len(level)):
        two_best(given, plan, level[t], rule, ready[t], ends[t], best[t])
    for n in range(len(level)):
        t = wanted(best, len(level), rule)
        c, i = int(best[t, 1]), level[t]
        p = node_of(given, plan, i, c, ready[t, c], best[t, 0])
        kept[0, n], kept[1, n], old[n], best[t, 1] = i, p, plan.free[p], -1.0
        put(given, plan, i, c, p)
        last = max(last, plan.end[i])
        for u in range(len(level)):
            if best[u, 1] >= 0.0:
                ends[u, c] = earliest(given, plan, level[u], c, ready[u, c])
                first, other = best[u, 1] == c, best[u, 3] == c
                if (first and ends[u, c] > best[u, 0]) or (rule >= SUFFERAGE and (first or other)):
                    two_best(given, plan, level[u], rule, ready[u], ends[u], best[u])
    return last


@lean
def two_best(given: Given, plan: Plan, task: int, rule: int, ready: Floats, ends: Floats, best: Floats) -> None:
    """Into `best`: the task's best end and its cluster, what it loses without it, and its second-best cluster."""
    c, d = 0, -1
    for k in range(1, len(ends)):
        if ends[k] < ends[c]:
            c, d = k, c
        elif d < 0 or ends[k] < ends[d]:
            d = k
    other = np.inf if d < 0 else ends[d]
    if rule == SUFFERAGE:
        other = min(other, second(given, plan, task, c, ready[c], ends[c]))
    best[0], best[1], best[2], best[3] = ends[c], c, other - ends[c], d


@lean
def wanted(best: Floats, width: int, rule: int) -> int:
    """Which of the level's tasks that have no place yet comes next."""
    found, score = -1, -np.inf
    for t in range(width):
        mine = -best[t, 0] if rule == MIN_MIN else (best[t, 0] if rule == MAX_MIN else best[t, 2])
        if best[t, 1] >= 0.0 and (mine > score or found < 0):
            found, score = t, mine
    return found


@lean
def node_of(given: Given, plan: Plan, task: int, c: int, ready: float, best: float) -> int:
    """The first node of the cluster on which the task ends as early as it can there."""
    end, p = best_node(given, plan, task, c, ready, best)
    for e in range(given.start[task], given.start[task + 1]):
        q, is_there = plan.processor[given.parent[e]], plan.cluster[given.parent[e]] == c
        if is_there and (end > best or q < p) and max(plan.at[e], plan.free[q]) + given.run_s[task, c] == best:
            end, p = best, q
    return p


@lean
def undo(given: Given, plan: Plan, level: Ints, kept: Ints, old: Floats) -> None:
    """Take the level's tasks away again, the last one first."""
    for n in range(len(level) - 1, -1, -1):
        plan.free[kept[1, n]] = old[n]
    for n in range(len(level)):
        measure(given, plan, plan.cluster[kept[0, n]])
