"""The journal of a pool: every event, in order, on disk before anything is done about it.

Rule 1: an event is never changed. Rule 2: `append` returns when the events are on disk, all or none of them.
Rule 3: one process writes, any number read.

On one machine SQLite writes ahead (WAL), so readers never wait. Its shared memory does not reach other machines: inside
an allocation, where people read from elsewhere, SQLite's older way is used instead.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import msgspec

from windrow.errors import InputError, OutsideError
from windrow.pool.events import Event

FORMAT = 1
_PATIENCE_S = 30
_SCHEMA = """
CREATE TABLE facts (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE events (seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, body BLOB NOT NULL);
"""
_KINDS: dict[str, type[Event]] = {kind.__name__: kind for kind in get_args(Event)}


class Journal:
    """One pool's journal."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._db = connection

    @staticmethod
    def create(path: Path, facts: Mapping[str, Any]) -> None:
        """A new journal with these facts; whole or not at all, and never over another one."""
        draft = path.with_name(path.name + ".new")
        draft.unlink(missing_ok=True)
        with _faults_explained(path):
            db = sqlite3.connect(draft, isolation_level=None)
            db.executescript("BEGIN;" + _SCHEMA)
            db.executemany("INSERT INTO facts VALUES (?, ?)", _rows({"format": FORMAT, **facts}))
            db.execute("COMMIT")
            db.close()
        if not path.exists():
            draft.replace(path)

    @staticmethod
    def open(path: Path, *, writable: bool = False, is_cluster: bool = False) -> Journal:
        """The journal at this path. `is_cluster`: others read it from other machines."""
        if not path.is_file():
            raise InputError(path, "there is no journal of a pool here", fix="windrow pool NAME starts a pool")
        with _faults_explained(path):
            mode = "rw" if writable else "ro"
            address = f"{path.absolute().as_uri()}?mode={mode}"
            db = sqlite3.connect(address, uri=True, isolation_level=None, timeout=_PATIENCE_S)
            if writable:
                db.execute(f"PRAGMA journal_mode={'DELETE' if is_cluster else 'WAL'}")
                db.execute("PRAGMA synchronous=FULL")
            journal = Journal(path, db)
            found = journal.facts().get("format")
        if found != FORMAT:
            raise InputError(path, f"format {found} is not {FORMAT}", fix="use the version of Windrow that wrote it")
        return journal

    def facts(self) -> dict[str, Any]:
        """What is known of the pool as a whole."""
        with _faults_explained(self.path):
            rows = self._db.execute("SELECT key, value FROM facts").fetchall()
        return {key: msgspec.json.decode(value) for key, value in rows}

    def append(self, events: Sequence[Event], facts: Mapping[str, Any] | None = None) -> None:
        """Keep these events for good, and replace these facts, in one step."""
        rows = [(type(event).__name__, msgspec.json.encode(event)) for event in events]
        with _faults_explained(self.path), self._db:  # which commits, or rolls back what was begun
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany("INSERT INTO events (kind, body) VALUES (?, ?)", rows)
            self._db.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", _rows(facts or {}))

    def events(self, after: int = 0) -> Iterator[tuple[int, Event]]:
        """Numbered events, in order, from the one after `after` on."""
        query = "SELECT seq, kind, body FROM events WHERE seq > ? ORDER BY seq"
        with _faults_explained(self.path):
            for seq, kind, body in self._db.execute(query, (after,)):
                yield seq, msgspec.json.decode(body, type=_KINDS[kind])

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()


def _rows(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(key, msgspec.json.encode(value).decode()) for key, value in facts.items()]


@contextmanager
def _faults_explained(path: Path) -> Iterator[None]:
    """Database errors inside the `with` leave it as one sentence that names the file."""
    try:
        yield
    except sqlite3.Error as error:
        raise OutsideError(f"{path}: the journal cannot be used: {error}") from error
