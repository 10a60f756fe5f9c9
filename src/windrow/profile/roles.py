"""Which part each file plays, from traces of one or several pipelines.

Rules, the first that applies:
1. Changed, and there before the trace: *endpoint*, with a warning: such a task cannot safely run
   again.
2. Written by one pipeline, and read by another that had not written it itself: *shared*. No
   batch-pipeline workload.
3. Written, and read later by the same pipeline, or deleted before it ended: *pipeline*. Written
   otherwise: *endpoint*.
4. Only read: by two or more pipelines *batch*, by one of several *endpoint*.
5. Only read, and one pipeline traced: a guess. Programs and libraries, and what is outside the
   folder of the run, are taken for *batch*, the rest for *endpoint*.
What a user declares wins; a contradiction is a warning, and so is a file of the folder that is not
among the declared.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from windrow.model.graph import Ints
from windrow.model.trace import MAP_READ, Files
from windrow.model.wording import listed
from windrow.profile.measures import Mask, Measures
from windrow.storage.roles import Role

ENDPOINT, PIPELINE, BATCH, SHARED = Role
_SYSTEM = tuple(
    f"/{folder}/" for folder in ("bin", "dev", "etc", "lib", "lib64", "proc", "sbin", "sys", "usr")
)


@dataclass(slots=True)
class Roles:
    """Role by number of file, which of them are guesses, and what a user should know."""

    of: dict[int, str] = field(default_factory=dict)
    guessed: set[int] = field(default_factory=set)
    warnings: list[str] = field(default_factory=list)
    system: set[int] = field(default_factory=set)
    """Programs, libraries and settings of the operating system: each node has its own."""

    def uses(self, measures: Measures, role: str) -> Mask:
        """The uses of files with this role."""
        return np.isin(measures.file, [number for number, each in self.of.items() if each == role])


_Seen = tuple[dict[int, int], dict[int, int], dict[int, int]]
"""Of one file, by pipeline: the first write, and the first and the last read, as places in the
trace."""


def infer(measures: Measures, folder: str, declared: Mapping[str, str] | None = None) -> Roles:
    """The roles of all files touched. `folder`: where the commands ran; `declared`: roles by
    path."""
    files = measures.trace.files
    roles = Roles()
    inside = f"{folder.rstrip('/')}/"
    mapped = set(measures.trace.file[measures.trace.op == MAP_READ].tolist())
    for number, seen in _seen(measures).items():
        path = files.paths[number]
        role = _role(roles, files, number, seen)
        if role is None and measures.trace.pipelines > 1:
            role = ENDPOINT
            if len(seen[1]) > 1:
                role = BATCH
        elif role is None:
            role = ENDPOINT
            if (number in mapped and ".so" in path) or not path.startswith(inside):
                role = BATCH
            roles.guessed.add(number)
        wanted = (declared or {}).get(path, role)
        if wanted != role and number not in roles.guessed:
            roles.warnings.append(
                f"{path} is declared as {wanted} data, but was used as {role} data"
            )
        roles.of[number] = wanted
        if path.startswith(_SYSTEM) and wanted == BATCH:
            roles.system.add(number)
        if declared and path not in declared and path.startswith(inside) and not files.gone[number]:
            roles.warnings.append(_undeclared(measures, number))
    return roles


def _undeclared(measures: Measures, number: int) -> str:
    uses = measures.file == number
    names = {measures.trace.stages[stage].name for stage in measures.stage[uses]}
    way = "reads"
    if measures.is_write[uses].any():
        way = "writes"
    path = measures.trace.files.paths[number]
    return f"{listed(sorted(names))} {way} {path}, which is not declared"


def _seen(measures: Measures) -> dict[int, _Seen]:
    """When each file was written and read. Rows of a trace, and so its uses, are in order, stage
    after stage."""
    found = dict[int, _Seen]()
    columns = (measures.file, measures.pipeline, measures.is_write, *_rows_of_uses(measures))
    for number, pipeline, is_write, begin, end in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        written, read, read_last = found.setdefault(number, ({}, {}, {}))
        (written if is_write else read).setdefault(pipeline, begin)
        if not is_write:
            read_last[pipeline] = end
    return found


def _rows_of_uses(measures: Measures) -> tuple[Ints, Ints]:
    """The first and the last row of each use."""
    rows = np.arange(len(measures.rows))
    first = np.full(len(measures.file), len(rows))
    last = np.zeros(len(measures.file), dtype=np.int64)
    np.minimum.at(first, measures.use_of_row, rows)
    np.maximum.at(last, measures.use_of_row, rows)
    return first, last


def _role(roles: Roles, files: Files, number: int, seen: _Seen) -> Role | None:
    """By rules 1 to 3; None for a file that was only read."""
    path = files.paths[number]
    (written, read, read_last) = seen
    if not written and not files.changed[number] and not files.gone[number]:
        return None
    if not files.made[number]:
        how = "deleted" if files.gone[number] else "changed in place"
        roles.warnings.append(
            f"{path} was there before and is {how}: the task cannot safely run again"
        )
        return ENDPOINT
    if shared := _shared(written, read):
        roles.warnings.append(f"{path} is {shared}: shared")
        return SHARED
    if len(written) > 1:
        roles.warnings.append(
            f"{path} is written by {len(written)} pipelines: they cannot run at the same time"
        )
    is_read_later = any(read_last.get(pipeline, -1) > at for pipeline, at in written.items())
    return PIPELINE if is_read_later or files.gone[number] else ENDPOINT


def _shared(written: Mapping[int, int], read: Mapping[int, int]) -> str:
    """Which pipelines write what another reads that had not written it itself; empty: none."""
    for reader, at in sorted(read.items()):
        writers = sorted(writer for writer, then in written.items() if then < at)
        if writers and written.get(reader, at + 1) > at:
            names = listed([f"pipeline {one + 1}" for one in writers])
            return f"written by {names} and read by pipeline {reader + 1}"
    return ""
