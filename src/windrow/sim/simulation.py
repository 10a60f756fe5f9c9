"""What came out of replaying a log: every job's start and end, and the usual figures over them.

Where nodes fail, the start of a job is that of the run that counted, the last one, and its wait goes until then.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windrow.errors import UserError
from windrow.model import Log
from windrow.model.graph import Ints
from windrow.model.workflow import Floats

BOUND_S = 10
"""Runs shorter than this count as this long in the bounded slowdown, so that one-second jobs do not rule the mean."""


@dataclass(frozen=True)
class Outages:
    """Failures of nodes, as a cluster takes them, and rows (when, job, when it had started) of jobs that they hit."""

    failures: Ints
    hits: Ints

    def out_s(self, until_s: int) -> Ints:
        """Rows (from, to) of the times for which nodes were out, up to then. One that is out does not fail again."""
        back: dict[int, int] = {}
        found = []
        for at, node, until in self.failures[self.failures[:, 0] < until_s, :3].tolist():
            if at >= back.get(node, at):
                back[node] = until
                found.append((at, min(until, until_s)))
        return np.array(found, dtype=np.int64).reshape(-1, 2)


@dataclass(frozen=True)
class Summary:
    """The figures of one simulation over the jobs counted. Units last in each name."""

    jobs: int
    mean_wait_s: float
    median_wait_s: float
    p90_wait_s: float
    p99_wait_s: float
    max_wait_s: int
    mean_bounded_slowdown: float
    utilization: float
    makespan_s: int
    killed: int
    node_failures: int = 0
    runs_hit: int = 0
    jobs_lost: int = 0
    lost_node_h: float = 0.0
    out_node_h: float = 0.0


FAILED = ("node_failures", "runs_hit", "jobs_lost", "lost_node_h", "out_node_h")
"""What a summary says of failures."""


@dataclass(frozen=True)
class Simulation:
    """One log replayed under one policy. Row i of each column is job i of the log."""

    label: str
    log: Log
    machine_nodes: int
    start_s: Ints
    wall_s: float = 0.0
    settings: dict[str, str] = field(default_factory=dict)
    outages: Outages | None = None

    @property
    def hits(self) -> Ints:
        """Rows (when, job, when it had started) of runs that lost a node."""
        return np.zeros((0, 3), dtype=np.int64) if self.outages is None else self.outages.hits

    @cached_property
    def is_lost(self) -> NDArray[np.bool_]:
        """Whether each job lost a node and did not run again."""
        lost = np.zeros(len(self.log), dtype=np.bool_)
        lost[self.hits[~self._ran_again, 1]] = True
        return lost

    @cached_property
    def _ran_again(self) -> NDArray[np.bool_]:
        """Of each hit, whether a later run of its job counts."""
        again: NDArray[np.bool_] = self.hits[:, 2] != self.start_s[self.hits[:, 1]]
        return again

    @cached_property
    def ran_s(self) -> Ints:
        """How long each job held its nodes: its run, or its request where that is shorter, or until it was lost."""
        ran = np.minimum(self.log.run_s, self.log.requested_s)
        when, job, started = self.hits[~self._ran_again].T
        ran[job] = when - started
        return ran

    @cached_property
    def end_s(self) -> Ints:
        """When each job ended or was killed."""
        return self.start_s + self.ran_s

    @cached_property
    def wait_s(self) -> Ints:
        """Each job's time from submission to start."""
        return self.start_s - self.log.submit_s

    @cached_property
    def bounded_slowdown(self) -> Floats:
        """(wait + run) / run of each job, with runs counted as at least BOUND_S, and never below 1."""
        slowdown = (self.wait_s + self.ran_s) / np.maximum(self.ran_s, BOUND_S)
        return np.maximum(1.0, slowdown)

    def summary(self, from_s: float = 0, to_s: float = np.inf) -> Summary:
        """The figures over jobs submitted at `from_s` or later and before `to_s`; jobs before are warm-up."""
        counted = (self.log.submit_s >= from_s) & (self.log.submit_s < to_s)
        if not counted.any():
            raise UserError(f"no job of {self.log.name} is submitted from {from_s:g} s to {to_s:g} s; widen the window")
        wait = self.wait_s[counted]
        p50, p90, p99 = np.percentile(wait, [50, 90, 99])
        makespan = int(self.end_s[counted].max() - self.log.submit_s[counted].min())
        busy = float((self.log.nodes * self.ran_s)[counted & ~self.is_lost].sum())
        return Summary(
            jobs=int(counted.sum()),
            mean_wait_s=float(wait.mean()),
            median_wait_s=float(p50),
            p90_wait_s=float(p90),
            p99_wait_s=float(p99),
            max_wait_s=int(wait.max()),
            mean_bounded_slowdown=float(self.bounded_slowdown[counted].mean()),
            utilization=busy / max(1, makespan * self.machine_nodes),
            makespan_s=makespan,
            killed=int((self.log.run_s > self.log.requested_s)[counted & ~self.is_lost].sum()),
            **self._failed(counted),
        )

    def _failed(self, counted: NDArray[np.bool_]) -> dict[str, Any]:
        """What failures came to from the first submission to the last end of these jobs."""
        if self.outages is None:
            return {}
        out = self.outages.out_s(int(self.end_s[counted].max()))
        out = np.maximum(out, self.log.submit_s[counted].min())
        when, job, started = self.hits[counted[self.hits[:, 1]]].T
        return {
            "node_failures": int((out[:, 1] > out[:, 0]).sum()),
            "runs_hit": len(job),
            "jobs_lost": int(self.is_lost[counted].sum()),
            "lost_node_h": float((self.log.nodes[job] * (when - started)).sum() / 3600),
            "out_node_h": float((out[:, 1] - out[:, 0]).sum() / 3600),
        }

    def queue_length(self) -> tuple[Ints, Ints]:
        """Times, ascending, and how many jobs wait from each on until the next."""
        when, _, started = self.hits[self._ran_again].T
        submitted, began = np.concatenate([self.log.submit_s, when]), np.concatenate([self.start_s, started])
        return _steps(submitted, began, np.ones(len(submitted), dtype=np.int64))

    def busy_nodes(self) -> tuple[Ints, Ints]:
        """Times, ascending, and how many nodes are busy from each on until the next."""
        when, job, started = self.hits[self._ran_again].T
        runs = np.concatenate([self.start_s, started]), np.concatenate([self.end_s, when])
        return _steps(*runs, np.concatenate([self.log.nodes, self.log.nodes[job]]))

    def nodes_up(self) -> tuple[Ints, Ints]:
        """Times, ascending, and how many nodes are not out from each on until the next."""
        first, last = int(self.log.submit_s[0]), int(self.end_s.max())
        out = self.outages.out_s(last) if self.outages else np.zeros((0, 2), dtype=np.int64)
        begin, end = np.concatenate([out, [[first, last]]]).T
        return _steps(begin, end, np.array([-1] * len(out) + [self.machine_nodes]))


def _steps(begin: Ints, end: Ints, weight: Ints) -> tuple[Ints, Ints]:
    """A step function: the total weight of the intervals [begin, end) that cover each time."""
    times, place = np.unique(np.concatenate([begin, end]), return_inverse=True)
    change = np.zeros(len(times), dtype=np.int64)
    np.add.at(change, place, np.concatenate([weight, -weight]))
    return times, np.cumsum(change)
