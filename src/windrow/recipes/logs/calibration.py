"""Laws of width and run time that are fitted to given means when a log is asked for.

Widths: serial with a given share, else as in the Lublin-Feitelson model (log2 uniform in two
stages, most widths powers of two); the share of the first stage is what makes the mean width come
out.

Run times: a job of width w runs s(w) X, cut at the queue's limit. X has the published batch
hyper-gamma shape of the same model, heavy-tailed, and s(w) is such that the mean run of that width,
after the cut, is c * w ** beta. The exponent beta is the one way in which width and run time depend
on each other: it is what makes the mean of width times run time come out when it is not the product
of the means.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from windrow.model.graph import Ints
from windrow.model.workflow import Floats
from windrow.recipes.logs.lublin import PUBLISHED


@dataclass(frozen=True, slots=True)
class WidthShape:
    """What is chosen and not fitted of a width law.

    `serial` is a share of all jobs, `power_of_two` of the parallel ones; `low` and `medium` are
    log2 of widths, and the second stage ends at `widest`, a share of the machine.
    """

    serial: float
    power_of_two: float
    low: float
    medium: float
    widest: float


@dataclass(frozen=True, slots=True, eq=False)
class WidthLaw:
    """The share of each width from 1 to the widest."""

    share: Floats

    @property
    def widths(self) -> Floats:
        """From 1 to the widest, as floats."""
        return np.arange(1, len(self.share) + 1, dtype=np.float64)

    def moment(self, exponent: float) -> float:
        """The mean of width ** exponent."""
        return float((self.share * self.widths**exponent).sum())

    def quantile(self, draw: Floats) -> Ints:
        """The width at each draw from [0, 1)."""
        place = np.searchsorted(np.cumsum(self.share), draw, side="right")
        return np.minimum(place, len(self.share) - 1).astype(np.int64) + 1


def fit_widths(shape: WidthShape, nodes: int, mean: float) -> WidthLaw | None:
    """The law with that mean width on a machine of `nodes`, or None if the machine is too small
    for it."""
    widest = int(nodes * shape.widest)
    if widest <= 2**shape.medium:
        return None
    narrow = _stage(shape.low, shape.medium, widest, shape.power_of_two)
    wide = _stage(shape.medium, math.log2(widest), widest, shape.power_of_two)
    first_stage = _share_of(narrow, wide, (mean - shape.serial) / (1 - shape.serial))
    if not 0 <= first_stage <= 1:
        return None
    share = (1 - shape.serial) * (first_stage * narrow + (1 - first_stage) * wide)
    share[0] += shape.serial
    return WidthLaw(share)


def _stage(low: float, high: float, widest: int, power_of_two: float) -> Floats:
    """Shares of widths 1..widest if log2 of the width is uniform in low..high, then rounded."""
    share = np.zeros(widest)
    top = math.floor(math.log2(widest))
    edges = np.concatenate(
        ([-np.inf], np.arange(1, top) + 0.5, [np.inf])
    )  # rounds to the powers 1..top, none beyond
    np.add.at(share, 2 ** np.arange(1, top + 1) - 1, power_of_two * _inside(edges, low, high))
    edges = np.concatenate(([-np.inf], np.log2(np.arange(2, widest) + 0.5), [np.inf]))
    share[1:] += (1 - power_of_two) * _inside(edges, low, high)
    return share


def _inside(edges: Floats, low: float, high: float) -> Floats:
    return np.asarray(np.diff(np.clip(edges, low, high)) / (high - low), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class RunLaw:
    """Run times that depend on the width, as this file's head says: the mean at width w is factor_s
    * w ** beta."""

    factor_s: float
    beta: float
    limit_s: int

    def quantile(self, widths: Ints, draw: Floats) -> Ints:
        """The run of a job of each width at each draw from [0, 1), in whole seconds, 1 to the
        limit."""
        scale_log, cut_mean_s = _cut_means(self.limit_s)
        mean_s = self.factor_s * np.arange(1, int(widths.max()) + 1, dtype=np.float64) ** self.beta
        scale = np.exp(np.interp(mean_s, cut_mean_s, scale_log))
        return np.clip(np.rint(scale[widths - 1] * shape_quantile(draw)), 1, self.limit_s).astype(
            np.int64
        )


def fit_runs(widths: WidthLaw, mean_s: float, correlation: float, limit_s: int) -> RunLaw:
    """The law whose mean run is `mean_s` and whose mean of width * run is `correlation` * mean
    width * `mean_s`.

    At its beta mean(w ** (1 + beta)) is `correlation` * mean(w) * mean(w ** beta); the former grows
    faster with beta.
    """
    low = -4.0
    high = 4.0
    for _ in range(60):
        beta = (low + high) / 2
        if widths.moment(1 + beta) < correlation * widths.moment(1) * widths.moment(beta):
            low = beta
        else:
            high = beta
    beta = (low + high) / 2
    return RunLaw(mean_s / widths.moment(beta), beta, limit_s)


@cache
def _cut_means(limit_s: int) -> tuple[Floats, Floats]:
    """log(s) and the mean of min(s X, limit), for a range of s. The mean grows with s."""
    x = shape_quantile((np.arange(8192) + 0.5) / 8192)
    scale_log = np.linspace(math.log(1e-3), math.log(1e3), 400)
    return scale_log, np.array([np.minimum(math.exp(s) * x, limit_s).mean() for s in scale_log])


def _share_of(narrow: Floats, wide: Floats, mean: float) -> float:
    """Of the narrow stage, such that widths have that mean."""
    widths = np.arange(1, len(narrow) + 1)
    mean_narrow = float(narrow @ widths)
    mean_wide = float(wide @ widths)
    return (mean_wide - mean) / (mean_wide - mean_narrow)


def _gamma_density(x: Floats, shape: float, scale: float) -> Floats:
    log_density = (shape - 1) * np.log(x) - x / scale - shape * math.log(scale) - math.lgamma(shape)
    return np.asarray(np.exp(log_density), dtype=np.float64)


def shape_quantile(draw: Floats) -> Floats:
    """X at each draw: exp of the batch hyper-gamma for the narrowest jobs, cut at 12 as
    published."""
    numbers = PUBLISHED["batch"]
    h = np.linspace(1e-9, 12.0, 4001)
    density = np.zeros_like(h)
    parts = (numbers.run_offset, 1 - numbers.run_offset)
    for part, shape, scale in zip(parts, numbers.run_shapes, numbers.run_scales, strict=True):
        density += part * _gamma_density(h, shape, scale)
    cdf = np.concatenate(([0.0], np.cumsum((density[1:] + density[:-1]) / 2)))
    return np.asarray(np.exp(np.interp(draw, cdf / cdf[-1], h)), dtype=np.float64)
