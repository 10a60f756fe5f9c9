"""How long foresight takes to decide, in seconds of processor time.

The case that a bound is asked for: workflows of 500 tasks on the 128 nodes of SDSC, with 200 jobs
in the queue. No day of the log has that many, so the next jobs of the log are made to arrive at
once. Other processes on the machine do not count, but they slow caches down: times are an upper
bound of those on a free machine.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from windrow.app.strategies import STRATEGIES
from windrow.foresight.strategy import Foresight
from windrow.model.site import Site
from windrow.sim.cluster import Cluster
from windrow.strategies import Decision, Strategy, View
from windrow.trials.trial import run_trial
from windrow_lab.campaign.sources import LogSource, WorkflowSource
from windrow_lab.reproductions.cases import find_cases

_AT_S = 3 * 86_400
_BURST = 220
_CAP = 16
_DECISIONS = 3


@dataclass(frozen=True, slots=True)
class DecisionTimes:
    """What the first decisions of a run took, in seconds of processor time; `waiting` jobs were in
    the queue."""

    workflow: str
    waiting: int
    nodes: int
    decisions_s: tuple[float, ...]


@dataclass
class _Timed:
    """Foresight for the first decisions, with a stopwatch; then glume, which is quick."""

    inner: Strategy
    most: int
    name: str = "foresight"
    took_s: list[float] = field(default_factory=list)

    def decide(self, view: View) -> Decision:
        """As foresight does. Questions that need no thought are not counted."""
        if len(self.took_s) == self.most:
            return STRATEGIES["glume"].decide(view)
        began = time.process_time()
        decision = self.inner.decide(view)
        if decision.candidates:
            self.took_s.append(time.process_time() - began)
        return decision


def measure_decisions(data: str | Path | None, *, full: bool) -> list[DecisionTimes]:
    """The decisions on the workflows of 500 tasks of the GLUME grid; not `full`: those of medium
    length alone."""
    cases = find_cases(data, (500,))
    sources = [w for w in cases.workflows if full or w.name.endswith("medium")]
    log = next(log for log in cases.logs if log.name == "SDSC")
    return decision_times(crowded(log), sources)


def decision_times(cluster: Cluster, sources: Sequence[WorkflowSource]) -> list[DecisionTimes]:
    """The times of these workflows on clones of the cluster, if there was a choice to make.

    The first is run twice: kernels are loaded then, which is not to be counted.
    """
    _timed(cluster, sources[0], 1)
    measured = (_timed(cluster, source, _DECISIONS) for source in sources)
    return [one for one in measured if one.decisions_s]


def crowded(source: LogSource) -> Cluster:
    """The cluster of a log after three days, at which the next 220 jobs arrive at once; some of
    them start."""
    log = source.load("actual")
    first_s = int(log.submit_s[0])
    now_s = first_s + _AT_S
    submit_s = log.submit_s.copy()
    following = int(np.searchsorted(submit_s, now_s))
    submit_s[following : following + _BURST] = now_s
    cluster = Cluster(replace(log, submit_s=submit_s), start_s=first_s)
    cluster.advance(now_s)
    return cluster


def _timed(cluster: Cluster, source: WorkflowSource, decisions: int) -> DecisionTimes:
    timed = _Timed(Foresight(), decisions)
    run_trial(cluster.clone(), source.load(), timed, site=Site.of(cluster.nodes, cap=_CAP))
    return DecisionTimes(source.name, len(cluster.queue()), cluster.nodes, tuple(timed.took_s))
