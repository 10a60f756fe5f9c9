"""When the jobs of a generated log arrive: gaps between jobs, stretched by the time of day and of
the week.

The method is that of Lublin and Feitelson's arrival process. Time is paid for in points. Each half
hour of the cycle has a weight, one on average, and to pass through it costs its weight. A gap of
1,800 s between two jobs buys one point. So busy half hours hold many arrivals, quiet ones few, and
at weight one everywhere the gaps come out as drawn.

Rule 1: time 0 is midnight (of a Monday, if there is a week) and the first job arrives at it.
Rule 2: scaling changes gaps before the cycle is applied, so the shape of a day stays at any load.
"""

import math
from dataclasses import dataclass

import numpy as np

from windrow.model.graph import Ints
from windrow.model.workflow import Floats

SLOT_S = 1800
SLOTS_PER_DAY = 48
DAY_S = SLOT_S * SLOTS_PER_DAY
_FIRST_SLOT = (
    11  # the published fit numbers half hours 11..58: its day begins at five in the morning
)


@dataclass(frozen=True, slots=True, eq=False)
class Cycle:
    """A repeating pattern of weights, one per half hour, with mean one."""

    weights: Floats

    def _knots(self) -> Floats:
        return np.concatenate(([0.0], np.cumsum(self.weights)))

    def seconds(self, points: Floats) -> Floats:
        """The time at which these points have been paid since time 0."""
        knots = self._knots()
        rounds, rest = np.divmod(points, knots[-1])
        slots = rounds * len(self.weights) + np.interp(
            rest, knots, np.arange(len(knots), dtype=np.float64)
        )
        return np.asarray(slots * SLOT_S, dtype=np.float64)

    def points(self, seconds: float) -> float:
        """The points to be paid from time 0 to `seconds`: the inverse of `seconds()`."""
        knots = self._knots()
        rounds, rest = divmod(seconds / SLOT_S, len(self.weights))
        return rounds * float(knots[-1]) + float(np.interp(rest, np.arange(len(knots)), knots))


def daily_cycle(shape: float, scale: float) -> Cycle:
    """The day of Lublin and Feitelson: the share of each half hour follows a gamma distribution,
    wrapped at 5 am."""
    edges = _FIRST_SLOT - 0.5 + np.arange(SLOTS_PER_DAY + 1, dtype=np.float64)
    share = np.diff(gamma_cdf(edges, shape, scale))
    return Cycle(np.roll(share / share.mean(), _FIRST_SLOT - 1))


def weekly_cycle(day: Cycle, weekend: float) -> Cycle:
    """Five days like `day`, then two with `weekend` times as many arrivals, Monday first."""
    days = np.repeat([1.0, weekend], [5, 2])
    weights = np.outer(days / days.mean(), day.weights).ravel()
    return Cycle(weights)


def arrive(gaps_s: Floats, cycle: Cycle, span_s: float | None = None) -> Ints:
    """Submissions in whole seconds: the first at 0, then one after each gap.

    With `span_s`, all gaps are first scaled by one factor so that the last submission falls at
    `span_s`.
    """
    points = np.concatenate(([0.0], np.cumsum(gaps_s / SLOT_S)))
    if span_s is not None and len(gaps_s):
        points *= cycle.points(span_s) / points[-1]
    return np.floor(cycle.seconds(points) + 1e-6).astype(
        np.int64
    )  # 1e-6: rounding must not cost a whole second


def gamma_cdf(x: Floats, shape: float, scale: float) -> Floats:
    """The distribution function of the gamma distribution at moderate x (up to some 50 scales), to
    1e-12.

    By the series of the lower incomplete gamma function: its terms are positive, so nothing
    cancels.
    """
    z = np.asarray(x, dtype=np.float64) / scale
    terms = np.cumprod(z[:, None] / (shape + np.arange(1, 301)), axis=1)
    with np.errstate(divide="ignore"):
        front = np.exp(shape * np.log(z) - z - math.lgamma(shape + 1))
    return np.asarray(front * (1 + terms.sum(axis=1)), dtype=np.float64)
