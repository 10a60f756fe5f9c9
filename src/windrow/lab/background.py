"""What else the cluster does while a workflow runs: busy nodes and waiting jobs, exact at every second.

The run is made on a cluster that records the starts of the log's jobs, so nothing is sampled and nothing estimated.
Of a job of the log that lost a node only the last attempt is shown, and nodes that are out count as idle.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windrow.lab.scenario import Scenario
from windrow.manager.figures import RecordedRun
from windrow.strategies import Strategy

Ints = NDArray[np.int64]
Steps = tuple[Ints, Ints]
"""Times, ascending, and the value from each on until the next."""

_NEVER = 2**62


@dataclass(frozen=True)
class Background:
    """The cluster around a run, on the log's own clock, from `begin_s` to `end_s`.

    `others_nodes` are kept busy by the log's jobs, `busy_nodes` by these and the run's; `jobs_waiting` are the log's.
    """

    begin_s: int
    end_s: int
    machine_nodes: int
    others_nodes: Steps
    busy_nodes: Steps
    jobs_waiting: Steps


def run_with_background(scenario: Scenario, strategy: Strategy, at_s: int) -> tuple[RecordedRun, Background]:
    """One run, and what went on around it: from a tenth of its length before to as much after."""
    cluster = scenario.warm(scenario.cluster(record=True), at_s)
    trial = scenario.trial(cluster, strategy)
    around = max(60, trial.makespan_s // 10)
    run = trial.recorded
    begin, end = max(scenario.zero_s, int(run.begun_s) - around), int(run.until_s) + around
    cluster.advance(end)
    log, starts = scenario.log, cluster.log_starts_s
    start = np.where(starts < 0, _NEVER, starts)
    ended = np.where(starts < 0, _NEVER, starts + np.minimum(log.run_s, log.requested_s))
    others = within(start, ended, log.nodes, begin, end)
    waiting = within(log.submit_s, start, np.ones(len(log), dtype=np.int64), begin, end)
    own = [(j.started_s, j.ended_s, j.plan.nodes) for j in run.story.jobs.values() if j.started_s is not None]
    own_start, own_end, own_nodes = np.array(own, dtype=np.int64).T
    all_starts, all_ends = np.concatenate([start, own_start]), np.concatenate([ended, own_end])
    busy = within(all_starts, all_ends, np.concatenate([log.nodes, own_nodes]), begin, end)
    return run, Background(begin, end, cluster.nodes, others, busy, waiting)


def within(begin: Ints, end: Ints, weight: Ints, low: int, high: int) -> Steps:
    """The total weight of the intervals [begin, end) that cover each time from `low` to `high`."""
    a, b = np.clip(begin, low, high), np.clip(end, low, high)
    counted = b > a
    times, place = np.unique(np.concatenate([[low], a[counted], b[counted], [high]]), return_inverse=True)
    change = np.zeros(len(times), dtype=np.int64)
    np.add.at(change, place[1:-1], np.concatenate([weight[counted], -weight[counted]]))
    values = np.cumsum(change)
    values[-1] = values[-2] if len(values) > 1 else 0  # nothing ends just because the picture does
    return times, values
