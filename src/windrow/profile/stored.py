"""Profiles on disk: a trace, the folder that it was made in, and the roles that were declared, in one file (npz)."""

import json
import zipfile
from dataclasses import asdict, dataclass, field
from os import PathLike
from typing import Any

import numpy as np

from windrow.errors import InputError
from windrow.formats.disk import open_bytes, replace_bytes
from windrow.model.trace import COLUMNS, Files, Stage, Trace
from windrow.profile.measures import Measures
from windrow.profile.roles import Roles, infer

_ARRAYS = ("time_s", "stage", *COLUMNS)


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


def write_profile(profile: Profile, path: str | PathLike[str]) -> None:
    """Write it, completely or not at all."""
    trace, files = profile.trace, asdict(profile.trace.files)
    known: dict[str, Any] = {
        "version": 1,
        "folder": profile.folder,
        "declared": profile.declared,
        "notes": profile.notes,
    }
    known |= {"stages": [asdict(stage) for stage in trace.stages], "has_bytes": trace.has_bytes}
    known["files"] = {name: files[name] for name in ("paths", "made", "gone", "changed")}
    known["sizes"] = [[*key, size] for key, size in trace.files.sizes.items()]
    text = json.dumps(known).encode("utf-8", "surrogateescape")
    with replace_bytes(path) as stream:
        arrays = {f"{name}_": getattr(trace, name) for name in _ARRAYS}  # file is an argument of savez
        np.savez_compressed(stream, known=np.frombuffer(text, dtype=np.uint8), **arrays)


def read_profile(path: str | PathLike[str]) -> Profile:
    """Read it again. InputError where the file is not a profile."""
    try:
        with open_bytes(path) as stream, np.load(stream, allow_pickle=False) as found:
            known = json.loads(found["known"].tobytes())
            stages = tuple(Stage(**{**each, "command": tuple(each["command"])}) for each in known["stages"])
            files = Files(**known["files"], sizes={(stage, file): size for stage, file, size in known["sizes"]})
            columns: dict[str, Any] = {name: found[f"{name}_"] for name in _ARRAYS}
            trace = Trace(**columns, stages=stages, files=files, has_bytes=known["has_bytes"])
    except (ValueError, KeyError, TypeError, zipfile.BadZipFile, EOFError):
        raise InputError(
            path, "this is not a profile", fix="write one with windrow profile -o FILE -- COMMAND"
        ) from None
    return Profile(trace, known["folder"], known["declared"], known["notes"])
