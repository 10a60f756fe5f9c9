"""Which entries of a long queue may start out of turn under EASY, without a look at each.

The queue is in blocks of INDEX_BLOCK entries. Of each block it is known, for each power of two,
what the shortest request is among its jobs on fewer nodes than the next power; and whether an entry
was left since (IS_STALE), so that some of it may be too good. So a pass goes by the blocks of which
no job is both narrow enough and short enough; what is known is never worse than true.
"""

from __future__ import annotations

from windrow.kernels.cluster import state as c
from windrow.kernels.cluster.state import Ints
from windrow.kernels.jit import lean

IS_STALE = c.WIDTHS  # the place in a block's row that says so


@lean
def width(nodes: int) -> int:
    """The greatest power of two (its exponent) that is not above this number of nodes."""
    found = 0
    while nodes > 1 and found < c.WIDTHS - 1:
        nodes >>= 1
        found += 1
    return found


@lean
def row(s: Ints, i: int) -> int:
    """Where the row of the block of entry `i` begins."""
    return s[c.LONG_AT] + i // c.INDEX_BLOCK * c.INDEX_WIDTH


@lean
def has_become_long(s: Ints) -> bool:
    """Whether something is to be known of the queue from now on; it ceases to be when the queue has
    become short."""
    waiting = s[c.TAIL] - s[c.HEAD]
    if s[c.IS_KNOWN] == 1:
        if waiting < c.LONG_QUEUE // 2:
            s[c.IS_KNOWN] = 0
        return False
    if s[c.LONG_AT] == 0 or waiting < c.LONG_QUEUE:
        return False
    s[c.IS_KNOWN] = 1
    return True


@lean
def keep_up(s: Ints) -> None:
    """Begin, or cease, to know of blocks as the queue gets long or short."""
    if has_become_long(s):
        for b in range(s[c.HEAD] // c.INDEX_BLOCK, (s[c.TAIL] - 1) // c.INDEX_BLOCK + 1):
            measure(s, b * c.INDEX_BLOCK)


@lean
def measure(s: Ints, i: int) -> None:
    """Find out what is to be known of the block that begins with entry `i`."""
    b = row(s, i)
    for w in range(c.WIDTHS):
        s[b + w] = c.FOREVER
    s[b + IS_STALE] = 0
    first = s[c.QUEUE_AT] + c.QUEUED_WIDTH * max(i, s[c.HEAD])
    last = s[c.QUEUE_AT] + c.QUEUED_WIDTH * min(i + c.INDEX_BLOCK, s[c.TAIL])
    for q in range(first, last, c.QUEUED_WIDTH):
        if s[q + c.NODES] < c.FOREVER:
            w = width(s[q + c.NODES])
            s[b + w] = min(s[b + w], s[q + c.REQUESTED])
    for w in range(1, c.WIDTHS):
        s[b + w] = min(s[b + w], s[b + w - 1])


@lean
def joined(s: Ints, i: int, nodes: int, requested: int) -> None:
    """A job comes to entry `i`, the queue's last."""
    if s[c.IS_KNOWN] == 0:
        return
    b = row(s, i)
    if i % c.INDEX_BLOCK == 0 or s[c.TAIL] == s[c.HEAD]:
        for w in range(c.WIDTHS):
            s[b + w] = c.FOREVER
        s[b + IS_STALE] = 0
    for w in range(width(nodes), c.WIDTHS):
        s[b + w] = min(s[b + w], requested)


@lean
def left(s: Ints, i: int) -> None:
    """The job of entry `i` is gone."""
    if s[c.IS_KNOWN] == 1:
        s[row(s, i) + IS_STALE] = 1


@lean
def has_any(s: Ints, i: int, free: int, extra: int, spare: int) -> bool:
    """Whether the block of entry `i` may have a job on at most `free` nodes that requests no more
    than `spare`, or one on `extra` of them."""
    b = row(s, i)
    fit = min(free, extra)
    if s[b + IS_STALE] == 1:
        measure(s, i // c.INDEX_BLOCK * c.INDEX_BLOCK)
    return s[b + width(free)] <= spare or (fit > 0 and s[b + width(fit)] < c.FOREVER)
