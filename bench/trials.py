"""Whole runs of a workflow in simulation, by strategy, and one cold decision of the slowest strategy."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.table import Table

from bench.logs import KTH, SDSC, BenchLogs
from bench.progress import Progress
from bench.tables import seconds, table
from bench.timing import measure
from windrow.lab.trial import run_trial
from windrow.manager.core import Core
from windrow.manager.terms import Terms
from windrow.model import Log, NodeShape, Workflow
from windrow.recipes import generate_workflow
from windrow.sim import Cluster
from windrow.strategies import STRATEGIES, Decision, Strategy, Work, whole_seconds

DECISION_TARGET_S = 0.05
DAY_S = 86400


@dataclass(frozen=True, slots=True)
class TrialSpeed:
    """Trials of one strategy, over workflows and submission times."""

    strategy: str
    trials: int
    mean_s: float
    jobs: float


@dataclass(frozen=True, slots=True)
class DecisionSpeed:
    """One decision with nothing remembered: every run time is list-scheduled anew."""

    tasks: int
    nodes: int
    median_s: float
    met: bool | None


def run(logs: BenchLogs, progress: Progress, *, quick: bool) -> tuple[list[TrialSpeed], DecisionSpeed]:
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


def _trials(name: str, strategy: Strategy, workflows: Sequence[Workflow], warm: Sequence[Cluster]) -> TrialSpeed:
    """As in a campaign: clusters are cloned, and what is estimated of a workflow is shared by its trials."""
    count, jobs, total = 0, 0, 0.0
    for workflow in workflows:
        work = Work(workflow, whole_seconds(workflow), NodeShape(), warm[0].nodes)
        run_trial(warm[0].clone(), workflow, strategy, work=work)
        for cluster in warm:
            clone = cluster.clone()
            begin = time.perf_counter()
            trial = run_trial(clone, workflow, strategy, work=work)
            total += time.perf_counter() - begin
            count, jobs = count + 1, jobs + len(trial.jobs)
    return TrialSpeed(name, count, total / count, jobs / count)


def _decision(log: Log, *, real: bool) -> DecisionSpeed:
    workflow = generate_workflow("montage", tasks=500, work_s=500 * 3600, seed=1)
    cluster = _warm(log, [2 * DAY_S])[0]
    terms = Terms(cluster.nodes)

    def forecast(nodes: np.ndarray, requested_s: np.ndarray) -> np.ndarray:
        return cluster.estimate(nodes, requested_s, exact=False) - cluster.now_s

    def decide() -> Decision:
        work = Work(workflow, whole_seconds(workflow), NodeShape(), cluster.nodes)
        return STRATEGIES["glume"].decide(Core(work, terms).view(cluster.now_s, forecast))

    decide()
    median = measure(decide, budget_s=1, least=3).median_s
    return DecisionSpeed(len(workflow), cluster.nodes, median, median <= DECISION_TARGET_S if real else None)


def tables(speeds: Sequence[TrialSpeed], decision: DecisionSpeed, logs: BenchLogs) -> list[Table]:
    """Trials by strategy; the decision below."""
    rows = [[s.strategy, f"{s.trials}", f"{s.jobs:,.1f}", seconds(s.mean_s), f"{1 / s.mean_s:,.0f}"] for s in speeds]
    verdict = {True: "met", False: "MISSED", None: "no target"}[decision.met]
    note = (
        f"A cold glume decision for {decision.tasks} tasks on {decision.nodes} nodes: {seconds(decision.median_s)}"
        f" (target {seconds(DECISION_TARGET_S)}: {verdict})."
    )
    title = f"6. Workflows run in simulation, one process, on {logs.title(KTH)}"
    return [table(title, ["strategy", "trials", "jobs each", "mean time", "trials/s"], rows, [note])]
