"""Part 1: whole logs, in memory, in one process. Timed is the call that a user makes:
`simulate(log, policy=...)`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table

from bench.logs import BLUE, KTH, SDSC, BenchLogs
from bench.progress import Progress
from bench.tables import seconds, table
from bench.timing import measure
from windrow.sim import simulate


@dataclass(frozen=True, slots=True)
class Case:
    """A log and a policy, the time it may take, what a bare C++ loop takes, and the mean wait that
    must come out.

    The mean wait is as independent simulators print it (None: they have no figure for exactly these
    rules).
    """

    log: str
    policy: str
    target_s: float
    cpp_s: float | None = None
    mean_wait: str | None = None


CASES = (
    Case(KTH, "fcfs", 0.010, 0.0027, "354175.950"),
    Case(KTH, "easy", 0.015, 0.0038, "6890.577"),
    Case(KTH, "conservative-replan", 0.060, 0.026, "7988.186"),
    Case(KTH, "conservative", 0.090, 0.045, "7349.467"),
    Case(SDSC, "easy", 0.025, 0.0084, "20576.237"),
    Case(SDSC, "conservative", 0.350, None, "21757.7"),
    Case(BLUE, "conservative", 2.0),
)


@dataclass(frozen=True, slots=True)
class WholeLog:
    """What one case took. `met` and `right` are None where there is nothing to compare with."""

    log: str
    policy: str
    jobs: int
    median_s: float
    best_s: float
    repetitions: int
    target_s: float | None
    cpp_s: float | None
    met: bool | None
    mean_wait_s: float
    right: bool | None


def run(logs: BenchLogs, progress: Progress, *, quick: bool) -> list[WholeLog]:
    """Measure every case."""
    found = []
    for case in CASES:
        progress.say(f"{case.log}, {case.policy}")
        found.append(_measured(case, logs, budget_s=0.4 if quick else 4.0))
    return found


def _measured(case: Case, logs: BenchLogs, budget_s: float) -> WholeLog:
    log = logs.logs[case.log]
    mean_wait_s = simulate(log, policy=case.policy).summary().mean_wait_s  # the warm-up call
    timing = measure(lambda: simulate(log, policy=case.policy), budget_s=budget_s, least=3)
    return WholeLog(
        log=case.log,
        policy=case.policy,
        jobs=len(log),
        median_s=timing.median_s,
        best_s=timing.best_s,
        repetitions=timing.repetitions,
        target_s=case.target_s if logs.real else None,
        cpp_s=case.cpp_s if logs.real else None,
        met=timing.median_s <= case.target_s if logs.real else None,
        mean_wait_s=mean_wait_s,
        right=is_right(mean_wait_s, case.mean_wait) if logs.real else None,
    )


def is_right(value: float, agreed: str | None) -> bool | None:
    """Whether the value is the agreed one, to the last digit printed there; None where there is
    none."""
    return None if agreed is None else f"{value:.{len(agreed.partition('.')[2])}f}" == agreed


def verdict(met: bool | None) -> str:
    """How a target reads."""
    return "no target" if met is None else "met" if met else "MISSED"


def tables(found: Sequence[WholeLog], logs: BenchLogs) -> list[Table]:
    """One row per case."""
    columns = (
        "log",
        "policy",
        "jobs",
        "median",
        "best",
        "of",
        "jobs/s",
        "target",
        "target met",
        "C++ limit",
    )
    rows = [
        (
            *(
                logs.title(one.log),
                one.policy,
                f"{one.jobs:,}",
                seconds(one.median_s),
                seconds(one.best_s),
                f"{one.repetitions}",
            ),
            *(
                f"{one.jobs / one.median_s:,.0f}",
                seconds(one.target_s),
                verdict(one.met),
                seconds(one.cpp_s),
            ),
            *(
                f"{one.mean_wait_s:,.3f}",
                {True: "as agreed", False: "WRONG", None: "no figure"}[one.right],
            ),
        )
        for one in found
    ]
    notes = [f"Logs: {logs.source}."]
    if logs.real:
        notes.append(
            "C++ limit: a bare loop, arrays in, starts out, measured on another machine, perhaps "
            "a slower one."
        )
    return [table("1. Whole logs in memory", (*columns, "mean wait s", "result"), rows, notes)]
