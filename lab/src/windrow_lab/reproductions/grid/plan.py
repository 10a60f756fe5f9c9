"""Chapters 3 and 4 of Zhang (2009), run again: what `stand_ins.toml` says, part by part.

Chapter 3: every workflow on each grid by each algorithm, and by EACP's versions of two of them. The
mean run time of a task follows from data, CCR and the grid's mean bandwidth over pairs of
processors, the arithmetic one if nothing else is said. Chapter 4: greedy LHBS on all of a universe
of hosts, and on what each selection leaves of it, both timed.

Law: rows do not depend on the number of workers, but for times. Seed k draws workflows and grids.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from windrow.model import Adjacency, File, Workflow
from windrow.recipes.chance import seeded
from windrow.recipes.draft import MEGABYTE
from windrow.recipes.workflows.catalog import generate_workflow
from windrow_lab.grid.clusters import Grid
from windrow_lab.grid.costs import Costs
from windrow_lab.grid.describe import Aggregate, fastest, parse_description
from windrow_lab.grid.recipes import generate_grid
from windrow_lab.grid.schedulers import Scheduler, find_scheduler
from windrow_lab.grid.select import Refusal, select
from windrow_lab.reproductions.paper import PaperPlan, Wishes, printed

STAND_INS = printed("grid", "stand_ins")
FOUR = ("heft", "hhs", "greedy", "lhbs")
WITH_EACP = ("eacp+heft", "eacp+lhbs")
READINGS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "greedy, gaps filled": ("greedy", {"insertion": True}),
    "greedy, on the fastest idle node": ("fastest", {}),
    "LHBS by min-min alone": ("min-min", {}),
    "LHBS, sufferage by cluster": (
        "lhbs",
        {"heuristics": ("min-min", "max-min", "cluster-sufferage")},
    ),
}
"""Where a decision was ours, the other way: LHBS places tasks behind all others, and keeps the best
of three."""
OURS = "arithmetic"
"""The experiment that claims are judged by."""
SELECTIONS = ("one-step", "simple", "one TightBag", "LooseBag")
_NODE = "{ node = [Processor == OPTERON || Processor == ITANIUM] [Rank = Clock] }"
WIDEST = (20, 1000)
"""Megabytes along an edge: the widest of the thesis's ranges."""
_BYTES_S = 12.5e6  # by which the recipes turn data into time


class SlrRow(NamedTuple):
    """A workflow on a grid: the SLR of each algorithm, in the order of `FOUR`, `WITH_EACP` and
    `READINGS`, or NaN."""

    experiment: str
    seed: int
    grid: str
    kind: str
    alpha: float
    ccr: float
    width: int
    slr: tuple[float, ...]


class Selected(NamedTuple):
    """A workflow on the universe, or on a selection of it: makespan, and how long it took to select
    and schedule."""

    seed: int
    kind: str
    ccr: float
    width: int
    size: int
    selection: str
    hosts: int
    makespan_s: float
    took_s: float


def plan_grid(wishes: Wishes) -> PaperPlan:
    """For each seed a call for each type and size of chapter 3, one for its applications, and one
    for chapter 4."""
    full = wishes.full
    three = STAND_INS["chapter_3"]
    calls: list[Callable[[], Any]] = []
    for seed in STAND_INS["seeds"]:
        for experiment in STAND_INS["experiments"]:
            parts = product(three["types"], three["tasks"])
            calls += [
                partial(generated, seed, *part, experiment, full and experiment == OURS)
                for part in parts
            ]
        calls += [partial(applications, seed, full=full), partial(decoupled, seed, full=full)]
    words = (
        "Grids, links, EMAN, Montage and the sizes of chapter 4 are stand-ins, fixed before the "
        "first run.",
    )
    return PaperPlan(
        "full" if full else "quick", calls=tuple(calls), calls_are="scheduling", stand_ins=words
    )


def generated(seed: int, kind: str, tasks: int, experiment: str, full: bool) -> list[SlrRow]:
    """All costs of the generated workflows of one type and size, in one experiment."""
    three = STAND_INS["chapter_3"]
    scale = three["full" if full else "quick"]
    grids = {name: _linked(generate_grid(name, seed=seed), experiment) for name in three["grids"]}
    can_be_read = experiment == OURS and tasks < max(three["tasks"])
    rows = []
    for alpha, eta, (low, high), spread, ccr in product(
        three["alpha"], scale["eta"], scale["data"], scale["range"], three["ccr"]
    ):
        values = {
            "alpha": alpha,
            "eta": eta,
            "epsilon": low,
            "phi": high,
            "range": spread,
            "ccr": ccr,
        }
        text = {name: str(value) for name, value in values.items()}
        workflow = generate_workflow(kind, tasks=tasks, seed=seed, parameters=text)
        for name, grid in grids.items():
            costs = _on(workflow, grid, by_mean_rate=experiment != "harmonic")
            slr = _slr(name, kind, costs, can_be_read and name == "universal")
            rows.append(SlrRow(experiment, seed, name, kind, alpha, ccr, costs.width, slr))
    return rows


def applications(seed: int, *, full: bool = False) -> list[SlrRow]:
    """EMAN and Montage, with equal costs on each level."""
    rows = []
    three = STAND_INS["chapter_3"]
    grids = {name: generate_grid(name, seed=seed) for name in three["grids"]}
    for (kind, sizes), data, ccr in product(
        STAND_INS["applications"].items(),
        three["full"]["data"] if full else (WIDEST,),
        three["ccr"],
    ):
        for tasks in sizes:
            workflow = _application(kind, tasks, seed, ccr, data)
            for name, grid in grids.items():
                costs = _on(workflow, grid)
                slr = _slr(name, kind, costs, is_read=False)
                rows.append(SlrRow(OURS, seed, name, kind, np.nan, ccr, costs.width, slr))
    return rows


def _application(
    kind: str, tasks: int, seed: int, ccr: float, data: Sequence[float] = WIDEST
) -> Workflow:
    """With the cost model of 3.3.2: from one level to the next, each edge has the same size, which
    is drawn."""
    workflow = generate_workflow(kind, tasks=tasks, seed=seed, even_levels=True)
    rng = seeded(seed, f"sizes of {kind}-{tasks}")
    by_level = rng.uniform(data[0], data[1], workflow.depth) * MEGABYTE
    names = [
        File(f"from {name}", int(by_level[k]))
        for name, k in zip(workflow.ids, workflow.levels, strict=True)
    ]
    each = np.arange(len(workflow))
    priced = workflow.changed(
        files=names,
        outputs=Adjacency.from_edges(len(workflow), each, each),
        inputs=workflow.parents,
    )
    factor = priced.ccr(1 / _BYTES_S) / ccr
    return priced.with_times(priced.runtime_s * factor)


def _linked(grid: Grid, experiment: str) -> Grid:
    """With bandwidths between clusters as an experiment has them: even over a range, the lower the
    more latency."""
    if experiment != "even":
        return grid
    pairs = np.triu_indices(len(grid.clusters), 1)
    share = np.argsort(np.argsort(grid.latency_s[pairs])) / max(1, len(pairs[0]) - 1)
    inside = float(grid.bandwidth_bytes_s[0, 0])
    bandwidth = np.zeros_like(grid.latency_s)
    bandwidth[pairs] = inside / 10 + share * (inside / 1000 - inside / 10)
    return replace(
        grid, bandwidth_bytes_s=bandwidth + bandwidth.T + np.eye(len(bandwidth)) * inside
    )


def _on(workflow: Workflow, grid: Grid, *, by_mean_rate: bool = True) -> Costs:
    """With the run times that give its CCR at the grid's mean bandwidth."""
    if by_mean_rate:
        per_byte = 1 / grid.mean_bandwidth_bytes_s
    else:
        per_byte = grid.mean_s_per_byte
    return Costs(
        workflow.with_times(workflow.runtime_s * (_BYTES_S * per_byte)),
        grid,
        by_mean_rate=by_mean_rate,
    )


def _slr(grid: str, kind: str, costs: Costs, is_read: bool) -> tuple[float, ...]:
    has_eacp = grid != "many-cluster" and kind in STAND_INS["chapter_3"]["types"]
    schedulers: list[Scheduler | None] = [find_scheduler(name) for name in FOUR]
    schedulers += [find_scheduler(name) if has_eacp else None for name in WITH_EACP]
    schedulers += [
        find_scheduler(name, **options) if is_read else None for name, options in READINGS.values()
    ]
    return tuple(np.nan if one is None else one(costs).slr for one in schedulers)


def decoupled(seed: int, *, full: bool) -> list[Selected]:
    """EMAN and Montage on the universe and on selections of it, by greedy LHBS."""
    four = STAND_INS["chapter_4"]
    grid = generate_grid(four["grid"], seed=seed)
    places = range(len(four["eman"])) if full else four["few_widths"]
    small = _on(_application("eman", 40, seed, 1.0), grid)
    find_scheduler("greedy")(small)  # compiled, or loaded, before it is timed
    rows = []
    for kind, place, ccr in product(("eman", "montage"), places, four["ccr"]):
        costs = _on(_application(kind, four[kind][place], seed, ccr), grid)
        size = len(costs.workflow) + costs.workflow.parents.edges
        for found in _selections(costs, four["shares"]):
            rows.append(Selected(seed, kind, ccr, costs.width, size, *found))
    rows += _shares_of(seed, grid)
    return rows


def _selections(costs: Costs, shares: Sequence[float]) -> Iterator[tuple[str, int, float, float]]:
    """Of each selection that is possible: its name, its nodes, the makespan there, and how long
    selection and scheduling took."""
    greedy = find_scheduler("greedy")
    began = time.perf_counter()
    made = greedy(costs)
    took_s = time.perf_counter() - began
    yield SELECTIONS[0], costs.grid.processors, made.makespan_s, took_s
    for name, wanted in zip(SELECTIONS[1:], _descriptions(costs, shares), strict=True):
        began = time.perf_counter()
        bag = select(wanted, costs.grid)
        if isinstance(bag, Refusal):
            continue
        part = costs.part(bag.nodes)
        made = greedy(part)
        yield name, part.grid.processors, made.makespan_s, time.perf_counter() - began


def _descriptions(costs: Costs, shares: Sequence[float]) -> tuple[Aggregate, ...]:
    """Of the selections but the first, which is the whole grid."""
    hosts = costs.grid.processors
    enough = next(n for share in shares if (n := int(hosts * share / 100)) > costs.width)
    near = f"TightBagOf(node)[1:{costs.width}] {_NODE}"
    few = f"LooseBagOf(tb)[1:3] {{ tb = TightBagOf(node)[1:500] [Rank = Nodes] {_NODE} }}"
    return fastest(enough), parse_description(near), parse_description(few)


def _shares_of(seed: int, grid: Grid) -> Iterator[Selected]:
    """One-step scheduling of the widest Montage on the first tenths of the clusters: how time grows
    (figure 4.4)."""
    costs = _on(_application("montage", STAND_INS["chapter_4"]["montage"][-1], seed, 1.0), grid)
    size = len(costs.workflow) + costs.workflow.parents.edges
    about = (seed, "montage", 1.0, costs.width, size)
    for tenth in range(1, 11):
        clusters = range(len(grid.clusters) * tenth // 10)
        part = costs.part({c: grid.clusters[c].nodes for c in clusters})
        took = []
        for _ in range(7):
            began = time.perf_counter()
            makespan_s = find_scheduler("greedy")(Costs(part.workflow, part.grid)).makespan_s
            took.append(time.perf_counter() - began)
        yield Selected(*about, "growth", part.grid.processors, makespan_s, min(took))
