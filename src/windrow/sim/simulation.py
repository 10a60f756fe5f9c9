"""What came out of replaying a log: every job's start and end, and the usual figures over them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from windrow.errors import UserError
from windrow.model import Log
from windrow.model.graph import Ints
from windrow.model.workflow import Floats

BOUND_S = 10
"""Runs shorter than this count as this long in the bounded slowdown, so that one-second jobs do not rule the mean."""


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


@dataclass(frozen=True)
class Simulation:
    """One log replayed under one policy. Row i of each column is job i of the log."""

    label: str
    log: Log
    machine_nodes: int
    start_s: Ints
    wall_s: float = 0.0
    settings: dict[str, str] = field(default_factory=dict)

    @cached_property
    def ran_s(self) -> Ints:
        """How long each job held its nodes: its run, or its request where that is shorter."""
        return np.minimum(self.log.run_s, self.log.requested_s)

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
        busy = float((self.log.nodes[counted] * self.ran_s[counted]).sum())
        return Summary(
            jobs=int(counted.sum()),
            mean_wait_s=float(wait.mean()),
            median_wait_s=float(p50),
            p90_wait_s=float(p90),
            p99_wait_s=float(p99),
            max_wait_s=int(wait.max()),
            mean_bounded_slowdown=float(self.bounded_slowdown[counted].mean()),
            utilization=busy / (makespan * self.machine_nodes),
            makespan_s=makespan,
            killed=int((self.log.run_s > self.log.requested_s)[counted].sum()),
        )

    def queue_length(self) -> tuple[Ints, Ints]:
        """Times, ascending, and how many jobs wait from each on until the next."""
        return _steps(self.log.submit_s, self.start_s, np.ones(len(self.log), dtype=np.int64))

    def busy_nodes(self) -> tuple[Ints, Ints]:
        """Times, ascending, and how many nodes are busy from each on until the next."""
        return _steps(self.start_s, self.end_s, self.log.nodes)


def _steps(begin: Ints, end: Ints, weight: Ints) -> tuple[Ints, Ints]:
    """A step function: the total weight of the intervals [begin, end) that cover each time."""
    times, place = np.unique(np.concatenate([begin, end]), return_inverse=True)
    change = np.zeros(len(times), dtype=np.int64)
    np.add.at(change, place, np.concatenate([weight, -weight]))
    return times, np.cumsum(change)
