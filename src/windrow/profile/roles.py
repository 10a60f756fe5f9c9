"""Which part each file plays, from traces of one or several pipelines.

Rules, the first that applies:
1. Changed, and there before the trace: *endpoint*, with a warning: such a task cannot safely run again.
2. Written by one pipeline, and read by another that had not written it itself: *shared*. No batch-pipeline workload.
3. Written, and read later by the same pipeline, or deleted before it ended: *pipeline*. Written otherwise: *endpoint*.
4. Only read: by two or more pipelines *batch*, by one of several *endpoint*.
5. Only read, and one pipeline traced: a guess. Programs and libraries, and what is outside the folder of the run, are
   taken for *batch*, the rest for *endpoint*.
What a user declares wins; a contradiction is a warning.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from windrow.model.trace import MAP_READ
from windrow.model.wording import listed
from windrow.profile.measures import Measures
from windrow.storage.roles import Role

ENDPOINT, PIPELINE, BATCH, SHARED = Role


@dataclass(slots=True)
class Roles:
    """Role by number of file, which of them are guesses, and what a user should know."""

    of: dict[int, str] = field(default_factory=dict)
    guessed: set[int] = field(default_factory=set)
    warnings: list[str] = field(default_factory=list)

    def uses(self, measures: Measures, *roles: str) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """The uses of files with one of these roles."""
        wanted = np.zeros(len(measures.trace.files.paths) + 1, dtype=bool)
        wanted[[number for number, role in self.of.items() if role in roles]] = True
        return np.asarray(wanted[measures.file])


@dataclass(slots=True)
class _Seen:
    """Of one file, by pipeline: the first write, and the first and the last read, as places in the trace."""

    write: dict[int, int] = field(default_factory=dict)
    first: dict[int, int] = field(default_factory=dict)
    last: dict[int, int] = field(default_factory=dict)


def infer(measures: Measures, folder: str, declared: Mapping[str, str] | None = None) -> Roles:
    """The roles of all files touched. `folder`: where the commands ran; `declared`: roles by path."""
    files, roles = measures.trace.files, Roles()
    mapped = set(measures.trace.file[measures.trace.op == MAP_READ].tolist())
    for number, seen in _seen(measures).items():
        path = files.paths[number]
        role = _role(roles, measures, number, seen)
        if not role and measures.trace.pipelines > 1:
            role = BATCH if len(seen.first) > 1 else ENDPOINT
        elif not role:
            is_outside = not path.startswith(f"{folder.rstrip('/')}/")
            is_program = number in mapped and (".so" in path or not path.startswith(folder))
            role = BATCH if is_outside or is_program else ENDPOINT
            roles.guessed.add(number)
        wanted = (declared or {}).get(path, role)
        if wanted != role and number not in roles.guessed:
            roles.warnings.append(f"{path} is declared as {wanted} data, but was used as {role} data")
        roles.of[number] = wanted
    return roles


def _seen(measures: Measures) -> dict[int, _Seen]:
    """When each file was written and read, by pipeline. Rows of a trace are in order of time within a pipeline."""
    uses = len(measures.file)
    rows = np.arange(len(measures.rows), dtype=np.int64)
    first, last = np.full(uses, len(rows), dtype=np.int64), np.full(uses, -1, dtype=np.int64)
    np.minimum.at(first, measures.use_of_row, rows)
    np.maximum.at(last, measures.use_of_row, rows)
    found: dict[int, _Seen] = {}
    columns = (measures.file, measures.pipeline, measures.is_write, first, last)
    for number, pipeline, is_write, begin, end in zip(*(column.tolist() for column in columns), strict=True):
        seen = found.setdefault(number, _Seen())
        if is_write:
            seen.write[pipeline] = min(begin, seen.write.get(pipeline, begin))
        else:
            seen.first[pipeline] = min(begin, seen.first.get(pipeline, begin))
            seen.last[pipeline] = max(end, seen.last.get(pipeline, end))
    return found


def _role(roles: Roles, measures: Measures, number: int, seen: _Seen) -> str:
    """By rules 1 to 3; nothing for a file that was only read."""
    files = measures.trace.files
    path = files.paths[number]
    if not seen.write and not files.changed[number] and not files.gone[number]:
        return ""
    if not files.made[number]:
        how = "deleted" if files.gone[number] else "changed in place"
        roles.warnings.append(f"{path} was there before and is {how}: the task cannot safely run again")
        return ENDPOINT
    for reader, at in sorted(seen.first.items()):
        if seen.write.get(reader, at + 1) > at and (writers := sorted(w for w, t in seen.write.items() if t < at)):
            names = listed([f"pipeline {one + 1}" for one in writers])
            roles.warnings.append(f"{path} is written by {names} and read by pipeline {reader + 1}: shared")
            return SHARED
    if len(seen.write) > 1:
        roles.warnings.append(f"{path} is written by {len(seen.write)} pipelines: they cannot run at the same time")
    is_read_later = any(seen.last.get(pipeline, -1) > at for pipeline, at in seen.write.items())
    return PIPELINE if is_read_later or files.gone[number] else ENDPOINT
