"""Random small clusters with logs and clients, played on the compiled cluster and on the slow
reference at once."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from tests.oracle.reference import FOREVER, Job, Reference

from windrow.model import Log
from windrow.sim.cluster import Cluster, EventKind

POLICIES = (
    "fcfs",
    "easy",
    "easy-strict",
    "depth:2",
    "depth:3",
    "conservative",
    "conservative-replan",
)
DEPTHS = {"easy": 1, "easy-strict": 1, "depth:2": 2, "depth:3": 3, "conservative-replan": FOREVER}
PRIORITIES: dict[str, dict[str, int] | None] = {
    "arrival": None,
    "fcfs": {"wait": 100},
    "fl": {"wait": 1, "nodes": 10, "nodes_cap": 128},
    "fs": {"wait": 1, "nodes": -10, "nodes_cap": 128},
    "wait^1=2,area=3": {"wait": 2, "wait_cap": 1, "area": 3},
    "wait=1,xfactor=4": {"wait": 1, "xfactor": 4},
    "requested^2=3000,nodes=-1": {"requested": 3000, "requested_cap": 2, "nodes": -1},
    "wait=2,requested=-2000,share=1,half_life=0.005": {"wait": 2, "requested": -2000, "share": 1},
    "wait=1,share=5,half_life=0.005": {"wait": 1, "share": 5},
}


@dataclass(frozen=True)
class Scenario:
    nodes: int
    log: Log
    policy: str
    priority: str
    events: str
    placement: str
    cap: int | None
    steps: list[tuple[str, int, int, int]]
    failures: tuple[tuple[int, int, int, int], ...] = ()

    def cluster(self) -> Cluster:
        return Cluster(
            self.log,
            nodes=self.nodes,
            policy=self.policy,
            priority=self.priority,
            events=self.events,
            placement=self.placement,
            cap=self.cap,
            record=True,
            failures=np.array(self.failures, dtype=np.int64).reshape(-1, 4),
        )

    def reference(self) -> Reference:
        arriving = [
            (j.submit_s, Job(i, j.nodes, j.requested_s, j.run_s, j.user))
            for i, j in enumerate(self.log)
        ]
        return Reference(
            self.nodes,
            policy=self.policy if self.policy in ("fcfs", "conservative") else "depth",
            depth=DEPTHS.get(self.policy, 0),
            events=self.events,
            placement=self.placement,
            cap=self.cap or 0,
            weights=PRIORITIES[self.priority],
            half_life_s=18.0,
            strict=self.policy == "easy-strict",
            arriving=arriving,
            failing=list(self.failures),
        )


def small_log(rows: list[tuple[int, int, int, int, int]], nodes: int) -> Log:
    """A log from rows (gap to the one before, nodes, requested, run, user); wider jobs are
    narrowed."""
    gap, wide, requested, run, user = (np.array(column) for column in zip(*rows, strict=True))
    return Log(
        "random",
        nodes,
        job=np.arange(len(rows)) + 1,
        submit_s=np.cumsum(gap),
        nodes=np.minimum(wide, nodes),
        requested_s=requested,
        run_s=run,
        user=user,
    )


@st.composite
def scenarios(
    draw: st.DrawFn, *, placements: tuple[str, ...] = ("count",), failing: bool = False
) -> Scenario:
    nodes = draw(st.integers(1, 6))
    size, time, user = st.integers(1, 6), st.integers(1, 12), st.integers(0, 2)
    rows = draw(
        st.lists(st.tuples(st.integers(0, 4), size, time, time, user), min_size=1, max_size=14)
    )
    kinds = st.sampled_from(["submit", "submit", "submit", "cancel", "end", "advance", "advance"])
    steps = draw(
        st.lists(st.tuples(kinds, st.integers(1, 6), time, st.integers(0, 14)), max_size=12)
    )
    failures = st.tuples(
        st.integers(0, 40), st.integers(0, nodes - 1), st.integers(1, 15), st.integers(0, 1)
    )
    drawn = sorted(draw(st.lists(failures, min_size=1, max_size=8))) if failing else []
    return Scenario(
        nodes,
        small_log(rows, nodes),
        draw(
            st.sampled_from([p for p in POLICIES if p != "easy-strict" or placements == ("count",)])
        ),
        draw(st.sampled_from(sorted(PRIORITIES))),
        draw(st.sampled_from(["batched", "one-by-one", "ends-first"])),
        draw(st.sampled_from(placements)),
        draw(st.sampled_from([None, None, 1, 2])),
        steps,
        tuple((at, node, at + repair, loses) for at, node, repair, loses in drawn),
    )


class Pair:
    """Both clusters in lock step: whatever one says, the other must say."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.fast = scenario.cluster()
        self.slow = scenario.reference()
        self.slow.advance(0)
        self.submitted = 0

    def step(self, kind: str, a: int, b: int, c: int) -> None:
        if kind == "submit":
            self.submitted += 1
            nodes, user = min(a, self.scenario.nodes), c % 4
            self.slow.submit(-self.submitted, nodes, b, c or FOREVER, user)
            assert self.fast.submit(nodes, b, c or None, user) == -self.submitted
        elif kind in ("cancel", "end") and self.submitted:
            number = -1 - c % self.submitted
            stop = self.fast.cancel if kind == "cancel" else self.fast.end
            assert stop(number) == self.slow.stop(
                number, "cancelled" if kind == "cancel" else "ended"
            )
        elif kind == "advance":
            self.advance(self.fast.now_s + b)

    def advance(self, until: int | None = None) -> bool:
        expected = self.slow.advance(FOREVER if until is None else until)
        names = {
            EventKind.STARTED: "started",
            EventKind.ENDED: "ended",
            EventKind.KILLED: "killed",
            EventKind.CANCELLED: "cancelled",
            EventKind.FAILED: "failed",
        }
        assert [(e.at_s, names[e.kind], e.job) for e in self.fast.advance(until)] == expected
        assert self.fast.now_s == self.slow.now
        return bool(expected)

    def finish(self) -> None:
        while self.advance():
            pass
        starts = self.fast.log_starts_s.tolist()
        assert starts == [self.slow.starts[i] for i in range(len(starts))]
        assert self.fast.log_hits.tolist() == [list(hit) for hit in self.slow.hits]

    def finish_quietly(self) -> None:
        """An estimate does the pass that was due, so its events come in other batches; starts must
        be alike."""
        while self.fast.advance():
            pass
        while self.slow.advance():
            pass
        starts = self.fast.log_starts_s.tolist()
        assert starts == [self.slow.starts[i] for i in range(len(starts))]

    def reference_estimate(self, nodes: int, requested: int, user: int) -> int:
        """What the slow cluster does with one more job when nobody else arrives and all run as long
        as requested."""
        slow = deepcopy(self.slow)
        slow.arriving, slow.failing = [], []
        for job in [*slow.queue, *slow.held]:
            job.run = job.requested
        for job in slow.running:
            job.end, job.run = job.expected, job.requested
        if slow.pending:
            slow.schedule()
            slow.pending = False
        slow.submit(-1000, nodes, requested, requested, user)
        while -1000 not in slow.starts:
            slow.happened.clear()
            slow.advance()
        return slow.starts[-1000]
