"""When a task could start on a processor, and what changes when it is put there.

Rule 1: data are free on one processor, and else take their way, each edge for itself. Rule 2: a task fits into the
first idle gap, at or after its data, that is long enough; one that takes no time needs no room. Where no gaps are kept,
a task comes behind all others. Rule 3: the best processor is that of the earliest end, and of those the first.

The nodes of a cluster differ in what is on them and in the data that are there, in nothing else. So of each cluster
only those nodes are looked at that have tasks (`touched`), and one that has none stands for the rest; that a cluster
cannot win is known before (`low`). This is exact: a node with a parent on it is looked at on its own account.
"""

from __future__ import annotations

import numpy as np

from windrow.kernels.grid.tables import Floats, Given, Plan, way_s
from windrow.kernels.jit import lean


@lean
def arrivals(given: Given, plan: Plan, task: int, ready: Floats) -> None:
    """When all data of the task can be on a node of each cluster, and (`plan.at`) on those where its parents are."""
    ready[:] = 0.0
    edges = range(given.start[task], given.start[task + 1])
    for e in edges:
        a, size = given.parent[e], given.size[e]
        end, latency_s, s_per_byte = plan.end[a], given.latency_s[plan.cluster[a]], given.s_per_byte[plan.cluster[a]]
        for c in range(len(ready)):
            then = end + (latency_s[c] + size * s_per_byte[c])
            ready[c] = then if then > ready[c] else ready[c]
        plan.own[plan.processor[a]] = max(plan.own[plan.processor[a]], end)
    for e in edges:
        here, c = plan.processor[given.parent[e]], plan.cluster[given.parent[e]]
        if plan.stamp[c] != task:
            two_last(given, plan, task, c)
        plan.at[e] = max(plan.own[here], plan.last[c, 0] if plan.via[c] != here else plan.last[c, 1])
    for e in edges:
        plan.own[plan.processor[given.parent[e]]] = 0.0


@lean
def two_last(given: Given, plan: Plan, task: int, c: int) -> None:
    """The last arrival of the task's data at a node of c, whence it comes, and the last from another processor."""
    plan.stamp[c], plan.via[c], plan.last[c, 0], plan.last[c, 1] = task, -1, 0.0, 0.0
    for e in range(given.start[task], given.start[task + 1]):
        a = given.parent[e]
        then = plan.end[a] + way_s(given, e, plan.cluster[a], c)
        if plan.processor[a] == plan.via[c]:
            plan.last[c, 0] = max(plan.last[c, 0], then)
        elif then > plan.last[c, 0]:
            plan.last[c, 1], plan.last[c, 0], plan.via[c] = plan.last[c, 0], then, plan.processor[a]
        else:
            plan.last[c, 1] = max(plan.last[c, 1], then)


@lean
def first_room(plan: Plan, p: int, ready: float, run_s: float) -> float:
    """The earliest start on the processor, at `ready` or after."""
    if run_s == 0.0 and plan.gaps[1] == 1:
        return ready
    g = plan.head[p]
    while g >= 0:
        begin = max(ready, plan.gap[g, 0])
        if begin + run_s <= plan.gap[g, 1]:
            return begin
        g = plan.after[g]
    return max(ready, plan.free[p])


@lean
def choose(given: Given, plan: Plan, task: int, ready: Floats) -> int:
    """The best processor for the task."""
    best, p = np.inf, -1
    for e in range(given.start[task], given.start[task + 1]):
        q, run_s = plan.processor[given.parent[e]], given.run_s[task, plan.cluster[given.parent[e]]]
        end = first_room(plan, q, plan.at[e], run_s) + run_s
        if end < best or (end == best and q < p):
            best, p = end, q
    for c in range(len(ready)):
        low = max(ready[c], plan.least[c, 0]) + given.run_s[task, c]
        if low < best or (low == best and given.first[c] < p) or p < 0:
            end, q = best_node(given, plan, task, c, ready[c], low)
            if end < best or (end == best and q < p) or p < 0:
                best, p = end, q
    return p


@lean
def best_node(given: Given, plan: Plan, task: int, c: int, ready: float, low: float) -> tuple[float, int]:
    """The earliest end, and the first node of the cluster on which it is that; none ends before `low`."""
    best, p, run_s = np.inf, -1, given.run_s[task, c]
    untouched = given.first[c] + plan.touched[c]
    for q in range(given.first[c], untouched):
        end = first_room(plan, q, ready, run_s) + run_s
        if end < best:
            best, p = end, q
            if end <= low:
                return best, p
    if untouched < given.first[c + 1] and ready + run_s < best:
        return ready + run_s, untouched
    return best, p


@lean
def ready_on(given: Given, plan: Plan, task: int, c: int, p: int) -> float:
    """When the task has all its data on this processor, which is one of c."""
    ready = 0.0
    for e in range(given.start[task], given.start[task + 1]):
        a = given.parent[e]
        ready = max(ready, plan.end[a] + (0.0 if plan.processor[a] == p else way_s(given, e, plan.cluster[a], c)))
    return ready


@lean
def put(given: Given, plan: Plan, task: int, c: int, p: int) -> None:
    """The task goes to this processor, which is one of c, as early as it can."""
    run_s = given.run_s[task, c]
    begin = first_room(plan, p, ready_on(given, plan, task, c, p), run_s)
    plan.processor[task], plan.cluster[task], plan.begin[task], plan.end[task] = p, c, begin, begin + run_s
    occupy(plan, p, begin, begin + run_s)
    plan.touched[c] = max(plan.touched[c], p - given.first[c] + 1)
    if plan.gaps[1] == 0:
        measure(given, plan, c)


@lean
def measure(given: Given, plan: Plan, c: int) -> None:
    """Find the two least of `free` again."""
    untouched = given.first[c] + plan.touched[c]
    plan.least[c, :] = 0.0 if given.first[c + 1] - untouched > 1 else np.inf
    if plan.least[c, 1] == 0.0:
        return
    if untouched < given.first[c + 1]:
        plan.least[c, 0] = 0.0
    for p in range(given.first[c], untouched):
        if plan.free[p] < plan.least[c, 0]:
            plan.least[c, 1], plan.least[c, 0] = plan.least[c, 0], plan.free[p]
        else:
            plan.least[c, 1] = min(plan.least[c, 1], plan.free[p])


@lean
def occupy(plan: Plan, p: int, begin: float, end: float) -> None:
    """Nothing else runs there from begin to end; both are in one gap, or behind all."""
    if plan.gaps[1] == 0:
        plan.free[p] = end
        return
    if begin == end:
        return
    before, g = -1, plan.head[p]
    while g >= 0 and plan.gap[g, 1] < end:
        before, g = g, plan.after[g]
    if g < 0:
        if begin > plan.free[p]:
            add_gap(plan, p, before, plan.free[p], begin)
        plan.free[p] = end
        return
    left, right = plan.gap[g, 0] < begin, end < plan.gap[g, 1]
    if left and right:
        add_gap(plan, p, g, end, plan.gap[g, 1])
        plan.gap[g, 1] = begin
    elif left:
        plan.gap[g, 1] = begin
    elif right:
        plan.gap[g, 0] = end
    elif before < 0:
        plan.head[p] = plan.after[g]
    else:
        plan.after[before] = plan.after[g]


@lean
def add_gap(plan: Plan, p: int, before: int, begin: float, end: float) -> None:
    """One more idle gap of the processor, behind the gap `before` or, at -1, as the first."""
    g = plan.gaps[0]
    plan.gaps[0] += 1
    plan.gap[g, 0], plan.gap[g, 1] = begin, end
    if before < 0:
        plan.after[g], plan.head[p] = plan.head[p], g
    else:
        plan.after[g], plan.after[before] = plan.after[before], g
