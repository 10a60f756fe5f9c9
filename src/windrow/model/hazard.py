"""How likely a job is to be lost: nodes that fail, a cluster that fails as a whole, preemption.
Standard library only.

The times for which a node is up have a Weibull distribution. Losses of the whole cluster and
preemptions hit a job at a constant rate, however many nodes it has. All are independent.

Rule 1: a job's start renews no node. If the age of nodes is not known, they are in the middle of
their lives, at a moment as likely as any other: such a node is still up after t with chance Q(1/k,
(t/scale)^k), Q being the regularized upper incomplete gamma function. (With a shape below 1 that is
safer than a node that was just repaired.)
Rule 2: what is kept of a lost job are pieces that were done: tasks that finished, or checkpoints.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

# of the integral: each panel half as long as the one above it, so that all scales are seen
_PANELS = 24
_STEPS = 8


@dataclass(frozen=True, slots=True)
class Hazard:
    """What jobs of a site may expect. `scale_s` None: no node fails. Rates are losses per second of
    one job."""

    shape: float = 1.0
    scale_s: float | None = None
    cluster_rate: float = 0.0
    preemption_rate: float = 0.0

    def __post_init__(self) -> None:
        rates = (self.cluster_rate, self.preemption_rate)
        if (
            not self.shape > 0
            or not (self.scale_s is None or self.scale_s > 0)
            or not all(r >= 0 for r in rates)
        ):
            raise ValueError(f"no such hazard: {self}")

    @classmethod
    def of_mean(cls, nodes_s: float | None = None, shape: float = 1.0, **rates: float) -> Hazard:
        """Nodes that are up for `nodes_s` on average."""
        return cls(shape, None if nodes_s is None else nodes_s / math.gamma(1 + 1 / shape), **rates)

    def __bool__(self) -> bool:
        """Whether anything can be lost."""
        return self.scale_s is not None or self.cluster_rate > 0 or self.preemption_rate > 0

    @property
    def nodes_s(self) -> float:
        """How long a node is up on average."""
        if self.scale_s is None:
            return math.inf
        return self.scale_s * math.gamma(1 + 1 / self.shape)

    def rate(self, nodes: int) -> float:
        """Losses per second of a job of this many nodes, in the long run."""
        return nodes / self.nodes_s + self.cluster_rate + self.preemption_rate

    def survival(self, nodes: int, seconds: float, age_s: float | None = None) -> float:
        """The chance that a job is not lost within this time; `age_s`: for how long its nodes are
        up, if known."""
        return math.exp(self.log_survival(nodes, seconds, age_s))

    def log_survival(self, nodes: int, seconds: float, age_s: float | None = None) -> float:
        """Its logarithm."""
        log = -(self.cluster_rate + self.preemption_rate) * seconds
        if self.scale_s is None or seconds <= 0:
            return log
        at = ((seconds + (age_s or 0.0)) / self.scale_s) ** self.shape
        if age_s is None:
            known = log_upper_gamma(1 / self.shape, at)
        else:
            known = (age_s / self.scale_s) ** self.shape - at
        return log + nodes * known

    def held_s(self, nodes: int, seconds: float) -> float:
        """How long a job of this time runs on average until it ends or is lost: the integral of its
        survival."""
        rate = self.rate(nodes)
        if self.shape == 1 or self.scale_s is None:
            if rate * seconds > 1e-9:
                return -math.expm1(-rate * seconds) / rate
            return seconds
        total = 0.0
        end = seconds
        for _ in range(_PANELS):
            step = end / 2 / _STEPS
            weights = (1, *(4, 2) * (_STEPS // 2 - 1), 4, 1)
            total += (
                step
                / 3
                * sum(w * self.survival(nodes, end - i * step) for i, w in enumerate(weights))
            )
            end /= 2
        return total + end

    def lost_node_s(self, nodes: int, seconds: float) -> float:
        """The node time that a job of which nothing is kept is expected to lose."""
        return max(
            0.0, nodes * (self.held_s(nodes, seconds) - seconds * self.survival(nodes, seconds))
        )

    def expected_s(
        self, nodes: int, seconds: float, piece_s: float | None = None, again_s: float = 0.0
    ) -> float:
        """How long work takes with its losses, in pieces of this length that are kept; after each
        it waits again."""
        piece_s = min(piece_s or seconds, seconds)
        chance = self.survival(nodes, piece_s)
        if not 0 < chance < 1:
            if chance:
                return seconds
            return math.inf
        return seconds / piece_s * (self.held_s(nodes, piece_s) + (1 - chance) * again_s) / chance

    def checkpoint_every_s(self, nodes: int, cost_s: float) -> float:
        """Young's interval: how long to run from one checkpoint to the next, if each takes
        `cost_s`."""
        rate = self.rate(nodes)
        if rate:
            return math.sqrt(2 * cost_s / rate)
        return math.inf


NO_HAZARD = Hazard()


def log_upper_gamma(a: float, x: float) -> float:
    """The logarithm of Q(a, x): by its series, or by its continued fraction (Lentz) if that is
    the faster one."""
    if x > 0:
        front = a * math.log(x) - x - math.lgamma(a)
    else:
        front = -math.inf
    if x < a + 1:
        term = total = 1 / a
        n = a
        while abs(term) > 1e-17 * total:
            n += 1
            term *= x / n
            total += term
        return math.log1p(-min(math.exp(front) * total, 1 - 1e-16))
    b = x + 1 - a
    c = 1e300
    d = 1 / (x + 1 - a)
    fraction = d
    for i in range(1, 10_000):
        an = i * (a - i)
        b = b + 2
        d = 1 / (an * d + b)
        c = b + an / c
        fraction *= d * c
        if abs(d * c - 1) < 1e-15:
            break
    return front + math.log(fraction)
