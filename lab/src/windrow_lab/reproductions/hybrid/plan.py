"""Chapter 5, run again: 16 workflows, four ways, four batches, in a world of constant waits; and on
real logs.

A call is one seed in one world. Draws are the same for a task whatever the way, so the ways are
compared in pairs.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from windrow.model import File
from windrow.recipes import generate_workflow
from windrow.sim.cluster import Cluster
from windrow_lab.campaign.sources import LogSource
from windrow_lab.grid.clusters import Grid
from windrow_lab.grid.costs import Costs
from windrow_lab.grid.estimate import MB, LoopWork, Model
from windrow_lab.grid.hybrid import (
    AGGRESSIVE,
    CONSERVATIVE,
    WAYS,
    QueueWorld,
    Trigger,
    execute,
    plan_length_s,
)
from windrow_lab.grid.recipes import generate_grid
from windrow_lab.reproductions.cases import find_log, missing_log
from windrow_lab.reproductions.hybrid.worlds import ConstantWaits, Reality, RealQueues
from windrow_lab.reproductions.paper import PaperPlan, Wishes, printed

STAND_INS = printed("hybrid", "stand_ins")
BATCHES: dict[str, tuple[Trigger, str]] = {
    "aggressive": (AGGRESSIVE, ""),
    "conservative": (CONSERVATIVE, ""),
    "queue load": (AGGRESSIVE, "queue"),
    "disk load": (AGGRESSIVE, "disk"),
}
READINGS: dict[str, dict[str, Any]] = {
    "ours": {},
    "estimates without waits (figure 5.2 as printed)": {"waits": False},
    "the pool grows only while it gets better (figure 5.3 as printed)": {"stops": "better"},
    "the same, and starts with the power of the best": {"stops": "better", "begins": "power"},
    "waits as observed, our own tasks' included": {"own_waits": True},
}
SLOWER = (5.0, 20.0, 50.0)
"""The experiment: by how much links are slower than in the stand-ins."""


@dataclass(frozen=True, slots=True)
class Timed:
    """One workflow, one way. slr: turnaround by what the static way planned (5.3.4); by_longest: by
    the longest way in the mean (chapter 2). far: the share of tasks on Lonestar, whose queue was
    not reserved.
    """

    world: str
    slower: float
    seed: int
    case: str
    batch: str
    reading: str
    way: str
    turnaround_s: float
    slr: float
    by_longest: float
    chosen: int
    far: float


def plan_hybrid(wishes: Wishes) -> PaperPlan:
    """A call for each seed and world; a quick run has other readings on the first seed only."""
    seeds = STAND_INS["seeds"]
    found = {name: find_log(name, wishes.data) for name in STAND_INS["queues"]["logs"]}
    logs = tuple(log for log in found.values() if log)
    fate = "the runs on real logs are left out"
    missing = [missing_log(name, fate) for name, log in found.items() if not log]
    if wishes.full:
        scale = "full"
        some = seeds
        read = seeds
    else:
        scale = "quick"
        some = seeds[:2]
        read = seeds[:1]
    calls: list[partial[list[Timed]]] = [partial(runs, s, readings=s in read) for s in seeds]
    calls += [partial(runs, seed, slower=slower) for slower in SLOWER for seed in some]
    if not missing:
        calls += [partial(runs_on_logs, seed, logs) for seed in some]
    words = (STAND_INS["words"], *missing)
    what = "running workflows over queues"
    return PaperPlan(scale, stand_ins=words, calls=tuple(calls), calls_are=what)


def four_queues(slower: float = 1.0) -> Grid:
    """The four queues, with our bandwidths, or slower ones."""
    grid = generate_grid("four-queues")
    bandwidth = np.array(STAND_INS["bandwidth_mb_s"]) * MB / slower
    return Grid(
        grid.clusters, grid.latency_s, np.where(np.eye(4), grid.bandwidth_bytes_s, bandwidth)
    )


def cases(seed: int) -> Iterator[tuple[str, LoopWork]]:
    """The 16 workflows."""
    means = (STAND_INS["iterations"], STAND_INS["written_mb"])
    for recipe, sizes in STAND_INS["tasks"].items():
        for tasks in sizes:
            yield f"{recipe}-{tasks}", work_of(recipe, tasks, seed, *means)


def work_of(recipe: str, tasks: int, seed: int, iterations: float, written_mb: float) -> LoopWork:
    """A workflow with whole iterations, and megabytes to write, that have these means."""
    workflow = generate_workflow(recipe, tasks=tasks, seed=seed)
    sizes = np.array([file.size_bytes for file in workflow.files])
    written = np.bincount(workflow.outputs.sources(), sizes[workflow.outputs.index], len(workflow))
    factor = written_mb * MB / written.mean()
    scaled = [File(file.id, round(file.size_bytes * factor)) for file in workflow.files]
    drawn = np.round(workflow.runtime_s / workflow.runtime_s.mean() * iterations)
    return LoopWork(workflow.changed(files=scaled), np.maximum(1.0, drawn), written * factor / MB)


def runs(seed: int, *, readings: bool = False, slower: float = 1.0) -> list[Timed]:
    """All ways in all batches, with constant waits; with other readings in the first batch, if
    they are wanted."""
    grid = four_queues(slower)
    model = Model.of(grid)
    wanted = [(batch, "ours", way) for batch in BATCHES for way in WAYS]
    wanted += [
        ("aggressive", reading, way)
        for reading in [*READINGS][1:]
        for way in ("hybrid", "static")
        if readings
    ]
    return _runs(
        ("constant", slower, seed), grid, model, partial(ConstantWaits, model, seed=seed), wanted
    )


def runs_on_logs(seed: int, logs: tuple[LogSource, ...]) -> list[Timed]:
    """All ways in all batches, on the logs' queues from one time on."""
    clusters = [Cluster(log.load("actual"), policy="easy") for log in logs]
    for cluster in clusters:
        cluster.advance(86_400 * (STAND_INS["queues"]["first_day"] + seed))
    grid = four_queues()
    model = replace(Model.of(grid), nodes=np.array([cluster.nodes for cluster in clusters]))
    wanted = [(batch, "ours", way) for batch in BATCHES for way in WAYS]
    return _runs(
        ("logs", 1.0, seed),
        grid,
        model,
        partial(RealQueues, model, seed=seed, clusters=clusters),
        wanted,
    )


def _runs(
    named: tuple[str, float, int],
    grid: Grid,
    model: Model,
    world: Callable[[Reality], QueueWorld],
    wanted: list[tuple[str, str, str]],
) -> list[Timed]:
    found = []
    for case, work in cases(named[-1]):
        plan_s = plan_length_s(work, model)
        longest_s = Costs(work.workflow, grid, model.run_s(work)).critical_s
        for batch, reading, way in wanted:
            trigger, load = BATCHES[batch]
            options = READINGS[reading]
            outcome = execute(way, work, model, world(_reality(load)), trigger, **options)
            took_s = outcome.turnaround_s
            timed = Timed(
                *named,
                case=case,
                batch=batch,
                reading=reading,
                way=way,
                turnaround_s=took_s,
                slr=took_s / plan_s,
                by_longest=took_s / longest_s,
                chosen=outcome.chosen,
                far=outcome.queue_of.count(3) / len(outcome.queue_of),
            )
            found.append(timed)
    return found


def _reality(load: str) -> Reality:
    """With others' load of that name, if any."""
    more = STAND_INS["loads"][load] if load else {}
    return Reality(**STAND_INS["reality"], **more)
