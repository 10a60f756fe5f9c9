"""What came out of replaying a log: every job's start and end, and the usual figures over them.

If nodes fail, the start of a job is that of the run that counted, the last one, and its wait
goes until then.
"""

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
"""Runs shorter than this count as this long in the bounded slowdown, so that one-second jobs do not
rule the mean."""


@dataclass(frozen=True)
class Summary:
    """The figures of one simulation over the counted jobs. Units last in each name."""

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
    """One log replayed under one policy. Row i of each column is job i of the log.

    `failures` of nodes are as a cluster takes them, None if none can fail; `hits` has a row
    (when, job, when it had started, whether that was its last run) for each run that lost a node.
    """

    label: str
    log: Log
    machine_nodes: int
    start_s: Ints
    wall_s: float = 0.0
    settings: dict[str, str] = field(default_factory=dict)
    failures: Ints | None = None
    hits: Ints = field(default_factory=lambda: np.zeros((0, 4), dtype=np.int64))

    @cached_property
    def _was_last(self) -> NDArray[np.bool_]:
        """Of each hit, whether its job did not run again."""
        last: NDArray[np.bool_] = self.hits[:, 3] == 1
        return last

    @property
    def is_lost(self) -> NDArray[np.bool_]:
        """Whether each job lost a node and did not run again."""
        return np.isin(np.arange(len(self.log)), self.hits[self._was_last, 1])

    @cached_property
    def ran_s(self) -> Ints:
        """How long each job held its nodes: its run, or its request if that is shorter, or until
        it was lost."""
        ran = np.minimum(self.log.run_s, self.log.requested_s)
        when, job, started, _ = self.hits[self._was_last].T
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
        """(wait + run) / run of each job, with runs counted as at least BOUND_S, and never below
        1."""
        slowdown = (self.wait_s + self.ran_s) / np.maximum(self.ran_s, BOUND_S)
        return np.maximum(1.0, slowdown)

    def summary(self, from_s: float = 0, to_s: float = np.inf) -> Summary:
        """The figures over jobs submitted at `from_s` or later and before `to_s`; jobs before are
        warm-up."""
        counted = (self.log.submit_s >= from_s) & (self.log.submit_s < to_s)
        if not counted.any():
            raise UserError(
                f"no job of {self.log.name} is submitted from {from_s:g} s to {to_s:g} s; widen "
                "the window"
            )
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

    def _lengths_of_outages(self, counted: NDArray[np.bool_]) -> NDArray[np.int64]:
        """While these jobs were there."""
        out = np.maximum(
            self._out_s(int(self.end_s[counted].max())), self.log.submit_s[counted].min()
        )
        return np.asarray(out[:, 1] - out[:, 0], dtype=np.int64)

    def _failed(self, counted: NDArray[np.bool_]) -> dict[str, Any]:
        """What failures came to from the first submission to the last end of these jobs."""
        if self.failures is None:
            return {}
        when, job, started, _ = self.hits[counted[self.hits[:, 1]]].T
        lost_s = self.log.nodes[job] * (when - started)
        out_s = self._lengths_of_outages(counted)
        figures = (
            int((out_s > 0).sum()),
            len(job),
            int(self.is_lost[counted].sum()),
            float(lost_s.sum() / 3600),
            float(out_s.sum() / 3600),
        )
        return dict(zip(FAILED, figures, strict=True))

    def _out_s(self, until_s: int) -> Ints:
        """Rows (from, to) of the times for which nodes were out, up to then. One that is out does
        not fail again."""
        back: dict[int, int] = {}
        found = []
        for at, node, until in [] if self.failures is None else self.failures[:, :3].tolist():
            if back.get(node, at) <= at < until_s:
                back[node] = until
                found.append((at, min(until, until_s)))
        return np.array(found, dtype=np.int64).reshape(-1, 2)

    def runs(self) -> tuple[Ints, Ints, Ints]:
        """Begins, ends and nodes of all runs: of those that count, in order, then of those that
        lost a node."""
        when, job, started, _ = self.hits[~self._was_last].T
        pairs = (self.start_s, started), (self.end_s, when), (self.log.nodes, self.log.nodes[job])
        begin, end, nodes = (np.concatenate(pair) for pair in pairs)
        return begin, end, nodes

    def waits(self) -> tuple[Ints, Ints, Ints]:
        """When jobs come to the queue and leave it, and ones; of a job that comes again, not in
        pairs."""
        submitted = np.concatenate([self.log.submit_s, self.hits[~self._was_last, 0]])
        return submitted, self.runs()[0], np.ones(len(submitted), dtype=np.int64)

    def queue_length(self) -> tuple[Ints, Ints]:
        """Times, ascending, and how many jobs wait from each until the next."""
        return steps(*self.waits())

    def busy_nodes(self) -> tuple[Ints, Ints]:
        """Times, ascending, and how many nodes are busy from each until the next."""
        return steps(*self.runs())

    def nodes_up(self) -> tuple[Ints, Ints]:
        """Times, ascending, and how many nodes are not out from each until the next."""
        first = int(self.log.submit_s[0])
        last = int(self.end_s.max())
        out = self._out_s(last)
        begin, end = np.concatenate([out, [[first, last]]]).T
        return steps(begin, end, np.array([-1] * len(out) + [self.machine_nodes]))


def steps(begin: Ints, end: Ints, weight: Ints) -> tuple[Ints, Ints]:
    """A step function: the total weight of the intervals [begin, end) that cover each time."""
    times, place = np.unique(np.concatenate([begin, end]), return_inverse=True)
    change = np.zeros(len(times), dtype=np.int64)
    np.add.at(change, place, np.concatenate([weight, -weight]))
    return times, np.cumsum(change)
