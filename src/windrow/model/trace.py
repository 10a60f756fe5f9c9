"""What programs did to files: operations as columns, the files, and the stages that did them.

Law: one record for one operation on one file: when, by which process and stage, which kind, where
in the file, how many bytes. A call that moves bytes from one file to another is a read of the one
and a write of the other. A mapping is a record of the whole range mapped. `UNKNOWN` bytes: the
tracer saw that the file was used, but not how much of it. Rule: a file keeps its number when it is
renamed, and a path that is removed and created again is a new file.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windrow.model.graph import Ints

OPEN, DUP, CLOSE, READ, WRITE, SEEK, STAT, OTHER, MAP_READ, MAP_WRITE = range(10)
KINDS = ("open", "dup", "close", "read", "write", "seek", "stat", "other")
KIND_OF_OP = np.array([*range(len(KINDS)), READ, WRITE])
"""How operations are counted: a mapping as a read, and as a write too if it is shared and may be
written."""
UNKNOWN = -1
APART = -2
"""In place of a file: pipes, sockets, devices; -1 if an operation is about no file, or
failed."""
COLUMNS = ("pid", "op", "file", "offset", "bytes")
_APART = ("/dev/", "/proc/", "/sys/", "/memfd:")


def is_apart(path: str) -> bool:
    """Whether it is not a file on a disk: pipes, sockets, terminals, /proc, /sys, /dev. Counted
    apart."""
    return not path.startswith("/") or (
        path.startswith(_APART) and not path.startswith("/dev/shm/")
    )


@dataclass(slots=True)
class Stage:
    """One command of a pipeline. `minstr` are millions (2^20) of instructions; 0 if no counter
    told."""

    name: str
    pipeline: int = 0
    real_s: float = 0.0
    cpu_s: float = 0.0
    minstr: float = 0.0
    memory_bytes: int = 0
    command: tuple[str, ...] = ()
    exit_code: int = 0


@dataclass(slots=True)
class Files:
    """The files of a trace, by number, and which of them is at a path now.

    `made`: whether it was created during the trace, as far as is known. `changed`: by something
    else than writing. `sizes`: by stage and file, the largest that it is known to have had.
    `names`: how many paths lead to it.
    """

    paths: list[str] = field(default_factory=list)
    made: list[bool] = field(default_factory=list)
    gone: list[bool] = field(default_factory=list)
    changed: list[bool] = field(default_factory=list)
    names: list[int] = field(default_factory=list)
    sizes: dict[tuple[int, int], int] = field(default_factory=dict)
    at: dict[str, int] = field(default_factory=dict)

    def number(self, path: str, *, made: bool = False) -> int:
        """The file at this path; one that is not known yet is `made` now, or was there before."""
        found = self.at.get(path)
        if found is None:
            found = self.at[path] = len(self.paths)
            self.paths.append(path)
            self.made.append(made)
            self.gone.append(False)
            self.changed.append(False)
            self.names.append(1)
        return found

    def renamed(self, old: str, new: str) -> int:
        """From now on it is found under another path; what was there before is gone."""
        if old not in self.at:  # a folder: all that is in it moves
            for path in [path for path in self.at if path.startswith(f"{old}/")]:
                self.renamed(path, new + path[len(old) :])
            return -1
        moved = self.at[old]
        if self.at.get(new, moved) != moved:
            self.removed(new)
        del self.at[old]
        self.at[new] = moved
        self.paths[moved] = new
        return moved

    def linked(self, old: str, new: str) -> int:
        """It is found under a second path, too."""
        number = self.at[new] = self.number(old)
        self.names[number] += 1
        return number

    def removed(self, path: str) -> int:
        """The file is gone, or this name of it."""
        number = self.number(path)
        del self.at[path]
        self.names[number] -= 1
        self.gone[number] = self.names[number] == 0
        return number

    def grown(self, stage: int, number: int, size_bytes: int) -> None:
        """It has had this size."""
        self.sizes[stage, number] = max(size_bytes, self.sizes.get((stage, number), 0))


class Records:
    """Columns that grow, stage after stage: what a tracer or a reader of traces fills."""

    def __init__(self) -> None:
        self.time_s = array("d")
        self.pid, self.op, self.file, self.offset, self.bytes = (array("q") for _ in COLUMNS)
        self.begins: list[int] = []

    def add(self, time_s: float, pid: int, op: int, file: int, offset: int, size: int) -> None:
        """One operation; `file` is -1 if there is none."""
        self.time_s.append(time_s)
        self.pid.append(pid)
        self.op.append(op)
        self.file.append(file)
        self.offset.append(offset)
        self.bytes.append(size)

    def begin(self) -> int:
        """A stage begins. Its number."""
        self.begins.append(len(self.op))
        return len(self.begins) - 1


@dataclass(frozen=True, slots=True)
class Trace:
    """Operations in the order in which they happened, stage after stage. `has_bytes`: whether bytes
    were seen."""

    time_s: NDArray[np.float64]
    pid: Ints
    stage: Ints
    op: Ints
    file: Ints
    offset: Ints
    bytes: Ints
    stages: tuple[Stage, ...]
    files: Files
    has_bytes: bool = True

    @staticmethod
    def of(
        records: Records, stages: Iterable[Stage], files: Files, *, has_bytes: bool = True
    ) -> Trace:
        """From what was collected. A file is at least as long as what was moved of it, and mappings
        end with it."""
        stage = np.repeat(
            np.arange(len(records.begins)), np.diff([*records.begins, len(records.op)])
        )
        whole: dict[str, Any] = {
            name: np.array(getattr(records, name), dtype=np.int64) for name in COLUMNS
        }
        trace = Trace(
            np.array(records.time_s),
            stage=stage,
            stages=tuple(stages),
            files=files,
            **whole | {"has_bytes": has_bytes},
        )
        trace._grow_files()
        if has_bytes:
            trace._end_mappings()
        return trace

    def _grow_files(self) -> None:
        """Files are at least as long as what was moved of them."""
        ends = self.offset + self.bytes
        is_move = (self.op == READ) | (self.op == WRITE)
        moved = np.flatnonzero(is_move & (self.file >= 0) & (self.bytes > 0))
        keys, at = np.unique(self._places(moved), return_inverse=True)
        reach = np.zeros(len(keys), dtype=np.int64)
        np.maximum.at(reach, at, ends[moved])
        for key, end in zip(keys.tolist(), reach.tolist(), strict=True):
            stage, file = divmod(key, self._stride)
            self.files.grown(stage, file, end)

    def _end_mappings(self) -> None:
        """Mappings end with their file."""
        mapped = np.flatnonzero((self.op >= MAP_READ) & (self.file >= 0))
        places = self._places(mapped).tolist()
        sizes = [self.files.sizes.get(divmod(place, self._stride), 0) for place in places]
        room = np.maximum(np.array(sizes, dtype=np.int64) - self.offset[mapped], 0)
        self.bytes[mapped] = np.where(
            self.bytes[mapped] == UNKNOWN, room, np.minimum(self.bytes[mapped], room)
        )

    @property
    def _stride(self) -> int:
        return len(self.files.paths) + 1

    def _places(self, rows: Ints) -> Ints:
        """Stage and file of these rows, as one number."""
        return self.stage[rows] * self._stride + self.file[rows]

    def __len__(self) -> int:
        return len(self.op)

    @property
    def pipelines(self) -> int:
        """How many instances of the pipeline were traced."""
        return max((stage.pipeline for stage in self.stages), default=-1) + 1
