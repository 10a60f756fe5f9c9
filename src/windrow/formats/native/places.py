"""Where tasks may write: in the folder of the workflow file, and never over what Windrow itself
needs there.

Law: the workflow file, `windrow.toml`, `.windrow` with all that is in it, and names that only
Windrow gives are never an output or a checkpoint. What is outside of the folder, also by a link, is
an output only if its task says `outside: true`.
"""

from __future__ import annotations

import glob
import os
import re
from pathlib import Path

from windrow.deletion import is_own_name
from windrow.formats.disk import AnyPath
from windrow.places import project_folder

SETTINGS = "windrow.toml"
OWN_FOLDER = ".windrow"


class Places:
    """The folder of one workflow file."""

    def __init__(self, file: AnyPath) -> None:
        self._file = str(Path(file).absolute())
        self.base = os.path.dirname(self._file)
        self._own = os.path.abspath(project_folder())
        self._real: dict[str, str] = {}

    def why_not(self, path: str, *, outside: bool) -> tuple[str, str]:
        """What is wrong with an output of this whole path, and the fix; empty if nothing is."""
        folder, _, name = path.rpartition("/")
        real = f"{self._without_links(folder)}/{name}"
        if why := self._reserved(path) or self._reserved(real):
            return f"which is {why}", "give it another name"
        if not outside and not self._is_inside(path, self.base):
            return (
                f"which is outside of {self.base}",
                "keep it in there, or write outside: true for this task",
            )
        if not outside and not self._is_inside(real, self._without_links(self.base)):
            fix = "name a folder in there, or write outside: true for this task"
            return f"which a link leads outside of {self.base}, to {real}", fix
        return "", ""

    def why_no_checkpoint(self, pattern: str) -> str:
        """What of Windrow the pattern of checkpoint files, a whole path, may be; empty if it is
        nothing."""
        below = pattern.removeprefix(f"{self.base}/").split("/")
        if any(part[:1] == "." and _may_be(part, OWN_FOLDER) for part in below) or any(
            map(is_own_name, below)
        ):
            return "files of Windrow itself"
        for name, what in (
            (self._file, "the workflow file"),
            (f"{self.base}/{SETTINGS}", f"the settings, {SETTINGS}"),
        ):
            if _may_hold(pattern, name):
                return what
        if _may_hold(pattern, self._own) or _may_be_in(pattern, self._own):
            return "files of Windrow itself"
        return ""

    def _reserved(self, path: str) -> str:
        if path in (self._file, self._without_links(self._file)):
            return "the workflow file itself"
        if self._is_inside(self._file, path):
            return "a folder with the workflow file in it"
        if self._is_inside(path, self._own) or self._is_inside(self._own, path):
            return f"the folder for runs, {self._own}, or around it"
        if (".windrow" in path or "windrow-" in path) and _has_own_name(path):
            inside = self._without_links(path).removeprefix(self._without_links(self.base))
            if _has_own_name(inside):
                return "a file or folder of Windrow itself"
        if path.endswith(f"/{SETTINGS}"):
            return f"the settings, {SETTINGS}"
        return ""

    def _is_inside(self, path: str, base: str) -> bool:
        return path == base or path.startswith(f"{base.rstrip('/')}/")

    def _without_links(self, path: str) -> str:
        """The path that links lead to; each folder is looked at once."""
        if path not in self._real:
            above, _, name = path.rpartition("/")
            if name:
                place = f"{self._without_links(above)}/{name}"
            else:
                place = path
            self._real[path] = os.path.realpath(place) if os.path.islink(place) else place
        return self._real[path]


def _may_hold(pattern: str, path: str) -> bool:
    """Whether it may mean this, or a folder around it."""
    parts = pattern.split("/")
    return len(parts) <= path.count("/") + 1 and all(map(_may_be, parts, path.split("/")))


def _may_be_in(pattern: str, folder: str) -> bool:
    """Whether it may mean something in this folder."""
    parts = pattern.split("/")
    return len(parts) > folder.count("/") + 1 and all(map(_may_be, parts, folder.split("/")))


def _may_be(pattern: str, name: str) -> bool:
    return (
        re.fullmatch("[^/]*".join(map(re.escape, pattern.split("*"))), name, re.DOTALL) is not None
    )


def _has_own_name(path: str) -> bool:
    """Whether a part of the path is called as Windrow calls its own."""
    parts = path.split("/")
    return OWN_FOLDER in parts or any(map(is_own_name, parts))


def files_like(folder: str, pattern: str) -> list[str]:
    """The files that exist in this folder and that the pattern means, sorted; `*` stands for any
    characters but `/`, and at the beginning of a name not for a dot."""
    escaped = "*".join(map(glob.escape, pattern.split("*")))
    return sorted(glob.glob(escaped, root_dir=folder))
