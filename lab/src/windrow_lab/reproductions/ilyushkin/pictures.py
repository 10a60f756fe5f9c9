"""What figures 2, 4, 5, 7 and 8 of the paper show, as numbers."""

from dataclasses import dataclass

import numpy as np

from windrow.model.workflow import Floats
from windrow.recipes import generate_workflow
from windrow.recipes.chance import seeded
from windrow.shape import level_of_parallelism, token_parallelism
from windrow.streams import find_policy
from windrow_lab.stream.metrics import columns
from windrow_lab.stream.simulation import Simulator
from windrow_lab.stream.workload import WORKLOADS, draw_work_s, draw_workload

SIZES = (50, 100, 200, 300, 400, 500, 600, 700, 800)
WORK_EDGES_S = np.arange(0.0, 12_001.0, 500.0)
RUNTIME_EDGES_S = np.geomspace(0.1, 10_000.0, 26)
SCATTER = (("sr", 0.35), ("bf", 0.95))
"""Policies and utilizations of figure 7."""

TRACE_S = 5 * 3600.0


@dataclass(frozen=True, slots=True)
class Parallelism:
    """Means over the workflows drawn of one application and size."""

    workload: str
    tasks: int
    exact: float
    tokens: float
    most_missed: int
    """The largest difference between the two."""


@dataclass(frozen=True, slots=True)
class Scatter:
    """Tasks and slowdown of each measured workflow."""

    policy: str
    utilization: float
    tasks: Floats
    slowdown: Floats


@dataclass(frozen=True, slots=True)
class Pictures:
    """All of them; `trace` has rows of time, processors at work, waiting for, kept."""

    parallelism: tuple[Parallelism, ...]
    work_counts: Floats
    runtime_counts: tuple[tuple[str, Floats], ...]
    scatters: tuple[Scatter, ...]
    trace: Floats


def pictures(*, full: bool) -> Pictures:
    """Figure 2 with 50 workflows of each size if `full`, else with 5; the others alike."""
    counts, _ = np.histogram(draw_work_s(seeded(1, "figure-4"), 100_000), WORK_EDGES_S)
    simulator = Simulator(draw_workload("mixture", seed=1), seed=1)
    return Pictures(
        tuple(
            _parallelism(w, n, 50 if full else 5)
            for w in ("montage", "ligo", "sipht")
            for n in SIZES
        ),
        counts.astype(np.float64),
        tuple((w, _runtimes(w)) for w in ("montage", "ligo", "sipht")),
        tuple(_scatter(simulator, policy, utilization) for policy, utilization in SCATTER),
        _trace(simulator),
    )


def _parallelism(workload: str, tasks: int, count: int) -> Parallelism:
    recipe = WORKLOADS[workload][0]
    drawn = [generate_workflow(recipe, tasks=tasks, seed=seed) for seed in range(count)]
    exact = np.array([level_of_parallelism(w) for w in drawn])
    tokens = np.array([token_parallelism(w) for w in drawn])
    return Parallelism(
        workload, tasks, float(exact.mean()), float(tokens.mean()), int((exact - tokens).max())
    )


def _runtimes(workload: str) -> Floats:
    drawn = draw_workload(workload, workflows=300, seed=1, single_ends=False)
    counts, _ = np.histogram(
        np.concatenate([w.runtime_s for w in drawn.workflows]), RUNTIME_EDGES_S
    )
    return counts.astype(np.float64)


def _scatter(simulator: Simulator, policy: str, utilization: float) -> Scatter:
    arrival_s = simulator.workload.arrivals_s(utilization, simulator.slots)
    run = columns(
        simulator, simulator.run(find_policy(policy), arrival_s, until_s=float(arrival_s[-1]))
    )
    tasks = np.array([len(w) for w in simulator.workload.workflows], dtype=np.float64)
    return Scatter(policy, utilization, tasks[run.measured], run.slowdown[run.measured])


def _trace(simulator: Simulator) -> Floats:
    """Five hours of `sr` at the printed maximal utilization, from the middle of the stream."""
    arrival_s = simulator.workload.arrivals_s(0.35, simulator.slots)
    middle_s = float(arrival_s[len(arrival_s) // 2])
    outcome = simulator.run(
        find_policy("sr"),
        arrival_s,
        until_s=middle_s + TRACE_S,
        trace_rows=100_000,
        trace_from_s=middle_s,
    )
    return outcome.trace
