"""Chapter 5, run again: 16 workflows, four ways, four batches, in a world of constant waits; and on real logs.

A call is one seed in one world. Draws are the same for a task whatever the way, so the ways are compared in pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from windrow.grid.clusters import Grid
from windrow.grid.costs import Costs
from windrow.grid.estimate import MB, Model, Work
from windrow.grid.hybrid import AGGRESSIVE, CONSERVATIVE, WAYS, Trigger, World, execute, plan_length_s
from windrow.lab.campaign.sources import LogSource
from windrow.model import File
from windrow.recipes import generate_grid, generate_workflow
from windrow.reproductions.cases import find_log, missing_log
from windrow.reproductions.hybrid.worlds import ConstantWaits, Reality, RealQueues
from windrow.reproductions.paper import PaperPlan, Wishes, printed
from windrow.sim.cluster import Cluster

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
    "the pool begins with the power of the best": {"begins": "power"},
    "waits as observed, our own tasks' included": {"own_waits": True},
}
SLOWER = (5.0, 20.0, 50.0)
"""The experiment: by how much links are slower than in the stand-ins."""
_WORDS = (
    "Bandwidths, sizes of workflows and tasks, noise, contention and the size of the loads are ours, fixed before "
    "anything was compared (stand_ins.toml); nothing is calibrated. Print ran on four real clusters for three months."
)


@dataclass(frozen=True, slots=True)
class Run:
    """One workflow, one way: its turnaround, what the static way planned, and the longest way in the mean."""

    world: str
    batch: str
    reading: str
    seed: int
    case: str
    way: str
    turnaround_s: float
    plan_s: float
    longest_s: float
    chosen: int
    slower: float
    """By how much all links are slower than the stand-ins say."""
    far: float
    """The share of tasks on Lonestar, whose queue was not reserved."""

    @property
    def slr(self) -> float:
        """As 5.3.4 explains it: turnaround by what the static way planned."""
        return self.turnaround_s / self.plan_s


def plan_hybrid(wishes: Wishes) -> PaperPlan:
    """A call for each seed and world; a quick run has other readings on the first seed only."""
    logs = [find_log(name, wishes.data) for name in STAND_INS["queues"]["logs"]]
    missing = [name for name, log in zip(STAND_INS["queues"]["logs"], logs, strict=True) if log is None]
    words = [missing_log(name, "the runs on real logs are left out") for name in missing]
    seeds = STAND_INS["seeds"]
    calls: list[partial[list[Run]]] = [partial(runs, seed, readings=wishes.full or seed == seeds[0]) for seed in seeds]
    calls += [partial(runs, seed, slower=slower) for slower in SLOWER for seed in (seeds if wishes.full else seeds[:2])]
    if not missing:
        found = tuple(log for log in logs if log is not None)
        calls += [partial(runs_on_logs, seed, found) for seed in (seeds if wishes.full else seeds[:2])]
    scale = "full" if wishes.full else "quick"
    return PaperPlan(scale, stand_ins=(_WORDS, *words), calls=tuple(calls), calls_are="running workflows over queues")


def four_queues(slower: float = 1.0) -> Grid:
    """The four queues, with our bandwidths, or slower ones."""
    grid = generate_grid("four-queues")
    bandwidth = np.array(STAND_INS["bandwidth_mb_s"]) * MB / slower
    return Grid(grid.clusters, grid.latency_s, np.where(np.eye(4), grid.bandwidth_bytes_s, bandwidth))


def cases(seed: int) -> Iterator[tuple[str, Work]]:
    """The 16 workflows, with whole iterations and megabytes that have the means of the stand-ins."""
    for recipe, sizes in STAND_INS["tasks"].items():
        for tasks in sizes:
            workflow = generate_workflow(recipe, tasks=tasks, seed=seed)
            written = np.array(
                [sum(workflow.files[f].size_bytes for f in workflow.outputs.of(v)) for v in range(len(workflow))]
            )
            factor = STAND_INS["written_mb"] * MB / max(written.mean(), 1.0)
            scaled = [File(file.id, round(file.size_bytes * factor)) for file in workflow.files]
            relative = workflow.runtime_s / workflow.runtime_s.mean()
            iterations = np.maximum(1.0, np.round(relative * STAND_INS["iterations"]))
            yield f"{recipe}-{tasks}", Work(workflow.changed(files=scaled), iterations, written * factor / MB)


def runs(seed: int, *, readings: bool = False, slower: float = 1.0) -> list[Run]:
    """All ways in all batches, with constant waits; with other readings in the first batch, where they are wanted."""
    grid, found = four_queues(slower), []
    model = Model.of(grid)
    for case, work in cases(seed):
        for batch, (trigger, load) in BATCHES.items():
            reality = Reality(**STAND_INS["reality"], **(STAND_INS["loads"][load] if load else {}))
            for reading in READINGS if readings and batch == "aggressive" else ("ours",):
                for way in WAYS if reading == "ours" else ("hybrid", "static"):
                    named = ("constant", batch, reading, seed, case, way)
                    found.append(_run(named, work, grid, model, ConstantWaits(model, reality, seed), trigger, slower))
    return found


def runs_on_logs(seed: int, logs: tuple[LogSource, ...]) -> list[Run]:
    """All ways under both triggers, on the logs' queues from one time on."""
    start_s = 86_400 * (STAND_INS["queues"]["first_day"] + seed)
    clusters = [Cluster(log.load("actual"), policy="easy") for log in logs]
    for cluster in clusters:
        cluster.advance(start_s)
    grid, found = four_queues(), []
    model = replace(Model.of(grid), nodes=np.array([cluster.nodes for cluster in clusters]))
    reality = Reality(**STAND_INS["reality"])
    for case, work in cases(seed):
        for batch in ("aggressive", "conservative"):
            for way in WAYS:
                named = ("logs", batch, "ours", seed, case, way)
                world = RealQueues(model, reality, seed, clusters)
                found.append(_run(named, work, grid, model, world, BATCHES[batch][0]))
    return found


def _run(
    named: tuple[str, str, str, int, str, str],
    work: Work,
    grid: Grid,
    model: Model,
    world: World,
    trigger: Trigger,
    slower: float = 1.0,
) -> Run:
    outcome = execute(named[-1], work, model, world, trigger, **READINGS[named[2]])
    longest = Costs(work.workflow, grid, model.run_s(work)).critical_s
    far = outcome.queue_of.count(3) / len(outcome.queue_of)
    return Run(*named, outcome.turnaround_s, plan_length_s(work, model), longest, outcome.chosen, slower, far)
