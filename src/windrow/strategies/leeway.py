"""Leeway: time asked beyond the run, so that a job which starts before its predecessors end does no
harm.

Asking for more time changes the wait, so the leeway that a job needs depends on itself. Two
searches: the one of Zhang, Koelbel and Cooper (their figure 5, lines 11-18) as repaired in the
GLUME thesis, section 5.1, and the binary search of the thesis, section 5.3. Both stop when the job
would start at most TOLERANCE_S before its predecessors end, then ask for the rest as well.
"""

import numpy as np

from windrow.model.graph import Ints
from windrow.strategies.base import View

TOLERANCE_S = 600
ROUNDS = 20


def halving_leeway(
    view: View,
    nodes: int,
    run_s: int,
    busy_s: int,
    *,
    tolerance_s: int = TOLERANCE_S,
    rounds: int = ROUNDS,
) -> tuple[int, int]:
    """Leeway and wait: half of what is missing is added until little is missing. As printed it need
    not end."""
    leeway = 0
    wait = view.wait_s(nodes, run_s)
    for _ in range(rounds):
        if busy_s - wait <= tolerance_s:
            break
        leeway += (busy_s - wait) // 2
        wait = view.wait_s(nodes, run_s + leeway)
    if busy_s - wait > leeway:  # as much must be asked for, or the job ends before its tasks do
        leeway = busy_s - wait
        wait = view.wait_s(nodes, run_s + leeway)
    return leeway, wait


def binary_leeway(view: View, nodes: int, run_s: int, busy_s: int) -> tuple[int, int]:
    """Leeway and wait: the least of [0, what is missing without leeway] that brings the start close
    enough."""
    leeway, wait = binary_leeways(view, np.array([nodes]), np.array([run_s]), np.array([busy_s]))
    return int(leeway[0]), int(wait[0])


def binary_leeways(view: View, nodes: Ints, run_s: Ints, busy_s: Ints) -> tuple[Ints, Ints]:
    """The same for many jobs, each for itself; every round asks for all waits at once."""
    wait = view.waits_s(nodes, run_s)
    low = np.zeros_like(wait)
    high = np.maximum(0, busy_s - wait)
    leeway = low.copy()
    while len(i := np.flatnonzero(high - low > TOLERANCE_S)):
        leeway[i] = (low[i] + high[i]) // 2
        wait[i] = view.waits_s(nodes[i], run_s[i] + leeway[i])
        missing = busy_s[i] - wait[i]
        low[i] = np.where(missing >= 0, leeway[i], low[i])
        high[i] = np.where(
            missing < TOLERANCE_S, leeway[i], high[i]
        )  # close enough: both, so that it ends here
    short = np.flatnonzero(busy_s - wait > leeway)
    if len(short):
        leeway[short] = busy_s[short] - wait[short]
        wait[short] = view.waits_s(nodes[short], run_s[short] + leeway[short])
    return leeway, wait
