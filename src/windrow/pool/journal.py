"""The journal of a pool: every event, in order, on disk before anything is done about it.

Rule 1: an event is never changed. Rule 2: `append` returns when the events are on disk, all or none of them.
Rule 3: one process writes, any number read.

On one machine SQLite writes ahead (WAL), so readers never wait. Its shared memory does not reach other machines: inside
an allocation, where people read from elsewhere, SQLite's older way is used instead.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from windrow.errors import InputError
from windrow.manager.journal_file import FACTS_TABLE, KEEP_FACT, JournalFile, connect, fact_rows, faults_explained
from windrow.pool.events import KINDS, Event

FORMAT = 1
_SCHEMA = f"""
{FACTS_TABLE}
CREATE TABLE events (seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, body BLOB NOT NULL);
"""
_DECODERS: dict[str, msgspec.json.Decoder[Event]] = {name: msgspec.json.Decoder(kind) for kind, name in KINDS.items()}


class Journal(JournalFile):
    """One pool's journal."""

    @staticmethod
    def create(path: Path, facts: Mapping[str, Any]) -> None:
        """A new journal with these facts; whole or not at all, and never over another one."""
        draft = path.with_name(path.name + ".new")
        draft.unlink(missing_ok=True)
        with faults_explained(path):
            db = sqlite3.connect(draft, isolation_level=None)
            db.executescript("BEGIN;" + _SCHEMA)
            db.executemany(KEEP_FACT, fact_rows({"format": FORMAT, **facts}))
            db.execute("COMMIT")
            db.close()
        if not path.exists():
            draft.replace(path)

    @staticmethod
    def open(path: Path, *, writable: bool = False, is_cluster: bool = False) -> Journal:
        """The journal at this path. `is_cluster`: others read it from other machines."""
        if not path.is_file():
            raise InputError(path, "there is no journal of a pool here", fix="windrow pool NAME starts a pool")
        with faults_explained(path):
            pragmas = [f"journal_mode={'DELETE' if is_cluster else 'WAL'}", "synchronous=FULL"]
            db = connect(path, "mode=rw", pragmas) if writable else connect(path, "mode=ro")
            journal = Journal(path, db)
            journal._check_format(FORMAT)
        return journal

    def append(self, events: Sequence[Event], facts: Mapping[str, Any] | None = None) -> None:
        """Keep these events for good, and replace these facts, in one step."""
        rows = [(KINDS[type(event)], msgspec.json.encode(event)) for event in events]
        with self._transaction() as db:
            db.executemany("INSERT INTO events (kind, body) VALUES (?, ?)", rows)
            db.executemany(KEEP_FACT, fact_rows(facts or {}))

    def events(self, after: int = 0) -> Iterator[tuple[int, Event]]:
        """Numbered events, in order, from the one after `after` on."""
        query = "SELECT seq, kind, body FROM events WHERE seq > ? ORDER BY seq"
        with faults_explained(self.path):
            for seq, kind, body in self._db.execute(query, (after,)):
                yield seq, self._decoded(seq, kind, body, _DECODERS)
