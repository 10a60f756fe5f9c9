"""The events file of a job: one JSON line for each thing that happened, appended by the job's
agent.

Rule 1: only whole lines count. A last line without its newline is being written, or never will be;
readers wait. So they do at a zero byte, which on a network file system stands for what has not
arrived yet.
Rule 2: one writer. What it could not write whole, it takes back.
Rule 3: what is written survives the agent; what is synced (within a second) survives the machine.

`at` and `begun` are seconds since the epoch by the agent's steady clock: steps of the system's
clock do not show.
"""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar, Union, get_args

from windrow.errors import InputError, OutsideError
from windrow.files import about_to_write, append_whole, disk_faults, sync
from windrow.model.attempt import Attempt, Leave, Leaving
from windrow.model.cause import Cause


@dataclass(frozen=True, slots=True)
class AgentStarted:
    """The agent has started. `hosts` are its nodes in order; tasks name them by their place in this
    list.

    `by_job`: the agent is that of this other job, which has taken the tasks over.
    """

    what: ClassVar[str] = "job-started"
    at: float
    host: str
    pid: int
    queue_id: str
    hosts: tuple[str, ...]
    by_job: int | None = None


@dataclass(frozen=True, slots=True)
class AttemptStarted:
    """An attempt was started."""

    what: ClassVar[str] = "task-started"
    at: float
    of: Attempt

    @property
    def task(self) -> int:
        """Of which it is."""
        return self.of.task


@dataclass(frozen=True, slots=True)
class AttemptFinished:
    """A task is done: exit code 0, outputs there."""

    what: ClassVar[str] = "task-finished"
    at: float
    of: Attempt

    @property
    def task(self) -> int:
        """Which one."""
        return self.of.task


@dataclass(frozen=True, slots=True)
class OutputsCommitted:
    """These outputs of a task that has finished were copied from its node to the shared file
    system.

    `local`: those that still are on the node alone.
    """

    what: ClassVar[str] = "task-committed"
    at: float
    task: int
    files: tuple[str, ...]
    local: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CommitFailed:
    """This output of a task that has finished cannot be copied from its node to its place; it goes
    with the node.

    `cause`: `space` if it is the fault of a disk, or of the way there; else it would happen again.
    `errno`: the number of the system's error, 0 if there is none.
    """

    what: ClassVar[str] = "task-not-committed"
    at: float
    task: int
    file: str
    why: str
    cause: str
    errno: int = 0


@dataclass(frozen=True, slots=True)
class AttemptFailed:
    """An attempt failed. `final`: it will not be tried again in this job."""

    what: ClassVar[str] = "task-failed"
    at: float
    of: Attempt
    final: bool

    @property
    def task(self) -> int:
        """Of which it was."""
        return self.of.task


@dataclass(frozen=True, slots=True)
class TaskDeclined:
    """This job will not run the task; nothing of it was started since its last failure, if any.

    `has_failed`: as often as it may be tried in this job; another may have it, too.
    """

    what: ClassVar[str] = "task-dropped"
    at: float
    task: int
    why: str
    has_failed: bool = False


@dataclass(frozen=True, slots=True)
class AttemptLost:
    """The task was running when the agent, or the task's node, had to stop; or ran out of memory
    after it had used this much, if that is known."""

    what: ClassVar[str] = "task-lost"
    at: float
    task: int
    why: str
    cause: str = Cause.LOST
    used_bytes: int = 0


@dataclass(frozen=True, slots=True)
class AttemptSaved:
    """A task has written a checkpoint: this much of its run, in seconds and over all attempts, is
    kept.

    `ended`: the attempt is over, and the next continues from there. `idle`: how many pieces in a
    row, this one included, ran out of time and kept nothing.
    """

    what: ClassVar[str] = "task-saved"
    at: float
    task: int
    attempt: int
    done_s: float
    ended: bool = False
    idle: int = 0


@dataclass(frozen=True, slots=True)
class AgentLeft:
    """The agent has nothing running any more and leaves.

    `kept_s`: how long it had kept its nodes for tasks to come, of a run that was held.
    """

    what: ClassVar[str] = "job-ended"
    at: float
    why: Leaving
    kept_s: float = 0.0


_SELDOM = ("local", "has_failed", "kept_s")
"""What is told only if it says something."""
# Not with |: a value at run time, on the Python of any site (`travel`).
Record = Union[  # noqa: UP007
    AgentStarted,
    AttemptStarted,
    AttemptFinished,
    OutputsCommitted,
    CommitFailed,
    AttemptFailed,
    TaskDeclined,
    AttemptLost,
    AttemptSaved,
    AgentLeft,
]

T = TypeVar("T")
_KINDS: dict[str, type[Record]] = {kind.what: kind for kind in get_args(Record)}
_encode = json.JSONEncoder(separators=(",", ":")).encode
_CHUNK_BYTES = 1 << 22
_LAST_BYTES = 1 << 16


def encode(record: Record) -> str:
    """The record as one line."""
    told = {name: getattr(record, name) for name in record.__dataclass_fields__ if name != "what"}
    for name in _SELDOM:
        if not told.get(name, True):
            del told[name]
    if "of" in told:
        told |= told.pop("of").told()
    return _encode({"at": told.pop("at"), "what": record.what, **told}) + "\n"


def _restored(kind: type[Record], fields: dict[str, Any]) -> dict[str, Any]:
    """With tuples and values for what JSON has made lists of."""
    for name in fields.keys() & {"hosts", "files", "local"}:
        fields[name] = tuple(fields[name])
    if kind is AgentLeft:
        reason, about = fields["why"]
        fields["why"] = Leaving(Leave(reason), about)
    return fields


def decode(line: bytes) -> Record:
    """The record in this line. Raises ValueError if there is none."""
    fields = json.loads(line)
    try:
        kind = _KINDS[fields.pop("what")]
        if kind is AttemptStarted or kind is AttemptFinished:
            return kind(fields.pop("at"), Attempt.of(fields))
        if kind is AttemptFailed:
            return kind(fields.pop("at"), final=fields.pop("final"), of=Attempt.of(fields))
        return kind(**_restored(kind, fields))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(str(error)) from error


class Writer:
    """Appends records. Nothing is in the file before `flush`."""

    def __init__(
        self, path: Path, sync_every_s: float = 1.0, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self.path = path
        self._sync_every_s = sync_every_s
        self._now_s = now_s
        self._waiting: list[str] = []
        self._unsynced_since: float | None = None
        self._fd = -1
        with disk_faults(f"{self.path} cannot be written"):
            about_to_write(path)
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            self._size = os.fstat(self._fd).st_size

    def beside(self, path: Path) -> Writer:
        """A writer to this file with the same habits."""
        return Writer(path, self._sync_every_s, self._now_s)

    def add(self, record: Record) -> None:
        """This happened."""
        self._waiting.append(encode(record))

    def flush(self) -> None:
        """Write what was added: all of it, or OutsideError and none of it."""
        if not self._waiting:
            return
        data = "".join(self._waiting).encode()
        self._waiting.clear()
        with disk_faults(f"{self.path} cannot be written"):
            append_whole(self._fd, data, self._size)
        self._size += len(data)
        if self._unsynced_since is None:
            self._unsynced_since = self._now_s()

    def sync_due_s(self) -> float | None:
        """Seconds until `sync` should be called; None while there is nothing to sync."""
        if self._unsynced_since is None:
            return None
        return max(0.0, self._unsynced_since + self._sync_every_s - self._now_s())

    def sync(self) -> None:
        """Make what was flushed survive the machine."""
        self._unsynced_since = None
        with disk_faults(f"{self.path} cannot be written"):
            sync(self._fd)

    def close(self) -> None:
        """Write, sync and close."""
        try:
            self.flush()
            self.sync()
        finally:
            self.__del__()

    def __del__(self) -> None:
        fd = self._fd
        self._fd = -1
        if fd >= 0:
            os.close(fd)


_NOT_NOW = (errno.ENOENT, errno.ESTALE)
"""Not there yet, or replaced at this moment."""


class Tail:
    """What is new in a file that grows since the last look: its whole lines. A file that is not
    there has none.

    Each look takes in at most some megabytes, so look again until there is nothing.
    """

    def __init__(self, path: Path, offset: int = 0) -> None:
        self.offset = offset
        """How many bytes have been read; a new tail can begin there."""
        self.has_ended = False
        """Whether the agent said that it leaves; nothing follows."""
        self.path = path
        self._lines = 0

    def read(self) -> list[Record]:
        """New records of an events file."""
        records = self._new(decode, "an event")
        if records:
            self.has_ended = isinstance(records[-1], AgentLeft)
        return records

    def read_json(self) -> list[dict[str, Any]]:
        """New lines of a file of JSON objects."""
        return self._new(json.loads, "JSON")

    def _new(self, decoded: Callable[[bytes], T], what: str) -> list[T]:
        try:
            with self.path.open("rb", buffering=0) as file:
                file.seek(self.offset)
                data = file.read(_CHUNK_BYTES)
        except OSError as error:
            if error.errno in _NOT_NOW:
                return []
            raise OutsideError(f"{self.path} cannot be read: {error.strerror}") from error
        data = data.partition(b"\0")[0]
        end = data.rfind(b"\n") + 1
        self.offset += end
        found = []
        for line in data[:end].split(b"\n")[:-1]:
            self._lines += 1
            try:
                found.append(decoded(line))
            except ValueError as error:
                raise InputError(self.path, f"is not {what} ({error})", line=self._lines) from error
        return found


def last_word(path: Path, offset: int) -> Leaving | None:
    """Why the agent left, if it said so within the first `offset` bytes of its file."""
    record = last_record(path, offset)
    if isinstance(record, AgentLeft):
        return record.why
    return None


def last_record(path: Path, offset: int) -> Record | None:
    """The last record within the first `offset` bytes of an events file; None if there is
    none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, offset - _LAST_BYTES))
            line = file.read(min(offset, _LAST_BYTES)).rstrip(b"\n").rpartition(b"\n")[2]
        return decode(line)
    except (OSError, ValueError):  # not there, or not a whole line
        return None
