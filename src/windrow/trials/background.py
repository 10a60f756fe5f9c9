"""What else the cluster does while a workflow runs: busy nodes and waiting jobs, exact at every
second.

The run is made on a cluster that records the starts of the log's jobs, so nothing is sampled and
nothing estimated. Nodes that are out count as idle.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windrow.sim.simulation import Simulation, steps
from windrow.story.figures import RecordedRun
from windrow.strategies import Strategy
from windrow.trials.scenario import Scenario

Ints = NDArray[np.int64]
Steps = tuple[Ints, Ints]
"""Times, ascending, and the value from each on until the next."""

_NEVER = 2**62


@dataclass(frozen=True)
class Background:
    """The cluster around a run, on the log's own clock, from `begin_s` to `end_s`.

    `others_nodes` are kept busy by the log's jobs, `busy_nodes` by these and the run's;
    `jobs_waiting` are the log's.
    """

    begin_s: int
    end_s: int
    machine_nodes: int
    others_nodes: Steps
    busy_nodes: Steps
    jobs_waiting: Steps


def run_with_background(
    scenario: Scenario, strategy: Strategy, at_s: int
) -> tuple[RecordedRun, Background]:
    """One run, and what went on around it: from a tenth of its length before to as much after."""
    cluster = scenario.warm(scenario.cluster(record=True), at_s)
    trial = scenario.trial(cluster, strategy)
    around = max(60, trial.makespan_s // 10)
    run = trial.recorded
    begin = max(scenario.zero_s, int(run.begun_s) - around)
    end = int(run.until_s) + around
    cluster.advance(end)
    starts = np.where(cluster.log_starts_s < 0, _NEVER, cluster.log_starts_s)
    log = Simulation("", scenario.log, cluster.nodes, starts, hits=cluster.log_hits)
    own = [
        (j.started_s, j.ended_s, j.plan.nodes)
        for j in run.story.jobs.values()
        if j.started_s is not None
    ]
    every = [
        np.concatenate(pair)
        for pair in zip(log.runs(), np.array(own, dtype=np.int64).T, strict=True)
    ]
    found = (within(parts, begin, end) for parts in (log.runs(), every, log.waits()))
    return run, Background(begin, end, cluster.nodes, *found)


def within(parts: Iterable[Ints], low: int, high: int) -> Steps:
    """The total weight of the intervals [begin, end) that cover each time from `low` to `high`;
    parts are all three."""
    begin, end, weight = parts
    a = np.clip(begin, low, high)
    b = np.clip(end, low, high)
    counted = b != a
    whole = (([low], a[counted]), ([high], b[counted]), ([0], weight[counted]))
    times, values = steps(*map(np.concatenate, whole))
    values[-1] = values[-2] if len(values) > 1 else 0  # nothing ends just because the picture does
    return times, values
