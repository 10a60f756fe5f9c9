"""When waiting jobs start: the planning of the queue on this machine. Pure; times are seconds of
any one clock.

Rule 1: `fcfs` starts jobs in the order of the queue, and nothing passes the first that does not
fit.
Rule 2: `easy` then starts every later job that does not delay this head: it ends by the time at
which the head can start (D. Lifka, 1995), or leaves the nodes that the head will need. That time is
found again in every pass.
Rule 3: an estimate plays the same passes forward, all jobs running as long as requested and no
other job arriving. These are the rules of the simulated cluster (docs, "The rules of the simulated
cluster"), and tests compare the two.
"""

import heapq
from collections.abc import Sequence

from windrow.queues.local.store import Held, Wanted


def jobs_to_start(
    policy: str, nodes: int, running: Sequence[Held], waiting: Sequence[Wanted], now_s: float
) -> list[Wanted]:
    """The waiting jobs, given in the order of the queue, that start now."""
    free = nodes - sum(held.nodes for held in running)
    starting = []
    for wanted in waiting:
        if wanted.nodes > free:
            break
        free -= wanted.nodes
        starting.append(wanted)
    left = waiting[len(starting) :]
    if policy == "easy" and len(left) > 1 and free > 0:
        holding = [*running, *(Held(w.nodes, now_s + w.requested_s) for w in starting)]
        starting += _backfill(left, holding, free, now_s)
    return starting


def _backfill(
    left: Sequence[Wanted], holding: Sequence[Held], free: int, now_s: float
) -> list[Wanted]:
    """The jobs behind the blocked head that may start without delaying it."""
    head_s, spare = _head_start(left[0], holding, free, now_s)
    starting = []
    for wanted in left[1:]:
        if wanted.nodes > free:
            continue
        in_time = now_s + wanted.requested_s <= head_s
        if not in_time and wanted.nodes > spare:
            continue
        free -= wanted.nodes
        spare -= 0 if in_time else wanted.nodes
        starting.append(wanted)
        if free == 0:
            break
    return starting


def _head_start(
    head: Wanted, holding: Sequence[Held], free: int, now_s: float
) -> tuple[float, int]:
    """When the head can start at the latest, and how many nodes it will leave then.

    A job that overstays its time is expected to be gone at any moment: it is being killed.
    """
    ends = sorted((max(held.until_s, now_s), held.nodes) for held in holding)
    for place, (end_s, nodes) in enumerate(ends):
        free += nodes
        if free >= head.nodes and (place + 1 == len(ends) or ends[place + 1][0] > end_s):
            return end_s, free - head.nodes
    raise AssertionError("a job wider than the machine was accepted")


def expected_starts(
    policy: str, nodes: int, running: Sequence[Held], waiting: Sequence[Wanted], now_s: float
) -> dict[int, float]:
    """When each waiting job starts if all jobs run as long as requested and no other job
    comes."""
    starts: dict[int, float] = {}
    heap = [(max(held.until_s, now_s), held.nodes) for held in running]
    heapq.heapify(heap)
    left = list(waiting)
    while left:
        for wanted in jobs_to_start(
            policy, nodes, [Held(n, end_s) for end_s, n in heap], left, now_s
        ):
            starts[wanted.job] = now_s
            heapq.heappush(heap, (now_s + wanted.requested_s, wanted.nodes))
        left = [wanted for wanted in left if wanted.job not in starts]
        if left:
            now_s = heap[0][0]
            while heap and heap[0][0] <= now_s:
                heapq.heappop(heap)
    return starts
