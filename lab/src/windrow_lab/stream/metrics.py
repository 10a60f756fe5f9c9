"""Figures of one run of a stream: wait, makespan, response, slowdown, utilization, idle but kept,
fairness.

Definitions of Ilyushkin, Ghit and Epema (2015), section II. Wait: arrival to first start. Makespan:
first start to last end. Response: their sum. Slowdown: response over the makespan of the same
workflow alone on the pool.

Rule: the first third of the workflows (1,000 of 3,000) is warm-up and not measured; nor is a
workflow that has not finished when the last one arrives, for after that the pool runs empty. The
simulation ends there.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windrow.model.workflow import Floats
from windrow.streams import Policy
from windrow_lab.stream.simulation import Simulator, StreamOutcome
from windrow_lab.stream.workload import CLASSES, JOB

WARM_UP = 1 / 3
"""The share of workflows, by arrival, that is not measured."""


@dataclass(frozen=True, slots=True)
class SizeFigures:
    """Means over the workflows of one class, by size, or over batch jobs; NaN if none was
    measured."""

    size: str
    workflows: int
    wait_s: float
    makespan_s: float
    empty_s: float
    slowdown: float


@dataclass(frozen=True, slots=True)
class StreamFigures:
    """One run. `utilization` is measured, from the start to the last arrival; `offered` is what was
    asked for."""

    policy: str
    offered: float
    measured: int
    wait_s: float
    makespan_s: float
    response_s: float
    slowdown: float
    slowdown_p99: float
    slowdown_max: float
    wait_s_max: float
    utilization: float
    kept: float
    """The mean share of processors that stood idle because they were kept for a workflow."""
    unfairness: float
    """The largest mean slowdown of a class over the smallest: 1 is fair."""
    in_system: int
    """Workflows not finished at the last arrival."""
    sizes: tuple[SizeFigures, ...]
    """Small, medium and large workflows; then batch jobs, if the workload has any."""


@dataclass(frozen=True, slots=True)
class StreamRun:
    """Columns over all workflows of a run, NaN if one did not finish; `measured` says which ones
    count."""

    wait_s: Floats
    makespan_s: Floats
    slowdown: Floats
    measured: NDArray[np.bool_]


def run_stream(
    simulator: Simulator, policy: Policy, utilization: float, *, lengths_s: Floats | None = None
) -> StreamFigures:
    """Simulate at this utilization up to the last arrival, and measure."""
    arrival_s = simulator.workload.arrivals_s(utilization, simulator.slots)
    outcome = simulator.run(policy, arrival_s, lengths_s=lengths_s, until_s=float(arrival_s[-1]))
    return figures(simulator, outcome, policy.name, utilization)


def columns(simulator: Simulator, outcome: StreamOutcome) -> StreamRun:
    """Wait, makespan and slowdown of each workflow."""
    start_s = simulator.by_workflow(np.fmin, outcome.start_s)
    end_s = simulator.by_workflow(np.maximum, outcome.end_s)
    late = np.arange(len(start_s)) >= int(len(start_s) * WARM_UP)
    slowdown = (end_s - outcome.arrival_s) / simulator.empty_s
    return StreamRun(
        start_s - outcome.arrival_s, end_s - start_s, slowdown, late & np.isfinite(end_s)
    )


def figures(
    simulator: Simulator, outcome: StreamOutcome, policy: str, offered: float
) -> StreamFigures:
    """All figures of a run that ended at the last arrival."""
    run = columns(simulator, outcome)
    of = run.measured
    span_s = simulator.slots * float(outcome.arrival_s[-1])
    has_jobs = bool((simulator.workload.sizes == JOB).any())
    sizes = tuple(_of_size(simulator, run, k) for k in range(len(CLASSES) if has_jobs else JOB))
    means = [s.slowdown for s in sizes if s.workflows]
    return StreamFigures(
        policy=policy,
        offered=offered,
        measured=int(of.sum()),
        wait_s=_mean(run.wait_s[of]),
        makespan_s=_mean(run.makespan_s[of]),
        response_s=_mean(run.wait_s[of] + run.makespan_s[of]),
        slowdown=_mean(run.slowdown[of]),
        slowdown_p99=float(np.percentile(run.slowdown[of], 99)) if of.any() else float("nan"),
        slowdown_max=float(run.slowdown[of].max(initial=0.0)),
        wait_s_max=float(run.wait_s[of].max(initial=0.0)),
        utilization=outcome.busy_s / span_s,
        kept=outcome.kept_s / span_s,
        unfairness=max(means) / min(means) if means else float("nan"),
        in_system=outcome.in_system,
        sizes=sizes,
    )


def _of_size(simulator: Simulator, run: StreamRun, size: int) -> SizeFigures:
    of = run.measured & (simulator.workload.sizes == size)
    columns = run.wait_s, run.makespan_s, simulator.empty_s, run.slowdown
    return SizeFigures(CLASSES[size], int(of.sum()), *(_mean(column[of]) for column in columns))


def _mean(values: Floats) -> float:
    if len(values):
        return float(values.mean())
    return float("nan")
