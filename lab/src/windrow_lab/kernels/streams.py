"""A stream of workflows on a pool of processors: the loop over events, compiled.

The rules are those of `windrow.streams`, start by start; a property test holds the two together.
Tasks of all workflows are numbered through; those of one workflow lie side by side.

State is a few tables, because handing on many arrays from kernel to kernel made the whole ten times
slower:

    tasks   a row for each task, and one more that ends the lists of the last; columns CORES to READY
    flows   a row for each workflow, columns FIRST to QUEUE
    edges   parents of every task, then children of every task; columns PARENTS and CHILDREN say where each list begins
    room    counters FREE to WAITING, then the heap of running tasks: sequence and number of each
    times   a row for each task: RUNTIME_S, START_S, END_S
    heap_s  the ends of the running tasks, in the order of the heap

Rule 1: at one moment, completions come before arrivals, completions in the order of their starts;
each is followed by a pass. Rule 2: columns of `tasks` up to RANK, of `flows` up to DRAW, and
`edges` are given; all others begin as zero.
"""  # noqa: E501

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.cluster.state import Ints
from windrow.kernels.jit import kernel

Floats = NDArray[np.float64]

SR = 0
SLOP = 1
FES = 2
BF = 3
"""Kinds of policy."""

# Columns of `tasks`. GENERATION and SUPPORT start as in a workflow that has not started.
CORES = 0
OWNER = 1  # its workflow
PARENTS = 2
CHILDREN = 3
RANK = 4  # among the tasks of its workflow; -1 where the selection is random
GENERATION = 5
SUPPORT = 6  # parents of the generation just below
SIZE = 7  # in row FIRST + g: processors of generation g of that workflow
READY = (
    8  # in rows from FIRST on: the eligible tasks that do not run, as a list or as a heap by rank
)
FALLEN = 9  # in rows from 0 on: tasks that have lost their support
TASK_COLUMNS = 10

# Columns of `flows`.
FIRST = 0  # its first task
TASKS = 1
DRAW = 2  # the state of its random draws
READIED = 3  # how many entries READY has
LEFT = 4  # tasks that have not completed
RESERVE = 5  # processors to keep for it beyond its eligible tasks
QUEUE = 6  # in rows from 0 on: the queue of workflows
FLOW_COLUMNS = 7

# Places in `room`.
FREE = 0  # processors on which no task runs
QUEUED = 1
RUNNING = 2
SEQUENCE = 3  # counts starts
KEPT = 4  # free processors that the last pass kept for workflows
WAITING = 5  # processors that eligible tasks could use and do not have
HEAP = 6

# Columns of `times`.
RUNTIME_S = 0
START_S = 1
END_S = 2

# Places in `sums`.
BUSY_S = 0
KEPT_S = 1
EVENTS = 2
TRACED = 3
IN_SYSTEM = 4
SUMS = 5
TRACE_COLUMNS = 4  # time, at work, waiting, kept

LEHMER_FACTOR = 48_271
LEHMER_MODULUS = 2**31 - 1
_ROUNDING = 1e-9


class StreamRules(NamedTuple):
    """How to share the pool: numbers only, which cost nothing to hand on."""

    slots: int
    policy: int
    fraction: float
    depth: int
    until_s: float
    trace_from_s: float


@kernel
def simulate(
    rules: StreamRules,
    arrival_s: Floats,
    place: Floats,
    tasks: Ints,
    flows: Ints,
    edges: Ints,
    room: Ints,
    times: Floats,
    heap_s: Floats,
    sums: Floats,
    trace: Floats,
) -> None:
    """Run the stream to its end, or to `until_s`. Workflows arrive in the order of rows; `place`
    orders the queue."""
    now = 0.0
    arrived = 0
    workflows = arrival_s.shape[0]
    room[FREE] = rules.slots
    while True:
        is_end = room[RUNNING] > 0 and (arrived == workflows or heap_s[0] <= arrival_s[arrived])
        if not is_end and arrived == workflows:
            break
        if is_end:
            then = heap_s[0]
        else:
            then = arrival_s[arrived]
        if then > rules.until_s:
            break
        sums[BUSY_S] += (then - now) * (rules.slots - room[FREE])
        sums[KEPT_S] += (then - now) * room[KEPT]
        sums[EVENTS] += 1
        now = then
        if is_end:
            _finish(rules, tasks, flows, edges, room, _pop(room, heap_s))
        else:
            _arrive(rules, place, tasks, flows, room, arrived)
            arrived += 1
        if room[FREE] > 0:
            _pass(tasks, flows, room, times, heap_s, now)
        if sums[TRACED] < trace.shape[0] and now >= rules.trace_from_s:
            _record(rules, room, trace[int(sums[TRACED])], now)
            sums[TRACED] += 1
    sums[IN_SYSTEM] = room[QUEUED]


@kernel
def _record(rules: StreamRules, room: Ints, row: Floats, now: float) -> None:
    row[0] = now
    row[1] = rules.slots - room[FREE]
    row[2] = room[WAITING]
    row[3] = room[KEPT]


@kernel
def _arrive(
    rules: StreamRules, place: Floats, tasks: Ints, flows: Ints, room: Ints, w: int
) -> None:
    first = flows[w, FIRST]
    flows[w, LEFT] = flows[w, TASKS]
    for v in range(first, first + flows[w, TASKS]):
        tasks[first + tasks[v, GENERATION], SIZE] += tasks[v, CORES]
        if tasks[v, GENERATION] == 0:
            _add_ready(tasks, flows, room, w, v)
    at = room[QUEUED]
    while at > 0 and place[flows[at - 1, QUEUE]] > place[w]:
        flows[at, QUEUE] = flows[at - 1, QUEUE]
        at -= 1
    flows[at, QUEUE] = w
    room[QUEUED] += 1
    _renew(rules, tasks, flows, w)


@kernel
def _finish(
    rules: StreamRules, tasks: Ints, flows: Ints, edges: Ints, room: Ints, task: int
) -> None:
    w = tasks[task, OWNER]
    room[FREE] += tasks[task, CORES]
    room[KEPT] = 0
    flows[w, LEFT] -= 1
    if flows[w, LEFT] == 0:
        at = 0
        while flows[at, QUEUE] != w:
            at += 1
        room[QUEUED] -= 1
        for i in range(at, room[QUEUED]):
            flows[i, QUEUE] = flows[i + 1, QUEUE]
        return
    fresh = _advance(tasks, edges, flows[w, FIRST], task)
    for i in range(fresh):
        _add_ready(tasks, flows, room, w, tasks[i, FALLEN])
    _renew(rules, tasks, flows, w)


@kernel
def _advance(tasks: Ints, edges: Ints, first: int, task: int) -> int:
    """Bring generations up to date. The fresh tasks come to stand first in FALLEN, ascending;
    returns how many."""
    tail = _move(tasks, edges, first, task, -1, 0)
    head = fresh = 0
    while head < tail:
        v = tasks[head, FALLEN]
        head += 1
        highest = -1
        support = 0
        for p in edges[tasks[v, PARENTS] : tasks[v + 1, PARENTS]]:
            below = tasks[p, GENERATION]
            if below > highest:
                highest = below
                support = 1
            elif below == highest:
                support += 1
        tasks[v, SUPPORT] = support
        tail = _move(tasks, edges, first, v, highest + 1, tail)
        if highest < 0:  # there is room: what stood here has been looked at
            at = fresh
            while at > 0 and tasks[at - 1, FALLEN] > v:
                tasks[at, FALLEN] = tasks[at - 1, FALLEN]
                at -= 1
            tasks[at, FALLEN] = v
            fresh += 1
    return fresh


@kernel
def _move(tasks: Ints, edges: Ints, first: int, v: int, generation: int, tail: int) -> int:
    """Give `v` a lower generation; children that lose their last support go to the end of
    FALLEN."""
    before = tasks[v, GENERATION]
    tasks[v, GENERATION] = generation
    tasks[first + before, SIZE] -= tasks[v, CORES]
    if generation >= 0:
        tasks[first + generation, SIZE] += tasks[v, CORES]
    for c in edges[tasks[v, CHILDREN] : tasks[v + 1, CHILDREN]]:
        if tasks[c, GENERATION] == before + 1:
            tasks[c, SUPPORT] -= 1
            if tasks[c, SUPPORT] == 0:
                tasks[tail, FALLEN] = c
                tail += 1
    return tail


@kernel
def _renew(rules: StreamRules, tasks: Ints, flows: Ints, w: int) -> None:
    """The reservation of a workflow: what its target exceeds its eligible set by."""
    if rules.policy == BF:
        return
    first = flows[w, FIRST]
    end = first + flows[w, TASKS]
    if rules.policy == FES:
        end = min(end, first + rules.depth + 1)
    widest = 0
    g = first
    while g < end and tasks[g, SIZE] > 0:  # no generation is empty before the last
        widest = max(widest, tasks[g, SIZE])
        g += 1
    target = widest
    if rules.policy == SLOP:
        target = int(np.ceil(rules.fraction * widest - _ROUNDING))
    flows[w, RESERVE] = max(0, target - tasks[first, SIZE])


@kernel
def _pass(tasks: Ints, flows: Ints, room: Ints, times: Floats, heap_s: Floats, now: float) -> None:
    """Through the queue: start what is eligible, keep what should be held, while processors are
    left."""
    left = room[FREE]
    kept = 0
    i = 0
    while left > 0 and i < room[QUEUED]:
        w = flows[i, QUEUE]
        i += 1
        while flows[w, READIED] > 0 and left > 0:
            at = _choose(tasks, flows, w)
            task = tasks[flows[w, FIRST] + at, READY]
            if tasks[task, CORES] > left:
                kept += left
                left = 0
                break
            _take(tasks, flows, room, w, at)
            left -= tasks[task, CORES]
            room[FREE] -= tasks[task, CORES]
            times[task, START_S] = now
            times[task, END_S] = now + times[task, RUNTIME_S]
            _push(room, heap_s, times[task, END_S], task)
        held = min(left, flows[w, RESERVE])
        kept += held
        left -= held
    room[KEPT] = kept


@kernel
def _add_ready(tasks: Ints, flows: Ints, room: Ints, w: int, task: int) -> None:
    """At the end of the list if the selection is random, into the heap if it is not."""
    first = flows[w, FIRST]
    at = flows[w, READIED]
    rank = tasks[task, RANK]
    flows[w, READIED] += 1
    room[WAITING] += tasks[task, CORES]
    while rank >= 0 and at > 0 and tasks[tasks[first + (at - 1) // 2, READY], RANK] > rank:
        tasks[first + at, READY] = tasks[first + (at - 1) // 2, READY]
        at = (at - 1) // 2
    tasks[first + at, READY] = task


@kernel
def _choose(tasks: Ints, flows: Ints, w: int) -> int:
    if tasks[flows[w, FIRST], RANK] >= 0:
        return 0
    flows[w, DRAW] = flows[w, DRAW] * LEHMER_FACTOR % LEHMER_MODULUS
    return flows[w, DRAW] % flows[w, READIED]


@kernel
def _take(tasks: Ints, flows: Ints, room: Ints, w: int, at: int) -> None:
    """The entry `at` of READY leaves; the last one fills the gap, or sinks from the top of the
    heap."""
    first = flows[w, FIRST]
    last = flows[w, READIED] - 1
    flows[w, READIED] = last
    room[WAITING] -= tasks[tasks[first + at, READY], CORES]
    task = tasks[first + last, READY]
    rank = tasks[task, RANK]
    while rank >= 0 and 2 * at + 1 < last:
        child = first + 2 * at + 1
        if (
            child + 1 < first + last
            and tasks[tasks[child + 1, READY], RANK] < tasks[tasks[child, READY], RANK]
        ):
            child += 1
        if tasks[tasks[child, READY], RANK] >= rank:
            break
        tasks[first + at, READY] = tasks[child, READY]
        at = child - first
    if at < last:
        tasks[first + at, READY] = task


@kernel
def _push(room: Ints, heap_s: Floats, end_s: float, task: int) -> None:
    """Into the heap of running tasks, by end, then start."""
    n = room[RUNNING]
    while n > 0 and heap_s[(n - 1) // 2] > end_s:  # of equal ends, the one above started earlier
        _put(room, heap_s, n, (n - 1) // 2)
        n = (n - 1) // 2
    heap_s[n] = end_s
    room[SEQUENCE] += 1
    room[HEAP + 2 * n] = room[SEQUENCE]
    room[HEAP + 2 * n + 1] = task
    room[RUNNING] += 1


@kernel
def _pop(room: Ints, heap_s: Floats) -> int:
    """The task that ends first leaves the heap."""
    first = room[HEAP + 1]
    last = room[RUNNING] - 1
    i = 0
    while 2 * i + 1 < last:
        child = 2 * i + 1
        if child + 1 < last and _is_before(room, heap_s, child + 1, child):
            child += 1
        if _is_before(room, heap_s, last, child):
            break
        _put(room, heap_s, i, child)
        i = child
    _put(room, heap_s, i, last)
    room[RUNNING] = last
    return first


@kernel
def _put(room: Ints, heap_s: Floats, to: int, source: int) -> None:
    heap_s[to] = heap_s[source]
    room[HEAP + 2 * to] = room[HEAP + 2 * source]
    room[HEAP + 2 * to + 1] = room[HEAP + 2 * source + 1]


@kernel
def _is_before(room: Ints, heap_s: Floats, a: int, b: int) -> bool:
    if heap_s[a] == heap_s[b]:
        return room[HEAP + 2 * a] < room[HEAP + 2 * b]
    return heap_s[a] < heap_s[b]
