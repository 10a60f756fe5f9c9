"""Part 4: how cost grows with jobs, with the queue, and with nodes, on generated logs.

Each series changes one thing. Its exponent is the slope of log(time) over log(what changes), by
least squares: 1 is proportional, 0 is no growth. A point that would take longer than its limit, by
the exponent so far, is not run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from rich.table import Table

from bench.logs import lublin
from bench.progress import Progress
from bench.tables import seconds, table
from bench.timing import measure
from windrow.model import Log
from windrow.sim import simulate
from windrow.sim.simulation import Simulation

POLICIES = ("fcfs", "easy", "conservative")
NODES = (100, 1_000, 10_000, 100_000)


@dataclass(frozen=True, slots=True)
class Series:
    """Logs that differ in one thing. `over` names the column that the time, or the time per job, is
    set against."""

    name: str
    over: str
    per_job: bool
    sizes: tuple[float, ...]
    quick: int
    make: Callable[[float], Log]


@dataclass(frozen=True, slots=True)
class Point:
    """One log under one policy. Queue and running jobs are means over the instants of arrival."""

    series: str
    policy: str
    size: float
    jobs: int
    nodes: int
    load: float | None
    wall_s: float | None
    repetitions: int = 0
    queue_mean: float = 0.0
    queue_max: int = 0
    running_mean: float = 0.0


@dataclass(frozen=True, slots=True)
class Exponent:
    """How fast a series grows under a policy."""

    series: str
    policy: str
    over: str
    per_job: bool
    exponent: float
    points: int


def at_once(jobs: float) -> Log:
    """All jobs are there from the beginning, so the queue is as long as the log."""
    log = lublin(int(jobs))
    return replace(log, submit_s=np.zeros(len(log), dtype=np.int64))


def small_jobs(nodes: float) -> Log:
    """Jobs of up to 100 nodes on a machine of any size; more of them where it takes more to fill
    it."""
    return lublin(20_000 + int(nodes) // 5, nodes=int(nodes), widest=100)


SERIES = (
    Series(
        "more jobs",
        "jobs",
        False,
        (10_000, 30_000, 100_000, 300_000, 1_000_000),
        3,
        lambda n: lublin(int(n)),
    ),
    Series(
        "higher load",
        "mean queue",
        True,
        (0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2),
        5,
        lambda x: lublin(20_000, load=x),
    ),
    Series(
        "all at once",
        "jobs",
        False,
        (500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000),
        3,
        at_once,
    ),
    Series(
        "more nodes, wide jobs", "nodes", False, NODES, 4, lambda n: lublin(50_000, nodes=int(n))
    ),
    Series(
        "more nodes, small jobs", "running", True, (*NODES[:3], 30_000, NODES[3]), 3, small_jobs
    ),
    Series("both", "", False, (1_000_000,), 0, lambda n: lublin(int(n), nodes=100_000)),
)


def run(progress: Progress, *, quick: bool) -> tuple[list[Point], list[Exponent]]:
    """Measure every series under every policy."""
    warm = lublin(500)
    for policy in POLICIES:
        simulate(warm, policy=policy)
    points: list[Point] = []
    for series in SERIES:
        points += _grown(series, progress, limit_s=4.0 if quick else 45.0, quick=quick)
    return points, [
        found
        for series in SERIES
        for policy in POLICIES
        if (found := _fitted(series, policy, points))
    ]


def _grown(series: Series, progress: Progress, *, limit_s: float, quick: bool) -> Iterator[Point]:
    sizes = series.sizes[: series.quick] if quick else series.sizes
    before: dict[str, list[tuple[float, float]]] = {policy: [] for policy in POLICIES}
    for size in sizes:
        log = series.make(size)
        for policy in POLICIES:
            progress.say(
                f"{series.name}, {len(log):,} jobs on {log.machine_nodes:,} nodes, {policy}"
            )
            if _foreseen_s(before[policy], size) > limit_s:
                yield Point(
                    series.name, policy, size, len(log), log.machine_nodes, log.load or None, None
                )
                continue
            point = _measured(series, policy, size, log, budget_s=0.2 if quick else 1.0)
            before[policy].append((size, point.wall_s or 0.0))
            yield point


def _foreseen_s(before: Sequence[tuple[float, float]], size: float) -> float:
    """Time by the last two points; 0 where there are fewer."""
    if len(before) < 2:
        return 0.0
    (x, a), (y, b) = before[-2:]
    return float(b * (size / y) ** max(0.0, math.log(b / a) / math.log(y / x)))


def _measured(series: Series, policy: str, size: float, log: Log, budget_s: float) -> Point:
    kept: list[Simulation] = []

    def call() -> None:
        kept[:] = [simulate(log, policy=policy)]

    timing = measure(call, budget_s=budget_s, most=9)
    waiting = _found_on_arrival(log, kept[0].queue_length())
    ones = replace(log, nodes=np.ones(len(log), dtype=np.int64))
    running = _found_on_arrival(log, replace(kept[0], log=ones).busy_nodes())
    return Point(
        series=series.name,
        policy=policy,
        size=size,
        jobs=len(log),
        nodes=log.machine_nodes,
        load=log.load or None,
        wall_s=timing.median_s,
        repetitions=timing.repetitions,
        queue_mean=float(waiting.mean()),
        queue_max=int(waiting.max()),
        running_mean=float(running.mean()),
    )


def _found_on_arrival(log: Log, steps: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """The value of a step function of time just after each arrival."""
    at_s, count = steps
    found: np.ndarray = count[np.searchsorted(at_s, log.submit_s, side="right") - 1]
    return found


def _fitted(series: Series, policy: str, points: Sequence[Point]) -> Exponent | None:
    mine = [p for p in points if p.series == series.name and p.policy == policy]
    pairs = [
        (_over(series, p), p.wall_s / p.jobs if series.per_job else p.wall_s)
        for p in mine
        if p.wall_s
    ]
    pairs = [(x, y) for x, y in pairs if x > 0]
    if len({x for x, _ in pairs}) < 3:
        return None
    x, y = np.log(np.array(pairs)).T
    slope = float(np.polyfit(x, y, 1)[0])
    return Exponent(series.name, policy, series.over, series.per_job, slope, len(pairs))


def _over(series: Series, point: Point) -> float:
    choices = {
        "jobs": point.jobs,
        "nodes": point.nodes,
        "mean queue": point.queue_mean,
        "running": point.running_mean,
    }
    return float(choices.get(series.over, 0.0))


def tables(points: Sequence[Point], exponents: Sequence[Exponent]) -> list[Table]:
    """One row per log, then the exponents."""
    queues = tuple(f"queue {policy[:4]}" for policy in POLICIES)
    columns = ("series", "jobs", "nodes", "load", "running", *queues, *POLICIES)
    notes = [
        "Running and queue: jobs, as a mean over the instants of arrival. Wide jobs may be as "
        "wide as the machine,"
        " small ones have up to 100 nodes.",
        "'over limit': not run, because it would have taken too long by the growth up to there.",
    ]
    logs = list(dict.fromkeys((p.series, p.size) for p in points))
    rows = [_row([p for p in points if (p.series, p.size) == log]) for log in logs]
    return [
        table("4. How cost grows (generated Lublin logs)", columns, rows, notes),
        table("   Exponents", ("series", *POLICIES, "reads as"), _exponent_rows(exponents)),
    ]


def _row(policies: Sequence[Point]) -> tuple[str, ...]:
    """The points of one log, one for each policy; running jobs are much the same under each."""
    p = policies[-1]
    load = "-" if p.load is None else f"{p.load:.2f}"
    running = next((f"{q.running_mean:,.0f}" for q in reversed(policies) if q.wall_s), "-")
    queues = ("-" if q.wall_s is None else f"{q.queue_mean:,.1f}" for q in policies)
    times = ("over limit" if q.wall_s is None else seconds(q.wall_s) for q in policies)
    return (p.series, f"{p.jobs:,}", f"{p.nodes:,}", load, running, *queues, *times)


def _exponent_rows(exponents: Sequence[Exponent]) -> Iterator[tuple[str, ...]]:
    for series in SERIES:
        mine = {one.policy: one for one in exponents if one.series == series.name}
        if mine:
            shown = (
                f"{mine[policy].exponent:.2f}" if policy in mine else "-" for policy in POLICIES
            )
            time = "time per job" if series.per_job else "time"
            yield (series.name, *shown, f"{time} ~ ({series.over}) ^ exponent")
