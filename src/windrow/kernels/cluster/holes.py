"""Where in the plan a waiting job may find an earlier start, without a walk for each.

A job that waits can start sooner in two ways. It slides: nodes are free right up to its planned
start, so it begins when these come free, and ends within its own place. Or it finds a hole: room
for all of it before its planned start. Whether it slides is seen at one place of the plan. Holes
are many, and nearly always too small; so in a long queue it is known, for each kind of job, before
which time there is no hole for any of the kind (NOT_BEFORE), and only what is freed brings that
time forward, for those kinds that the room then open is wide and long enough for.

A kind are jobs of like numbers of nodes and requested times. What is known of it holds for the
least of either that was met among its jobs (HOLE_NODES, HOLE_LENGTH), and so for all of them.
"""

from __future__ import annotations

from windrow.kernels.cluster import profile, queue_index, slides
from windrow.kernels.cluster import state as c
from windrow.kernels.cluster.state import Ints
from windrow.kernels.jit import lean

_STEPS = (
    64  # segments to either side of freed room that are looked at, before all is taken for open
)
_SHORTEST = 4  # the power of two that is the least request of the second kind by time


@lean
def kind(nodes: int, requested: int) -> int:
    """The number of a job's kind: by powers of two of nodes, and half powers of requested time."""
    length = 0
    while length < c.LENGTHS - 1 and requested >= shortest(length + 1):
        length += 1
    return queue_index.width(nodes) * c.LENGTHS + length


@lean
def shortest(length: int) -> int:
    """The least requested time of these kinds: 16, 24, 32, 48, ... s."""
    if length == 0:
        return 0
    power = _SHORTEST + ((length - 1) >> 1)
    return (2 + ((length - 1) & 1)) << (power - 1)


@lean
def keep_up(s: Ints) -> None:
    """Begin, or cease, to know of holes as the queue gets long or short."""
    if queue_index.has_become_long(s):
        forget(s)
        first = s[c.QUEUE_AT] + s[c.HEAD] * c.QUEUED_WIDTH
        last = s[c.QUEUE_AT] + s[c.TAIL] * c.QUEUED_WIDTH
        for q in range(first, last, c.QUEUED_WIDTH):
            if s[q + c.PLANNED] >= 0:
                known(s, of_kind(s, q), s[q + c.NODES], s[q + c.REQUESTED])
        slides.begin(s)


@lean
def of_kind(s: Ints, q: int) -> int:
    """Where the row of a waiting job's kind begins."""
    return s[c.LONG_AT] + s[q + c.KIND]


@lean
def placed(s: Ints, q: int) -> None:
    """A waiting job has a planned start, or another one."""
    if s[c.IS_KNOWN] == 1:
        known(s, of_kind(s, q), s[q + c.NODES], s[q + c.REQUESTED])
        slides.planned(s, s[q + c.PLANNED], s[q + c.NODES])


@lean
def may_move(s: Ints, q: int, horizon: int) -> bool:
    """Whether a waiting job may have an earlier start, as far as is known without a look at the
    plan."""
    planned = s[q + c.PLANNED]
    if s[c.IS_KNOWN] == 0 or slides.may_slide(s, planned):
        return True
    before = min(planned - s[q + c.REQUESTED] + 1, horizon)
    return s[of_kind(s, q) + c.NOT_BEFORE] < before


@lean
def first(s: Ints, q: int) -> int:
    """The first fit of a waiting job without a reservation, for which what is known of its kind
    saves most of the walk."""
    p = s[c.PLAN_AT]
    nodes = s[q + c.NODES]
    length = s[q + c.REQUESTED]
    h = of_kind(s, q)
    known(s, h, nodes, length)
    least = s[h + c.HOLE_NODES]
    shortest_s = s[h + c.HOLE_LENGTH]
    since = max(s[c.NOW], s[h + c.NOT_BEFORE])
    since = profile.hole(s, p, least, shortest_s, since, c.FOREVER, c.FOREVER)
    s[h + c.NOT_BEFORE] = since
    if least < nodes or shortest_s < length:
        since = profile.hole(s, p, nodes, length, since, c.FOREVER, c.FOREVER)
    return since


@lean
def forget(s: Ints) -> None:
    """Nothing is known of any kind."""
    for h in range(s[c.LONG_AT], s[c.LONG_AT] + 3 * c.KINDS):
        s[h] = 0


@lean
def sooner(s: Ints, q: int, horizon: int) -> int:
    """The earliest start of a waiting job with all others where they are, if that is before
    `horizon`; else its planned one."""
    p = s[c.PLAN_AT]
    planned = s[q + c.PLANNED]
    nodes = s[q + c.NODES]
    length = s[q + c.REQUESTED]
    since = s[c.NOW]
    if s[c.IS_KNOWN] == 0:
        before = min(planned, horizon)
        found = profile.hole(s, p, nodes, length, since, before, planned)
        return found if found < before else planned
    before = min(planned - length + 1, horizon)
    h = of_kind(s, q)
    since = max(since, s[h + c.NOT_BEFORE])
    if since < before:
        least = s[h + c.HOLE_NODES]
        shortest_s = s[h + c.HOLE_LENGTH]
        since = profile.hole(s, p, least, shortest_s, since, before, c.FOREVER)
        s[h + c.NOT_BEFORE] = since
        if since < before and (least < nodes or shortest_s < length):
            since = profile.hole(s, p, nodes, length, since, before, c.FOREVER)
        if since < before:
            return since
    if not slides.may_slide(s, planned):
        return planned
    return profile.free_since(s, p, nodes, planned)


@lean
def known(s: Ints, h: int, nodes: int, length: int) -> None:
    """What is known of a kind is to be true of such a job, too. What is known of larger jobs only
    is forgotten."""
    if s[h + c.HOLE_NODES] == 0:
        s[h + c.HOLE_NODES] = nodes
        s[h + c.HOLE_LENGTH] = length
        s[h + c.NOT_BEFORE] = 0
    elif s[h + c.HOLE_NODES] > nodes or s[h + c.HOLE_LENGTH] > length:
        s[h + c.HOLE_NODES] = min(nodes, s[h + c.HOLE_NODES])
        s[h + c.HOLE_LENGTH] = min(length, s[h + c.HOLE_LENGTH])
        s[h + c.NOT_BEFORE] = 0


@lean
def opened(s: Ints, begin: int, end: int) -> None:
    """Room came free in the plan from `begin` to `end`: holes may now begin there, or before."""
    if s[c.IS_KNOWN] == 0:
        return
    p = s[c.PLAN_AT]
    further = profile.numbers(s, p)
    k = profile.block_at(s, p, begin)
    at = profile.last_until(s, profile.begins(s, p, k), profile.size_of(s, p, k), begin)
    left_k = k
    left_at = at
    most = 0
    right = begin
    since = begin
    free = -1
    while True:
        if at == profile.begins(s, p, k) + profile.size_of(s, p, k):
            k += 1
            if k == s[p + c.BLOCKS]:
                right = c.FOREVER
                slides.room(s, since, end, free)
                break
            at = profile.begins(s, p, k)
        right = s[at]
        if free >= 0:
            slides.room(s, since, min(right, end), free)
        if right >= end:
            break
        since = max(begin, right)
        if at == profile.begins(s, p, k) and k + 1 < s[p + c.BLOCKS]:
            behind = s[profile.column(s, p, c.FIRST) + k + 1]
            if behind <= end:  # of a whole block it is enough to know how much is free at most
                free = s[profile.column(s, p, c.HIGH) + k]
                most = max(most, free)
                k += 1
                at = profile.begins(s, p, k)
                continue
        free = s[at + further] + profile.shift_of(s, p, k)
        most = max(most, free)
        at += 1
    left = min(begin, s[left_at])
    width = 0
    while width < c.WIDTHS - 1 and (2 << width) <= most:
        width += 1
    steps = 0
    lengths = 0
    while width >= 0 and most > 0:
        nodes = 1 << width
        while left > s[c.NOW]:  # the segment before
            if left_at == profile.begins(s, p, left_k):
                if left_k == 0:
                    break
                left_k -= 1
                left_at = profile.begins(s, p, left_k) + profile.size_of(s, p, left_k)
            if s[left_at - 1 + further] + profile.shift_of(s, p, left_k) < nodes:
                break
            left_at -= 1
            left = s[left_at]
            steps += 1
            if steps > _STEPS:
                left = s[c.NOW]
        while right < c.FOREVER:
            if s[at + further] + profile.shift_of(s, p, k) < nodes:
                break
            at += 1
            if at == profile.begins(s, p, k) + profile.size_of(s, p, k):
                k += 1
                if k == s[p + c.BLOCKS]:
                    right = c.FOREVER
                    break
                at = profile.begins(s, p, k)
            right = s[at]
            steps += 1
            if steps > _STEPS:
                right = c.FOREVER
        while lengths < c.LENGTHS and shortest(lengths) <= right - left:
            lengths += 1
        # of this width, jobs of these lengths may have a hole now
        row = s[c.LONG_AT] + c.NOT_BEFORE + width * c.LENGTHS
        for h in range(row, row + lengths):
            s[h] = min(s[h], left)
        width -= 1
