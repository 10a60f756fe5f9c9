"""How times are taken: medians of whole calls on the wall clock, and nothing faster than it is
called by users."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """Wall time of one call: the median and the best of this many."""

    median_s: float
    best_s: float
    repetitions: int


def once_s(call: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Wall time of one call, or time by another clock."""
    begin = clock()
    call()
    return clock() - begin


def measure(
    call: Callable[[], object],
    *,
    budget_s: float,
    least: int = 1,
    most: int = 25,
    clock: Callable[[], float] = time.perf_counter,
) -> Timing:
    """Repeat the call until the budget is spent, but within these numbers of times.

    The caller has warmed it up: a first call may compile kernels or load them from their cache.
    """
    times_s: list[float] = []
    while len(times_s) < least or (len(times_s) < most and sum(times_s) < budget_s):
        times_s.append(once_s(call, clock))
    return Timing(statistics.median(times_s), min(times_s), len(times_s))


def measure_short(call: Callable[[], object], *, budget_s: float) -> Timing:
    """The same for calls of microseconds: a repetition is a loop that the clock can measure,
    divided by its length."""
    loop = max(1, round(0.002 / max(once_s(call), 1e-7)))

    def calls() -> None:
        for _ in range(loop):
            call()

    many = measure(calls, budget_s=budget_s, least=5)
    return Timing(many.median_s / loop, many.best_s / loop, many.repetitions)
