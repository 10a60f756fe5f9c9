"""Which waiting jobs of a long queue may slide, by the time at which they are planned to start.

A job slides if nodes are free right up to its planned start, so only one before whose start the
plan got room has to be looked at. Time is dealt to slots, each as long as makes all reservations
fit in once around; of each slot it is known how few nodes a job needs that is planned to start
behind it (NEEDED), and in which pass it last got room for that (MARKED). Both may be too good,
never too bad: who leaves a slot is not taken out of it until all are counted again.
"""

from __future__ import annotations

from windrow.kernels.cluster import profile
from windrow.kernels.cluster import state as c
from windrow.kernels.cluster.state import Ints
from windrow.kernels.jit import lean


@lean
def head(s: Ints) -> int:
    """Where what is known of slides begins."""
    return s[c.LONG_AT] + 3 * c.KINDS


@lean
def slot(s: Ints, time: int) -> int:
    """The place of NEEDED for a job that is planned to start right after that time."""
    d = head(s)
    return d + c.SLIDE_HEADER + (time >> s[d + c.SLIDE_SHIFT]) % c.SLIDE_SLOTS


@lean
def begin(s: Ints) -> None:
    """Find out all there is to know; any job may slide."""
    d = head(s)
    s[d + c.SLIDE_SHIFT] = 0
    while slots(s) > c.SLIDE_SLOTS // 2:
        s[d + c.SLIDE_SHIFT] += 1
    mark_all(s)
    count(s)


@lean
def slots(s: Ints) -> int:
    """How many slots the plan takes."""
    p = s[c.PLAN_AT]
    last = s[p + c.BLOCKS] - 1
    end = s[profile.begins(s, p, last) + profile.size_of(s, p, last) - 1]
    return ((end - s[c.NOW]) >> s[head(s) + c.SLIDE_SHIFT]) + 1


@lean
def mark_all(s: Ints) -> None:
    """Any job may slide."""
    d = head(s)
    marked = d + c.SLIDE_HEADER + c.SLIDE_SLOTS
    for k in range(marked, marked + c.SLIDE_SLOTS):
        s[k] = s[d + c.SLIDE_PASS]


@lean
def count(s: Ints) -> None:
    """Find out again how few nodes are needed behind each slot."""
    d = head(s)
    for k in range(d + c.SLIDE_HEADER, d + c.SLIDE_HEADER + c.SLIDE_SLOTS):
        s[k] = c.FOREVER
    s[d + c.SLIDE_MOVES] = 0
    first = s[c.QUEUE_AT] + s[c.HEAD] * c.QUEUED_WIDTH
    last = s[c.QUEUE_AT] + s[c.TAIL] * c.QUEUED_WIDTH
    for q in range(first, last, c.QUEUED_WIDTH):
        if s[q + c.PLANNED] >= 0:
            planned(s, s[q + c.PLANNED], s[q + c.NODES])


@lean
def planned(s: Ints, time: int, nodes: int) -> None:
    """A job on this number of nodes is planned to start at that time."""
    k = slot(s, time - 1)
    s[k] = min(s[k], nodes)
    s[head(s) + c.SLIDE_MOVES] += 1


@lean
def next_pass(s: Ints) -> None:
    """A pass begins, which looks at who may slide since the last one began."""
    d = head(s)
    s[d + c.SLIDE_PASS] += 1
    taken = slots(s)
    if taken > c.SLIDE_SLOTS or (s[d + c.SLIDE_SHIFT] > 0 and taken < c.SLIDE_SLOTS // 8):
        begin(s)
    elif s[d + c.SLIDE_MOVES] > 4 * c.SLIDE_SLOTS:
        count(s)


@lean
def room(s: Ints, low: int, high: int, free: int) -> None:
    """From `low` to before `high` this number of nodes is now free."""
    d = head(s)
    shift = s[d + c.SLIDE_SHIFT]
    first = low >> shift
    needed = d + c.SLIDE_HEADER
    for k in range(first, min((high - 1) >> shift, first + c.SLIDE_SLOTS - 1) + 1):
        at = needed + k % c.SLIDE_SLOTS
        if s[at] <= free:
            s[at + c.SLIDE_SLOTS] = s[d + c.SLIDE_PASS]


@lean
def may_slide(s: Ints, time: int) -> bool:
    """Whether a job that is planned to start at that time has to be looked at."""
    return s[slot(s, time - 1) + c.SLIDE_SLOTS] >= s[head(s) + c.SLIDE_PASS] - 1
