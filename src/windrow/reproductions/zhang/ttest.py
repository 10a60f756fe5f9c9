"""Student's paired t-test, two-tailed: is the mean of paired differences different from zero?

The p-value is exact: the tail of Student's distribution is a regularised incomplete beta function, here by its
continued fraction (modified Lentz), to about ten digits.

Pairs must be independent for p to mean what it says. Runs of several workflows at one moment see the same queue, so
they are not; `windrow.reproductions.zhang.results` therefore tests means over moments as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

_TINY = 1e-300
_EXACT = 1e-15
_MOST_TERMS = 10_000  # some hundred do for a million pairs: the count grows with the root of the degrees of freedom


@dataclass(frozen=True, slots=True)
class PairedTest:
    """Its outcome. `difference` is the mean of first minus second; with fewer than two pairs t and p are None."""

    pairs: int
    difference: float
    t: float | None
    p: float | None

    def is_significant(self, level: float = 0.05) -> bool:
        """Whether p is below the level; never with fewer than two pairs."""
        return self.p is not None and self.p < level


def paired_t_test(first: ArrayLike, second: ArrayLike) -> PairedTest:
    """Compare two equally long rows of numbers, pair by pair; a pair with a NaN is left out.

    Where all differences are equal nothing varies: p is 1 if they are zero, else 0.
    """
    gaps = np.asarray(first, dtype=np.float64).ravel() - np.asarray(second, dtype=np.float64).ravel()
    gaps = gaps[~np.isnan(gaps)]
    if len(gaps) < 2:
        return PairedTest(len(gaps), float(gaps[0]) if len(gaps) else 0.0, None, None)
    mean, spread = float(gaps.mean()), float(gaps.std(ddof=1))
    if np.ptp(gaps) == 0:
        return PairedTest(len(gaps), mean, None, 0.0 if mean else 1.0)
    t = mean / (spread / math.sqrt(len(gaps)))
    return PairedTest(len(gaps), mean, t, two_tailed_p(t, len(gaps) - 1))


def two_tailed_p(t: float, freedom: float) -> float:
    """How likely Student's distribution with these degrees of freedom is to go beyond -|t| or |t|."""
    if not freedom > 0:
        raise ValueError(f"degrees of freedom must be above 0, not {freedom}")
    square = t * t
    if square == 0:
        return 1.0
    # Of the two complementary arguments the smaller is computed, for the other would lose it to rounding.
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + square), square / (freedom + square))


def incomplete_beta(a: float, b: float, x: float, rest: float | None = None) -> float:
    """The regularised incomplete beta function I_x(a, b); `rest` is 1 - x where it is known more exactly."""
    rest = 1 - x if rest is None else rest
    if x <= 0 or rest <= 0:
        return 0.0 if x <= 0 else 1.0
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * _log(rest, x))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, rest) / b


def _log(rest: float, x: float) -> float:
    return math.log1p(-x) if x < 0.5 else math.log(rest)


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, by the modified Lentz method."""
    c, d = 1.0, 1 / _off_zero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _MOST_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        before = value
        for term in (even, odd):
            d = 1 / _off_zero(1 + term * d)
            c = _off_zero(1 + term / c)
            value *= c * d
        if abs(value - before) <= _EXACT * abs(value):
            return value
    raise ArithmeticError(f"the incomplete beta function of {a}, {b} at {x} did not converge")


def _off_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
