"""A journal: every event, in order, on disk before anything is done about it; of a run, or of a
pool.

Rule 1: an event is never changed. Rule 2: what is appended is on disk, all or none of it, when the
call returns.
Rule 3: one process writes, any number read. Beside the events there are facts of the whole, which
may be replaced; the `format` of the file is among them.

On a local disk SQLite writes ahead (WAL) while the journal is open for writing, so readers never
wait. Its shared memory does not reach other machines: on file systems that several machines share,
and if others read from elsewhere, as inside an allocation, SQLite's older way is used instead.
Who wrote leaves all in the one file.
"""

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import msgspec

from windrow.errors import InputError, OutsideError
from windrow.files import is_shared
from windrow.records.compact import as_json
from windrow.records.database import Database
from windrow.records.lock import holder_of

E = TypeVar("E")
J = TypeVar("J", bound="Journal[Any]")

FORMAT = 4
_FACTS = "CREATE TABLE facts (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
_KEEP_FACT = "INSERT OR REPLACE INTO facts VALUES (?, ?)"
_SETTLING_MS = 1000
_WRITTEN_AHEAD = 18, b"\2"
"""Where the header of an SQLite file says that it is written ahead."""
_OTHER_VERSION = "use the version of Windrow that wrote it"


class Journal(Generic[E]):
    """An open journal of events `E`. Its children say what tables there are, and what events are
    called in them."""

    kinds: ClassVar[Mapping[type[Any], str]]
    """How the events are called in the file, whatever their classes are called."""
    tables: ClassVar[str]
    """All but that of the facts; `events` has seq, kind and body at least."""
    missing: ClassVar[tuple[str, str]]
    """What is said if there is no journal, and what to do then."""

    def __init__(self, file: Database, connection: sqlite3.Connection) -> None:
        self.path = file.path
        self._file = file
        self._connection: sqlite3.Connection | None = connection
        self._is_reader = False
        self._is_ahead = False
        self._inode: int | None = None
        """Of the file; None if this journal is kept nowhere."""
        with suppress(FileNotFoundError):
            self._inode = file.path.stat().st_ino
        self._decoders = {name: msgspec.json.Decoder(kind) for kind, name in self.kinds.items()}

    @property
    def _db(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._file.connect(self._reading(self._file))
        return self._connection

    @classmethod
    def create(cls, path: Path, facts: Mapping[str, Any]) -> Self:
        """A new journal with these facts; it must not exist."""
        file = Database(path, "the journal")
        with file.explained():
            os.close(
                os.open(path, os.O_CREAT, 0o600)
            )  # private; what SQLite puts beside it is as private
            journal = cls(
                file, file.connect("mode=rw", ("journal_mode=DELETE", "synchronous=FULL"))
            )
            journal._db.executescript(f"BEGIN;{_FACTS}{cls.tables}")
            journal._keep({"format": FORMAT, **facts})
            journal._db.execute("COMMIT")
        return journal

    @classmethod
    def unkept(cls) -> Self:
        """A journal that is kept nowhere: of what is only thought through."""
        db = sqlite3.connect(":memory:", isolation_level=None)
        db.executescript(f"{_FACTS}{cls.tables}")
        return cls(Database(Path("a plan"), "its journal"), db)

    @classmethod
    def open(cls, path: Path, *, writable: bool = False, is_cluster: bool = False) -> Self:
        """The journal at this path. `is_cluster`: others read it from other machines."""
        file = Database(path, "the journal")
        how = cls._reading(file)
        if writable:
            is_ahead = not (is_cluster or is_shared(path))
            pragmas = (
                "mmap_size=0",
                f"journal_mode={'WAL' if is_ahead else 'DELETE'}",
                "synchronous=FULL",
            )
            journal = cls(file, file.connect("mode=rw", pragmas))
            journal._is_ahead = is_ahead
        else:
            journal = cls(file, file.connect(how))
            journal._is_reader = True
        found = journal.facts().get("format")
        if found != FORMAT:
            raise InputError(path, f"format {found} is not {FORMAT}", fix=_OTHER_VERSION)
        return journal

    @classmethod
    def _reading(cls, file: Database) -> str:
        """How to open the file for reading, which must be there."""
        path = file.path
        with file.explained():
            if not path.is_file():
                raise InputError(path, cls.missing[0], fix=cls.missing[1])
        # in WAL mode SQLite wants to write even then, which some disks do not let it
        may_write = os.access(path.parent, os.W_OK) and not is_shared(path)
        has_ahead = path.with_name(path.name + "-wal").exists()
        if not may_write and _is_ahead(path) and not has_ahead:
            return "immutable=1"
        return "mode=ro"

    def rest(self) -> None:
        """Of a reader: let go of the file until it is read again. While it is open, who wrote
        cannot leave all in the one file."""
        if self._is_reader and self._connection is not None:
            self._connection.close()
            self._connection = None

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
        """Let go of the file. What was written ahead is in it then, so that a copy of it has
        all."""
        if self._is_ahead:
            with suppress(sqlite3.Error):  # it is in use; who opens it next does it
                self._db.execute(f"PRAGMA busy_timeout={_SETTLING_MS}")
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                self._db.execute("PRAGMA journal_mode=DELETE")
        if self._connection is not None:
            self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._refuse_replaced()
        with self._file.transaction(self._db):
            yield self._db

    def _refuse_replaced(self) -> None:
        """OutsideError if the file was deleted or replaced: no one would read what is written."""
        if self._inode is None:
            return
        try:
            is_there = self.path.stat().st_ino == self._inode
        except OSError:
            is_there = False
        if not is_there:
            raise OutsideError(
                f"{self.path}: the journal was deleted or replaced by someone while it was written;"
                " what was being done is given up, and jobs in the queue are left alone"
            )

    def _keep(self, facts: Mapping[str, Any]) -> None:
        rows = [(key, as_json(value).decode()) for key, value in facts.items()]
        self._db.executemany(_KEEP_FACT, rows)

    def _row(self, event: E) -> tuple[str, bytes]:
        """The event as the table has it: kind and body."""
        return self.kinds[type(event)], as_json(event)

    def _read(
        self, after: int, kinds: Sequence[type[E]] = (), more: str = ""
    ) -> Iterator[tuple[int, E, list[Any]]]:
        """Numbered events after this one, of these kinds if any are given; with the values of
        `more` columns."""
        names = [self.kinds[kind] for kind in kinds]
        if names:
            chosen = f" AND kind IN ({', '.join('?' * len(names))})"
        else:
            chosen = ""
        query = f"SELECT seq, kind, body{more} FROM events WHERE seq > ?{chosen} ORDER BY seq"
        with self._file.explained():
            for seq, kind, body, *values in self._db.execute(query, (after, *names)):
                try:
                    event: E = self._decoders[kind].decode(body)
                except (
                    KeyError,
                    msgspec.DecodeError,
                ) as error:  # a kind that this version does not know, or damage
                    raise InputError(
                        self.path, f"record {seq} ({kind}) cannot be read", fix=_OTHER_VERSION
                    ) from error
                yield seq, event, values


def _is_ahead(path: Path) -> bool:
    """Whether SQLite would look for what was written ahead. Elsewhere it only reads, and respects
    the locks of writers."""
    offset, ahead = _WRITTEN_AHEAD
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(1) == ahead
    except OSError:
        return False


class JournalView(Generic[J]):
    """A journaled thing as any process can tell it: its facts, its events, who works at it. Reading
    changes nothing."""

    def __init__(self, journal: J, lock: Path) -> None:
        self._journal = journal
        self._lock = lock
        self._seen = 0
        self._rests = True
        self.refresh()

    def refresh(self) -> None:
        """Take in what has happened since the last look."""
        self._take_facts(self._journal.facts())
        for seq, record in self._journal.records(self._seen):
            self._hear(record)
            self._seen = seq
        self.holder = holder_of(self._lock)
        """Who works at it now; None: no process does."""
        if self._rests and self.holder is not None:
            self._journal.rest()

    @contextmanager
    def kept_open(self) -> Iterator[None]:
        """Keep the file open between looks, where this process works at it and ends after this."""
        self._rests = False
        try:
            yield
        finally:
            self._rests = True
            self._journal.rest()

    def _take_facts(self, facts: Mapping[str, Any]) -> None:
        raise NotImplementedError

    def _hear(self, record: Any) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Let go of the journal."""
        self._journal.close()
