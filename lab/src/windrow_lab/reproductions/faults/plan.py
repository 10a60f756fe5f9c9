"""Chapter 6, run again: ten methods on the same failures, for workflows of five families.

Law: a part's sums do not depend on the number of workers, and every method of a workflow sees the
same failures. A plan is made once, and played on all draws; plans that the limit did not cut are
those of every greater limit. A limit is that of copies and of restarts, as print's three batches
have it.

Sums have an axis each for shapes, stability, accuracy, limit and method, and the last one for what
is summed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from windrow.model import File
from windrow.recipes import generate_workflow
from windrow_lab.grid.clusters import Floats, Grid
from windrow_lab.grid.costs import Costs
from windrow_lab.grid.faults import AIMS, METHODS, NO_RESTARTS, Method, Outcome, Planner, Restarts
from windrow_lab.grid.heft import heft
from windrow_lab.grid.recipes import generate_grid
from windrow_lab.grid.reliability import ClusterReliability, Repair
from windrow_lab.grid.schedule import Schedule
from windrow_lab.grid.wdo import exclusive_s
from windrow_lab.kernels.grid.overprovision import Aims
from windrow_lab.kernels.grid.play import Failing
from windrow_lab.kernels.grid.reliability import Beliefs
from windrow_lab.reproductions.paper import PaperPlan, Wishes, printed

STAND_INS = printed("faults", "stand_ins")
SEEDS: list[int] = STAND_INS["seeds"]
FAMILIES = tuple(STAND_INS["workflows"]["tasks"])
SHAPES = tuple(STAND_INS["reliability"]["shapes"])
STABILITIES = tuple(STAND_INS["reliability"]["scale_h"])
ACCURACIES = tuple(STAND_INS["methods"]["accuracies"])
LIMITS = tuple(STAND_INS["methods"]["limits"])
SUMMED = ("runs", "ended", "slr", "used", "lost", "failed", "potential")
SHAPE = (len(SHAPES), len(STABILITIES), len(ACCURACIES), len(LIMITS), len(METHODS), len(SUMMED))
OURS, *READINGS = STAND_INS["readings"]
HOUR = 3600.0
# its multiples, less their whole parts, are spread evenly, however many there are
_GOLDEN = 0.6180339887498949


class FamilySums(NamedTuple):
    """Sums over some workflows of a family, under one seed and reading."""

    reading: str
    seed: int
    family: str
    sums: NDArray[np.float64]


def plan_faults(wishes: Wishes) -> PaperPlan:
    """A call for a few workflows of a family under a seed; the readings are of the first ones."""
    few = STAND_INS["workflows"]
    full = wishes.full
    calls: list[Callable[[], Any]] = []
    for seed in SEEDS:
        if full:
            count = len(range(seed - 1, few["number"], len(SEEDS)))
        else:
            count = few["quick"]
        for family in FAMILIES:
            calls += [
                partial(run, OURS, seed, family, range(n, min(n + 2, count)))
                for n in range(0, count, 2)
            ]
            calls += [
                partial(run, reading, seed, family, range(few["readings"])) for reading in READINGS
            ]
    if full:
        scale = "full"
    else:
        scale = "quick"
    return PaperPlan(
        scale, stand_ins=(STAND_INS["words"],), calls=tuple(calls), calls_are="playing failures"
    )


def nine_sites(seed: int, *, inside_takes_time: bool = False) -> Grid:
    """The nine clusters, with data that are free inside, unless they take their way there, too."""
    grid = generate_grid("nine-sites", seed=seed)
    if inside_takes_time:
        return grid
    inside = np.eye(len(grid.clusters), dtype=bool)
    links = np.where(inside, 0.0, grid.latency_s), np.where(inside, np.inf, grid.bandwidth_bytes_s)
    return Grid(grid.clusters, *links, grid.reference_speed)


def workflow_on(
    grid: Grid, seed: int, family: str, number: int, hours: Sequence[float] = ()
) -> Costs:
    """A workflow of the family: tasks and CCR are drawn; HEFT takes its length, evenly spread over
    those of a seed, in the logarithm between the least and the most `hours`."""
    said = STAND_INS["workflows"]
    rng = np.random.default_rng([seed, FAMILIES.index(family), number])
    tasks = int(rng.choice(said["tasks"][family]))
    ccr = float(rng.choice(said["ccr"]))
    drawn = int(rng.integers(2**31))
    more = said["parameters"].get(family)
    workflow = generate_workflow(family, tasks=tasks, seed=drawn, parameters=more)
    run_s = workflow.runtime_s * workflow.moved_bytes * grid.mean_s_per_byte / ccr / workflow.work_s
    wanted_s = _length_s(seed, family, number, hours or said["hours"])
    factor = wanted_s / heft(Costs(workflow.with_times(run_s), grid)).makespan_s
    files = [File(file.id, round(file.size_bytes * factor)) for file in workflow.files]
    return Costs(workflow.changed(runtime_s=run_s * factor, files=files), grid)


def _length_s(seed: int, family: str, number: int, hours: Sequence[float]) -> float:
    """How long HEFT is to take for a workflow: logarithms are spread evenly."""
    spread = (seed / 5 + (number * len(FAMILIES) + FAMILIES.index(family)) * _GOLDEN) % 1
    low, high = np.log(hours)
    return float(np.exp(low + spread * (high - low)) * HOUR)


class _Reading(NamedTuple):
    """How failures, beliefs and restarts are read, where the text leaves it open."""

    how: Repair
    again: Restarts
    aims: Aims
    kind: str
    hours: Sequence[float]
    inside_takes_time: bool


def _reading(name: str) -> _Reading:
    options = dict(STAND_INS["readings"][name])
    kind = options.pop("kind", "conditional")
    aims = AIMS._replace(is_relative=options.pop("is_relative", False))
    restarts = {key: options.pop(key) for key in ("is_apart", "is_total") if key in options}
    world = options.pop("hours", ()), options.pop("inside_takes_time", False)
    return _Reading(Repair(**options), Restarts(**restarts), aims, kind, *world)


def run(reading: str, seed: int, family: str, numbers: Sequence[int]) -> FamilySums:
    """All models, methods, accuracies and limits for these workflows; of other readings one
    accuracy and limit."""
    sums = np.zeros(SHAPE)
    read = _reading(reading)
    grid = nine_sites(seed, inside_takes_time=read.inside_takes_time)
    for number in numbers:
        planner = Planner(workflow_on(grid, seed, family, number, read.hours))
        for s, t in np.ndindex(SHAPE[:2]):
            rng = np.random.default_rng([seed, FAMILIES.index(family), number, s, t])
            model = _drawn(rng, SHAPES[s], STABILITIES[t], len(grid.clusters))
            wrong = rng.random(len(grid.clusters))
            beliefs = [model.beliefs(read.kind, factor) for factor in (None, wrong, 1 / wrong)]
            draws = STAND_INS["reliability"]["draws"]
            failing = model.failing(grid, rng, draws, _until_s(planner), read.how)
            played = Plays(planner, failing, read.aims, read.again)
            if reading == OURS:
                outcomes = played.all(beliefs, LIMITS)
            else:
                outcomes = played.all(beliefs[:1], LIMITS[:1])
            for a, n, m, outcome in outcomes:
                sums[s, t, a, n, m] += _summed(outcome, planner.costs.critical_s)
    return FamilySums(reading, seed, family, sums)


def _until_s(planner: Planner) -> float:
    """Failures are drawn for longer than any play takes."""
    longest_s = max(exclusive_s(planner.costs).max(), planner.bases["heft"].makespan_s)
    return float(2 * longest_s + 1000 * HOUR)


def _drawn(
    rng: np.random.Generator, shapes: str, stability: str, clusters: int
) -> ClusterReliability:
    said = STAND_INS["reliability"]
    (least, most), (low, high) = said["shapes"][shapes], said["scale_h"][stability]
    shape = rng.uniform(least, most, clusters)
    scale_h = rng.uniform(low, high, clusters)
    return ClusterReliability(shape, scale_h * HOUR)


def _summed(outcome: Outcome, critical_s: float) -> Floats:
    ended = outcome.has_ended
    cpu_h = outcome.cpu_s / HOUR
    slr = np.where(ended > 0, outcome.end_s / critical_s, 0.0)
    parts = np.ones(len(ended)), ended, slr, ended * cpu_h, (1 - ended) * cpu_h
    return np.array(
        [part.sum() for part in (*parts, outcome.failed_s / HOUR, outcome.potential_s / HOUR)]
    )


class Plays:
    """The plays of one workflow on one set of failures; the same plans are played once."""

    def __init__(self, planner: Planner, failing: Failing, aims: Aims, again: Restarts) -> None:
        self.planner = planner
        self.failing = failing
        self.aims = aims
        self.again = again
        self.known: dict[Any, Outcome] = {}

    def all(
        self, beliefs: Sequence[Beliefs], limits: Sequence[int]
    ) -> Iterator[tuple[int, int, int, Outcome]]:
        """Of each accuracy, limit and method, by their numbers."""
        for a, believed in enumerate(beliefs):
            known: dict[tuple[str, bool], list[list[Schedule]]] = {}
            for m, method in enumerate(METHODS.values()):
                key = method.base, method.copies
                if key not in known:
                    known[key] = list(self._by_limit(method, believed, limits))
                for n, plans in enumerate(known[key]):
                    again = NO_RESTARTS
                    place = m, -1  # what is believed does not change a play
                    if method.restarts:
                        again = self.again._replace(limit=limits[n])
                        place = m, a
                    yield a, n, m, self._outcome(place, plans, believed, again)

    def _by_limit(
        self, method: Method, beliefs: Beliefs, limits: Sequence[int]
    ) -> Iterator[list[Schedule]]:
        """The plans under each limit; those that the limit before did not cut are the same."""
        plans: list[Schedule] = []
        for n, limit in enumerate(limits):
            if not plans or _is_cut(plans, limits[n - 1], method.base == "wdo"):
                plans = self.planner.plans(method, beliefs, self.aims._replace(limit=limit))
            yield plans

    def _outcome(
        self, place: tuple[int, int], plans: list[Schedule], beliefs: Beliefs, again: Restarts
    ) -> Outcome:
        key = (
            *place,
            again.limit,
            *(
                column.tobytes()
                for plan in plans
                for column in (plan.task, plan.processor, plan.start_s)
            ),
        )
        if key not in self.known:
            self.known[key] = self.planner.play(plans, self.failing, beliefs, again)
        return self.known[key]


def _is_cut(plans: list[Schedule], limit: int, is_whole: bool) -> bool:
    """Whether some task runs on as many clusters as the limit allows, so that a greater one may
    change the plan."""
    if is_whole:
        return len(plans) >= limit
    (plan,) = plans
    places = np.unique(plan.task * len(plan.costs.grid.clusters) + plan.cluster) // len(
        plan.costs.grid.clusters
    )
    return bool(np.bincount(places).max() >= limit)


def added(parts: Sequence[FamilySums], reading: str = OURS) -> Mapping[tuple[int, str], Floats]:
    """The sums of each seed and family."""
    found: dict[tuple[int, str], Floats] = {}
    for part in parts:
        if part.reading == reading:
            found[part.seed, part.family] = (
                found.get((part.seed, part.family), np.zeros(SHAPE)) + part.sums
            )
    return found
