"""What a crash of a machine takes with it: whatever its processes changed among the files of a run,
and did not sync.

Law: of a file that one machine has changed, a crash of it leaves what was synced, and of what was
not any part from the beginning: of an appended file its tail may go, of a new one all, or all but
its name. Who syncs a file that is new has synced its name, too, as on the file systems that are in
use. A file that was renamed over another is, until the folder is synced, the new one or the old; a
file that was removed may be back. What is lost is drawn for each file by itself, so in any order.
What tasks write is theirs, and is taken to be on disk when they end.
Rule 1: nothing goes that had to last: what other processes rely on as soon as it is made
(`_RELIED_ON`), and what was written some seconds ago. Rule 2: what was being written when a process
died may be lost in whatever way.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from windrow.agent.made import lists_of

_RELIED_ON = ("claim", "over", "job.json", "abandoned", "arrived")
_SYNCS_WITHIN_S = 5


@dataclass(slots=True)
class _Before:
    """A file as it was when a machine first changed it without a sync; no content: it was not
    there."""

    at_s: float
    content: bytes | None
    inode: int
    is_named: bool = False
    """Whether the name is on disk, though the content may not be."""


class UnsyncedFiles:
    """What each machine has not synced yet. `folders`: below them are the files that are looked
    after."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self.folders: list[Path] = []
        self._now_s = now_s
        self.crashes = 0
        self.lost = 0
        """Files of which crashes took something."""
        self._changed: dict[str, dict[Path, _Before]] = {}
        self._synced: dict[int, int] = {}  # sizes of files, by their numbers

    def changes(self, machine: str, what: object) -> None:
        """This is about to change there."""
        path = path_of(what)
        if not any(path.is_relative_to(folder) for folder in self.folders) or path.name.startswith(
            "journal.sqlite"
        ):
            return
        before = self._changed.setdefault(machine, {})
        if path not in before:
            if path.exists():
                found = path.stat()
            else:
                found = None
            if found is None:
                content = None
            else:
                content = path.read_bytes()
            before[path] = _Before(self._now_s(), content, 0 if found is None else found.st_ino)

    def synced(self, descriptor: int) -> None:
        """A file, or the names in a folder, are on disk."""
        found = os.fstat(descriptor)
        path = path_of(descriptor)
        if path.is_dir():
            for changed in self._changed.values():
                for name in [name for name in changed if name.parent == path]:
                    changed[name].is_named = True
            return
        self._synced[found.st_ino] = found.st_size
        for changed in self._changed.values():
            if path in changed and changed[path].inode in (0, found.st_ino):
                del changed[path]

    def flushed(self, machine: str) -> None:
        """Its process is gone, and nothing happens to the machine: what it wrote comes to the
        disk."""
        self._changed.pop(machine, None)

    def crash(self, machine: str, chance: random.Random, dying: object = None) -> list[str]:
        """The machine is gone, and with it what was not synced; what of that had to last.

        `dying`: what its process was about to write then.
        """
        wrong = list[str]()
        if dying is None:
            half = None
        else:
            half = path_of(dying)
        self.crashes += 1
        lists_of.cache_clear()  # who read them before is not who reads them now
        for path, before in self._changed.pop(machine, {}).items():
            kept = chance.choice(self._possible(path, before))
            if path.exists():
                found = path.read_bytes()
            else:
                found = None
            if kept == found:
                continue
            self.lost += 1
            if kept is None:
                path.unlink()
            else:
                path.write_bytes(kept)
            is_late = path.name == "events" and self._now_s() - before.at_s > _SYNCS_WITHIN_S
            is_relied_on = path.name in _RELIED_ON or path.parent.name == "commits"
            if (
                not self._is_copy(path)
                and path != half
                and found is not None
                and (is_late or (is_relied_on and kept in (None, b"")))
            ):
                wrong.append(f"{path.parent.name}/{path.name}")
        return wrong

    def _is_copy(self, path: Path) -> bool:
        """Whether the file is one of another place, as it was seen last: it can be had again."""
        return any(path.is_relative_to(folder / "far") for folder in self.folders)

    def _possible(self, path: Path, before: _Before) -> list[bytes | None]:
        """What may be left of this file; one of them is what is there now."""
        if not path.exists():
            return [None, None if before.is_named else before.content]
        now = path.read_bytes()
        inode = path.stat().st_ino
        if inode == before.inode and now.startswith(before.content or b""):
            size = max(len(before.content or b""), self._synced.get(inode, 0))
            return [now, now[:size], now[: (size + len(now)) // 2]]
        is_whole = self._synced.get(inode) == len(now)
        older: list[bytes | None] = [] if before.is_named else [before.content]
        if is_whole:
            return [now, *older]
        return [now, b"", *older]


def path_of(what: object) -> Path:
    """The file that this means: a path, or a descriptor."""
    if isinstance(what, int):
        return Path(f"/proc/self/fd/{what}").readlink()
    return Path(str(what))


class Commits:
    """The journal on disk: what it had before its last commits, if SQLite does not sync each."""

    def __init__(self, journal: Path, *, is_synced: bool) -> None:
        self._journal = journal
        self._is_synced = is_synced
        self._before: list[dict[Path, bytes]] = []

    def before(self, what: object) -> None:
        """This is about to be committed."""
        if not self._is_synced and what == self._journal:
            parts = self._journal.parent.glob(f"{self._journal.name}*")
            self._before = [*self._before[-2:], {path: path.read_bytes() for path in parts}]

    def crash(self) -> None:
        """The machine is gone: so are its last commits, if they were not synced. Nobody has the
        file open."""
        if self._before:
            for path in self._journal.parent.glob(f"{self._journal.name}*"):
                path.unlink()
            for path, content in self._before[0].items():
                if not path.name.endswith("-shm"):
                    path.write_bytes(content)
