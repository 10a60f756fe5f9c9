"""How reliable a grid's clusters are, what planners believe of it, and draws of when they fail and
are repaired.

Law: the time from when a cluster is new to its failure has a Weibull distribution, and so has that
from each repair to the next failure. What fails at once is a cluster or, `unit="node"`, each node
for itself. A repair takes a time that is log-normal with a mean of `down_s` (deviation of the
logarithm `spread`), none at all (0), or never ends (inf). Clusters are new at time 0 or, `is_aged`,
as old as one is at any moment. Same generator, same draws.
"""

from dataclasses import dataclass
from math import gamma, inf, isinf, log
from typing import Literal

import numpy as np

from windrow.kernels.jit import in_python
from windrow.model.graph import Ints
from windrow_lab.grid.clusters import Floats, Grid
from windrow_lab.kernels.grid.play import Failing
from windrow_lab.kernels.grid.reliability import CONDITIONAL, FROM_START, OVER_RUN, Beliefs, failure

KINDS = {"conditional": CONDITIONAL, "over run": OVER_RUN, "from start": FROM_START}


@dataclass(frozen=True, slots=True)
class Repair:
    """How long a failure lasts, and what it takes with it."""

    down_s: float = 6 * 3600.0
    spread: float = 1.0
    unit: Literal["cluster", "node"] = "cluster"
    loses_data: bool = False
    is_aged: bool = False


@dataclass(frozen=True, eq=False)
class ClusterReliability:
    """Weibull shape and scale of each cluster."""

    shape: Floats
    scale_s: Floats

    @property
    def mtbf_s(self) -> Floats:
        """The mean time between failures of each."""
        return np.array(
            [
                scale_s * gamma(1 + 1 / k)
                for scale_s, k in zip(self.scale_s, self.shape, strict=True)
            ]
        )

    def survival(self, time_s: float) -> Floats:
        """R: the probability of each that it has not failed by then."""
        return np.asarray(np.exp(-((time_s / self.scale_s) ** self.shape)))

    def beliefs(self, kind: str = "conditional", factor: Floats | None = None) -> Beliefs:
        """What a planner believes, who is wrong by a factor."""
        return Beliefs(
            self.shape,
            self.scale_s,
            np.ones(len(self.shape)) if factor is None else factor,
            KINDS[kind],
        )

    def failing(
        self, grid: Grid, rng: np.random.Generator, draws: int, until_s: float, how: Repair
    ) -> Failing:
        """That many draws of failures and repairs, of those that begin before `until_s`."""
        if how.unit == "node":
            owner = np.repeat(np.arange(len(self.shape)), grid.nodes)
            unit = np.arange(grid.processors + 1)
        else:
            owner = np.arange(len(self.shape))
            unit = grid.first
        times = self._times(owner, rng, draws, until_s, how)
        is_losing = how.loses_data and how.unit != "node"
        return _in_order(times, unit, is_losing, isinf(how.down_s))

    def _times(
        self, owner: Ints, rng: np.random.Generator, draws: int, until_s: float, how: Repair
    ) -> Floats:
        """Of each draw and unit, whose cluster is its owner: failures and repairs, by turns."""
        size = (draws, len(owner))
        shape = self.shape[owner]
        scale_s = self.scale_s[owner]
        lives = rng.weibull(shape, size)
        if how.is_aged:  # the life in which a moment falls is longer than most
            lives = rng.standard_gamma(1 + 1 / shape, size) ** (1 / shape) * rng.random(size)
        at = np.zeros(size)
        columns = []
        while (at < until_s).any():
            at = at + scale_s * lives
            columns.append(np.where(at < until_s, at, inf))
            at = _repaired(at, rng, how)
            columns.append(np.where(np.isfinite(columns[-1]), at, inf))
            lives = rng.weibull(shape, size)
        return np.stack(columns, axis=-1)


def _repaired(failed_s: Floats, rng: np.random.Generator, how: Repair) -> Floats:
    """When units that fail then work again."""
    if isinf(how.down_s):
        return np.full(failed_s.shape, inf)
    if not how.down_s:
        return failed_s
    mean = log(how.down_s) - how.spread**2 / 2
    return failed_s + rng.lognormal(mean, how.spread, failed_s.shape)


def _in_order(times: Floats, unit: Ints, is_losing: bool, is_final: bool) -> Failing:
    """All units' failures (even columns) and repairs (odd ones) by time; behind the last one is
    nothing for ever."""
    columns = times.shape[-1]
    flat = times.reshape(len(times), -1)
    order = np.argsort(flat, axis=1, kind="stable")[:, : np.isfinite(flat).sum(axis=1).max()]
    ends = np.full((len(times), 1), inf)
    time_s = np.ascontiguousarray(np.hstack((np.take_along_axis(flat, order, axis=1), ends)))
    which = np.pad(order // columns, ((0, 0), (0, 1)))
    return Failing(
        time_s, which, np.pad(order % columns % 2, ((0, 0), (0, 1))), unit, is_losing, is_final
    )


def risks(beliefs: Beliefs, time_s: Floats) -> list[float]:
    """F: of each cluster, the probability that it fails within that time from when it is new."""
    with in_python():
        return [float(failure(beliefs, c, 0.0, t)) for c, t in enumerate(time_s.tolist())]
