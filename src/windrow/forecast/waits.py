"""Forecasts from past waits: what jobs of such a size waited in this queue at such an hour.

The answer is a bound that holds with a stated confidence: with 95 % confidence, half of such jobs
wait no longer. It is an order statistic of the past waits, with the binomial distribution as its
only assumption (so waits are taken as independent draws from one distribution, whatever that is).
The method is that of Brevik, Nurmi and Wolski's QBETS; absent are its search for change points
(instead, only the last waits count) and its clustering (instead, classes).

Rule 1: classes widen until they hold enough waits: size and time of day, size, nodes, all. Rule 2:
a job counts once, by its tag, however often it is recorded. Rule 3: only jobs that started are
known, so in a queue that has just become slow the bound is too low.
"""

import logging
import math
import os
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from windrow.errors import UserError, WindrowError
from windrow.forecast.base import UNKNOWN_S, Clock, Forecaster, Ints, filled
from windrow.places import user_folder
from windrow.records.database import Database

_TABLE = """
CREATE TABLE IF NOT EXISTS waits (
    queue TEXT NOT NULL, tag TEXT NOT NULL,
    nodes_class INTEGER NOT NULL, time_class INTEGER NOT NULL, hour_class INTEGER NOT NULL,
    submitted_s REAL NOT NULL, wait_s REAL NOT NULL,
    PRIMARY KEY (queue, tag)
) WITHOUT ROWID
"""
_LINKS = """
CREATE TABLE IF NOT EXISTS links (
    origin TEXT NOT NULL, dest TEXT NOT NULL, s_per_mb REAL NOT NULL, PRIMARY KEY (origin, dest)
) WITHOUT ROWID
"""
_INDEX = "CREATE INDEX IF NOT EXISTS by_class ON waits (queue, nodes_class, time_class, hour_class)"

logger = logging.getLogger(__name__)

# From the narrowest class to the widest: the columns that must agree, and what to call it.
_CLASSES = (
    (("nodes_class", "time_class", "hour_class"), "such jobs at this time of day"),
    (("nodes_class", "time_class"), "such jobs"),
    (("nodes_class",), "jobs on about as many nodes"),
    ((), "all jobs"),
)


@dataclass(frozen=True, slots=True)
class PastWait:
    """A job that was submitted and has started. Times are seconds since the epoch."""

    tag: str
    nodes: int
    requested_s: int
    submitted_s: float
    started_s: float


@dataclass(frozen=True, slots=True)
class WaitBound:
    """With the confidence asked for, that part of jobs wait no longer than `wait_s`; from `jobs`
    waits of `what`."""

    wait_s: int
    jobs: int
    what: str


@dataclass(frozen=True, slots=True)
class Level:
    """What a bound is to hold for: that part of such jobs, with that confidence."""

    part: float = 0.5
    confidence: float = 0.95


USUAL = Level()


class History:
    """A small database of past waits, shared by all runs of a user. Made if it is missing."""

    def __init__(self, path: str | Path, *, last: int = 200) -> None:
        self.path = Path(path)
        self.last = last
        self._file = Database(
            self.path, "the history of waits", "move it away, and a new one is created"
        )
        self._file.make_folder("set WINDROW_WAITS to another file")
        with self._file.visit() as database:
            database.execute(_TABLE)
            database.execute(_INDEX)
            database.execute(_LINKS)

    def record(self, queue: str, jobs: Iterable[PastWait]) -> None:
        """Keep these waits. A tag that is known stays as it is."""
        rows = []
        for job in jobs:
            wait_s = max(0.0, job.started_s - job.submitted_s)  # clocks of two hosts may differ
            classes = _classes(job.nodes, job.requested_s, job.submitted_s)
            rows.append((queue, job.tag, *classes, job.submitted_s, wait_s))
        with self._file.visit(writes=True) as database:
            database.executemany("INSERT OR IGNORE INTO waits VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def links(self) -> dict[tuple[str, str], float]:
        """Seconds per megabyte from host to host, as last seen; the host of the user is the empty
        one."""
        with self._file.visit() as database:
            return {
                (a, b): took
                for a, b, took in database.execute("SELECT origin, dest, s_per_mb FROM links")
            }

    def record_links(self, links: Iterable[tuple[str, str, float]]) -> None:
        """Keep these, in the place of what was known of the same links."""
        with self._file.visit(writes=True) as database:
            database.executemany("INSERT OR REPLACE INTO links VALUES (?, ?, ?)", links)

    def bounds(
        self,
        queue: str,
        jobs: Iterable[tuple[int, int]],
        at_s: float,
        level: Level = USUAL,
    ) -> list[WaitBound | None]:
        """A bound for each (nodes, requested time) submitted at `at_s`; None if too few have
        started so far."""
        found: dict[tuple[int, int, int], WaitBound | None] = {}
        keys = [_classes(nodes, requested, at_s) for nodes, requested in jobs]
        with self._file.visit() as database:
            for key in dict.fromkeys(keys):
                found[key] = self._bound(database, queue, key, level)
        return [found[key] for key in keys]

    def last_submission_s(
        self, queue: str, job: tuple[int, int], between: tuple[float, float], level: Level = USUAL
    ) -> float | None:
        """The last moment, from the first of two on, at which a job may be submitted that is to
        start by the second; None if there is none, or if too little is known.

        Bounds change with the time of day alone, so of each stretch of equal bounds only its last
        moment that is early enough counts.
        """
        now_s, start_s = between
        end_s = start_s
        while end_s > now_s:
            begin_s = max(now_s, _stretch_before(end_s))
            (bound,) = self.bounds(queue, [job], begin_s, level)
            if bound is None:
                return None
            latest_s = min(end_s - 1, start_s - bound.wait_s)
            if latest_s >= begin_s:
                return latest_s
            end_s = begin_s
        return None

    def _bound(
        self,
        database: sqlite3.Connection,
        queue: str,
        key: tuple[int, int, int],
        level: Level,
    ) -> WaitBound | None:
        values = dict(zip(_CLASSES[0][0], key, strict=True))
        for columns, what in _CLASSES:
            where = " AND ".join(["queue = ?", *(f"{column} = ?" for column in columns)])
            newest_first = "ORDER BY submitted_s + wait_s DESC, tag LIMIT ?"
            rows = database.execute(
                f"SELECT wait_s FROM waits WHERE {where} {newest_first}",
                (queue, *(values[column] for column in columns), self.last),
            ).fetchall()
            place = order_statistic(len(rows), level.part, level.confidence)
            if place is not None:
                return WaitBound(
                    math.ceil(sorted(wait for (wait,) in rows)[place - 1]), len(rows), what
                )
        return None


class FromHistory:
    """Forecasts for one queue by its past waits. If too few are known, `fallback` is asked.

    A history that can no longer be read knows nothing, which is said once: a forecast more or less
    stops no run.
    """

    name = "history"

    def __init__(
        self,
        history: History,
        queue: str,
        clock: Clock,
        fallback: Forecaster,
        formerly: str | None = None,
        level: Level = USUAL,
    ) -> None:
        """`formerly`: the name under which waits were kept before; what stands there is used if
        nothing else is."""
        self._level = level
        self._history = history
        self._queue = queue
        self._clock = clock
        self._fallback = fallback
        self._formerly = formerly or queue
        self._is_told = False

    def waits_s(self, nodes: Ints, requested_s: Ints) -> Ints:
        """The bound for each job, or what the fallback says."""
        return filled(self.known_s(nodes, requested_s), self._fallback, nodes, requested_s)

    def known_s(self, nodes: Ints, requested_s: Ints) -> Ints:
        """The bound for each job; `UNKNOWN_S` if too few such jobs have started."""
        jobs = list(zip(nodes.tolist(), requested_s.tolist(), strict=True))
        try:
            bounds = self._history.bounds(self._queue, jobs, self._clock(), self._level)
            if self._formerly != self._queue and None in bounds:
                before = self._history.bounds(self._formerly, jobs, self._clock(), self._level)
                bounds = [bound or older for bound, older in zip(bounds, before, strict=True)]
        except WindrowError as error:
            if not self._is_told:
                logger.warning("waits of earlier jobs are not used: %s", error)
            self._is_told = True
            bounds = [None] * len(jobs)
        return np.array(
            [UNKNOWN_S if bound is None else bound.wait_s for bound in bounds], dtype=np.int64
        )


def order_statistic(count: int, quantile: float, confidence: float) -> int | None:
    """Which of `count` sorted draws, counted from 1, is at least the quantile with this confidence.
    None: too few.

    The k-th smallest lies below the quantile only if k or more draws do: their number is binomial.
    """
    if not (0 < quantile < 1 and 0 < confidence < 1):
        raise UserError(f"quantile {quantile} and confidence {confidence} must lie between 0 and 1")
    below = 0.0
    for k in range(1, count + 1):
        ways = math.lgamma(count + 1) - math.lgamma(k) - math.lgamma(count - k + 2)
        below += math.exp(
            ways + (k - 1) * math.log(quantile) + (count - k + 1) * math.log1p(-quantile)
        )
        # now: the chance that fewer than k draws lie below
        if below >= confidence:
            return k
    return None


def default_path() -> Path:
    """Where a user's past waits are: `$WINDROW_WAITS`, else `windrow/waits.sqlite` in the user's
    data folder."""
    named = os.environ.get("WINDROW_WAITS")
    if named:
        return Path(named)
    return user_folder("data") / "waits.sqlite"


def _stretch_before(at_s: float) -> float:
    """When the quarter of a day began that ends with this moment, or holds it."""
    quarter_s = 6 * 3600
    return (math.ceil(at_s / quarter_s) - 1) * quarter_s


def _classes(nodes: int, requested_s: int, at_s: float) -> tuple[int, int, int]:
    """Nodes and requested time by doublings (of one node, of five minutes), time of day by quarters
    (UTC)."""
    return (
        (nodes - 1).bit_length(),
        (-(-requested_s // 300) - 1).bit_length(),
        int(at_s // 3600) % 24 // 6,
    )
