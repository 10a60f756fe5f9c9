"""Tasks one after the other, each on the processor where it ends first if ancestors may run there
once more (DSH).

Rule 1: while the task's start on a processor is set by data that arrive, and not by the processor,
the parent whose data come last is put there as well, as early as it can; if the task then starts
earlier, the copy stays, else all that it brought is taken back, and that is the start. Rule 2: so
it is with the copy's own parents, and so on, as deep as the stack. Rule 3: data come from the
execution of the parent that delivers first.

Executions of a task are chained, cluster by cluster: `used` of the task, `after` of each cluster,
`head` of the task there, `next_one` of each; what comes from far costs as many steps as there are
clusters with the parent. A trial on one processor is rows behind the others, which change nothing
else; those of the winner are put there. On the `stack` are tasks that wait for a copy: the task,
the rows that there were, whether it is at its best; `begins` has their starts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from windrow.kernels.jit import kernel, lean
from windrow.model.graph import Ints
from windrow_lab.kernels.grid.rooms import Floats, Given, PlacedTasks, first_room, occupy, way_s


class Executions(NamedTuple):
    """All that run, copies included, in `size[0]` rows, and the rows of a trial behind them, to
    `size[1]`.

    latest: of each task, the row that it was given last, perhaps of a trial that is over.
    """

    task: Ints
    processor: Ints
    cluster: Ints
    begin: Floats
    end: Floats
    next_one: Ints
    used: Ints
    latest: Ints
    head: Ints
    after: Ints
    first_end: Floats
    size: Ints
    stack: Ints
    begins: Floats


@kernel
def place_with_copies(
    given: Given, plan: PlacedTasks, order: Ints, runs: Executions, by_start: bool
) -> bool:
    """Put all tasks somewhere, in this order. False if there are not rows enough."""
    for i in order:
        if runs.size[0] + len(order) > len(runs.task):
            return False
        place_with_ancestors(given, plan, runs, i, by_start)
    return True


@lean
def place_with_ancestors(
    given: Given, plan: PlacedTasks, runs: Executions, i: int, by_start: bool
) -> None:
    """Put the task somewhere, with the copies of ancestors that it is worth to have there."""
    best = np.inf
    p = -1
    home = 0
    for c in range(len(given.first) - 1):
        if by_start:
            run_s = 0.0
        else:
            run_s = given.run_s[i, c]
        for q in range(
            given.first[c], min(given.first[c] + plan.touched[c] + 1, given.first[c + 1])
        ):
            value = try_on(given, plan, runs, i, c, q) + run_s
            if value < best or p < 0:
                best = value
                p = q
                home = c
    add(given, runs, i, p, home, try_on(given, plan, runs, i, home, p))
    for n in range(runs.size[0], runs.size[1]):
        keep(runs, n)
        occupy(plan, p, runs.begin[n], runs.end[n])
    n = runs.size[1] - 1
    plan.processor[i] = p
    plan.cluster[i] = home
    plan.begin[i] = runs.begin[n]
    plan.end[i] = runs.end[n]
    plan.touched[home] = max(plan.touched[home], p - given.first[home] + 1)
    runs.size[0] = runs.size[1]


@lean
def add(given: Given, runs: Executions, task: int, p: int, c: int, begin: float) -> None:
    """One more row of the trial."""
    runs.latest[task] = n = runs.size[1]
    runs.task[n] = task
    runs.processor[n] = p
    runs.cluster[n] = c
    runs.begin[n] = begin
    runs.end[n] = begin + given.run_s[task, c]
    runs.size[1] = n + 1


@lean
def keep(runs: Executions, n: int) -> None:
    """The row is one of the task's executions."""
    a = runs.task[n]
    c = runs.cluster[n]
    if runs.head[a, c] < 0:
        runs.after[a, c] = runs.used[a]
        runs.used[a] = c
        runs.first_end[a, c] = runs.end[n]
    runs.next_one[n] = runs.head[a, c]
    runs.head[a, c] = n
    runs.first_end[a, c] = min(runs.first_end[a, c], runs.end[n])


@lean
def try_on(given: Given, plan: PlacedTasks, runs: Executions, task: int, c: int, p: int) -> float:
    """The task's start on this processor, with the copies that it is worth to have there, as rows
    of a trial."""
    runs.size[1] = runs.size[0]
    d = 0
    stack = runs.stack
    begins = runs.begins
    stack[0, 0] = task
    stack[0, 2] = 0
    begins[0], late = start_on(given, plan, runs, task, c, p)
    while True:
        if late >= 0 and d + 1 < len(stack) and stack[d, 2] == 0:
            stack[d, 1] = runs.size[1]
            d += 1
            stack[d, 0] = late
            stack[d, 2] = 0
            begins[d], late = start_on(given, plan, runs, late, c, p)
            continue
        if d == 0:
            return begins[0]
        add(given, runs, stack[d, 0], p, c, begins[d])
        d -= 1
        begin, late = start_on(given, plan, runs, stack[d, 0], c, p)
        if begin >= begins[d]:
            runs.size[1] = stack[d, 1]
            stack[d, 2] = 1
        begins[d] = min(begin, begins[d])


@lean
def start_on(
    given: Given, plan: PlacedTasks, runs: Executions, task: int, c: int, p: int
) -> tuple[float, int]:
    """The task's start there, as the trial stands, and the parent, not on p yet, whose data set it;
    or -1."""
    ready = 0.0
    late = -1
    was_here = True
    for e in range(given.start[task], given.start[task + 1]):
        then, is_here = arrival(given, runs, e, c, p)
        if then > ready or (then == ready and given.parent[e] < late):
            ready = then
            late = given.parent[e]
            was_here = is_here
    run_s = given.run_s[task, c]
    begin = first_room(plan, p, ready, run_s)
    n = runs.size[0]
    while n < runs.size[1] and run_s > 0.0:
        if runs.begin[n] < min(begin + run_s, runs.end[n]) and begin < runs.end[n]:
            begin = first_room(plan, p, runs.end[n], run_s)
            n = runs.size[0]
        else:
            n += 1
    return begin, -1 if was_here or begin > ready else late


@lean
def arrival(given: Given, runs: Executions, edge: int, c: int, p: int) -> tuple[float, bool]:
    """When the data of an edge are on p, which is one of c, and whether the parent runs, or would
    run, on p itself."""
    a = given.parent[edge]
    then = np.inf
    is_here = False
    n = runs.latest[a]
    if runs.size[0] <= n < runs.size[1] and runs.task[n] == a:
        then = runs.end[n]
        is_here = True
    n = runs.head[a, c]
    d = runs.used[a]
    while n >= 0:
        if runs.processor[n] == p:
            then = min(then, runs.end[n])
            is_here = True
        n = runs.next_one[n]
    while d >= 0:
        then = min(then, runs.first_end[a, d] + way_s(given, edge, d, c))
        d = runs.after[a, d]
    return then, is_here
