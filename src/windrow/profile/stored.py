"""Profiles on disk: a trace, the folder that it was made in, and the roles that were declared, in
one file (npz)."""

import zipfile
from dataclasses import asdict, dataclass, field
from os import PathLike
from typing import Any

import msgspec
import numpy as np

from windrow.errors import InputError
from windrow.formats.disk import open_bytes, replace_bytes
from windrow.model.graph import Ints
from windrow.model.trace import APART, COLUMNS, KIND_OF_OP, Files, Stage, Trace
from windrow.profile.measures import Measures
from windrow.profile.roles import Roles, infer


@dataclass(slots=True)
class Profile:
    """A trace, and what has to be known to judge it. `notes` are what tracing itself has to say."""

    trace: Trace
    folder: str
    declared: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def analysed(self) -> tuple[Measures, Roles]:
        """Its figures, and the roles of its files."""
        measures = Measures(self.trace)
        roles = infer(measures, self.folder, self.declared)
        roles.warnings[:0] = self.notes
        return measures, roles


class _Known(msgspec.Struct):
    """All but the columns."""

    folder: str
    declared: dict[str, str]
    notes: list[str]
    stages: tuple[Stage, ...]
    has_bytes: bool
    files: dict[str, list[Any]]
    sizes: list[tuple[int, int, int]]


def write_profile(profile: Profile, path: str | PathLike[str]) -> None:
    """Write it, completely or not at all."""
    trace = profile.trace
    files = asdict(profile.trace.files)
    sizes = [(*key, size) for key, size in files.pop("sizes").items()]
    del files["at"]
    known = _Known(
        profile.folder, profile.declared, profile.notes, trace.stages, trace.has_bytes, files, sizes
    )
    columns = {f"{name}_": getattr(trace, name) for name in ("time_s", "stage", *COLUMNS)}
    with replace_bytes(path) as stream:
        np.savez_compressed(
            stream, known=np.frombuffer(msgspec.json.encode(known), dtype=np.uint8), **columns
        )


def read_profile(path: str | PathLike[str]) -> Profile:
    """Read it again. InputError if the file is not a profile."""
    try:
        with open_bytes(path) as stream, np.load(stream, allow_pickle=False) as found:
            known = msgspec.json.decode(found["known"].tobytes(), type=_Known)
            columns: dict[str, Any] = {
                name: found[f"{name}_"] for name in ("time_s", "stage", *COLUMNS)
            }
            rows: dict[str, Any] = known.files
            files = Files(**rows, sizes={(stage, file): size for stage, file, size in known.sizes})
            if not known.stages or len({len(column) for column in columns.values()}) > 1:
                raise ValueError("columns")
            _check(columns["op"], len(KIND_OF_OP))
            _check(columns["stage"], len(known.stages))
            _check(columns["file"], len(files.paths))
    except (ValueError, KeyError, TypeError, zipfile.BadZipFile, EOFError, msgspec.MsgspecError):
        raise InputError(
            path, "this is not a profile", fix="write one with windrow profile -- COMMAND"
        ) from None
    trace = Trace(**columns, stages=known.stages, files=files, has_bytes=known.has_bytes)
    return Profile(trace, known.folder, known.declared, known.notes)


def _check(numbers: Ints, most: int) -> None:
    """They stand for things of which there are that many."""
    if not numbers.min(initial=0) >= APART or not numbers.max(initial=0) < max(most, 1):
        raise ValueError(numbers)
