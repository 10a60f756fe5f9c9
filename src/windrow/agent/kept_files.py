"""Which files the checkpoint patterns of a task mean, and which of these are its own.

Rule 1: patterns lead from the task's folder to what is in there: no link is followed on the way,
names that only Windrow gives are not meant, and `*` means no hidden files. A folder means all that
is in it.
Rule 2: what was there when the first attempt of a run started, and was not recorded by an earlier
run, is not the task's. Nor is what comes between two attempts. The task's own is what came while an
attempt of it had the lease on the files; that is recorded with its stamp when it is seen, in the
run's folder.
Rule 3: only what is recorded, and is as it was recorded, is deleted.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from windrow.deletion import Stamp, discard, discard_made, is_own_name, stamp_of
from windrow.files import about_to_write, replacing, sync_folder

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_OWN_FOLDER = ".windrow"
BEAT_S = 30.0
"""How often an attempt that has the lease shows that it lives."""
_SURE_S = 2 * BEAT_S
"""How much later than it showed that it may have lived."""

Found = dict[str, Stamp]
"""What patterns mean, by path from the task's folder."""


def found(workdir: str, patterns: Iterable[str]) -> Found:
    """What these patterns mean now. Each file is opened: a network file system then asks its
    server."""
    met: Found = {}
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        top = os.open(workdir, _FOLDER)
        try:
            for pattern in patterns:
                _look(top, "", [part for part in pattern.split("/") if part not in ("", ".")], met)
        finally:
            os.close(top)
    return met


def links_on_the_way(workdir: str, patterns: Iterable[str]) -> list[str]:
    """Links to folders that these patterns would have to follow."""
    links = []
    for pattern in patterns:
        parts = [part for part in pattern.split("/") if part not in ("", ".")]
        before = {
            path for n in range(1, len(parts)) for path in found(workdir, ["/".join(parts[:n])])
        }
        links += [
            path
            for path in before
            if Path(workdir, path).is_symlink() and Path(workdir, path).is_dir()
        ]
    return sorted(set(links))


@lru_cache(maxsize=1024)
def _meant(part: str) -> re.Pattern[str]:
    return re.compile("[^/]*".join(map(re.escape, part.split("*"))), re.DOTALL)


def _names(folder: int, part: str) -> Iterator[str]:
    if "*" not in part:
        yield part
        return
    for name in os.listdir(folder):
        if _meant(part).fullmatch(name) and (name[:1] != "." or part[:1] == "."):
            yield name


def _look(folder: int, before: str, parts: list[str], met: Found) -> None:
    """Add what the rest of a pattern means in a folder; without a rest, all that is in it."""
    names = _names(folder, parts[0]) if parts else os.listdir(folder)
    for name in names:
        if is_own_name(name) or name == _OWN_FOLDER:
            continue
        with contextlib.suppress(
            OSError
        ):  # it is being replaced, or is not to be read: then it is not ours either
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            is_folder = stat.S_ISDIR(status.st_mode)
            path = f"{before}{name}"
            if len(parts) <= 1:
                met[path] = stamp_of(status)
            if is_folder:
                below = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
                try:
                    _look_below(below, path, parts[1:], met, is_end=len(parts) <= 1)
                finally:
                    os.close(below)
            elif len(parts) <= 1 and stat.S_ISREG(status.st_mode):
                file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
                try:
                    met[path] = stamp_of(os.fstat(file))
                finally:
                    os.close(file)


def _look_below(folder: int, path: str, parts: list[str], met: Found, *, is_end: bool) -> None:
    if parts or is_end:
        _look(folder, f"{path}/", parts, met)


@dataclass
class KeptFiles:
    """The record of one task's files, as it is in the run's folder at `path`."""

    path: Path
    workdir: str
    ours: Found = field(default_factory=dict)
    others: frozenset[int] = frozenset()
    """Numbers of the inodes of what is not the task's."""
    taken: frozenset[str] = frozenset()
    """Paths of what is not the task's, also if the task has replaced it."""
    has_begun: bool = False
    """Whether an attempt of this run had them."""

    @classmethod
    def read(cls, path: Path, workdir: str) -> KeptFiles:
        """The record that is there; an empty one if there is none that can be read."""
        try:
            told = json.loads(path.read_bytes())
            ours = {name: Stamp(*one) for name, one in told["ours"].items()}
            others = frozenset(told["others"])
            taken = frozenset(told.get("taken", ()))
            return cls(path, told["workdir"], ours, others, taken, told["has_begun"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return cls(path, workdir)

    def write(self) -> None:
        """Replace the record. OSError if the disk refuses."""
        told = {
            "workdir": self.workdir,
            "ours": self.ours,
            "others": sorted(self.others),
            "taken": sorted(self.taken),
            "has_begun": self.has_begun,
        }
        self.path.parent.mkdir(mode=0o700, exist_ok=True)
        is_new = not self.path.exists()
        with replacing(self.path) as file:
            file.write(json.dumps(told).encode())
        if is_new:  # without it, files of the task would pass for those of others after a crash
            sync_folder(self.path.parent)

    def begin(self, here: Found, *, left_s: float | None = None) -> None:
        """An attempt starts, and finds these. `left_s`: the one before it died with the lease, and
        lived at this time. OSError.

        What the first attempt of a run finds of an earlier run, it deletes.
        """
        if self.has_begun and left_s is not None:
            ours = self._left(here, left_s)
        else:
            ours = {path: stamp for path, stamp in here.items() if self.ours.get(path) == stamp}
        if self.has_begun:
            self.ours = ours
        else:
            self.delete()
            self.ours = {}
        self.others = frozenset(stamp.inode for path, stamp in here.items() if path not in ours)
        self.taken = frozenset(path for path in here if path not in ours)
        self.has_begun = True
        self.write()

    def end_of_left(self, here: Found, left_s: float) -> None:
        """The task has finished, but for its last attempt, which died with the lease and lived at
        this time. These are there. OSError."""
        self.ours = self._left(here, left_s)
        self.end()

    def _left(self, here: Found, left_s: float) -> Found:
        """What is of an attempt that died: what is recorded, though it may have grown since, and
        what came to be while the attempt can have lived."""
        known = {path: stamp.inode for path, stamp in self.ours.items()}
        return {
            path: stamp
            for path, stamp in self._unless_others(here).items()
            if known.get(path) == stamp.inode or self._came_s(path) <= left_s + _SURE_S
        }

    def _came_s(self, path: str) -> float:
        """When a file came to have its name and content, by the clock of its file system."""
        try:
            return os.lstat(f"{self.workdir}/{path}").st_ctime
        except OSError:
            return math.inf

    def _unless_others(self, here: Found) -> Found:
        return {
            path: stamp
            for path, stamp in here.items()
            if stamp.inode not in self.others and path not in self.taken
        }

    def see(self, here: Found) -> None:
        """An attempt has these: all that was not there before are its own. OSError if it cannot
        be recorded."""
        ours = self._unless_others(here)
        if ours != self.ours:
            before = self.ours
            self.ours = ours
            try:
                self.write()
            except OSError:
                self.ours = before
                raise

    def delete(self) -> None:
        """Delete what is recorded, folders after what is in them. OSError if something stays
        that could go."""
        for path in sorted(self.ours, reverse=True):
            about_to_write(path)
            discard_made(path, self.ours[path], below=self.workdir)

    def end(self) -> None:
        """The task has finished: nothing of it is needed."""
        self.delete()
        about_to_write(self.path)
        discard(self.path)
        self.ours = {}
        self.has_begun = False


def not_ours(here: Found, ours: Mapping[str, Stamp]) -> list[str]:
    """What no record has as it is, of folders only those in which such things are not named
    themselves."""
    names = [path for path, stamp in here.items() if ours.get(path) != stamp]
    return sorted(
        path for path in names if not any(other.startswith(f"{path}/") for other in names)
    )
