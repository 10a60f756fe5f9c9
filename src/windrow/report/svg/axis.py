"""Axes: from values to places between 0 and 1, with ticks at round numbers in units that fit.

Rule: every tick lies on its axis, and at most about eight of them, so that labels never collide.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

_MOST_TICKS = 8

# Unit, its seconds, and the steps that people count it in.
_TIME_UNITS = (
    ("seconds", 1, (1, 2, 5, 10, 15, 30)),
    ("minutes", 60, (1, 2, 5, 10, 15, 30)),
    ("hours", 3600, (1, 2, 3, 6, 12, 24)),
    ("days", 86400, (1, 2, 5, 7, 10, 20, 30, 50, 100, 200, 365, 500, 1000, 2000, 5000)),
)

_LOG_DURATIONS = (
    (1, "1 s"),
    (10, "10 s"),
    (60, "1 min"),
    (600, "10 min"),
    (3600, "1 h"),
    (6 * 3600, "6 h"),
    (86400, "1 d"),
    (7 * 86400, "7 d"),
    (30 * 86400, "30 d"),
    (100 * 86400, "100 d"),
    (365 * 86400, "1 y"),
    (3650 * 86400, "10 y"),
)


@dataclass(frozen=True, slots=True)
class Axis:
    """Values from `low` to `high`, linear or logarithmic, with labelled ticks."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    title: str = ""
    log: bool = False

    def place(self, values: ArrayLike) -> Floats:
        """Where values lie: 0 at `low`, 1 at `high`; what lies outside is put on the nearer end."""
        given = np.clip(np.asarray(values, dtype=np.float64), self.low, self.high)
        if self.log:
            return np.asarray(np.log(given / self.low) / math.log(self.high / self.low))
        return np.asarray((given - self.low) / (self.high - self.low))


def count_axis(highest: float, title: str = "", *, most_ticks: int = _MOST_TICKS) -> Axis:
    """From zero to a round number at or above `highest`."""
    step = round_step(max(highest, 1), most_ticks)
    count = max(1, math.ceil(highest / step - 1e-9))
    ticks = tuple((i * step, f"{i * step:,.10g}") for i in range(count + 1))
    return Axis(0, count * step, ticks, title)


def share_axis(title: str = "") -> Axis:
    """From 0 to 100 %; values are fractions of 1."""
    return Axis(0, 1, tuple((i / 4, f"{25 * i} %") for i in range(5)), title)


def time_axis(low_s: float, high_s: float, origin: str) -> Axis:
    """Moments in seconds, labelled in the unit that fits the span; `origin` says what they count from."""
    high_s = max(high_s, low_s + 1)
    fitting = [unit for unit in _TIME_UNITS if high_s - low_s >= 3 * unit[1]] or [_TIME_UNITS[0]]
    unit, seconds, steps = fitting[-1]
    span = (high_s - low_s) / seconds
    step = seconds * next((step for step in steps if span / step <= _MOST_TICKS), round_step(span, _MOST_TICKS))
    first = math.ceil(low_s / step)
    ticks = tuple((i * step, f"{i * step / seconds:,.10g}") for i in range(first, math.floor(high_s / step) + 1))
    return Axis(low_s, high_s, ticks, f"{unit} {origin}")


def log_duration_axis(lowest_s: float, highest_s: float, title: str = "") -> Axis:
    """Durations of at least a second, from the tick at or below `lowest_s` to a little above `highest_s`."""
    first = max([s for s, _ in _LOG_DURATIONS if s <= lowest_s], default=1)
    last = max(highest_s * 1.15, first * 10)
    ticks = tuple((s, label) for s, label in _LOG_DURATIONS if first <= s <= last)
    return Axis(first, last, ticks, title, log=True)


def round_step(span: float, most: int) -> float:
    """The smallest of 1, 2, 5, 10, 20, 50, ... that divides `span` into at most `most` parts; never below 1."""
    power = 10.0 ** math.floor(math.log10(max(span / most, 1)))
    return next(power * factor for factor in (1, 2, 5, 10) if span <= power * factor * most * (1 + 1e-9))
