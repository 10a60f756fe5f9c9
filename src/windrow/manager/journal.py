"""The journal of a run: every event, in order, on disk before anything is done about it.

Rule 1: a record is never changed. Rule 2: `append` returns when the records are on disk. Rule 3: replaying the events
into a new core gives the core that the run had.

Beside the events it keeps facts of the run (`facts`), how far the agents' event files have been read (in the same
transaction as the events that came from there), and predictions of starts. SQLite in WAL mode: one process writes, any
number on the same machine read.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import msgspec
import numpy as np

from windrow.errors import InputError
from windrow.manager.events import Event
from windrow.manager.journal_file import FACTS_TABLE, KEEP_FACT, JournalFile, connect, fact_rows, faults_explained

FORMAT = 1

_SCHEMA = f"""
{FACTS_TABLE}
CREATE TABLE events (seq INTEGER PRIMARY KEY, at_s REAL NOT NULL, kind TEXT NOT NULL, body BLOB NOT NULL, detail BLOB);
CREATE TABLE offsets (job INTEGER PRIMARY KEY, bytes INTEGER NOT NULL);
CREATE TABLE predictions (
    job INTEGER NOT NULL, source TEXT NOT NULL, at_s REAL NOT NULL,
    nodes INTEGER NOT NULL, requested_s INTEGER NOT NULL, start_s REAL NOT NULL, used INTEGER NOT NULL);
"""

_DECODERS: dict[str, msgspec.json.Decoder[Event]] = {
    kind.__name__: msgspec.json.Decoder(kind) for kind in get_args(Event)
}


@dataclass(frozen=True, slots=True)
class Record:
    """An event with what is known of it beyond what the core needs: exit codes, memory, last lines of output.

    `at_s` is its exact time, where the core counts whole seconds.
    """

    event: Event
    detail: Mapping[str, Any] | None = None
    at_s: float = -1.0

    def __post_init__(self) -> None:
        if self.at_s < 0:
            object.__setattr__(self, "at_s", float(self.event.at_s))


@dataclass(frozen=True, slots=True)
class PredictedStart:
    """What a forecaster said of one job when it was submitted. `used`: 1 where the decision was based on it."""

    job: int
    source: str
    at_s: float
    nodes: int
    requested_s: int
    start_s: float
    used: int


class Journal(JournalFile):
    """One run's journal."""

    @staticmethod
    def create(path: Path, facts: Mapping[str, Any]) -> Journal:
        """A new journal with these facts; it must not exist."""
        with faults_explained(path):
            os.close(os.open(path, os.O_CREAT, 0o600))  # private; what SQLite puts beside it is as private
            db = sqlite3.connect(path, isolation_level=None)
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=FULL")
            db.executescript("BEGIN;" + _SCHEMA)
            db.executemany(KEEP_FACT, fact_rows({"format": FORMAT, **facts}))
            db.execute("COMMIT")
        return Journal(path, db)

    @staticmethod
    def open(path: Path, *, writable: bool = False) -> Journal:
        """The journal at this path."""
        if not path.is_file():
            raise InputError(path, "there is no journal here", fix="windrow runs lists the runs of this folder")
        with faults_explained(path):
            db = connect(path, "mode=rw", ["synchronous=FULL"]) if writable else connect(path, _reading(path))
            journal = Journal(path, db)
            journal._check_format(FORMAT)
        return journal

    def set_fact(self, key: str, value: Any) -> None:
        """Keep or replace a fact."""
        with faults_explained(self.path):
            self._db.executemany(KEEP_FACT, fact_rows({key: value}))

    def append(self, records: Sequence[Record], offsets: Mapping[int, int] | None = None) -> None:
        """Keep these records for good, with how far the event files of these jobs have been read."""
        rows = [(r.at_s, type(r.event).__name__, _encode(r.event), _encode_detail(r.detail)) for r in records]
        with self._transaction() as db:
            db.executemany("INSERT INTO events (at_s, kind, body, detail) VALUES (?, ?, ?, ?)", rows)
            if offsets:
                db.executemany("INSERT OR REPLACE INTO offsets VALUES (?, ?)", list(offsets.items()))

    def predict(self, predictions: Sequence[PredictedStart]) -> None:
        """Keep these predictions."""
        columns = PredictedStart.__slots__
        rows = [tuple(getattr(p, name) for name in columns) for p in predictions]
        with self._transaction() as db:  # one write to disk for all of them
            db.executemany("INSERT INTO predictions VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def records(self, after: int = 0, kinds: Sequence[type[Event]] = ()) -> Iterator[tuple[int, Record]]:
        """Numbered records, in order, from the one after `after` on; only those of these kinds, where any are given."""
        names = [kind.__name__ for kind in kinds]
        chosen = f" AND kind IN ({', '.join('?' * len(names))})" if names else ""
        query = f"SELECT seq, at_s, kind, body, detail FROM events WHERE seq > ?{chosen} ORDER BY seq"
        with faults_explained(self.path):
            for seq, at_s, kind, body, detail in self._db.execute(query, (after, *names)):
                event = self._decoded(seq, kind, body, _DECODERS)
                yield seq, Record(event, None if detail is None else msgspec.json.decode(detail), at_s)

    def offsets(self) -> dict[int, int]:
        """How far the agents' event files have been read, by job."""
        with faults_explained(self.path):
            return dict(self._db.execute("SELECT job, bytes FROM offsets").fetchall())

    def predictions(self) -> list[PredictedStart]:
        """All predictions, in the order in which they were made."""
        query = "SELECT job, source, at_s, nodes, requested_s, start_s, used FROM predictions"
        with faults_explained(self.path):
            return [PredictedStart(*row) for row in self._db.execute(query)]


def _reading(path: Path) -> str:
    """How to open it for reading only. In WAL mode SQLite wants to write even then, which some disks do not let it."""
    is_frozen = not os.access(path.parent, os.W_OK) and not path.with_name(path.name + "-wal").exists()
    return "immutable=1" if is_frozen else "mode=ro"


def _encode(value: object) -> bytes:
    return msgspec.json.encode(value, enc_hook=_plain)


def _encode_detail(detail: Mapping[str, Any] | None) -> bytes | None:
    return None if detail is None else _encode(detail)


def _plain(value: object) -> object:
    """Strategies calculate with numpy, whose numbers JSON does not know."""
    if isinstance(value, np.generic):
        return value.item()
    raise NotImplementedError(f"{type(value).__name__} cannot be journaled")
