"""Student's paired t-test, two-tailed: is the mean of paired differences different from zero?

Pairs must be independent for p to mean what it says. Runs of several workflows at one moment see
the same queue, so they are not; a paper for which that matters therefore tests means over moments
as well.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True, slots=True)
class PairedTest:
    """Its outcome. `difference` is the mean of first minus second; with fewer than two pairs t and
    p are None."""

    pairs: int
    difference: float
    t: float | None
    p: float | None

    def is_significant(self, level: float = 0.05) -> bool:
        """Whether p is below the level; never with fewer than two pairs."""
        return self.p is not None and self.p < level


def paired_t_test(first: ArrayLike, second: ArrayLike) -> PairedTest:
    """Compare two equally long rows of numbers, pair by pair; a pair with a NaN is left out.

    If all differences are equal nothing varies: p is 1 if they are zero, else 0.
    """
    from scipy.stats import ttest_1samp  # noqa: PLC0415  (loads for a second, and is an extra)

    gaps = (
        np.asarray(first, dtype=np.float64).ravel() - np.asarray(second, dtype=np.float64).ravel()
    )
    gaps = gaps[~np.isnan(gaps)]
    if len(gaps) < 2:
        return PairedTest(len(gaps), float(gaps[0]) if len(gaps) else 0.0, None, None)
    mean = float(gaps.mean())
    if np.ptp(gaps) == 0:
        return PairedTest(len(gaps), mean, None, 0.0 if mean else 1.0)
    found = ttest_1samp(gaps, 0.0)
    return PairedTest(len(gaps), mean, float(found.statistic), float(found.pvalue))
