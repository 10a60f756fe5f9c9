"""Part 2: a cluster under way: what it costs to copy it, and to ask it when 100 jobs would start.

Each policy is looked at in two states of its own: the median queue that an arriving job finds, and
the longest queue. One state can be lucky, so under conservative, the policy with a target, many
instants over the whole log follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.table import Table

from bench.logs import KTH, BenchLogs
from bench.progress import Progress
from bench.tables import seconds, table
from bench.timing import measure, measure_short, once_s
from bench.whole_logs import verdict
from windrow.model import Log
from windrow.sim import Cluster, simulate
from windrow.sim.simulation import Simulation

POLICIES = ("conservative", "conservative-replan", "easy", "fcfs")
CLONE_TARGET_S = 50e-6
ESTIMATE_TARGET_S = 0.5e-3
PAIRS = 100

_SHARES = (0.01, 0.02, 0.04, 0.08, 0.12, 0.16, 0.24, 0.32, 0.64, 1.0)
_REQUESTED_S = (600, 1_800, 3_600, 7_200, 14_400, 28_800, 43_200, 86_400, 129_600, 216_000)


@dataclass(frozen=True, slots=True)
class State:
    """One state of a cluster and what was measured in it."""

    policy: str
    state: str
    waiting: int
    running: int
    clone_s: float
    clone_met: bool | None
    estimate_s: float
    estimate_met: bool | None


@dataclass(frozen=True, slots=True)
class Spread:
    """The same estimate at many instants: how it is usually, and how at the worst."""

    policy: str
    instants: int
    median_s: float
    p95_s: float
    worst_s: float
    over_target: int


def run(logs: BenchLogs, progress: Progress, *, quick: bool) -> tuple[list[State], Spread]:
    """Measure both states of every policy, then the spread under conservative."""
    log = logs.logs[KTH]
    states = []
    for policy in POLICIES:
        replay = simulate(log, policy=policy)
        for name, at_s in (
            ("median queue", _median_queue_s(replay)),
            ("longest queue", _longest_queue_s(replay)),
        ):
            progress.say(f"{policy}, {name}")
            states.append(
                _measured(log, policy, name, at_s, budget_s=0.1 if quick else 0.5, real=logs.real)
            )
    progress.say("conservative, instants over the whole log")
    return states, _spread(log, instants=100 if quick else 400)


def pairs(log: Log) -> tuple[list[int], list[int]]:
    """Ten widths times ten requested times: what one might ask before cutting a workflow."""
    widths = [max(1, round(share * log.machine_nodes)) for share in _SHARES]
    return [width for width in widths for _ in _REQUESTED_S], list(_REQUESTED_S) * len(widths)


def _longest_queue_s(replay: Simulation) -> int:
    at_s, waiting = replay.queue_length()
    return int(at_s[np.argmax(waiting)])


def _median_queue_s(replay: Simulation) -> int:
    """An instant, midway in the log among its like, at which the queue is as long as a median
    arrival finds it."""
    at_s, waiting = replay.queue_length()
    met = waiting[np.searchsorted(at_s, replay.log.submit_s, side="right") - 1]
    alike = at_s[waiting == np.percentile(met, 50, method="lower")]
    return int(alike[len(alike) // 2])


def _measured(log: Log, policy: str, name: str, at_s: int, *, budget_s: float, real: bool) -> State:
    cluster = Cluster(log, policy=policy)
    cluster.advance(at_s)
    nodes, requested_s = pairs(log)
    cluster.estimate(nodes, requested_s)  # the warm-up call
    clone_s = measure_short(cluster.clone, budget_s=budget_s).median_s
    estimate_s = measure(
        lambda: cluster.estimate(nodes, requested_s), budget_s=budget_s, least=5
    ).median_s
    targeted = real and policy == "conservative"
    return State(
        policy=policy,
        state=name,
        waiting=len(cluster.queue()),
        running=len(cluster.running()),
        clone_s=clone_s,
        clone_met=clone_s <= CLONE_TARGET_S if targeted else None,
        estimate_s=estimate_s,
        estimate_met=estimate_s <= ESTIMATE_TARGET_S if targeted else None,
    )


def _spread(log: Log, instants: int) -> Spread:
    cluster = Cluster(log, policy="conservative")
    nodes, requested_s = pairs(log)
    times_s = []
    for row in np.linspace(0, len(log) - 1, instants).astype(int).tolist():
        cluster.advance(int(log.submit_s[row]))
        times_s.append(min(once_s(lambda: cluster.estimate(nodes, requested_s)) for _ in range(3)))
    median_s, p95_s = np.percentile(times_s, [50, 95]).tolist()
    over = sum(time_s > ESTIMATE_TARGET_S for time_s in times_s)
    return Spread("conservative", instants, median_s, p95_s, max(times_s), over)


def tables(states: Sequence[State], spread: Spread, logs: BenchLogs) -> list[Table]:
    """One row per state, and the spread below."""
    columns = (
        "policy",
        "state",
        "waiting",
        "running",
        "clone()",
        "target met",
        f"estimate of {PAIRS}",
        "target met",
    )
    rows = [
        (
            *(one.policy, one.state, f"{one.waiting:,}", f"{one.running:,}", seconds(one.clone_s)),
            *(verdict(one.clone_met), seconds(one.estimate_s), verdict(one.estimate_met)),
        )
        for one in states
    ]
    notes = [
        f"Log: {logs.title(KTH)}."
        f" Targets: clone {seconds(CLONE_TARGET_S)}, estimate {seconds(ESTIMATE_TARGET_S)} under "
        "conservative.",
        f"Under {spread.policy}, at {spread.instants} instants over the whole log (best of 3 "
        "calls at each): estimate"
        f" median {seconds(spread.median_s)}, 95 % within {seconds(spread.p95_s)}, worst "
        f"{seconds(spread.worst_s)},"
        f" {spread.over_target} over target.",
    ]
    return [table("2. A cluster under way", columns, rows, notes)]
