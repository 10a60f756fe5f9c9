"""The plan of a cluster whose nodes are only counted: free nodes as a step function of time.

It is a row of segments, each from its begin to that of the next, with the number of nodes that are
neither held nor reserved during it; the last lasts forever and has every node free. Segments are
kept in blocks of up to BLOCK, and a directory, in the order of time, says of each block when it
begins and between which numbers the free nodes in it are (never narrower than true, sometimes
wider). So a walk passes over blocks that are all too full, or all free enough, and a change moves
the segments of a block at most. What a whole block gains or loses is noted once (SHIFT) and counts
on top of the numbers in it. A plan of some dozens of segments, as most queues have, is one block.

`p` is the place in the state `s` where the plan begins: how many blocks it has and has room for,
the directory column by column, the begins of all segments, and their free nodes.
"""

from __future__ import annotations

import numpy as np

from windrow.kernels.cluster.state import (
    BLOCK,
    BLOCK_ROOM,
    BLOCKS,
    FIRST,
    FOREVER,
    HIGH,
    LOW,
    ORDER_OF_BLOCKS,
    PLAN_COLUMNS,
    PLAN_HEADER,
    SHIFT,
    SIZE,
    Ints,
)
from windrow.kernels.jit import kernel, lean

_FILLED = 48  # segments in a block after all were packed again, so that each has room for more


@lean
def column(s: Ints, p: int, k: int) -> int:
    """Where a column of the directory begins. SIZE and SHIFT go by block, the others by place."""
    return p + PLAN_HEADER + k * s[p + BLOCK_ROOM]


@lean
def begins(s: Ints, p: int, k: int) -> int:
    """Where the begins of the segments are of the block that is number `k` in time."""
    room = s[p + BLOCK_ROOM]
    return p + PLAN_HEADER + PLAN_COLUMNS * room + s[column(s, p, ORDER_OF_BLOCKS) + k] * BLOCK


@lean
def numbers(s: Ints, p: int) -> int:
    """How far behind the start of a segment its free nodes are."""
    return s[p + BLOCK_ROOM] * BLOCK


@lean
def last_until(s: Ints, begin: int, count: int, time: int) -> int:
    """Of ascending times, the place of the last that is not after `time`; the first, if all are."""
    low = begin
    while count > 1:
        half = count >> 1
        low = low + half if s[low + half] <= time else low
        count -= half
    return low


@lean
def block_at(s: Ints, p: int, time: int) -> int:
    """Which block the time is in."""
    first = column(s, p, FIRST)
    return last_until(s, first, s[p + BLOCKS], time) - first


@lean
def size_of(s: Ints, p: int, k: int) -> int:
    """How many segments a block has."""
    return s[column(s, p, SIZE) + s[column(s, p, ORDER_OF_BLOCKS) + k]]


@lean
def shift_of(s: Ints, p: int, k: int) -> int:
    """What counts on top of the free nodes of all segments of a block."""
    return s[column(s, p, SHIFT) + s[column(s, p, ORDER_OF_BLOCKS) + k]]


@lean
def level(s: Ints, p: int, time: int) -> int:
    """How many nodes are free at that time."""
    k = block_at(s, p, time)
    at = last_until(s, begins(s, p, k), size_of(s, p, k), time)
    return s[at + numbers(s, p)] + shift_of(s, p, k)


@lean
def measure(s: Ints, p: int, k: int) -> None:
    """Find out between which numbers the free nodes of a block are."""
    free = begins(s, p, k) + numbers(s, p)
    low = s[free]
    high = low
    for i in range(free + 1, free + size_of(s, p, k)):
        low = min(low, s[i])
        high = max(high, s[i])
    shift = shift_of(s, p, k)
    s[column(s, p, LOW) + k] = low + shift
    s[column(s, p, HIGH) + k] = high + shift


@lean
def drop_block(s: Ints, p: int, k: int) -> None:
    """Take a block out of the directory; it is free for other segments then."""
    s[p + BLOCKS] -= 1
    last = s[p + BLOCKS]
    order = column(s, p, ORDER_OF_BLOCKS)
    spare = s[order + k]
    for name in (ORDER_OF_BLOCKS, FIRST, LOW, HIGH):
        begin = column(s, p, name)
        for i in range(begin + k, begin + last):
            s[i] = s[i + 1]
    s[order + last] = spare


@lean
def trim(s: Ints, p: int, now: int) -> None:
    """Drop what lies before `now`; the first segment then begins at `now`."""
    first = column(s, p, FIRST)
    while s[p + BLOCKS] > 1 and s[first + 1] <= now:
        drop_block(s, p, 0)
    at = begins(s, p, 0)
    size = size_of(s, p, 0)
    gone = 0
    while gone + 1 < size and s[at + gone + 1] <= now:
        gone += 1
    if gone > 0:
        free = at + numbers(s, p)
        for i in range(size - gone):
            s[at + i] = s[at + i + gone]
            s[free + i] = s[free + i + gone]
        s[column(s, p, SIZE) + s[column(s, p, ORDER_OF_BLOCKS)]] = size - gone
        if s[p + BLOCKS] > 1:
            measure(s, p, 0)
    s[at] = now
    s[first] = now


@lean
def hole(s: Ints, p: int, nodes: int, length: int, since: int, before: int, planned: int) -> int:
    """When first, from the segment on that `since` is in and before `before`, `nodes` are free for
    `length`, or up to `planned` if that comes first; `before` if never.

    For a job with a reservation at `planned` its own place is free, and it ends after any sooner
    placing would. So nothing has to be taken out of the plan to find that nothing changes.
    """
    begin = -1
    end = 0
    k = 0
    at = begins(s, p, 0)
    if since > s[at]:
        k = block_at(s, p, since)
        at = last_until(s, begins(s, p, k), size_of(s, p, k), since)
    while k < s[p + BLOCKS]:
        from_s = s[column(s, p, FIRST) + k]
        if begin >= 0:
            if from_s >= end:
                return begin
            skips = s[column(s, p, LOW) + k] >= nodes
        else:
            if from_s >= before:
                return before
            skips = s[column(s, p, HIGH) + k] < nodes
        if not skips:
            need = nodes - shift_of(s, p, k)
            last = begins(s, p, k) + size_of(s, p, k)
            further = numbers(s, p)
            while at < last:
                if s[at + further] < need:
                    if begin >= 0 and s[at] >= end:
                        return begin
                    begin = -1
                elif begin < 0:
                    begin = s[at]
                    if begin >= before:
                        return before
                    end = min(begin + length, planned)
                at += 1
        k += 1
        if k < s[p + BLOCKS]:
            at = begins(s, p, k)
    return begin


@lean
def first_fit(s: Ints, p: int, nodes: int, length: int) -> int:
    """When first `nodes` are free for `length`. There is always such a time: the last segment."""
    return hole(s, p, nodes, length, s[column(s, p, FIRST)], FOREVER, FOREVER)


@lean
def free_since(s: Ints, p: int, nodes: int, time: int) -> int:
    """Since when `nodes` are free without a break up to `time`; `time` itself if they are not."""
    k = block_at(s, p, time - 1)
    at = last_until(s, begins(s, p, k), size_of(s, p, k), time - 1)
    since = time
    while k >= 0:
        if s[column(s, p, LOW) + k] >= nodes:
            since = s[column(s, p, FIRST) + k]
        else:
            need = nodes - shift_of(s, p, k)
            first = begins(s, p, k)
            further = numbers(s, p)
            while at >= first and s[at + further] >= need:
                since = s[at]
                at -= 1
            if at >= first:
                break
        k -= 1
        if k >= 0:
            at = begins(s, p, k) + size_of(s, p, k) - 1
    return since


@lean
def fits_now(s: Ints, p: int, nodes: int, length: int) -> bool:
    """Whether `nodes` are free for `length` from the start of the plan."""
    end = s[column(s, p, FIRST)] + length
    for k in range(s[p + BLOCKS]):
        if s[column(s, p, FIRST) + k] >= end:
            break
        if s[column(s, p, LOW) + k] < nodes:
            need = nodes - shift_of(s, p, k)
            at = begins(s, p, k)
            further = numbers(s, p)
            for i in range(at, at + size_of(s, p, k)):
                if s[i] < end and s[i + further] < need:
                    return False
    return True


@kernel
def pack(s: Ints, p: int) -> None:
    """Put all segments into as few blocks as leave room in each."""
    count = 0
    for k in range(s[p + BLOCKS]):
        count += size_of(s, p, k)
    kept = np.empty((2, count), dtype=np.int64)
    n = 0
    further = numbers(s, p)
    for k in range(s[p + BLOCKS]):
        at = begins(s, p, k)
        for i in range(at, at + size_of(s, p, k)):
            kept[0, n] = s[i]
            kept[1, n] = s[i + further] + shift_of(s, p, k)
            n += 1
    for k in range(s[p + BLOCK_ROOM]):
        s[column(s, p, ORDER_OF_BLOCKS) + k] = k
    s[p + BLOCKS] = (count + _FILLED - 1) // _FILLED
    for k in range(s[p + BLOCKS]):
        size = min(_FILLED, count - k * _FILLED)
        at = begins(s, p, k)
        for i in range(size):
            s[at + i] = kept[0, k * _FILLED + i]
            s[at + i + further] = kept[1, k * _FILLED + i]
        s[column(s, p, SIZE) + k] = size
        s[column(s, p, SHIFT) + k] = 0
        s[column(s, p, FIRST) + k] = s[at]
        measure(s, p, k)


@lean
def split(s: Ints, p: int, k: int) -> None:
    """Make room in a full block: half of it goes to one behind it."""
    if s[p + BLOCKS] == s[p + BLOCK_ROOM]:
        pack(s, p)
        return
    order = column(s, p, ORDER_OF_BLOCKS)
    count = s[p + BLOCKS]
    spare = s[order + count]
    for name in (ORDER_OF_BLOCKS, FIRST, LOW, HIGH):
        begin = column(s, p, name)
        for i in range(begin + count, begin + k, -1):
            s[i] = s[i - 1]
    s[p + BLOCKS] += 1
    s[order + k + 1] = spare
    half = BLOCK // 2
    source = begins(s, p, k) + half
    target = begins(s, p, k + 1)
    further = numbers(s, p)
    for i in range(half):
        s[target + i] = s[source + i]
        s[target + i + further] = s[source + i + further]
    s[column(s, p, SHIFT) + spare] = shift_of(s, p, k)
    s[column(s, p, SIZE) + s[order + k]] = half
    s[column(s, p, SIZE) + spare] = half
    s[column(s, p, FIRST) + k + 1] = s[target]
    measure(s, p, k)
    measure(s, p, k + 1)


@lean
def cut(s: Ints, p: int, time: int) -> None:
    """Make `time`, which lies within the plan, the start of a segment."""
    k = block_at(s, p, time)
    if size_of(s, p, k) == BLOCK:
        split(s, p, k)
        k = block_at(s, p, time)
    first = begins(s, p, k)
    size = size_of(s, p, k)
    at = last_until(s, first, size, time)
    if s[at] == time:
        return
    further = numbers(s, p)
    for i in range(first + size, at + 1, -1):
        s[i] = s[i - 1]
        s[i + further] = s[i + further - 1]
    s[at + 1] = time
    s[at + 1 + further] = s[at + further]
    s[column(s, p, SIZE) + s[column(s, p, ORDER_OF_BLOCKS) + k]] = size + 1


@lean
def add(s: Ints, p: int, begin: int, end: int, nodes: int) -> None:
    """Add `nodes` (negative: take them) from `begin` to `end`, both within or after the plan.

    Segments that no longer differ at the two ends are joined, so the plan never holds more than its
    jobs need.
    """
    if begin >= end or add_within(s, p, block_at(s, p, begin), begin, end, nodes):
        return
    cut(s, p, begin)
    cut(s, p, end)
    change(s, p, begin, end, nodes)
    join(s, p, end)
    join(s, p, begin)


@lean
def add_within(s: Ints, p: int, k: int, begin: int, end: int, nodes: int) -> bool:
    """Do it at once if both ends are within this block, which has room. False: nothing was done.

    What lies between the ends is the middle, what lies behind them the tail; both move by what is
    cut in or joined before them.
    """
    room = s[p + BLOCK_ROOM]
    order = p + PLAN_HEADER
    slot = s[order + k]
    size = s[order + SIZE * room + slot]
    first = order + PLAN_COLUMNS * room + slot * BLOCK
    further = BLOCK * room
    stop = first + size
    if size > BLOCK - 2 or (k + 1 < s[p + BLOCKS] and s[order + FIRST * room + k + 1] <= end):
        return False
    i = first
    if size > 1 and s[first + 1] <= begin:
        i = last_until(s, first, size, begin)
    if i == first and k > 0:
        return False  # what is before it is in another block
    j = i
    while j + 1 < stop and s[j + 1] <= end:
        j += 1
    at_begin = s[i + further]
    at_end = s[j + further]
    middle = i
    by = 0
    if s[i] != begin:
        middle = i + 1
        by = 1
    elif i > first and s[i - 1 + further] == at_begin + nodes:
        middle = i + 1
        by = -1
    tail = j
    last = j - 1
    tail_by = by
    if s[j] != end:
        tail = j + 1
        last = j
        tail_by = by + 1
    elif s[j - 1 + further] + nodes == at_end:
        tail = j + 1
        tail_by = by - 1
    if tail_by > 0:
        shift_by(s, tail, stop - 1, further, tail_by)
    if by != 0:
        shift_by(s, middle, last, further, by)
    if tail_by < 0:
        shift_by(s, tail, stop - 1, further, tail_by)
    if by > 0:
        s[i + 1] = begin
        s[i + 1 + further] = at_begin
    if last == j:
        s[j + 1 + by] = end
        s[j + 1 + by + further] = at_end
    low = FOREVER
    high = -FOREVER
    for x in range(middle + min(by, 0), last + by + 1):
        value = s[x + further] + nodes
        s[x + further] = value
        low = min(low, value)
        high = max(high, value)
    s[order + SIZE * room + slot] = size + tail_by
    if low < FOREVER:
        shift = s[order + SHIFT * room + slot]
        least = order + LOW * room + k
        most = order + HIGH * room + k
        was_least = low - nodes + shift <= s[least]
        was_most = high - nodes + shift >= s[most]
        s[least] = min(s[least], low + shift)
        s[most] = max(s[most], high + shift)
        # what was the least or the most of a block may have left it
        if s[p + BLOCKS] > 1 and ((nodes > 0 and was_least) or (nodes < 0 and was_most)):
            measure(s, p, k)
    return True


@lean
def shift_by(s: Ints, low: int, high: int, further: int, by: int) -> None:
    """Move the segments from place `low` to `high`."""
    if by > 0:
        for i in range(high, low - 1, -1):
            s[i + by] = s[i]
            s[i + by + further] = s[i + further]
    else:
        for i in range(low, high + 1):
            s[i + by] = s[i]
            s[i + by + further] = s[i + further]


@lean
def change(s: Ints, p: int, begin: int, end: int, nodes: int) -> None:
    """Add `nodes` to the segments from the one that begins at `begin` to the one before `end`."""
    k = block_at(s, p, begin)
    further = numbers(s, p)
    until = begin
    while until < end:
        until = s[column(s, p, FIRST) + k + 1] if k + 1 < s[p + BLOCKS] else end + 1
        first = begins(s, p, k)
        size = size_of(s, p, k)
        if s[first] >= begin and until <= end:
            s[column(s, p, SHIFT) + s[column(s, p, ORDER_OF_BLOCKS) + k]] += nodes
            s[column(s, p, LOW) + k] += nodes
            s[column(s, p, HIGH) + k] += nodes
        else:
            low = first if s[first] >= begin else last_until(s, first, size, begin)
            high = first + size if until <= end else last_until(s, first, size, end)
            for i in range(low, high):
                s[i + further] += nodes
            measure(s, p, k)
        k += 1


@lean
def join(s: Ints, p: int, time: int) -> None:
    """Merge the segment that begins at `time` with the one before if both have the same nodes
    free."""
    k = block_at(s, p, time)
    first = begins(s, p, k)
    size = size_of(s, p, k)
    at = last_until(s, first, size, time)
    further = numbers(s, p)
    if s[at] != time or (at == first and k == 0):
        return
    if at > first:
        before = s[at + further - 1]
    else:
        last = begins(s, p, k - 1) + size_of(s, p, k - 1) - 1
        before = s[last + further] + shift_of(s, p, k - 1) - shift_of(s, p, k)
    if s[at + further] != before:
        return
    if size == 1:
        drop_block(s, p, k)
        return
    for i in range(at, first + size - 1):
        s[i] = s[i + 1]
        s[i + further] = s[i + further + 1]
    s[column(s, p, SIZE) + s[column(s, p, ORDER_OF_BLOCKS) + k]] = size - 1
    s[column(s, p, FIRST) + k] = s[first]


@lean
def move(s: Ints, p: int, begin: int, old: int, length: int, nodes: int) -> None:
    """Move a reservation from `old` to the earlier `begin`, which must be free for it.

    If the two placings overlap nothing changes, so the free count never dips below zero.
    """
    add(s, p, begin, min(begin + length, old), -nodes)
    add(s, p, max(begin + length, old), old + length, nodes)


@lean
def copy_plan(s: Ints, source: int, target: int) -> None:
    """Make a plan, which has no less room, the same as another."""
    s[target + BLOCKS] = s[source + BLOCKS]
    for k in range(s[target + BLOCK_ROOM]):
        s[column(s, target, ORDER_OF_BLOCKS) + k] = k
    to = numbers(s, target)
    of = numbers(s, source)
    for k in range(s[source + BLOCKS]):
        size = size_of(s, source, k)
        a = begins(s, source, k)
        b = begins(s, target, k)
        for i in range(size):
            s[b + i] = s[a + i]
            s[b + i + to] = s[a + i + of]
        s[column(s, target, SIZE) + k] = size
        s[column(s, target, SHIFT) + k] = shift_of(s, source, k)
        for name in (FIRST, LOW, HIGH):
            s[column(s, target, name) + k] = s[column(s, source, name) + k]
