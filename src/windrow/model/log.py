"""A log: a recorded batch workload, as columns.

Rule 1: a Log that exists is valid: submits not negative and ascending; nodes, run and requested
times at least 1; no job wider than the machine. Rule 2: times are whole seconds; submits count from
the log's own zero. A run longer than requested is allowed here: the cluster kills such a job at its
request.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from windrow.errors import UserError
from windrow.model.bounds import LOG_TIME_S_MAX, NODES_MAX
from windrow.model.wording import count

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Repairs:
    """How many jobs of a log were repaired or dropped, and by which rule. Zero everywhere: the log
    was clean."""

    dropped_no_run_time: int = 0
    dropped_no_processors: int = 0
    dropped_too_wide: int = 0
    mended_no_request: int = 0
    mended_ran_longer: int = 0
    mended_unsorted: int = 0

    @property
    def dropped(self) -> int:
        """Jobs left out, by any rule."""
        return self.dropped_no_run_time + self.dropped_no_processors + self.dropped_too_wide

    @property
    def mended(self) -> int:
        """Repairs made; one job may have had several."""
        return self.mended_no_request + self.mended_ran_longer + self.mended_unsorted

    def lines(self) -> list[str]:
        """One line per rule that applied, for people."""
        counts = [(getattr(self, name), rule) for name, rule in _RULES.items()]
        return [
            rule.format(jobs=count(n, "job"), **(_ONE if n == 1 else _SEVERAL))
            for n, rule in counts
            if n
        ]


# How each rule is told, and the words that differ for one job and for several.
_RULES = {
    "dropped_no_run_time": "dropped: {jobs} had no run time above zero",
    "dropped_no_processors": "dropped: {jobs} had no processors",
    "dropped_too_wide": "dropped: {jobs} {were} wider than the machine",
    "mended_no_request": "repaired: {jobs} had no requested time; {their} run {times} {were} taken",
    "mended_ran_longer": "repaired: {jobs} ran longer than requested; {they} killed at {their} "
    "requested {times}",
    "mended_unsorted": "repaired: {jobs} {were} out of order; the log was sorted by submission",
}
_ONE = {"were": "was", "their": "its", "they": "it is", "times": "time"}
_SEVERAL = {"were": "were", "their": "their", "they": "they are", "times": "times"}


@dataclass(frozen=True, slots=True)
class LogJob:
    """One row of a log."""

    job: int
    submit_s: int
    nodes: int
    requested_s: int
    run_s: int
    user: int


@dataclass(frozen=True, slots=True, eq=False)
class Log:
    """A batch workload. `job` holds the ids of the source, `user` small numbers from 0."""

    name: str
    machine_nodes: int
    job: Ints
    submit_s: Ints
    nodes: Ints
    requested_s: Ints
    run_s: Ints
    user: Ints
    repairs: Repairs = field(default_factory=Repairs)
    user_ids: tuple[int, ...] = ()
    """What the source calls each user; if that is not known, one more than the number."""

    def __post_init__(self) -> None:
        columns = ("job", "submit_s", "nodes", "requested_s", "run_s", "user")
        for name in columns:
            column = np.ascontiguousarray(getattr(self, name), dtype=np.int64)
            if column is getattr(self, name) and column.flags.writeable:
                column = column.copy()
            column.flags.writeable = False
            object.__setattr__(self, name, column)
        if len({len(getattr(self, name)) for name in columns}) != 1:
            raise UserError(f"log {self.name}: all columns must have the same length")
        self._check()

    def _check(self) -> None:
        is_wide = (self.nodes < 1) | (self.nodes > self.machine_nodes)
        self._refuse(is_wide, "needs 1 to the machine's number of nodes")
        if not 1 <= self.machine_nodes <= NODES_MAX:
            raise UserError(
                f"log {self.name}: a machine has 1 to {NODES_MAX:,} nodes, not "
                f"{self.machine_nodes:,}"
            )
        self._check_times()

    def _check_times(self) -> None:
        longest = np.maximum(np.maximum(self.run_s, self.requested_s), self.submit_s)
        self._refuse(longest > LOG_TIME_S_MAX, f"has a time beyond {LOG_TIME_S_MAX:,} s")
        is_short = (self.run_s < 1) | (self.requested_s < 1)
        self._refuse(is_short, "needs a run time and a requested time of at least 1 s")
        is_below = (self.submit_s < 0) | (self.user < 0)
        self._refuse(is_below, "needs a submission time and a user of at least 0")
        is_early = np.diff(self.submit_s, prepend=0) < 0
        self._refuse(is_early, "is submitted before the job in front of it")

    def _refuse(self, bad: NDArray[np.bool_], rule: str) -> None:
        if bad.any():
            raise UserError(f"log {self.name}: job {self.job[np.argmax(bad)]} {rule}")

    def __len__(self) -> int:
        return len(self.job)

    def __iter__(self) -> Iterator[LogJob]:
        rows = zip(
            self.job,
            self.submit_s,
            self.nodes,
            self.requested_s,
            self.run_s,
            self.user,
            strict=True,
        )
        return (LogJob(*map(int, row)) for row in rows)

    def __repr__(self) -> str:
        return f"<Log {self.name!r}: {len(self):,} jobs on {self.machine_nodes:,} nodes>"

    @property
    def load(self) -> float:
        """Work that runs, divided by the machine's capacity from the first to the last
        submission."""
        if len(self):
            span = int(self.submit_s[-1] - self.submit_s[0])
        else:
            span = 0
        ran = np.minimum(self.run_s, self.requested_s)
        if span:
            return float((self.nodes * ran.astype(np.float64)).sum()) / (span * self.machine_nodes)
        return 0.0

    def user_called(self, source_id: int) -> int | None:
        """The number of the user whom the source calls so; None if there is none."""
        if self.user_ids:
            known = self.user_ids
            return known.index(source_id) if source_id in known else None
        return source_id - 1 if (self.user == source_id - 1).any() else None

    def accurate(self) -> Log:
        """The same jobs, each requesting exactly its run time."""
        ran = np.minimum(self.run_s, self.requested_s)
        return replace(self, requested_s=ran, run_s=ran)

    def padded(self, *, round_s: int, extra_s: int) -> Log:
        """The same jobs, each asking for the next whole `round_s` above what it asked, and
        `extra_s` more."""
        return replace(self, requested_s=round_s * (1 + self.requested_s // round_s) + extra_s)
