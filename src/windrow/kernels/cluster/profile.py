"""The plan of a cluster whose nodes are only counted: free nodes as a step function of time.

`at[i]` is when segment i begins, `free[i]` how many nodes are neither held nor reserved during it;
the last segment lasts forever and has every node free. Segments are found by walking: plans of real
queues have some dozens of them, and a walk over a contiguous array beats a tree up to a few
thousand.
"""

from __future__ import annotations

from windrow.kernels.cluster.state import Ints
from windrow.kernels.jit import kernel


@kernel
def trim(at: Ints, free: Ints, n: int, now: int) -> int:
    """Drop what lies before `now`; the first segment then begins at `now`. Returns the number of
    segments."""
    gone = 0
    while gone + 1 < n and at[gone + 1] <= now:
        gone += 1
    if gone > 0:
        for i in range(n - gone):
            at[i] = at[i + gone]
            free[i] = free[i + gone]
    at[0] = now
    return n - gone


@kernel
def first_fit(at: Ints, free: Ints, n: int, nodes: int, length: int) -> int:
    """The first segment at whose begin `nodes` are free for `length`. There always is one: the
    last."""
    i = 0
    while i < n - 1:
        if free[i] < nodes:
            i += 1
            continue
        end = at[i] + length
        j = i + 1
        while j < n and at[j] < end and free[j] >= nodes:
            j += 1
        if j == n or at[j] >= end:
            return i
        i = j + 1  # segment j is too full, so nothing can start up to it
    return i


@kernel
def earlier_fit(at: Ints, free: Ints, nodes: int, length: int, planned: int, horizon: int) -> int:
    """The first segment before `horizon` where a job with a reservation at `planned` could begin
    sooner, or -1.

    The job's own reservation counts as free, and it ends after any sooner placing would; so only
    segments before `planned` need a look, and nothing has to be taken out of the plan to find that
    nothing changes.
    """
    i = 0
    last = min(planned, horizon)
    while at[i] < last:
        if free[i] < nodes:
            i += 1
            continue
        end = min(at[i] + length, planned)
        j = i + 1
        while at[j] < end and free[j] >= nodes:
            j += 1
        if at[j] >= end:
            return i
        i = j + 1
    return -1


@kernel
def fits_now(at: Ints, free: Ints, n: int, nodes: int, length: int) -> bool:
    """Whether `nodes` are free for `length` from the start of the plan."""
    end = at[0] + length
    j = 0
    while j < n and at[j] < end:
        if free[j] < nodes:
            return False
        j += 1
    return True


@kernel
def cut(at: Ints, free: Ints, n: int, time: int) -> int:
    """Make `time`, which lies within the plan, the start of a segment; the number of segments may
    grow by one."""
    i = n
    while at[i - 1] > time:
        i -= 1
    if at[i - 1] == time:
        return n
    for k in range(n, i, -1):
        at[k] = at[k - 1]
        free[k] = free[k - 1]
    at[i] = time
    free[i] = free[i - 1]
    return n + 1


@kernel
def add(at: Ints, free: Ints, n: int, begin: int, end: int, nodes: int) -> int:
    """Add `nodes` (negative: take them) from `begin` to `end`, both within or after the plan.
    Returns the segments.

    Segments that no longer differ at the two ends are joined, so the plan never holds more than its
    jobs need.
    """
    n = cut(at, free, n, begin)
    n = cut(at, free, n, end)
    i = n - 1
    while at[i] >= end:
        i -= 1
    while i >= 0 and at[i] >= begin:
        free[i] += nodes
        i -= 1
    n = join(at, free, n, end)
    return join(at, free, n, begin)


@kernel
def join(at: Ints, free: Ints, n: int, time: int) -> int:
    """Merge the segment that begins at `time` with the one before if both have the same nodes
    free."""
    i = n - 1
    while at[i] > time:
        i -= 1
    if i == 0 or at[i] != time or free[i] != free[i - 1]:
        return n
    for k in range(i, n - 1):
        at[k] = at[k + 1]
        free[k] = free[k + 1]
    return n - 1


@kernel
def move(at: Ints, free: Ints, n: int, begin: int, old: int, length: int, nodes: int) -> int:
    """Move a reservation from `old` to the earlier `begin`, which must be free for it. Returns the
    segments.

    If the two placings overlap nothing changes, so the free count never dips below zero.
    """
    n = add(at, free, n, begin, min(begin + length, old), -nodes)
    return add(at, free, n, max(begin + length, old), old + length, nodes)
