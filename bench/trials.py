"""Whole runs of a workflow in simulation, by strategy, and one cold decision of the slowest
strategy."""

from __future__ import annotations

import cProfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from rich.table import Table

from bench.logs import KTH, SDSC, BenchLogs
from bench.progress import Progress
from bench.tables import seconds, table
from bench.timing import measure
from windrow.app.strategies import STRATEGIES
from windrow.manager.core import Core
from windrow.manager.terms import Terms
from windrow.model import Log, Workflow
from windrow.model.site import Site
from windrow.recipes import generate_workflow
from windrow.sim import Cluster
from windrow.strategies import Decision, Strategy, Work, whole_seconds
from windrow.trials.figures import Figures, trial_figures
from windrow.trials.trial import run_trial

DECISION_TARGET_S = 0.05
DAY_S = 86400


@dataclass(frozen=True, slots=True)
class TrialSpeed:
    """Trials of one strategy, over workflows and submission times: as in campaigns, and with
    records by the core.

    `compiled` is the part of a campaign's trial that kernels take; a profiler slows all the rest,
    so it is a bit more.
    """

    strategy: str
    trials: int
    mean_s: float
    recorded_s: float
    compiled: float
    jobs: float


@dataclass(frozen=True, slots=True)
class DecisionSpeed:
    """One decision with nothing remembered: every run time is list-scheduled again."""

    tasks: int
    nodes: int
    median_s: float
    met: bool | None


def run(
    logs: BenchLogs, progress: Progress, *, quick: bool
) -> tuple[list[TrialSpeed], DecisionSpeed]:
    """Time whole trials on the first log, and a decision on the second."""
    workflows = [
        generate_workflow(recipe, tasks=tasks, work_s=500 * 3600, seed=1)
        for recipe in ("montage", "cybershake", "genome", "sipht")
        for tasks in ((250,) if quick else (50, 250, 500))
    ]
    days = (2,) if quick else (1, 3, 5, 7)
    warm = _warm(logs.logs[KTH], [day * DAY_S for day in days])
    speeds = []
    for name, strategy in STRATEGIES.items():
        progress.say(f"trials of {name}")
        speeds.append(_trials(name, strategy, workflows, warm))
    return speeds, _decision(logs.logs[SDSC], real=logs.real)


def _warm(log: Log, times_s: Sequence[int]) -> list[Cluster]:
    cluster = Cluster(log)
    clones = []
    for time_s in times_s:
        cluster.advance(time_s)
        clones.append(cluster.clone())
    return clones


def _trials(
    name: str, strategy: Strategy, workflows: Sequence[Workflow], warm: Sequence[Cluster]
) -> TrialSpeed:
    """As in a campaign: clusters are cloned, and what is estimated of a workflow is shared by its
    trials."""
    terms = Terms()
    site = Site.of(warm[0].nodes)
    works = [Work(workflow, whole_seconds(workflow), site) for workflow in workflows]
    pairs = [(work, cluster) for work in works for cluster in warm]

    def figures() -> list[Figures]:
        return [_figures(strategy, terms, work, cluster) for work, cluster in pairs]

    found = figures()  # also fills the estimates
    begin = time.perf_counter()
    figures()
    mean = (time.perf_counter() - begin) / len(pairs)
    begin = time.perf_counter()
    for work, cluster in pairs:
        run_trial(cluster.clone(), work.workflow, strategy, terms=terms, work=work)
    recorded = (time.perf_counter() - begin) / len(pairs)
    jobs = sum(one.jobs for one in found) / len(pairs)
    return TrialSpeed(name, len(pairs), mean, recorded, _in_kernels(figures), jobs)


def _figures(strategy: Strategy, terms: Terms, work: Work, cluster: Cluster) -> Figures:
    return trial_figures(
        cluster.clone(),
        work.workflow,
        strategy,
        terms=terms,
        actual_s=whole_seconds(work.workflow),
        work=work,
    )


def _in_kernels(action: Callable[[], object]) -> float:
    """The part of the time that kernels take, by the profiler."""
    profile = cProfile.Profile()
    profile.runcall(action)
    entries = profile.getstats()
    total = sum(entry.inlinetime for entry in entries)
    compiled = sum(e.inlinetime for e in entries if "kernels" in getattr(e.code, "co_filename", ""))
    return compiled / total


def _decision(log: Log, *, real: bool) -> DecisionSpeed:
    workflow = generate_workflow("montage", tasks=500, work_s=500 * 3600, seed=1)
    cluster = _warm(log, [2 * DAY_S])[0]
    terms = Terms()

    def forecast(nodes: np.ndarray, requested_s: np.ndarray) -> np.ndarray:
        return cluster.estimate(nodes, requested_s, exact=False) - cluster.now_s

    def decide() -> Decision:
        work = Work(workflow, whole_seconds(workflow), Site.of(cluster.nodes))
        return STRATEGIES["glume"].decide(Core(work, terms).view(cluster.now_s, forecast))

    decide()
    median = measure(decide, budget_s=1, least=3).median_s
    return DecisionSpeed(
        len(workflow), cluster.nodes, median, median <= DECISION_TARGET_S if real else None
    )


def tables(speeds: Sequence[TrialSpeed], decision: DecisionSpeed, logs: BenchLogs) -> list[Table]:
    """Trials by strategy; the decision below."""
    rows = [_row(speed) for speed in speeds]
    verdict = {True: "met", False: "MISSED", None: "no target"}[decision.met]
    note = (
        f"A cold glume decision for {decision.tasks} tasks on {decision.nodes} nodes: "
        f"{seconds(decision.median_s)}"
        f" (target {seconds(DECISION_TARGET_S)}: {verdict})."
    )
    title = f"6. Workflows run in simulation, one process, on {logs.title(KTH)}"
    head = [
        "strategy",
        "trials",
        "jobs each",
        "mean time",
        "trials/s",
        "in kernels",
        "with records",
        "ratio",
    ]
    return [table(title, head, rows, [note])]


def _row(s: TrialSpeed) -> list[str]:
    shares = [f"{s.compiled:.0%}", seconds(s.recorded_s), f"{s.recorded_s / s.mean_s:.1f} x"]
    return [
        s.strategy,
        f"{s.trials}",
        f"{s.jobs:,.1f}",
        seconds(s.mean_s),
        f"{1 / s.mean_s:,.0f}",
        *shares,
    ]
