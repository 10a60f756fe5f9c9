"""What the queue on this machine knows, in one SQLite file that clients and the server share.

Rule 1: what is committed here is the truth; no memory counts. Rule 2: clients add jobs and wishes
(cancel), the server alone moves jobs on. Rule 3: a commit is on disk before it returns.
"""

import json
import os
import sqlite3
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from windrow.queues.port import JobSpec, JobState, QueueError, SpecError
from windrow.records.database import Database

_VERSION = 1
_SCHEMA = """
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE environments (id INTEGER PRIMARY KEY, content TEXT NOT NULL UNIQUE);
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tag TEXT NOT NULL UNIQUE,
    nodes INTEGER NOT NULL,
    walltime_s INTEGER NOT NULL,            -- 0: as long as it takes
    state TEXT NOT NULL,
    submitted_s REAL NOT NULL,
    started_s REAL,
    ended_s REAL,
    exit_code INTEGER,
    reason TEXT NOT NULL,
    clock_s REAL,               -- when it started by the clock that is never set
    boot TEXT,                  -- of the machine, when it started
    keepers INTEGER NOT NULL DEFAULT 0,     -- processes started for it, of which one can claim it
    is_unwanted INTEGER NOT NULL DEFAULT 0,
    launch TEXT NOT NULL,       -- command, workdir, output and umask, as JSON: they need not be valid text
    environment INTEGER NOT NULL    -- 0 once it has been started: it may hold secrets
);
CREATE INDEX jobs_by_state ON jobs (state, id);
"""  # noqa: E501


POLICIES: Mapping[str, str] = {
    "fcfs": "first come, first served: nothing passes the head of the queue",
    "easy": "backfilling that never delays the head of the queue",
}


@dataclass(frozen=True, slots=True)
class Held:
    """Nodes that a running job holds, at most until `until_s`."""

    nodes: int
    until_s: float


@dataclass(frozen=True, slots=True)
class Wanted:
    """A waiting job."""

    job: int
    nodes: int
    requested_s: float


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """How the queue behaves. Without `nodes` no job waits: all share the machine, task by task."""

    nodes: int | None
    policy: str = "easy"
    grace_s: float = 10.0
    idle_s: float = 60.0


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """One row: a job and how far it has come."""

    id: int
    tag: str
    nodes: int
    walltime_s: int
    """0: as long as it takes."""
    state: JobState
    submitted_s: float
    started_s: float | None
    ended_s: float | None
    exit_code: int | None
    reason: str
    clock_s: float | None
    boot: str | None
    keepers: int
    is_unwanted: bool

    @property
    def held(self) -> Held:
        """The nodes of a running job, and how long it may keep them by the clock that is never
        set."""
        return Held(self.nodes, (self.clock_s or 0.0) + self.walltime_s)

    @property
    def wanted(self) -> Wanted:
        """What a waiting job asks for."""
        return Wanted(self.id, self.nodes, self.walltime_s)


@dataclass(frozen=True, slots=True)
class Launch:
    """What a job runs, where, and with which environment and file permissions (None: the
    server's)."""

    command: tuple[str, ...]
    workdir: str
    output: str
    environment: Mapping[str, str]
    umask: int | None = None


_NAMES = tuple(field.name for field in fields(QueuedJob))
_COLUMNS = ", ".join(_NAMES)


class QueueStore:
    """The file. Every method is one transaction or one query, unless `together` joins them."""

    def __init__(self, file: Path) -> None:
        """Open the file, and make it if it is missing."""
        self._file = Database(
            file, "the queue", "move its folder away to begin a new one", QueueError
        )
        self._lock = threading.RLock()
        self._owner = os.getpid()
        self._has_copies = True  # an earlier server may have left some
        with self._file.explained():
            _make_private(file)
        self._db = self._file.connect(
            pragmas=("journal_mode=WAL", "synchronous=FULL", "secure_delete=ON"), threads=True
        )
        with self._transaction() as db:
            if self._file.is_new(db, _VERSION, "move its folder away to begin a new one"):
                for statement in _SCHEMA.split(";"):
                    db.execute(statement)
                db.execute(f"PRAGMA user_version={_VERSION}")

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    # -- settings ----------------------------------------------------------------------------------

    def settings(self) -> LocalSettings | None:
        """What the queue was set up with; None for a new one."""
        with self._reading() as db:
            rows = {
                name: json.loads(value)
                for name, value in db.execute("SELECT name, value FROM settings")
            }
        if rows:
            return LocalSettings(**rows)
        return None

    def set_up(self, wanted: LocalSettings) -> None:
        """Change the settings."""
        rows = [(name, json.dumps(value)) for name, value in asdict(wanted).items()]
        with self._transaction() as db:
            db.executemany("INSERT OR REPLACE INTO settings VALUES (?, ?)", rows)

    # -- what clients do ---------------------------------------------------------------------------

    def add(
        self, specs: Sequence[JobSpec], environment: Mapping[str, str], now_s: float
    ) -> list[int]:
        """Add waiting jobs, all or none."""
        content = json.dumps(dict(environment), sort_keys=True)
        try:
            with self._transaction() as db:
                db.execute("INSERT OR IGNORE INTO environments (content) VALUES (?)", (content,))
                found = db.execute(
                    "SELECT id FROM environments WHERE content = ?", (content,)
                ).fetchone()
                return [self._insert(db, spec, found[0], now_s) for spec in specs]
        except sqlite3.IntegrityError:
            tags = ", ".join(sorted(self.find([spec.tag for spec in specs])))
            raise SpecError(
                f"a job with this tag already exists: {tags}; every job needs its own tag"
            ) from None

    def unwant(self, jobs: Collection[int]) -> bool:
        """Note that these jobs should go. False if none of them is left."""
        query = "UPDATE jobs SET is_unwanted = 1 WHERE state IN ('waiting', 'running') AND id IN"
        with self._transaction() as db:
            return (
                db.execute(
                    f"{query} (SELECT value FROM json_each(?))", (json.dumps(list(jobs)),)
                ).rowcount
                > 0
            )

    def find(self, tags: Collection[str]) -> dict[str, int]:
        """The jobs with these tags."""
        with self._reading() as db:
            query = "SELECT tag, id FROM jobs WHERE tag IN (SELECT value FROM json_each(?))"
            return dict(db.execute(query, (json.dumps(list(tags)),)).fetchall())

    def jobs(self, ids: Collection[int]) -> list[QueuedJob]:
        """Those of these jobs that exist."""
        return self._select("id IN (SELECT value FROM json_each(?))", json.dumps(list(ids)))

    # -- what both read ----------------------------------------------------------------------------

    def running(self) -> list[QueuedJob]:
        """The running jobs, in the order of their starts."""
        return sorted(
            self._select("state = ?", JobState.RUNNING),
            key=lambda job: (job.clock_s or 0.0, job.id),
        )

    def waiting(self, at_most: int = -1) -> list[QueuedJob]:
        """The waiting jobs, in the order of the queue."""
        return self._select("state = ? ORDER BY id LIMIT ?", JobState.WAITING, at_most)

    def unwanted(self) -> list[QueuedJob]:
        """Running jobs that should go."""
        return self._select("state = 'running' AND is_unwanted ORDER BY id")

    def is_busy(self) -> bool:
        """Whether some job is not over."""
        query = "SELECT EXISTS (SELECT 1 FROM jobs WHERE state IN ('waiting', 'running'))"
        with self._reading() as db:
            return bool(db.execute(query).fetchone()[0])

    # -- what the server does ----------------------------------------------------------------------

    def start(self, jobs: Collection[int], now_s: float, clock_s: float, boot: str) -> None:
        """These jobs run from now on. On disk before their processes exist."""
        values = (
            "state = 'running', started_s = ?, clock_s = ?, boot = ?, reason = '', keepers "
            "= keepers + 1"
        )
        query = f"UPDATE jobs SET {values} WHERE id = ?"
        with self._transaction() as db:
            db.executemany(query, [(now_s, clock_s, boot, job) for job in jobs])

    def finish(
        self, job: int, state: JobState, ended_s: float, exit_code: int | None, reason: str
    ) -> None:
        """This job is over."""
        query = (
            "UPDATE jobs SET state = ?, ended_s = ?, exit_code = ?, reason = ?, environment "
            "= 0 WHERE id = ?"
        )
        with self._transaction() as db:
            db.execute(query, (state, ended_s, exit_code, reason, job))

    def drop_unwanted(self, now_s: float) -> None:
        """Waiting jobs that should go are over."""
        values = "state = 'cancelled', ended_s = ?, reason = 'cancelled', environment = 0"
        with self._transaction() as db:
            db.execute(
                f"UPDATE jobs SET {values} WHERE state = 'waiting' AND is_unwanted", (now_s,)
            )

    def launch(self, job: int) -> Launch:
        """What a job runs."""
        query = (
            "SELECT launch, content FROM jobs JOIN environments ON environment = "
            "environments.id WHERE jobs.id = ?"
        )
        with self._reading() as db:
            launch, content = db.execute(query, (job,)).fetchone()
        command, workdir, output, umask = json.loads(launch)
        return Launch(tuple(command), workdir, output, json.loads(content), umask)

    def has_begun(self, jobs: Collection[int]) -> None:
        """These jobs were claimed, so their environments, which may hold secrets, are removed;
        `scrub` comes next."""
        query = (
            "UPDATE jobs SET environment = 0 WHERE ended_s IS NOT NULL OR id IN (SELECT "
            "value FROM json_each(?))"
        )
        with self._transaction() as db:
            db.execute(query, (json.dumps(list(jobs)),))
            gone = db.execute(
                "DELETE FROM environments WHERE id NOT IN (SELECT environment FROM jobs)"
            )
            self._has_copies |= gone.rowcount > 0

    def scrub(self) -> bool:
        """Empty SQLite's log, which has copies of what was removed. False if a reader was in the
        way."""
        if self._has_copies:
            with self._reading() as db:
                self._has_copies = bool(db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
        return not self._has_copies

    def forget(self, ended_before_s: float) -> None:
        """Drop what was over before this time."""
        with self._transaction() as db:
            db.execute("DELETE FROM jobs WHERE ended_s < ?", (ended_before_s,))

    @contextmanager
    def together(self) -> Iterator[None]:
        """Make one transaction of everything that is called inside."""
        with self._transaction():
            yield

    # -- inside ------------------------------------------------------------------------------------

    def _insert(self, db: sqlite3.Connection, spec: JobSpec, environment: int, now_s: float) -> int:
        os.umask(mask := os.umask(0o077))  # there is no way to ask for it but to set it
        launch = json.dumps([spec.command, spec.workdir, spec.output, mask])
        row = (
            spec.tag,
            spec.nodes,
            spec.walltime_s or 0,
            JobState.WAITING,
            now_s,
            "nodes",
            launch,
            environment,
        )
        names = "tag, nodes, walltime_s, state, submitted_s, reason, launch, environment"
        number = db.execute(
            f"INSERT INTO jobs ({names}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row
        ).lastrowid
        assert number is not None
        return number

    def _select(self, where: str, *values: object) -> list[QueuedJob]:
        with self._reading() as db:
            rows = db.execute(f"SELECT {_COLUMNS} FROM jobs WHERE {where}", values).fetchall()
        jobs = (dict(zip(_NAMES, row, strict=True)) for row in rows)
        return [
            QueuedJob(
                **{**job, "state": JobState(job["state"]), "is_unwanted": bool(job["is_unwanted"])}
            )
            for job in jobs
        ]

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        # SQLite loses its locks in a fork, and with them the file.
        assert os.getpid() == self._owner, (
            "a queue that was opened before a fork must be opened again after it"
        )
        with self._lock, self._file.explained():
            yield self._db

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._reading() as db:
            if db.in_transaction:
                yield db
                return
            with self._file.transaction(db):
                yield db


def _make_private(file: Path) -> None:
    """Make the file, or see that it is closed to others; SQLite gives those beside it the same
    permissions.

    One that is there is not opened: closing it would take the locks of this process's other
    connections away.
    """
    try:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        for one in (file, *file.parent.glob(f"{file.name}-*")):
            with suppress(FileNotFoundError):
                one.chmod(0o600)
