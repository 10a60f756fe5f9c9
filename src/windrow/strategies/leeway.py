"""Leeway: time asked beyond the run, so that a job which starts before its predecessors end does no harm.

Asking for more time changes the wait, so the leeway that a job needs depends on itself. Two searches: the one of Zhang,
Koelbel and Cooper (their figure 5, lines 11-18) as repaired in the GLUME thesis, section 5.1, and the binary search of
the thesis, section 5.3. Both stop when the job would start at most TOLERANCE_S before its predecessors end, then ask
for the rest as well.
"""

from __future__ import annotations

from windrow.strategies.base import View

TOLERANCE_S = 600
ROUNDS = 20


def halving_leeway(view: View, nodes: int, run_s: int, busy_s: int) -> tuple[int, int]:
    """Leeway and wait: half of what is missing is added until little is missing. As printed it need not end."""
    leeway = 0
    wait = view.wait_s(nodes, run_s)
    for _ in range(ROUNDS):
        if busy_s - wait <= TOLERANCE_S:
            break
        leeway += (busy_s - wait) // 2
        wait = view.wait_s(nodes, run_s + leeway)
    return _covered(view, nodes, run_s, busy_s, leeway, wait)


def binary_leeway(view: View, nodes: int, run_s: int, busy_s: int) -> tuple[int, int]:
    """Leeway and wait: the least of [0, what is missing without leeway] that brings the start close enough."""
    wait = view.wait_s(nodes, run_s)
    low, high = 0, max(0, busy_s - wait)
    leeway = 0
    while high - low > TOLERANCE_S:
        leeway = (low + high) // 2
        wait = view.wait_s(nodes, run_s + leeway)
        if busy_s - wait >= TOLERANCE_S:
            low = leeway
        elif busy_s - wait < 0:
            high = leeway
        else:
            break
    return _covered(view, nodes, run_s, busy_s, leeway, wait)


def _covered(view: View, nodes: int, run_s: int, busy_s: int, leeway: int, wait: int) -> tuple[int, int]:
    """At least what is still missing must be asked for, or the job ends before its tasks do."""
    if busy_s - wait > leeway:
        leeway = busy_s - wait
        wait = view.wait_s(nodes, run_s + leeway)
    return leeway, wait
