"""A journal: every event, in order, on disk before anything is done about it; of a run, or of a pool.

Rule 1: an event is never changed. Rule 2: what is appended is on disk, all or none of it, when the call returns.
Rule 3: one process writes, any number read. Beside the events there are facts of the whole, which may be replaced; the
`format` of the file is among them.

On one machine SQLite writes ahead (WAL), so readers never wait. Its shared memory does not reach other machines: where
people read from elsewhere, as inside an allocation, SQLite's older way is used instead.
"""

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import msgspec

from windrow.errors import InputError
from windrow.records.database import Database
from windrow.records.lock import holder_of

E = TypeVar("E")
J = TypeVar("J", bound="Journal[Any]")

FORMAT = 1
_FACTS = "CREATE TABLE facts (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
_KEEP_FACT = "INSERT OR REPLACE INTO facts VALUES (?, ?)"
_OTHER_VERSION = "use the version of Windrow that wrote it"


class Journal(Generic[E]):
    """An open journal of events `E`. Its children say what tables there are, and what events are called in them."""

    kinds: ClassVar[Mapping[type[Any], str]]
    """How the events are called in the file, whatever their classes are called."""
    tables: ClassVar[str]
    """All but that of the facts; `events` has seq, kind and body at least."""
    mode: ClassVar[str] = "WAL"
    """SQLite's journal mode for a new file."""
    missing: ClassVar[tuple[str, str]]
    """What is said where there is no journal, and what to do then."""

    def __init__(self, file: Database, connection: sqlite3.Connection) -> None:
        self.path = file.path
        self._file, self._db = file, connection
        self._decoders = {name: msgspec.json.Decoder(kind) for kind, name in self.kinds.items()}

    @classmethod
    def create(cls, path: Path, facts: Mapping[str, Any]) -> Self:
        """A new journal with these facts; it must not exist."""
        file = Database(path, "the journal")
        with file.explained():
            os.close(os.open(path, os.O_CREAT, 0o600))  # private; what SQLite puts beside it is as private
            journal = cls(file, file.connect("mode=rw", (f"journal_mode={cls.mode}", "synchronous=FULL")))
            journal._db.executescript(f"BEGIN;{_FACTS}{cls.tables}")
            journal._keep({"format": FORMAT, **facts})
            journal._db.execute("COMMIT")
        return journal

    @classmethod
    def open(cls, path: Path, *, writable: bool = False, is_cluster: bool = False) -> Self:
        """The journal at this path. `is_cluster`: others read it from other machines."""
        if not path.is_file():
            raise InputError(path, cls.missing[0], fix=cls.missing[1])
        file = Database(path, "the journal")
        if writable:
            pragmas = (f"journal_mode={'DELETE' if is_cluster else 'WAL'}", "synchronous=FULL")
            journal = cls(file, file.connect("mode=rw", pragmas))
        else:  # in WAL mode SQLite wants to write even then, which some disks do not let it
            is_frozen = not os.access(path.parent, os.W_OK) and not path.with_name(path.name + "-wal").exists()
            journal = cls(file, file.connect("immutable=1" if is_frozen else "mode=ro"))
        found = journal.facts().get("format")
        if found != FORMAT:
            raise InputError(path, f"format {found} is not {FORMAT}", fix=_OTHER_VERSION)
        return journal

    def facts(self) -> dict[str, Any]:
        """What is known of the whole."""
        with self._file.explained():
            rows = self._db.execute("SELECT key, value FROM facts").fetchall()
        return {key: msgspec.json.decode(value) for key, value in rows}

    def set_fact(self, key: str, value: Any) -> None:
        """Keep or replace a fact."""
        with self._transaction():
            self._keep({key: value})

    def records(self, after: int = 0) -> Iterator[tuple[int, Any]]:
        """Numbered records, in order, from the one after `after` on."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._file.transaction(self._db):
            yield self._db

    def _keep(self, facts: Mapping[str, Any]) -> None:
        rows = [(key, msgspec.json.encode(value).decode()) for key, value in facts.items()]
        self._db.executemany(_KEEP_FACT, rows)

    def _row(self, event: E) -> tuple[str, bytes]:
        """The event as the table has it: kind and body."""
        return self.kinds[type(event)], encoded(event)

    def _read(self, after: int, kinds: Sequence[type[E]] = (), more: str = "") -> Iterator[tuple[int, E, list[Any]]]:
        """Numbered events after this one, of these kinds where any are given; with the values of `more` columns."""
        names = [self.kinds[kind] for kind in kinds]
        chosen = f" AND kind IN ({', '.join('?' * len(names))})" if names else ""
        query = f"SELECT seq, kind, body{more} FROM events WHERE seq > ?{chosen} ORDER BY seq"
        with self._file.explained():
            for seq, kind, body, *values in self._db.execute(query, (after, *names)):
                try:
                    event: E = self._decoders[kind].decode(body)
                except (KeyError, msgspec.DecodeError) as error:  # a kind that this version does not know, or damage
                    raise InputError(self.path, f"record {seq} ({kind}) cannot be read", fix=_OTHER_VERSION) from error
                yield seq, event, values


def encoded(value: object) -> bytes:
    """As JSON. Strategies calculate with numpy, whose numbers JSON does not know."""
    return msgspec.json.encode(value, enc_hook=_plain)


def _plain(value: object) -> object:
    if hasattr(value, "item"):
        return value.item()
    raise NotImplementedError(f"{type(value).__name__} cannot be journaled")


class JournalView(Generic[J]):
    """A journaled thing as any process can tell it: its facts, its events, who works at it. Reading changes nothing."""

    def __init__(self, journal: J, lock: Path) -> None:
        self._journal, self._lock, self._seen = journal, lock, 0
        self.refresh()

    def refresh(self) -> None:
        """Take in what has happened since the last look."""
        self.facts: dict[str, Any] = self._journal.facts()
        for seq, record in self._journal.records(self._seen):
            self._hear(record)
            self._seen = seq
        self.holder = holder_of(self._lock)
        """Who works at it now; None: no process does."""

    def _hear(self, record: Any) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Let go of the journal."""
        self._journal.close()
