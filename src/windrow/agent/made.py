"""What tasks made: outputs, files left next to them, and what is in folders that are outputs.

Law: it is recorded in the run's folder, before it is in place, by its stamp. Only what a run
recorded, and is as it was recorded, is replaced or deleted. What else is in the way gets another
name beside it, `NAME.before-1`, and is kept. Records of all runs that are kept in one place count.
A record that could not be written costs a name, never a file.
Rule: of files each process has one list, to which it appends. What is in a folder is a file of its
own.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import count
from pathlib import Path

from windrow.deletion import (
    Stamp,
    discard,
    discard_known,
    discard_made,
    is_in_view,
    move,
    stamp_at,
)
from windrow.files import about_to_write, append_whole, sync, sync_folder

_OUT = "out"
_MADE = "made"
_LIST = "files-"


class Made:
    """The records, as those of the run in this folder find them; without one there are none."""

    def __init__(self, run: str) -> None:
        self._run = run
        self.notes: list[str] = []
        """What a user should know: names that have changed."""

    @classmethod
    def now(cls, runs: Path) -> Made:
        """As a run that is yet to be kept in this folder would find them."""
        run = str(runs / _MADE)  # which has no records of its own
        lists_of.cache_clear()  # other runs may have ended since they were read
        return cls(run)

    @classmethod
    def beside(cls, out: str) -> Made:
        """As an attempt finds them whose output goes to the file `out` in the run's folder."""
        folder, _, _ = out.rpartition("/")
        run, _, name = folder.rpartition("/")
        return cls(run if name == _OUT else "")

    def note(self, *paths: str, lasting: bool = False) -> None:
        """These were made, under whatever name. `lasting`: the record is to outlive the machine."""
        files = []
        for path in paths:
            stamp = stamp_at(path)
            if stamp is not None and stamp.is_folder:
                self._note_folder(path, stamp, lasting=lasting)
            elif stamp is not None:
                files.append(f"{_called(stamp)}\n")
        if files and self._run:
            with contextlib.suppress(OSError):
                self._append("".join(files).encode(), lasting=lasting)

    def _append(self, lines: bytes, *, lasting: bool) -> None:
        list_of_mine = f"{self._run}/{_MADE}/{_LIST}{os.uname().nodename}-{os.getpid()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        try:
            descriptor = os.open(list_of_mine, flags, 0o600)
        except FileNotFoundError:
            os.makedirs(f"{self._run}/{_MADE}", mode=0o700, exist_ok=True)
            descriptor = os.open(list_of_mine, flags, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            append_whole(descriptor, b"\n" * bool(size) + lines, size)  # the last line may be torn
            if lasting:
                sync(descriptor)
        finally:
            os.close(descriptor)
        if lasting and not size:
            self._sync_names()

    def _note_folder(self, path: str, stamp: Stamp, *, lasting: bool) -> None:
        if not self._run:
            return
        told = json.dumps(sorted(_below(path))).encode()
        with contextlib.suppress(OSError):
            about_to_write(record := f"{self._run}/{_MADE}/{_called(stamp)}")
            os.makedirs(f"{self._run}/{_MADE}", mode=0o700, exist_ok=True)
            with open(record, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
                file.write(told)
                if lasting:
                    file.flush()
                    sync(file.fileno())
            if lasting:
                self._sync_names()

    def _sync_names(self) -> None:
        sync_folder(Path(self._run, _MADE))
        sync_folder(Path(self._run))

    def has(self, path: str) -> bool:
        """Whether a run made this, all that is in it included, and nothing changed it since."""
        if (stamp := stamp_at(path)) is None:
            return False
        if not stamp.is_folder:
            return self._has_file(stamp)
        return _below(path) <= _recorded(self._records(stamp))

    def _has_file(self, stamp: Stamp) -> bool:
        return bool(self._run) and lists_of(self._run).have(_called(stamp))

    def discard(self, path: str) -> bool:
        """Delete this as far as a run made it and nothing changed it since. Whether nothing is
        there now. OSError if a disk refuses."""
        stamp = stamp_at(path)
        if stamp is None:
            return True
        if not stamp.is_folder:
            with contextlib.suppress(OSError):  # a full disk does not keep it from going
                about_to_write(path)
            return self._has_file(stamp) and discard_made(path, stamp)
        records = list(self._records(stamp))
        if not records:
            return False
        with contextlib.suppress(OSError):
            about_to_write(path)
        is_gone = discard_known(path, _recorded(records))
        for record in records if is_gone else ():  # what has this stamp from now on is another
            with contextlib.suppress(OSError):
                discard(record)
        return is_gone

    def _records(self, stamp: Stamp) -> Iterator[Path]:
        if self._run:
            with contextlib.suppress(OSError):
                yield from Path(self._run).parent.glob(f"*/{_MADE}/{_called(stamp)}")

    def may_replace(self, path: str) -> bool:
        """Whether what is there may go for something that was made: a run made it, it only seems
        to be there, or nothing is."""
        return not os.path.lexists(path) or is_in_view(path) or self.has(path)

    def out_of_the_way(self, path: str, name: str = "") -> None:
        """Give what is there another name, after this one if it has another now."""
        for number in count(1):
            with contextlib.suppress(FileExistsError):
                move(path, kept := f"{name or path}.before-{number}")
                self.notes.append(
                    f"{name or path} was not made by a run, or was changed since: it is now {kept}"
                )
                return


class _Lists:
    """The lists of files that runs made, read as far as they are needed."""

    def __init__(self, run: str) -> None:
        self._run = Path(run)
        self._read: dict[Path, int] = {}
        self._known: set[bytes] = set()

    def have(self, called: str) -> bool:
        """Whether one of them has it. What other runs made was written before this one began, or
        is no output of it."""
        wanted = called.encode()
        if not self._read:
            self._look(self._run.parent.glob(f"*/{_MADE}/{_LIST}*"))
        if wanted not in self._known:
            self._look(self._run.glob(f"{_MADE}/{_LIST}*"))
        return wanted in self._known

    def _look(self, lists: Iterable[Path]) -> None:
        with contextlib.suppress(OSError):
            for path in lists:
                with contextlib.suppress(OSError), path.open("rb") as file:
                    begin = self._read.get(path, 0)
                    if os.fstat(file.fileno()).st_size < begin:  # a machine has crashed
                        begin = 0
                    file.seek(begin)
                    whole, newline, _ = file.read().rpartition(b"\n")
                    self._read[path] = begin + len(whole) + len(newline)
                    self._known.update(whole.split(b"\n"))


@lru_cache(maxsize=4)
def lists_of(run: str) -> _Lists:
    """What this process has read of the lists that this run sees."""
    return _Lists(run)


def _called(stamp: Stamp) -> str:
    return hashlib.sha256(repr(tuple(stamp)).encode()).hexdigest()[:32]


def _recorded(records: Iterable[Path]) -> set[Stamp]:
    """What was in folders when they were recorded."""
    known = set[Stamp]()
    for record in records:
        with contextlib.suppress(OSError, ValueError, TypeError):
            known.update(Stamp(*one) for one in json.loads(record.read_bytes()))
    return known


def _below(folder: str) -> set[Stamp]:
    """The stamps of all that is in a folder, but for the folders in it."""
    names = (
        os.path.join(at, name)
        for at, folders, files in os.walk(folder)
        for name in (*folders, *files)
    )
    found = map(stamp_at, names)
    return {stamp for stamp in found if stamp is not None and not stamp.is_folder}
