"""The experiments of Ilyushkin, Ghit and Epema (2015), run again: figures 2 and 4 to 8, tables I
and II, and beyond.

Four workloads of 3,000 workflows, eight policies, utilizations from 0.05 in steps of 0.05 until the
pool no longer keeps up, three repetitions (one if not `full`). Each part is one workload with
one seed: it is drawn once and runs under all policies. Law: results do not depend on the number of
workers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

from windrow.streams import find_policy
from windrow_lab.reproductions.ilyushkin.beyond import Duel, duels
from windrow_lab.reproductions.ilyushkin.pictures import Pictures, pictures
from windrow_lab.reproductions.ilyushkin.readings import PoolReading, readings
from windrow_lab.reproductions.paper import PaperPlan, Wishes
from windrow_lab.stream.metrics import StreamFigures
from windrow_lab.stream.simulation import Simulator
from windrow_lab.stream.stability import climb, keeps_up, saturation
from windrow_lab.stream.workload import WORKFLOWS, WORKLOADS, draw_workload

POLICIES = ("sr", "slop:0.9", "slop:0.8", "slop:0.2", "fes:10", "fes:2", "fes:1", "bf")


@dataclass(frozen=True, slots=True)
class Curve:
    """One policy on one workload with one seed, from the lowest utilization to the first that is
    too much."""

    workload: str
    policy: str
    seed: int
    points: tuple[StreamFigures, ...]
    stable: tuple[bool, ...]
    saturation: float


@dataclass(frozen=True, slots=True)
class IlyushkinResults:
    """All that was run."""

    repetitions: int
    curves: tuple[Curve, ...]
    pictures: Pictures
    duels: tuple[Duel, ...]
    readings: tuple[PoolReading, ...]

    def curves_of(self, workload: str, policy: str) -> list[Curve]:
        """One for each repetition, by seed."""
        return [c for c in self.curves if c.workload == workload and c.policy == policy]

    def maximal(self, workload: str, policy: str) -> float:
        """The highest utilization at which the pool kept up in most repetitions; 0 if there is
        none."""
        curves = self.curves_of(workload, policy)
        reached: dict[float, int] = {}
        for curve in curves:
            for point, is_stable in zip(curve.points, curve.stable, strict=True):
                reached[point.offered] = reached.get(point.offered, 0) + is_stable
        return max((u for u, count in reached.items() if 2 * count > len(curves)), default=0.0)

    def saturation(self, workload: str, policy: str) -> float:
        """The mean over repetitions."""
        curves = self.curves_of(workload, policy)
        return sum(c.saturation for c in curves) / len(curves)

    def mean_at(self, workload: str, policy: str, utilization: float) -> list[StreamFigures]:
        """The stable runs at this utilization."""
        return [
            point
            for curve in self.curves_of(workload, policy)
            for point, is_stable in zip(curve.points, curve.stable, strict=True)
            if is_stable and point.offered == utilization
        ]


def plan_ilyushkin(wishes: Wishes) -> PaperPlan:
    """Pictures, duels, the curves of each workload and seed, and if all is wanted other readings
    of the paper."""
    full = wishes.full
    calls: list[partial[Any]] = [partial(pictures, full=full), partial(duels, full=full)]
    calls += [
        partial(run_part, workload, seed) for workload in WORKLOADS for seed in _seeds(full=full)
    ]
    calls += [partial(readings, workload) for workload in (WORKLOADS if full else ())]
    return PaperPlan(
        "full" if full else "quick", calls=tuple(calls), calls_are="simulating streams"
    )


def gathered(plan: PaperPlan, found: Sequence[Any]) -> IlyushkinResults:
    """What the calls gave."""
    seeds = _seeds(full=plan.scale == "full")
    drawn, fought, *others = found
    count = len(WORKLOADS) * len(seeds)
    curves, read = (tuple(chain.from_iterable(parts)) for parts in (others[:count], others[count:]))
    return IlyushkinResults(len(seeds), curves, drawn, fought, read)


def _seeds(*, full: bool) -> tuple[int, ...]:
    if full:
        return (1, 2, 3)
    return (1,)


def run_part(workload: str, seed: int, workflows: int = WORKFLOWS) -> list[Curve]:
    """All policies on one drawn workload."""
    simulator = Simulator(draw_workload(workload, workflows=workflows, seed=seed), seed=seed)
    curves = []
    for name in POLICIES:
        policy = find_policy(name)
        points = tuple(climb(simulator, policy))
        stable = tuple(keeps_up(point, workflows) for point in points)
        curves.append(Curve(workload, name, seed, points, stable, saturation(simulator, policy)))
    return curves
