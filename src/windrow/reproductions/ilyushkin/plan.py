"""The experiments of Ilyushkin, Ghit and Epema (2015), run again: figures 2 and 4 to 8, tables I and II, and beyond.

Four workloads of 3,000 workflows, eight policies, utilizations from 0.05 in steps of 0.05 until the pool no longer
keeps up, three repetitions (one where not `full`). Each part is one workload with one seed: it is drawn once and runs
under all policies. Law: results do not depend on the number of workers.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

from windrow.errors import UserError
from windrow.lab.stream.metrics import StreamFigures
from windrow.lab.stream.simulation import Simulator
from windrow.lab.stream.stability import climb, keeps_up, saturation
from windrow.lab.stream.workload import WORKFLOWS, WORKLOADS, draw_workload
from windrow.reproductions.ilyushkin.beyond import Duel, duels
from windrow.reproductions.ilyushkin.pictures import Pictures, pictures
from windrow.reproductions.ilyushkin.readings import Reading, readings
from windrow.streams import find_policy

POLICIES = ("sr", "slop:0.9", "slop:0.8", "slop:0.2", "fes:10", "fes:2", "fes:1", "bf")

PRINTED_MAXIMAL: Mapping[str, tuple[float, float, float, float]] = {
    "sr": (0.55, 0.70, 0.20, 0.35),
    "slop:0.9": (0.55, 0.70, 0.20, 0.35),
    "slop:0.8": (0.55, 0.70, 0.25, 0.40),
    "slop:0.2": (0.75, 0.85, 0.50, 0.65),
    "fes:10": (0.55, 0.70, 0.20, 0.35),
    "fes:2": (0.55, 0.70, 0.20, 0.35),
    "fes:1": (0.55, 0.95, 0.80, 0.80),
    "bf": (0.95, 0.95, 0.95, 0.95),
}
"""Table I; workloads in the order of `WORKLOADS`."""

PRINTED_TIMES: Mapping[str, tuple[int, int, int, int, int, int]] = {
    "sr": (636, 628, 658, 1162, 484, 263),
    "slop:0.9": (584, 578, 645, 1188, 492, 249),
    "slop:0.8": (3195, 3121, 3329, 1174, 546, 295),
    "slop:0.2": (879, 892, 938, 1291, 597, 297),
    "fes:10": (637, 632, 652, 1160, 480, 264),
    "fes:2": (526, 525, 547, 1189, 503, 278),
    "fes:1": (596, 631, 581, 1191, 530, 273),
    "bf": (703, 707, 694, 1199, 546, 271),
}
"""Table II: mean wait, then mean makespan, in seconds, of small, medium and large workflows of the mixture."""

PRINTED_EMPTY_S = (1136, 429, 130)
NEAR = 0.05
"""How far a maximal utilization may be from print to agree."""

Watch = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Curve:
    """One policy on one workload with one seed, from the lowest utilization to the first that is too much."""

    workload: str
    policy: str
    seed: int
    points: tuple[StreamFigures, ...]
    stable: tuple[bool, ...]
    saturation: float


@dataclass(frozen=True, slots=True)
class Results:
    """All that was run."""

    scale: str
    repetitions: int
    curves: tuple[Curve, ...]
    pictures: Pictures
    duels: tuple[Duel, ...]
    readings: tuple[Reading, ...]

    def curves_of(self, workload: str, policy: str) -> list[Curve]:
        """One for each repetition, by seed."""
        return [c for c in self.curves if c.workload == workload and c.policy == policy]

    def maximal(self, workload: str, policy: str) -> float:
        """The highest utilization at which the pool kept up in most repetitions; 0 where there is none."""
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


def reproduce_ilyushkin(*, full: bool, workers: int = 1, watch: Watch | None = None) -> Results:
    """Run everything; `watch` hears how many of how many parts are done."""
    if workers < 1:
        raise UserError(f"a reproduction needs at least 1 worker, not {workers}")
    seeds = (1, 2, 3) if full else (1,)
    tell = watch or (lambda _done, _total: None)
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        curves = [pool.submit(run_part, workload, seed) for workload in WORKLOADS for seed in seeds]
        drawn, fought = pool.submit(pictures, full=full), pool.submit(duels, full=full)
        read = [pool.submit(readings, workload) for workload in (WORKLOADS if full else ())]
        futures: list[Future[Any]] = [*curves, drawn, fought, *read]
        try:
            for done, future in enumerate(as_completed(futures), start=1):
                future.result()
                tell(done, len(futures))
        finally:  # after an interruption, what has not begun need not
            pool.shutdown(wait=False, cancel_futures=True)
    found = tuple(curve for part in curves for curve in part.result())
    other = tuple(reading for part in read for reading in part.result())
    scale = "full" if full else "quick"
    return Results(scale, len(seeds), found, drawn.result(), fought.result(), other)


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
