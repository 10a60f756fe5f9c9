"""Run times learned from past runs of the same kind of task, kept in a small SQLite database.

The rule of expectation, for a stated risk r and n past run times in ascending order x(1) <= ... <=
x(n): the answer is x(k) with the smallest k for which k/(n+1) >= 1 - r. If past and next run are
exchangeable, the next one is longer with a chance of at most r, whatever the distribution. Fewer
than 1/r - 1 runs cannot promise that; then the answer is the longest of them, and the risk that
goes with it, 1/(n+1), is part of the answer.

Rule 1: the database is a convenience: if it is missing, nothing is known; if it is broken, it
is set aside.
Rule 2: many processes may record and ask at once. Rule 3: it stays small: the last runs of each
kind are kept. The journal mode is SQLite's default: its write-ahead log does not work on network
file systems, where homes often are.
"""

import logging
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from itertools import count
from pathlib import Path
from typing import TypeVar

from windrow.deletion import discard, move
from windrow.errors import OutsideError, UserError
from windrow.files import held
from windrow.model import Runnable, Workflow
from windrow.places import user_folder
from windrow.records.database import Database, is_broken

RUNS_KEPT = 200
"""How many runs of a kind (and number of cores) are remembered: the latest."""

DEFAULT_RISK = 0.1

_VERSION = 1
_ELSEWHERE = "set WINDROW_HISTORY to another file, or use the newest Windrow"
_TABLE = """
CREATE TABLE runs (
    workflow TEXT NOT NULL, kind TEXT NOT NULL, cores INTEGER NOT NULL,
    runtime_s REAL NOT NULL, peak_bytes INTEGER NOT NULL, ended_at REAL NOT NULL
)"""
_INDEX = "CREATE INDEX runs_by_kind ON runs (workflow, kind, cores, ended_at)"
_PRUNE = """
DELETE FROM runs WHERE rowid IN (
    SELECT rowid FROM runs WHERE workflow = ? AND kind = ? AND cores = ?
    ORDER BY ended_at DESC, rowid DESC LIMIT -1 OFFSET ?
)"""
_SELECT = "SELECT runtime_s FROM runs WHERE workflow = ? AND kind = ?"
_LATEST = " ORDER BY ended_at DESC, rowid DESC LIMIT ?"

logger = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PastRun:
    """One task that ran to its end. Only successes are kept: how long a failure took says nothing
    of a success."""

    workflow: str
    kind: str
    runtime_s: float
    ended_at: float
    cores: int = 1
    peak_bytes: int = 0


class TimeSource(StrEnum):
    """Where a task's expected run time comes from."""

    KNOWN = "known"  # the workflow states it
    LEARNED = "learned"  # from past runs of its kind
    GUESS = "guess"  # unknown


@dataclass(frozen=True, slots=True)
class FilledTime:
    """A task's expected run time and where it comes from: longer with a chance of `risk`, by `runs`
    past runs."""

    source: TimeSource
    runtime_s: float
    runs: int = 0
    risk: float = 1.0


def default_path(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the history is: `$WINDROW_HISTORY`, else `windrow/history.sqlite` where the user's data
    is."""
    named = environ.get("WINDROW_HISTORY")
    if named:
        return Path(named)
    return user_folder("data", environ) / "history.sqlite"


def check_risk(risk: float) -> None:
    """UserError unless it can be one."""
    if not 0 < risk < 1:
        raise UserError(
            f"a risk is a number between 0 and 1, not {risk}; 0.1 means one task in ten"
        )


def upper_quantile(times_s: Iterable[float], risk: float) -> tuple[float, float]:
    """The time that the next run exceeds with a chance of at most `risk`, and the chance that can
    really be stated.

    The rule is at the head of this file. ValueError if there are no times.
    """
    check_risk(risk)
    ascending = sorted(times_s)
    n = len(ascending)
    above = math.floor(
        risk * (n + 1) + 1e-9
    )  # how many of n + 1 places may lie above; the rest is for rounding
    k = min(n, n + 1 - above)
    if k == 0:
        raise ValueError("no run times")
    return ascending[k - 1], 1 - k / (n + 1)


class RunTimes:
    """The database at `path`, made when something is first recorded. Holds no connection, so it may
    cross a fork."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        if path is not None:
            self.path = Path(path)
        else:
            self.path = default_path()
        self._file = Database(
            self.path, "the history of run times", "set WINDROW_HISTORY to another file"
        )

    def record(self, runs: Iterable[PastRun]) -> None:
        """Remember these runs, all or none of them. OutsideError if the file cannot be
        written."""
        rows = [
            (run.workflow, run.kind, run.cores, run.runtime_s, run.peak_bytes, run.ended_at)
            for run in runs
            if math.isfinite(run.runtime_s) and run.runtime_s >= 0
        ]
        if rows:
            self._file.make_folder("set WINDROW_HISTORY to another file")
            self._mended(lambda: self._insert(rows))

    def expect(
        self,
        workflow: str,
        kind: str,
        risk: float = DEFAULT_RISK,
        *,
        cores: int | None = None,
        guess_s: float = 0.0,
    ) -> FilledTime:
        """How long a task of this kind should take; `guess_s`, marked as a guess, if none ever
        ran.

        With `cores`, runs on as many cores are used if there are any, else those on any number.
        """
        times = self.times(workflow, kind, cores=cores)
        if not times:
            return FilledTime(TimeSource.GUESS, guess_s)
        runtime_s, stated = upper_quantile(times, risk)
        return FilledTime(TimeSource.LEARNED, runtime_s, len(times), stated)

    def times(self, workflow: str, kind: str, *, cores: int | None = None) -> list[float]:
        """What the latest runs of this kind took, the last one first; with `cores` as in
        `expect`."""
        if self.path.exists():
            return self._mended(lambda: self._latest(workflow, kind, cores))
        return []

    def _insert(self, rows: Sequence[tuple[str, str, int, float, int, float]]) -> None:
        kinds = dict.fromkeys(row[:3] for row in rows)
        with self._file.visit(writes=True) as database:
            if self._file.is_new(database, _VERSION, _ELSEWHERE):
                database.execute(_TABLE)
                database.execute(_INDEX)
                database.execute(f"PRAGMA user_version = {_VERSION}")
            database.executemany("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?)", rows)
            database.executemany(_PRUNE, [(*kind, RUNS_KEPT) for kind in kinds])

    def _latest(self, workflow: str, kind: str, cores: int | None) -> list[float]:
        with self._file.visit() as database:
            if self._file.is_new(database, _VERSION, _ELSEWHERE):
                return []
            found: list[tuple[float]] = []
            if cores is not None:
                query = _SELECT + " AND cores = ?" + _LATEST
                found = database.execute(query, (workflow, kind, cores, RUNS_KEPT)).fetchall()
            found = (
                found or database.execute(_SELECT + _LATEST, (workflow, kind, RUNS_KEPT)).fetchall()
            )
        return [runtime_s for (runtime_s,) in found]

    def _mended(self, act: Callable[[], T]) -> T:
        """What `act` gives; once more after a broken file was set aside."""
        try:
            return act()
        except OutsideError as error:
            if not is_broken(error.__cause__):
                raise
            self._set_aside()
        return act()

    def _set_aside(self) -> None:
        """Rename the file, unless another process did so already; its journal must not meet the
        next."""
        try:
            with held(self.path.with_name(self.path.name + ".lock")):
                if not self._is_still_broken():
                    return
                names = (
                    self.path.with_name(f"{self.path.name}.broken-{number}") for number in count(1)
                )
                target = next(name for name in names if not name.exists())
                for suffix in ("-journal", "-wal", "-shm"):
                    discard(f"{self.path}{suffix}")
                move(self.path, target)
        except OSError as error:
            raise OutsideError(
                f"{self.path}: broken, and cannot be renamed: {error.strerror}; remove it"
            ) from None
        logger.warning(
            "%s was broken; it is now %s, and run times are learned again", self.path, target.name
        )

    def _is_still_broken(self) -> bool:
        try:
            with self._file.visit() as database:
                return bool(database.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok")
        except OutsideError as error:
            return is_broken(error.__cause__)


FETCHING = "\0fetching"
"""The kind under which it is kept how long a node fetched what its tasks read: seconds for a GB, as
times are."""


def output_kind(kind: str, place: int) -> str:
    """The name under which sizes of the outputs of a kind are kept, those at this place of the
    list, as times are."""
    return f"{kind}\0output {place}"


def with_sizes(workflow: Workflow, runtimes: RunTimes, risk: float = DEFAULT_RISK) -> Workflow:
    """The same, with sizes of files that tasks of the same kind wrote earlier, if it states
    none."""
    sizes: dict[int, int] = {}

    @cache
    def learned_bytes(name: str) -> int:
        found = runtimes.expect(workflow.name, name, risk)
        return round(found.runtime_s) if found.source is TimeSource.LEARNED else 0

    for task, kind in enumerate(workflow.kinds):
        for place, f in enumerate(workflow.outputs.of(task).tolist()):
            if not workflow.files[f].size_bytes:
                sizes[f] = learned_bytes(output_kind(kind, place))
    files = [
        replace(file, size_bytes=sizes.get(f, file.size_bytes))
        for f, file in enumerate(workflow.files)
    ]
    if any(sizes.values()):
        return workflow.changed(files=files)
    return workflow


def fill(
    runnable: Runnable, runtimes: RunTimes | None, default_s: float, risk: float = DEFAULT_RISK
) -> tuple[Runnable, tuple[FilledTime, ...]]:
    """The workflow with learned run times if it states none, else `default_s`; and of each task
    what was done.

    Steps with a learned time count as known afterwards; those with a guess do not. `runtimes` None:
    none were learned.
    """
    workflow = runnable.workflow
    times = workflow.runtime_s.copy()
    steps = list(runnable.steps)
    filled: list[FilledTime] = []
    asked: dict[tuple[str, int], FilledTime] = {}
    for number, step in enumerate(runnable.steps):
        if step.runtime_known:
            filled.append(FilledTime(TimeSource.KNOWN, float(times[number])))
            continue
        key = (workflow.kinds[number], int(workflow.cores[number]))
        if key not in asked:
            asked[key] = FilledTime(TimeSource.GUESS, default_s)
            if runtimes is not None:
                asked[key] = runtimes.expect(
                    workflow.name, key[0], risk, cores=key[1], guess_s=default_s
                )
        filled.append(asked[key])
        times[number] = min(asked[key].runtime_s, step.limit_s or math.inf)
        steps[number] = replace(step, runtime_known=asked[key].source is TimeSource.LEARNED)
    return Runnable(workflow.with_times(times), tuple(steps)), tuple(filled)
