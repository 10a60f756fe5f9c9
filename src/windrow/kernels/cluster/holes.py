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

from windrow.kernels.cluster import profile
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
    width = 0
    while nodes > 1 and width < c.WIDTHS - 1:
        nodes >>= 1
        width += 1
    length = 0
    while length < c.LENGTHS - 1 and requested >= shortest(length + 1):
        length += 1
    return width * c.LENGTHS + length


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
    waiting = s[c.TAIL] - s[c.HEAD]
    if s[c.KNOWS_HOLES] == 1:
        if waiting < c.LONG_QUEUE // 2:
            s[c.KNOWS_HOLES] = 0
    elif s[c.HOLES_AT] > 0 and waiting >= c.LONG_QUEUE:
        s[c.KNOWS_HOLES] = 1
        for h in range(s[c.HOLES_AT], s[c.HOLES_AT] + c.WIDTHS * c.LENGTHS * c.HOLE_WIDTH):
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
    if s[c.KNOWS_HOLES] == 0:
        before = min(planned, horizon)
        found = profile.hole(s, p, nodes, length, since, before, planned)
        return found if found < before else planned
    before = min(planned - length + 1, horizon)
    h = s[c.HOLES_AT] + s[q + c.KIND] * c.HOLE_WIDTH
    since = max(since, known(s, h, nodes, length))
    if since < before:
        least = s[h + c.HOLE_NODES]
        shortest_s = s[h + c.HOLE_LENGTH]
        since = profile.hole(s, p, least, shortest_s, since, before, c.FOREVER)
        s[h + c.NOT_BEFORE] = since
        if since < before and (least < nodes or shortest_s < length):
            since = profile.hole(s, p, nodes, length, since, before, c.FOREVER)
        if since < before:
            return since
    return profile.free_since(s, p, nodes, planned)


@lean
def known(s: Ints, h: int, nodes: int, length: int) -> int:
    """Before which time there is no hole for such a job. What is known of larger jobs only is
    forgotten."""
    if s[h + c.HOLE_NODES] == 0:
        s[h + c.HOLE_NODES] = nodes
        s[h + c.HOLE_LENGTH] = length
        s[h + c.NOT_BEFORE] = 0
    elif s[h + c.HOLE_NODES] > nodes or s[h + c.HOLE_LENGTH] > length:
        s[h + c.HOLE_NODES] = min(nodes, s[h + c.HOLE_NODES])
        s[h + c.HOLE_LENGTH] = min(length, s[h + c.HOLE_LENGTH])
        s[h + c.NOT_BEFORE] = 0
    return s[h + c.NOT_BEFORE]


@lean
def opened(s: Ints, begin: int, end: int) -> None:
    """Room came free in the plan from `begin` to `end`: holes may now begin there, or before."""
    if s[c.KNOWS_HOLES] == 0:
        return
    p = s[c.PLAN_AT]
    further = profile.numbers(s, p)
    k = profile.block_at(s, p, begin)
    at = profile.last_until(s, profile.begins(s, p, k), profile.size_of(s, p, k), begin)
    left_k = k
    left_at = at
    most = 0
    right = begin
    while True:
        if at == profile.begins(s, p, k) + profile.size_of(s, p, k):
            k += 1
            if k == s[p + c.BLOCKS]:
                right = c.FOREVER
                break
            at = profile.begins(s, p, k)
        right = s[at]
        if right >= end:
            break
        most = max(most, s[at + further] + profile.shift_of(s, p, k))
        at += 1
    left = min(begin, s[left_at])
    width = 0
    while width < c.WIDTHS - 1 and (2 << width) <= most:
        width += 1
    steps = 0
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
        may_begin(s, width, left, right)
        width -= 1


@lean
def may_begin(s: Ints, width: int, left: int, right: int) -> None:
    """Jobs of this width may have a hole between these times now."""
    h = s[c.HOLES_AT] + width * c.LENGTHS * c.HOLE_WIDTH
    for length in range(c.LENGTHS):
        if shortest(length) > right - left:
            break
        s[h + c.NOT_BEFORE] = min(s[h + c.NOT_BEFORE], left)
        h += c.HOLE_WIDTH
