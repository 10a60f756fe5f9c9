"""Part 7: HEFT by tasks and processors, beside saga (anrg-saga) where there is a Python that has
it, and how it grows.

Timed is the whole of it: run times by cluster, means, ranks and the schedule, of a workflow and a
grid in memory. Grids are of few clusters, and of processors that all differ, where each is a
cluster of its own. Saga is found by the variable WINDROW_SAGA: the Python of an environment with
anrg-saga. It gets the same cases of processors that differ, and must have the same makespan; one
that takes it too long is left out. All are times of the processor (one thread), which a busy
machine lengthens least.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from bench.peer_process import HERE, PeerMissingError, TooSlowError, told
from bench.peer_saga import random_case
from bench.progress import Progress
from bench.tables import ratio, seconds, table
from bench.timing import measure
from bench.whole_logs import verdict
from windrow.model import File, Task, Workflow
from windrow.recipes.workflows.catalog import generate_workflow
from windrow_lab.grid.clusters import Grid, GridCluster
from windrow_lab.grid.costs import Costs
from windrow_lab.grid.describe import parse_description
from windrow_lab.grid.heft import heft
from windrow_lab.grid.recipes import generate_grid
from windrow_lab.grid.schedule import Schedule, listed
from windrow_lab.grid.select import select

TARGETS_S = {100: 0.003, 1_000: 0.015, 18_000: 0.040}
"""For 1,000 tasks, by processors."""
SAGA_LIMIT_S = 300.0
"""By the clock."""


@dataclass(frozen=True, slots=True)
class Timed:
    """HEFT once. `same`: whether saga had the same makespan, where it was asked."""

    tasks: int
    processors: int
    clusters: int
    width: int
    wall_s: float
    saga_s: float | None = None
    same: bool | None = None
    met: bool | None = None
    problem: str = ""


def costs_of(case: dict[str, Any]) -> Costs:
    """A case of `peer_saga` as ours: each processor is a cluster."""
    inputs: dict[int, list[str]] = {i: [] for i in range(len(case["costs"]))}
    outputs: dict[int, list[str]] = {i: [] for i in inputs}
    parents: dict[int, list[str]] = {i: [] for i in inputs}
    for a, b, _ in case["edges"]:
        parents[b].append(f"t{a}")
        inputs[b].append(f"{a}-{b}")
        outputs[a].append(f"{a}-{b}")
    tasks = [
        Task(
            f"t{i}",
            cost,
            parents=tuple(parents[i]),
            inputs=tuple(inputs[i]),
            outputs=tuple(outputs[i]),
        )
        for i, cost in enumerate(case["costs"])
    ]
    workflow = Workflow.from_tasks(
        "case", tasks, [File(f"{a}-{b}", size) for a, b, size in case["edges"]]
    )
    clusters = tuple(GridCluster(f"p{p}", 1, speed) for p, speed in enumerate(case["speeds"]))
    grid = Grid(
        clusters,
        np.zeros((len(clusters), len(clusters))),
        np.array(case["bandwidths"]),
        reference_speed=1.0,
    )
    return Costs(workflow, grid)


def as_saga(costs: Costs) -> Schedule:
    """HEFT in the order in which saga takes tasks: its mean counts ways from a processor to
    itself."""
    grid = costs.grid
    p = costs.grid.processors
    short = Grid(
        grid.clusters,
        grid.latency_s,
        grid.bandwidth_bytes_s * ((p + 1) / max(1, p - 1)),
        grid.reference_speed,
    )
    return listed(costs, costs.by(-Costs(costs.workflow, short).ranks[0]), insertion=True)


def run(progress: Progress, *, quick: bool, with_peers: bool) -> list[Timed]:
    """Every size on every grid."""
    found = []
    for tasks in (300, 1_000) if quick else (300, 1_000, 3_000, 10_000):
        workflow = generate_workflow("random", tasks=tasks, seed=1)
        grids = (
            {100: [0, 100], 1_000: [20, 1_000], 18_000: [500]}
            if tasks == 1_000 or not quick
            else {100: [0]}
        )
        for processors, kinds in grids.items():
            for clusters in kinds:
                progress.say(f"{tasks:,} tasks on {processors:,} processors")
                grid = _grid(processors, clusters)
                found.append(_timed(workflow, grid))
                if tasks == 1_000:
                    found[-1] = replace(found[-1], met=found[-1].wall_s <= TARGETS_S[processors])
    for alpha in (0.2, 0.5, 2.0, 5.0):  # (1 is above.)
        wider = generate_workflow("random", tasks=1_000, seed=1, parameters={"alpha": str(alpha)})
        found.append(_timed(wider, _grid(100, 0)))
    sizes = (
        [(100, 10), (100, 30), (300, 30)]
        if quick
        else [(100, 10), (100, 30), (100, 100), (300, 30), (1_000, 100)]
    )
    return found + [_beside(progress, *size) for size in sizes if with_peers]


def _timed(workflow: Workflow, grid: Grid) -> Timed:
    heft(Costs(workflow, grid))
    took = measure(
        lambda: heft(Costs(workflow, grid)), budget_s=0.3, least=5, clock=time.process_time
    )
    return Timed(
        len(workflow), grid.processors, len(grid.clusters), _width(workflow), took.median_s
    )


def _width(workflow: Workflow) -> int:
    return int(np.bincount(workflow.levels).max())


def _grid(processors: int, clusters: int) -> Grid:
    """Like big-cluster (0), of this many clusters, or the universal one."""
    if processors == 18_000:
        return generate_grid("universal", seed=1)
    if clusters == 0:
        return generate_grid("big-cluster", seed=1).part({0: 20, 1: 25, 2: 40, 3: 15})
    each = {"more": str(clusters - 4), "nodes": str(max(1, processors // clusters)), "spread": "0"}
    grid = generate_grid("many-cluster", seed=1, parameters=each)
    return grid.part(dict.fromkeys(range(clusters), processors // clusters))


def _beside(progress: Progress, tasks: int, processors: int) -> Timed:
    """The same case by both."""
    case = random_case(1, tasks, processors)
    costs = costs_of(case)
    ours = as_saga(costs)
    again = measure(
        lambda: as_saga(Costs(costs.workflow, costs.grid)),
        budget_s=0.3,
        least=3,
        clock=time.process_time,
    )
    mine = Timed(tasks, processors, processors, _width(costs.workflow), again.median_s)
    try:
        progress.say(f"saga, {tasks:,} tasks on {processors:,} processors")
        makespan, saga_s = _saga(case, progress)
    except TooSlowError:
        return replace(mine, problem=f"over {SAGA_LIMIT_S:.0f} s")
    except PeerMissingError as error:
        return replace(mine, problem=str(error))
    return replace(mine, saga_s=saga_s, same=abs(makespan - ours.makespan_s) <= 1e-9 * makespan)


def _saga(case: dict[str, Any], progress: Progress) -> tuple[float, float]:
    python = os.environ.get("WINDROW_SAGA")
    if not python:
        raise PeerMissingError("not here")
    with tempfile.TemporaryDirectory() as folder:
        cases = Path(folder, "cases.json")
        cases.write_text(json.dumps([case]), encoding="utf-8")
        command = [python, str(HERE / "peer_saga.py"), str(cases)]
        line = told(
            command,
            limit_s=SAGA_LIMIT_S,
            waiting=lambda left: progress.say(f"saga, at most {left:.0f} s more"),
        )
    makespan, saga_s = json.loads(line)
    return makespan, saga_s


def tables(found: Sequence[Timed]) -> list[Table]:
    """One row per size and grid; saga's beside."""
    columns = (
        "tasks",
        "width",
        "processors",
        "clusters",
        "HEFT",
        "target met",
        "saga",
        "ratio",
        "result",
    )
    rows = [
        (
            *(f"{value:,}" for value in (one.tasks, one.width, one.processors, one.clusters)),
            *(seconds(one.wall_s), verdict(one.met)),
            one.problem or seconds(one.saga_s),
            "-" if one.saga_s is None else ratio(one.saga_s / one.wall_s),
            "-" if one.same is None else "same makespan" if one.same else "WRONG",
        )
        for one in found
    ]
    goals = ", ".join(f"{s * 1000:.0f} ms on {p:,}" for p, s in TARGETS_S.items())
    notes = [
        f"Targets, for 1,000 tasks: {goals} processors. Saga: set WINDROW_SAGA to a Python that "
        "has anrg-saga."
    ]
    small = [one for one in found if one.tasks == 1_000 and one.clusters == 4]
    usual = [one for one in found if one not in small[1:]]
    for what, fixed, among in (
        ("tasks", "clusters", usual),
        ("clusters", "tasks", usual),
        ("width", "tasks", small),
    ):
        notes += [f"Exponent over {what}{words}." for words in _exponents(among, what, fixed)]
    return [
        table("7. Schedules on grids (HEFT, random workflows)", columns, rows, notes),
        selections(),
    ]


def selections() -> Table:
    """Descriptions read and answered, as in figures 4.2 and 4.3 of the thesis and nested, over
    grids that grow."""
    node = "node = [Processor == OPTERON || Processor == ITANIUM] [Rank = Clock]"
    bags = {
        kind: f"{kind}Of(node)[1:500] {{ {node} }}" for kind in ("LooseBag", "TightBag", "Cluster")
    }
    largest = bags["TightBag"].replace("] {", "] [Rank = Nodes] {")
    asked = bags | {
        "LooseBag of 5 TightBags": f"LooseBagOf(bag)[1:5] {{ bag = {largest} }}",
        "TightBag of 5 Clusters": f"TightBagOf(bag)[1:5] {{ bag = {bags['Cluster']} }}",
        "TightBag of 5 TightBags": f"TightBagOf(bag)[1:5] {{ bag = {bags['TightBag']} }}",
    }
    rows = []
    took = {name: list[float]() for name in asked}
    sizes = (
        (250, 16.0, None),
        (500, 16.0, None),
        (1_000, 16.0, 0.030),
        (2_000, 16.0, None),
        (2_000, 213.0, 1.0),
    )
    for clusters, nodes, target_s in sizes:
        grid = generate_grid(
            "universe", seed=1, parameters={"more": str(clusters), "nodes": str(nodes)}
        )
        for name, text in asked.items():
            one = measure(
                lambda: select(parse_description(text), grid),  # noqa: B023
                budget_s=0.3,
                least=3,
                clock=time.process_time,
            )
            took[name].append(one.median_s)
            met = None if target_s is None else one.median_s <= target_s
            rows.append(
                (f"{grid.processors:,}", f"{clusters:,}", name, seconds(one.median_s), verdict(met))
            )
    notes = [
        "Targets: 30 ms over the universe, 1 s over a million nodes. In print vgES took up to 5 "
        "s over a million."
    ]
    slopes = {
        name: np.polyfit(np.log([250, 500, 1_000, 2_000]), np.log(s[:4]), 1)[0]
        for name, s in took.items()
    }
    notes.append(
        "Exponent over clusters: "
        + ", ".join(f"{name} {slope:.2f}" for name, slope in slopes.items())
        + "."
    )
    return table(
        "7. Selections by a description",
        ("nodes", "clusters", "description", "took", "target met"),
        rows,
        notes,
    )


def _exponents(found: Sequence[Timed], over: str, fixed: str) -> list[str]:
    """Slopes of log time over one thing, where the other is the same; of saga's beside ours, by
    both alike."""
    words = []
    for value in sorted({getattr(one, fixed) for one in found}):
        mine = [
            one
            for one in found
            if getattr(one, fixed) == value and one.saga_s is None and not one.problem
        ]
        peer = [one for one in found if getattr(one, fixed) == value and one.saga_s]
        for name, rows, times in (
            ("", mine, [o.wall_s for o in mine]),
            (", saga", peer, [o.saga_s for o in peer]),
        ):
            sizes = [getattr(one, over) for one in rows]
            if len(set(sizes)) > 2:
                slope = np.polyfit(np.log(sizes), np.log(np.array(times, dtype=float)), 1)[0]
                words.append(f" at {value:,} {fixed}{name}: {slope:.2f}")
    return words
