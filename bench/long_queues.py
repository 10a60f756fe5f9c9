"""Part 8: the queues of the largest machines: as many jobs run as wait, up to 10,000 of each.

What a person waits for there: the twin of a reading, 100 estimates, and a decision of `foresight`
for a workflow of 500 tasks. All times are CPU seconds of the whole process, so they do not depend
on what else the machine does; a decision plays on as many cores as there are.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from rich.table import Table

from bench.progress import Progress
from bench.tables import seconds, table
from bench.timing import measure
from windrow.forecast.twin import Twin, simulated
from windrow.foresight.live import Ahead
from windrow.foresight.observer import Observer
from windrow.foresight.past import DAY_S
from windrow.foresight.strategy import Foresight
from windrow.manager.core import Core
from windrow.manager.terms import Terms
from windrow.model.site import Site
from windrow.queues.port import OthersJob, PastJob, Snapshot
from windrow.recipes import generate_workflow
from windrow.strategies import View, Work, whole_seconds

POLICIES = ("conservative", "easy", "fcfs")
SIZES = (200, 2_000, 10_000)
TWIN_TARGET_S = 1.0
ESTIMATE_TARGET_S = 0.02
DECISION_TARGET_S = 1.0
CORES = 2  # that the target for a decision is meant for
_NOW_S = 1_000_000.0
_DAYS = 8
_PAST = 4_000
_TASKS = 500


@dataclass(frozen=True, slots=True)
class LongQueue:
    """What it costs to look at one queue, in CPU seconds. No decision is taken under `fcfs`."""

    policy: str
    waiting: int
    twin_s: float
    estimates_s: float
    decision_s: float | None
    courses: int
    met: bool | None


@dataclass(frozen=True, slots=True)
class Reading:
    """A queue that is always the same."""

    snapshot_: Snapshot
    name: str = "reading"

    def snapshot(self) -> Snapshot:
        """It."""
        return self.snapshot_


def reading(jobs: int) -> tuple[Snapshot, list[PastJob]]:
    """This many jobs that run and as many that wait, on a machine that they fill, and eight days of
    past."""
    draw = np.random.default_rng(1)

    def columns(count: int) -> list[tuple[int, int, str]]:
        nodes = 2 ** draw.integers(0, 6, count)
        requested = draw.choice([1800, 3600, 7200, 14400, 43200, DAY_S], count)
        users = draw.integers(0, 100, count)
        rows = zip(nodes.tolist(), requested.tolist(), users.tolist(), strict=True)
        return [(n, s, f"u{user}") for n, s, user in rows]

    there = []
    running = columns(jobs)
    for number, (nodes, requested_s, user) in enumerate(running):
        began = _NOW_S - 0.8 * requested_s * float(draw.random())
        there.append(OthersJob(f"r{number}", nodes, requested_s, True, began, 0.0, user))
    for number, (nodes, requested_s, user) in enumerate(columns(jobs)):
        there.append(OthersJob(f"w{number}", nodes, requested_s, False, None, 0.0, user))
    past = []
    for number, (nodes, requested_s, user) in enumerate(columns(_PAST)):
        came = _NOW_S - _DAYS * DAY_S + number * _DAYS * DAY_S / _PAST
        run_s = max(1.0, requested_s * float(draw.random()))
        ended = min(_NOW_S - 1, came + 600 + run_s)
        past.append(PastJob(f"p{number}", user, nodes, requested_s, came, came + 600, ended))
    machine = sum(nodes for nodes, _, _ in running) + 8
    return Snapshot(_NOW_S, machine, tuple(there)), past


def run(progress: Progress, *, quick: bool) -> list[LongQueue]:
    """Measure every size under every policy."""
    found = []
    for size in SIZES[:1] if quick else SIZES:
        snapshot, past = reading(size)
        for policy in POLICIES:
            progress.say(f"{size:,} jobs that wait, {policy}")
            found.append(_measured(policy, size, snapshot, past))
    return found


def _measured(policy: str, size: int, snapshot: Snapshot, past: Sequence[PastJob]) -> LongQueue:
    clock = time.process_time
    nodes = np.arange(1, 101)
    requested_s = 3_600_000 // np.arange(20, 120)

    def fresh() -> None:
        cluster = simulated(snapshot, policy=policy)
        assert cluster is not None
        cluster.waits_s(nodes, requested_s)

    fresh()  # loads the kernels
    twin_s = measure(lambda: simulated(snapshot, policy=policy), budget_s=1, clock=clock).median_s
    both_s = measure(fresh, budget_s=1, clock=clock).median_s
    decision_s = None
    courses = 0
    if policy != "fcfs":
        decide = _decision(policy, snapshot, past)
        decide()
        timing = measure(decide, budget_s=1, most=5, clock=clock)
        decision_s = timing.median_s
        courses = decide()
    estimates_s = max(0.0, both_s - twin_s)
    met = None
    if size == SIZES[-1]:
        met = twin_s <= TWIN_TARGET_S and estimates_s <= ESTIMATE_TARGET_S
        met = met and (decision_s or 0.0) <= DECISION_TARGET_S * CORES
    return LongQueue(policy, size, twin_s, estimates_s, decision_s, courses, met)


class _Decision:
    """A decision with a view of its own; called, it returns how many courses were looked at."""

    def __init__(self, policy: str, snapshot: Snapshot, past: Sequence[PastJob]) -> None:
        self._twin = Twin(Reading(snapshot), lambda: _NOW_S, policy=policy)
        observer = Observer()
        observer.observed.learn(past, _NOW_S - _DAYS * DAY_S, _NOW_S)
        self._ahead = Ahead(self._twin, observer)
        self._workflow = generate_workflow("montage", tasks=_TASKS, work_s=_TASKS * 3600, seed=1)
        self._site = Site.of(snapshot.nodes)

    def __call__(self) -> int:
        terms = Terms()
        work = Work(self._workflow, whole_seconds(self._workflow), self._site)
        view: View = Core(work, terms).view(int(_NOW_S), self._twin.waits_s)
        done = np.zeros(len(self._workflow), dtype=bool)
        futures = self._ahead.futures(view, {}, done, terms.requests(self._site))
        assert futures is not None, "enough is known of this queue"
        strategy = Foresight()
        ranked = strategy.ranked(replace(view, futures=futures), futures(strategy.sampling))
        return len(ranked)


def _decision(policy: str, snapshot: Snapshot, past: Sequence[PastJob]) -> _Decision:
    return _Decision(policy, snapshot, past)


def tables(found: Sequence[LongQueue]) -> list[Table]:
    """One row for each queue."""
    columns = (
        "policy",
        "waiting",
        "running",
        "twin",
        "100 estimates",
        f"decision, {_TASKS} tasks",
        "courses",
        "target met",
    )
    verdicts = {True: "met", False: "MISSED", None: "no target"}
    rows = [
        (
            one.policy,
            f"{one.waiting:,}",
            f"{one.waiting:,}",
            seconds(one.twin_s),
            seconds(one.estimates_s),
            seconds(one.decision_s),
            f"{one.courses}" if one.courses else "-",
            verdicts[one.met],
        )
        for one in found
    ]
    notes = [
        f"CPU seconds. Targets with {SIZES[-1]:,} waiting: twin {seconds(TWIN_TARGET_S)}, "
        f"estimates {seconds(ESTIMATE_TARGET_S)}, decision {seconds(DECISION_TARGET_S)} on "
        f"{CORES} cores.",
    ]
    return [table("8. Long queues: as many jobs run as wait", columns, rows, notes)]
