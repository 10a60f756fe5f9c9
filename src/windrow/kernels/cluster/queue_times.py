"""Which entries of a long queue a bounded pass need not look at.

Where a pass looks for earlier starts only for the first entries and for clients' jobs (LOOKS), all
that the others may do is to start when planned. The queue is in blocks of INDEX_BLOCK entries; of
each it is known before which time none of its jobs is planned to start. 0 says that this is not
known, or that a client's job is among them: the block is looked at.
"""

from __future__ import annotations

from windrow.kernels.cluster import state as c
from windrow.kernels.cluster.state import Ints
from windrow.kernels.jit import lean


@lean
def row(s: Ints, i: int) -> int:
    """Where that is noted for the block of entry `i`."""
    return s[c.LONG_AT] + 3 * c.KINDS + c.SLIDE_HEADER + 2 * c.SLIDE_SLOTS + i // c.INDEX_BLOCK


@lean
def is_kept(s: Ints) -> bool:
    """Whether passes are bounded, and the queue is long."""
    return s[c.POLICY] == c.CONSERVATIVE and s[c.LOOKS] > 0 and s[c.IS_KNOWN] == 1


@lean
def forget(s: Ints, i: int) -> None:
    """What is known of the entries from `i` on is not true any more."""
    if s[c.LONG_AT] > 0 and s[c.POLICY] == c.CONSERVATIVE:
        for k in range(row(s, i), row(s, s[c.QUEUE_ROOM] - 1) + 1):
            s[k] = 0


@lean
def joined(s: Ints, i: int) -> None:
    """A job comes to entry `i`, the queue's last."""
    if s[c.LONG_AT] > 0 and s[c.POLICY] == c.CONSERVATIVE:
        s[row(s, i)] = 0


@lean
def can_skip(s: Ints, i: int) -> bool:
    """Whether entry `i` begins a block in which no entry has to be looked at now."""
    return i % c.INDEX_BLOCK == 0 and s[row(s, i)] > s[c.NOW]


@lean
def measure(s: Ints, i: int) -> None:
    """Find out what is to be known of the block of entry `i`."""
    first = i // c.INDEX_BLOCK * c.INDEX_BLOCK
    soonest = c.FOREVER
    for k in range(max(first, s[c.HEAD]), min(first + c.INDEX_BLOCK, s[c.TAIL])):
        q = s[c.QUEUE_AT] + k * c.QUEUED_WIDTH
        if s[q + c.JOB] != c.NOBODY:
            soonest = min(soonest, s[q + c.PLANNED])
            if s[q + c.JOB] < 0:
                soonest = 0
    s[row(s, i)] = max(0, soonest)
