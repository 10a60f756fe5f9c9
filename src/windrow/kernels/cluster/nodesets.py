"""The plan of a cluster whose nodes have identities: free nodes as a set that changes with time.

Like `profile`, but each segment has a bit set of free nodes, and a reservation holds the same nodes
from begin to end. Two ways to choose among the free ones: the leftmost, or the leftmost block of
neighbours (contiguous). Both are the rules of Batsched's selectors, so that its schedules are an
oracle.
"""

from __future__ import annotations

import numpy as np

from windrow.kernels.cluster.state import Ints
from windrow.kernels.jit import kernel


@kernel
def bits(word: int) -> int:
    """How many bits are set."""
    w = np.uint64(word)
    w = w - ((w >> np.uint64(1)) & np.uint64(0x5555555555555555))
    w = (w & np.uint64(0x3333333333333333)) + ((w >> np.uint64(2)) & np.uint64(0x3333333333333333))
    w = (w + (w >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((w * np.uint64(0x0101010101010101)) >> np.uint64(56))


@kernel
def size(words: Ints) -> int:
    """How many nodes a set has."""
    total = 0
    for w in range(words.shape[0]):
        total += bits(words[w])
    return total


@kernel
def copy(source: Ints, target: Ints) -> None:
    """Make one set the same as another. Element by element: a slice assignment compiles several
    times slower."""
    for w in range(target.shape[0]):
        target[w] = source[w]


@kernel
def clear(words: Ints) -> None:
    """Make a set empty."""
    for w in range(words.shape[0]):
        words[w] = 0


@kernel
def choose(available: Ints, nodes: int, contiguous: bool, chosen: Ints) -> bool:
    """Fill `chosen` with `nodes` of `available`, or return False if the rule cannot be kept."""
    clear(chosen)
    taken = 0
    for node in range(available.shape[0] * 64):
        w = node // 64
        place = node % 64
        if (available[w] >> place) & 1:
            chosen[w] |= 1 << place
            taken += 1
            if taken == nodes:
                return True
        elif contiguous and taken:
            clear(chosen)
            taken = 0
    return False


@kernel
def trim(at: Ints, sets: Ints, n: int, now: int) -> int:
    """Drop what lies before `now`. Returns the number of segments."""
    gone = 0
    while gone + 1 < n and at[gone + 1] <= now:
        gone += 1
    if gone > 0:
        for i in range(n - gone):
            at[i] = at[i + gone]
            copy(sets[i + gone], sets[i])
    at[0] = now
    return n - gone


@kernel
def first_fit(
    at: Ints, sets: Ints, n: int, nodes: int, length: int, contiguous: bool, chosen: Ints, last: int
) -> int:
    """The first segment (up to `last`) from whose begin the same `nodes` nodes are free for
    `length`, or -1.

    `chosen` holds them. `last` = 0 asks only whether the job fits now.
    """
    common = np.empty(sets.shape[1], dtype=np.int64)
    for i in range(min(n, last + 1)):
        end = at[i] + length
        copy(sets[i], common)
        j = i + 1
        while j < n and at[j] < end and size(common) >= nodes:
            for w in range(common.shape[0]):
                common[w] &= sets[j, w]
            j += 1
        if size(common) >= nodes and choose(common, nodes, contiguous, chosen):
            return i
    return -1


@kernel
def cut(at: Ints, sets: Ints, n: int, time: int) -> int:
    """Make `time` the start of a segment. Returns the number of segments."""
    i = n
    while at[i - 1] > time:
        i -= 1
    if at[i - 1] == time:
        return n
    for k in range(n, i, -1):
        at[k] = at[k - 1]
        copy(sets[k - 1], sets[k])
    at[i] = time
    copy(sets[i - 1], sets[i])
    return n + 1


@kernel
def flip(at: Ints, sets: Ints, n: int, begin: int, end: int, chosen: Ints) -> int:
    """Take free nodes or give taken ones back, from `begin` to `end`; joins equal segments. Returns
    their number."""
    n = cut(at, sets, n, begin)
    n = cut(at, sets, n, end)
    i = n - 1
    while i >= 0 and at[i] >= begin:
        if at[i] < end:
            for w in range(chosen.shape[0]):
                sets[i, w] ^= chosen[w]
        i -= 1
    n = join(at, sets, n, end)
    return join(at, sets, n, begin)


@kernel
def join(at: Ints, sets: Ints, n: int, time: int) -> int:
    """Merge the segment that begins at `time` with the one before if both have the same nodes
    free."""
    i = n - 1
    while at[i] > time:
        i -= 1
    if i == 0 or at[i] != time:
        return n
    for w in range(sets.shape[1]):
        if sets[i, w] != sets[i - 1, w]:
            return n
    for k in range(i, n - 1):
        at[k] = at[k + 1]
        copy(sets[k + 1], sets[k])
    return n - 1
