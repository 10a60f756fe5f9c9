"""The SQLite file of a journal: what the journals of a run and of a pool have in common.

Every journal has a table `facts` of what is known of the whole, with the `format` of the file among it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from windrow.errors import InputError, OutsideError

FACTS_TABLE = "CREATE TABLE facts (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
KEEP_FACT = "INSERT OR REPLACE INTO facts VALUES (?, ?)"
_PATIENCE_S = 30
_Event = TypeVar("_Event")


class JournalFile:
    """An open journal."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._db = connection

    def facts(self) -> dict[str, Any]:
        """What is known of the whole."""
        with faults_explained(self.path):
            rows = self._db.execute("SELECT key, value FROM facts").fetchall()
        return {key: msgspec.json.decode(value) for key, value in rows}

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """All of what is done inside, on disk when it is left, or nothing of it."""
        with faults_explained(self.path), self._db:  # which commits, or rolls back what was begun
            self._db.execute("BEGIN IMMEDIATE")
            yield self._db

    def _decoded(
        self, seq: int, kind: str, body: bytes, decoders: Mapping[str, msgspec.json.Decoder[_Event]]
    ) -> _Event:
        """The event in a record. InputError where this version does not know its kind, or the record was damaged."""
        try:
            return decoders[kind].decode(body)
        except (KeyError, msgspec.DecodeError) as error:
            fix = "use the version of Windrow that wrote it"
            raise InputError(self.path, f"record {seq} ({kind}) cannot be read", fix=fix) from error

    def _check_format(self, known: int) -> None:
        found = self.facts().get("format")
        if found != known:
            fix = "use the version of Windrow that wrote it"
            raise InputError(self.path, f"format {found} is not {known}", fix=fix)


def connect(path: Path, how: str, pragmas: Iterable[str] = ()) -> sqlite3.Connection:
    """The file that is there, opened as `how` says (SQLite's URI parameters). Transactions are begun by hand."""
    address = f"{path.absolute().as_uri()}?{how}"
    db = sqlite3.connect(address, uri=True, isolation_level=None, timeout=_PATIENCE_S)
    for pragma in pragmas:
        db.execute(f"PRAGMA {pragma}")
    return db


def fact_rows(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Facts as the table has them."""
    return [(key, msgspec.json.encode(value).decode()) for key, value in facts.items()]


class faults_explained:  # noqa: N801 - reads as a statement
    """Database errors inside the `with` leave it as one sentence that names the file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, sqlite3.Error):
            raise OutsideError(f"{self._path}: the journal cannot be used: {error}") from error
