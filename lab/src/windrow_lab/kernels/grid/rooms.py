"""What schedulers are given and fill in; when a task could start on a processor, and what changes
when it is put there.

Rule 1: data are free on one processor, and else take their way, each edge for itself. Rule 2: a
task fits into the first idle gap, at or after its data, that is long enough; one that takes no time
needs no room. If no gaps are kept, a task comes behind all others. Rule 3: the best processor is
that of the earliest end, and of those the first.

The nodes of a cluster differ in what is on them and in the data that are there, in nothing else. So
of each cluster only those nodes are looked at that have tasks (`touched`), and one that has none
stands for the rest; that a cluster cannot win is known before (`low`). This is exact: a node with a
parent on it is looked at on its own account.

Processors are numbered cluster by cluster: those of cluster c from `first[c]` to before `first[c +
1]`. The edges into a task stand side by side, from `start[task]` to before `start[task + 1]`.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.jit import lean
from windrow.model.graph import Ints

Floats = NDArray[np.float64]


class Given(NamedTuple):
    """run_s: of task on cluster. latency_s, s_per_byte: from cluster to cluster. parent, size: of
    each edge."""

    run_s: Floats
    first: Ints
    latency_s: Floats
    s_per_byte: Floats
    start: Ints
    parent: Ints
    size: Floats


class PlacedTasks(NamedTuple):
    """Where tasks are, and the room that is left on processors.

    free: from when on a processor is idle for good. Idle gaps before that are chained, in any
    order: `head` of a processor, `after` of a gap, -1 behind the last one; `gaps`: how many there
    are, and whether they are kept. touched: of each cluster, how many nodes must be looked at; the
    others are empty. least: of each, the two least of `free`. at: for each edge, when the task has
    all its data if it runs where that parent is.
    """

    processor: Ints
    cluster: Ints
    begin: Floats
    end: Floats
    free: Floats
    head: Ints
    gap: Floats
    after: Ints
    gaps: Ints
    touched: Ints
    least: Floats
    at: Floats


def empty_plan(given: Given, placements: int = 0) -> PlacedTasks:
    """Nothing placed yet. Gaps are kept if there is room for those of this many placements."""
    tasks = len(given.run_s)
    clusters = len(given.first) - 1
    processors = int(given.first[-1])
    ints = partial(np.full, fill_value=-1, dtype=np.int64)
    where = ints(tasks), ints(tasks), np.zeros(tasks), np.zeros(tasks), np.zeros(processors)
    gaps = ints(processors if placements else 0), np.zeros((placements, 2)), ints(placements)
    least = np.stack((np.zeros(clusters), np.where(np.diff(given.first) == 1, np.inf, 0.0)), axis=1)
    flags = np.array([0, placements > 0])
    touched = np.zeros(clusters, dtype=np.int64)
    return PlacedTasks(*where, *gaps, flags, touched, least, np.zeros(len(given.parent)))


@lean
def way_s(given: Given, edge: int, c: int, d: int) -> float:
    """How long the data of an edge take from a processor of c to another one of d."""
    return given.latency_s[c, d] + given.size[edge] * given.s_per_byte[c, d]


@lean
def arrivals(given: Given, plan: PlacedTasks, task: int, ready: Floats) -> None:
    """When all data of the task can be on a node of each cluster, and (`plan.at`) on those where
    its parents are."""
    ready[:] = 0.0
    for e in range(given.start[task], given.start[task + 1]):
        a = given.parent[e]
        size = given.size[e]
        end = plan.end[a]
        latency_s = given.latency_s[plan.cluster[a]]
        s_per_byte = given.s_per_byte[plan.cluster[a]]
        for c in range(len(ready)):
            then = end + (latency_s[c] + size * s_per_byte[c])
            ready[c] = then if then > ready[c] else ready[c]
        plan.at[e] = ready_on(given, plan, task, plan.cluster[a], plan.processor[a])


@lean
def ready_on(given: Given, plan: PlacedTasks, task: int, c: int, p: int) -> float:
    """When the task has all its data on this processor, which is one of c."""
    ready = 0.0
    for e in range(given.start[task], given.start[task + 1]):
        a = given.parent[e]
        ready = max(
            ready,
            plan.end[a] + (0.0 if plan.processor[a] == p else way_s(given, e, plan.cluster[a], c)),
        )
    return ready


@lean
def first_room(plan: PlacedTasks, p: int, ready: float, run_s: float) -> float:
    """The earliest start on the processor, at `ready` or after."""
    best = max(ready, plan.free[p])
    if plan.gaps[1] == 0 or best == ready:
        return best
    if run_s == 0.0:
        return ready
    g = plan.head[p]
    while g >= 0:
        begin = max(ready, plan.gap[g, 0])
        if begin < best and begin + run_s <= plan.gap[g, 1]:
            best = begin
        g = plan.after[g]
    return best


@lean
def choose(given: Given, plan: PlacedTasks, task: int, ready: Floats, first: int, last: int) -> int:
    """The best processor for the task, of the clusters from first to before last."""
    best = np.inf
    p = -1
    for e in range(given.start[task], given.start[task + 1]):
        q = plan.processor[given.parent[e]]
        c = plan.cluster[given.parent[e]]
        end = first_room(plan, q, plan.at[e], given.run_s[task, c]) + given.run_s[task, c]
        if first <= c < last and (end < best or (end == best and q < p)):
            best = end
            p = q
    for c in range(first, last):
        low = max(ready[c], plan.least[c, 0]) + given.run_s[task, c]
        if low < best or (low == best and given.first[c] < p) or p < 0:
            end, q = best_node(given, plan, task, c, ready[c], low)
            if end < best or (end == best and q < p) or p < 0:
                best = end
                p = q
    return p


@lean
def best_node(
    given: Given, plan: PlacedTasks, task: int, c: int, ready: float, low: float
) -> tuple[float, int]:
    """The earliest end, and the first node of the cluster on which it is that; none ends before
    `low`."""
    best = np.inf
    p = -1
    run_s = given.run_s[task, c]
    untouched = given.first[c] + plan.touched[c]
    for q in range(given.first[c], untouched):
        end = first_room(plan, q, ready, run_s) + run_s
        if end < best:
            best = end
            p = q
            if end <= low:
                return best, p
    if untouched < given.first[c + 1] and ready + run_s < best:
        return ready + run_s, untouched
    return best, p


@lean
def put(given: Given, plan: PlacedTasks, task: int, p: int) -> int:
    """The task goes to this processor, as early as it can. The processor's cluster."""
    c = int(np.searchsorted(given.first, p, side="right")) - 1
    run_s = given.run_s[task, c]
    begin = first_room(plan, p, ready_on(given, plan, task, c, p), run_s)
    plan.processor[task] = p
    plan.cluster[task] = c
    plan.begin[task] = begin
    plan.end[task] = begin + run_s
    plan.touched[c] = max(plan.touched[c], p - given.first[c] + 1)
    occupy(plan, p, begin, begin + run_s)
    if plan.gaps[1] == 0:
        measure(given, plan, c)
    return c


@lean
def measure(given: Given, plan: PlacedTasks, c: int) -> None:
    """Find the two least of the cluster's `free` again."""
    untouched = given.first[c] + plan.touched[c]
    left = given.first[c + 1] - untouched
    plan.least[c, 0] = 0.0 if left > 0 else np.inf
    plan.least[c, 1] = 0.0 if left > 1 else np.inf
    for p in range(given.first[c], untouched if left < 2 else 0):
        if plan.free[p] < plan.least[c, 0]:
            plan.least[c, 1] = plan.least[c, 0]
            plan.least[c, 0] = plan.free[p]
        else:
            plan.least[c, 1] = min(plan.least[c, 1], plan.free[p])


@lean
def occupy(plan: PlacedTasks, p: int, begin: float, end: float) -> None:
    """Nothing else runs there from begin to end; both are in one gap, or behind all."""
    if plan.gaps[1] == 0 or begin == end:
        plan.free[p] = max(plan.free[p], end if plan.gaps[1] == 0 else 0.0)
        return
    g = plan.head[p]
    n = plan.gaps[0]
    while g >= 0 and not (plan.gap[g, 0] <= begin and end <= plan.gap[g, 1]):
        g = plan.after[g]
    if g < 0:
        plan.gap[n, 0] = plan.free[p]
        plan.gap[n, 1] = begin
        plan.free[p] = end
    elif plan.gap[g, 0] == begin:
        plan.gap[g, 0] = end
        return
    else:
        plan.gap[n, 0], plan.gap[n, 1], plan.gap[g, 1] = end, plan.gap[g, 1], begin
    if plan.gap[n, 0] < plan.gap[n, 1]:
        plan.after[n] = plan.head[p]
        plan.head[p] = n
        plan.gaps[0] = n + 1
