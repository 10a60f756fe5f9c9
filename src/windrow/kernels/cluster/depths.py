"""Known jobs played forward under a policy that gives the first DEPTH of the queue reservations.

All run as long as requested and nobody else arrives, so a reservation once made stays: the nodes
that it counts on come free when they are expected to, and who starts before it does not delay it.
So the jobs with reservations are the first that wait, the plan is never made again, and a pass only
starts whose time it is, reserves for the next in line, and looks for others that may start.

Those are found by blocks of INDEX_BLOCK entries, of which it is known, for each power of two, what
the shortest request is among the jobs on fewer nodes than the next power. Until when how many nodes
are free from now on is a few numbers (`drops`): only reservations take any away.
"""

from __future__ import annotations

import numpy as np

from windrow.kernels.cluster import profile
from windrow.kernels.cluster import state as c
from windrow.kernels.cluster.jobs import finish_first, queued, start
from windrow.kernels.cluster.policies import place, reset_plan
from windrow.kernels.cluster.queue_index import width
from windrow.kernels.cluster.state import Ints
from windrow.kernels.jit import kernel, lean

# What is known while jobs are played forward, in one array: this header, the entries that have
# reservations, then at which times fewer nodes are free than at any before, and how many.
COUNT = 0  # how many have reservations
NEXT = 1  # the first entry that was not looked at for one
UNTIL = 2  # when the last of the reservations ends
DROPS = 3
HELD_ROOM = 4
KNOWN_HEADER = 5


@kernel
def follow_depth(s: Ints, nodes: Ints, requested: Ints, answers: Ints) -> bool:
    """Find when each candidate (nodes, requested) starts behind all known jobs. False, and nothing
    done, if the state is not one that the rules above hold for."""
    t = s.copy()
    if t[c.HEAD] == t[c.TAIL]:
        reset_plan(t)
    room = min(t[c.DEPTH], t[c.TAIL] - t[c.HEAD]) + 2
    known = np.zeros(KNOWN_HEADER + 3 * room, dtype=np.int64)
    known[HELD_ROOM] = room
    if not find_held(t, known):
        return False
    shortest = np.empty((t[c.TAIL] // c.INDEX_BLOCK + 1, c.WIDTHS), dtype=np.int64)
    for b in range(t[c.HEAD] // c.INDEX_BLOCK, shortest.shape[0]):
        measure(t, shortest, b)
    no_starts = np.empty(0, dtype=np.int64)
    t[c.RUNS_AT] = 0  # the plan tells the same
    answers[:] = -1
    profile.trim(t, t[c.PLAN_AT], t[c.NOW])
    find_drops(t, known)
    open_ones = nodes.shape[0] - settle(t, known, nodes, requested, answers)
    while open_ones > 0 and t[c.RUNNING] > 0:
        t[c.NOW] = t[t[c.HEAP_AT] + c.END]
        while t[c.RUNNING] > 0 and t[t[c.HEAP_AT] + c.END] <= t[c.NOW]:
            finish_first(t, -1)
        profile.trim(t, t[c.PLAN_AT], t[c.NOW])
        start_held(t, known, no_starts)
        find_drops(t, known)
        line_up(t, known, shortest, no_starts)
        start_others(t, known, shortest, no_starts)
        t[c.HAPPENED] = 0
        open_ones -= settle(t, known, nodes, requested, answers)
    return True


@lean
def find_held(t: Ints, known: Ints) -> bool:
    """Find out who has reservations. False if these are not the first that wait."""
    if t[c.CLOSURES] > 0 or t[c.GONE] > 0 or t[c.EVENT_ORDER] != c.BATCHED:
        return False
    known[NEXT] = t[c.HEAD]
    for i in range(t[c.HEAD], t[c.TAIL]):
        q = queued(t, i)
        if t[q + c.PLANNED] == c.NEW:
            return False
        if t[q + c.PLANNED] < 0:
            continue
        if known[NEXT] != i or known[COUNT] == t[c.DEPTH]:
            return False
        hold_place(t, known, i)
    return known[COUNT] == t[c.DEPTH] or known[NEXT] == t[c.TAIL]


@lean
def hold_place(t: Ints, known: Ints, i: int) -> None:
    """Entry `i` is the next that has a reservation."""
    q = queued(t, i)
    known[KNOWN_HEADER + known[COUNT]] = i
    known[COUNT] += 1
    known[NEXT] = i + 1
    known[UNTIL] = max(known[UNTIL], t[q + c.PLANNED] + t[q + c.REQUESTED])


@lean
def start_held(t: Ints, known: Ints, no_starts: Ints) -> None:
    """Start those whose reserved time has come."""
    kept = 0
    known[UNTIL] = 0
    for k in range(known[COUNT]):
        i = known[KNOWN_HEADER + k]
        q = queued(t, i)
        if t[q + c.PLANNED] == t[c.NOW]:
            leave(t, i, no_starts)
        else:
            known[KNOWN_HEADER + kept] = i
            kept += 1
            known[UNTIL] = max(known[UNTIL], t[q + c.PLANNED] + t[q + c.REQUESTED])
    known[COUNT] = kept


@lean
def leave(t: Ints, i: int, no_starts: Ints) -> None:
    """Entry `i` starts now, and is a gap from now on."""
    start(t, no_starts, i)
    q = queued(t, i)
    t[q + c.JOB] = c.NOBODY
    t[q + c.PLANNED] = c.STARTED_BEFORE
    t[q + c.NODES] = c.FOREVER


@lean
def line_up(t: Ints, known: Ints, shortest: Ints, no_starts: Ints) -> None:
    """The next in line start, or have reservations, until there are as many as may be."""
    while known[COUNT] < t[c.DEPTH] and known[NEXT] < t[c.TAIL]:
        i = known[NEXT]
        if t[queued(t, i) + c.JOB] == c.NOBODY:
            known[NEXT] += 1
        elif fits(t, known, i):
            start_now(t, known, shortest, i, no_starts)
            known[NEXT] += 1
        else:
            place(t, i)
            hold_place(t, known, i)
            find_drops(t, known)


@lean
def start_others(t: Ints, known: Ints, shortest: Ints, no_starts: Ints) -> None:
    """Start who can without delaying any reservation, in the order of the queue."""
    i = known[NEXT]
    looked = -1
    while i < t[c.TAIL] and t[c.FREE] > 0:
        b = i // c.INDEX_BLOCK
        if b != looked:
            looked = b
            if not has_any(t, known, shortest, b):
                i = (b + 1) * c.INDEX_BLOCK
                continue
        if fits(t, known, i):
            start_now(t, known, shortest, i, no_starts)
            looked = -1  # with fewer nodes free the rest of the block may have nobody
        i += 1


@lean
def start_now(t: Ints, known: Ints, shortest: Ints, i: int, no_starts: Ints) -> None:
    """Entry `i` starts out of turn."""
    q = queued(t, i)
    end = t[c.NOW] + t[q + c.REQUESTED]
    profile.add(t, t[c.PLAN_AT], t[c.NOW], end, -t[q + c.NODES])
    leave(t, i, no_starts)
    measure(t, shortest, i // c.INDEX_BLOCK)
    find_drops(t, known)


@lean
def measure(t: Ints, shortest: Ints, b: int) -> None:
    """Find out what is to be known of a block of the queue."""
    for w in range(c.WIDTHS):
        shortest[b, w] = c.FOREVER
    first = max(t[c.HEAD], b * c.INDEX_BLOCK)
    for i in range(first, min(t[c.TAIL], (b + 1) * c.INDEX_BLOCK)):
        q = queued(t, i)
        if t[q + c.JOB] != c.NOBODY:
            w = width(t[q + c.NODES])
            shortest[b, w] = min(shortest[b, w], t[q + c.REQUESTED])
    for w in range(1, c.WIDTHS):
        shortest[b, w] = min(shortest[b, w], shortest[b, w - 1])


@lean
def has_any(t: Ints, known: Ints, shortest: Ints, b: int) -> bool:
    """Whether a job of this block may be narrow and short enough to start."""
    w = 0
    while w < c.WIDTHS and 1 << w <= t[c.FREE]:
        if t[c.NOW] + shortest[b, w] <= free_until(known, 1 << w):
            return True
        w += 1
    return False


@lean
def fits(t: Ints, known: Ints, i: int) -> bool:
    """Whether entry `i` can start now without delaying any reservation."""
    q = queued(t, i)
    nodes = t[q + c.NODES]
    return nodes <= t[c.FREE] and t[c.NOW] + t[q + c.REQUESTED] <= free_until(known, nodes)


@lean
def find_drops(t: Ints, known: Ints) -> None:
    """Find out when fewer nodes are free than at any time from now to then."""
    p = t[c.PLAN_AT]
    at = KNOWN_HEADER + known[HELD_ROOM]
    further = profile.numbers(t, p)
    least = t[profile.begins(t, p, 0) + further] + profile.shift_of(t, p, 0)
    known[DROPS] = 0
    for k in range(t[p + c.BLOCKS]):
        if t[profile.column(t, p, c.FIRST) + k] >= known[UNTIL]:
            break
        if t[profile.column(t, p, c.LOW) + k] >= least:
            continue
        first = profile.begins(t, p, k)
        shift = profile.shift_of(t, p, k)
        for i in range(first, first + profile.size_of(t, p, k)):
            if t[i + further] + shift < least:
                least = t[i + further] + shift
                known[at + known[DROPS]] = t[i]
                known[at + known[HELD_ROOM] + known[DROPS]] = least
                known[DROPS] += 1


@lean
def free_until(known: Ints, nodes: int) -> int:
    """Until when this number of nodes, which are free now, stays free."""
    at = KNOWN_HEADER + known[HELD_ROOM]
    for k in range(at, at + known[DROPS]):
        if known[k + known[HELD_ROOM]] < nodes:
            return known[k]
    return c.FOREVER


@lean
def settle(t: Ints, known: Ints, nodes: Ints, requested: Ints, answers: Ints) -> int:
    """Note which candidates the last pass would have started. Returns how many."""
    count = 0
    for k in range(nodes.shape[0]):
        if (
            answers[k] < 0
            and nodes[k] <= t[c.FREE]
            and t[c.NOW] + requested[k] <= free_until(known, nodes[k])
        ):
            answers[k] = t[c.NOW]
            count += 1
    return count
