"""SQLite files: how they are opened, and what is said if one cannot be used. Standard library
only.

Rule 1: transactions are started by hand, and wait `PATIENCE_S` for those of other processes. Rule
2: what SQLite or the disk refuses leaves here as one sentence: which file, what it is, what is
wrong, what to do about it. Rule 3: a file that another program or a newer version made is refused
before it is touched.
"""

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from windrow.errors import OutsideError, UserError
from windrow.files import about_to_write

PATIENCE_S = 30.0
_BROKEN = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)
_FIXES = {
    sqlite3.SQLITE_BUSY: "another process is using it; try again",
    sqlite3.SQLITE_LOCKED: "another process is using it; try again",
    sqlite3.SQLITE_FULL: "free some disk space",
    sqlite3.SQLITE_READONLY: "check the permissions of the file and of its folder",
    sqlite3.SQLITE_CANTOPEN: "check the permissions of the file and of its folder",
}


_State = tuple[int, int, int, int, int]


def _state(path: Path) -> _State | None:
    """Of a file as this process sees it; None if there is none."""
    try:
        now = path.stat()
    except OSError:
        return None
    return os.getpid(), now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns


class _KeptConnections(threading.local):
    """The connections of the last visits of a thread, by file, each with how the file was then."""

    def __init__(self) -> None:
        self._connections: dict[Path, tuple[_State, sqlite3.Connection]] = {}
        self._of_others: list[sqlite3.Connection] = []
        """Those of the process of which this one is a fork: to close one might write."""

    def take(self, path: Path) -> sqlite3.Connection | None:
        """The one to this file, which is the caller's now, if nothing has happened to the file."""
        state, db = self._connections.pop(path.absolute(), (None, None))
        if db is None or state == _state(path):
            return db
        self._let_go(state, db)
        return None

    def give(self, path: Path, db: sqlite3.Connection) -> None:
        """Keep this one for the next visit."""
        state = _state(path)
        if state is None or path.absolute() in self._connections:
            db.close()
            return
        self._connections[path.absolute()] = (state, db)
        while len(self._connections) > _MOST_KEPT:
            self._let_go(*self._connections.pop(next(iter(self._connections))))

    def _let_go(self, state: _State | None, db: sqlite3.Connection) -> None:
        if state is not None and state[0] != os.getpid():
            self._of_others.append(db)
        else:
            db.close()


_MOST_KEPT = 4
_KEPT = _KeptConnections()


class Database:
    """One file. `what` it is, in words; `if_broken`: what to do then; `error`: what is raised."""

    def __init__(
        self, path: Path, what: str, if_broken: str = "", error: type[OutsideError] = OutsideError
    ) -> None:
        self.path = path
        self._what = what
        self._if_broken = if_broken
        self._error = error

    def connect(
        self, how: str = "mode=rwc", pragmas: Iterable[str] = (), *, threads: bool = False
    ) -> sqlite3.Connection:
        """A connection, as `how` says (SQLite's URI parameters); with `threads` any of this
        process's may use it."""
        with self.explained():
            address = f"{self.path.absolute().as_uri()}?{how}"
            db = sqlite3.connect(
                address,
                uri=True,
                isolation_level=None,
                timeout=PATIENCE_S,
                check_same_thread=not threads,
            )
            for pragma in pragmas:
                db.execute(f"PRAGMA {pragma}")
        return db

    @contextmanager
    def visit(self, *, writes: bool = False) -> Iterator[sqlite3.Connection]:
        """A connection for one transaction. Forks, threads and other processes are of no concern:
        it is the one of the last visit only if that was of this thread, and no one else has written
        to the file since."""
        with self.explained():
            db = _KEPT.take(self.path) or self.connect()
            try:
                if writes:
                    with self.transaction(db):
                        yield db
                else:
                    yield db
            except BaseException:
                db.close()  # who knows what it was at
                raise
            _KEPT.give(self.path, db)

    @contextmanager
    def transaction(self, db: sqlite3.Connection) -> Iterator[None]:
        """All of what is done inside, on disk when it is left, or nothing of it."""
        with self.explained(), db:  # which commits, or rolls back what was started
            db.execute("BEGIN IMMEDIATE")
            yield
            about_to_write(self.path)

    def make_folder(self, fix: str) -> None:
        """Make the folder that the file is in, private, if it is missing; `fix` is what to do
        if it cannot be."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise self._error(f"{self.path}: cannot be created: {error.strerror}; {fix}") from None

    def is_new(self, db: sqlite3.Connection, version: int, fix: str) -> bool:
        """Whether there are no tables yet. UserError if they are not those of this version of
        ours."""
        found = int(db.execute("PRAGMA user_version").fetchone()[0])
        if found == version:
            return False
        if found or db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise UserError(
                f"{self.path}: a database of another program or of another version of Windrow; "
                f"{fix}"
            )
        return True

    @contextmanager
    def explained(self) -> Iterator[None]:
        """What goes wrong inside the `with` leaves it as one sentence; broken constraints are the
        caller's to tell."""
        try:
            yield
        except sqlite3.IntegrityError:
            raise
        except sqlite3.Error as error:
            fix = self._if_broken if is_broken(error) else _FIXES.get(_code(error), "")
            raise self._refusal(str(error), fix) from error
        except OSError as error:
            raise self._refusal(error.strerror or str(error)) from error

    def _refusal(self, problem: str, fix: str = "") -> OutsideError:
        return self._error(
            f"{self.path}: {self._what} cannot be used: {problem}" + (f"; {fix}" if fix else "")
        )


def is_broken(error: BaseException | None) -> bool:
    """Whether the file itself is at fault, and not a lock, the disk or a permission."""
    return isinstance(error, sqlite3.Error) and _code(error) in _BROKEN


def _code(error: sqlite3.Error) -> int:
    """The primary code of what SQLite found; the extended one says more than is needed here."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
