"""What tasks made without naming it one by one: files left next to outputs, and what is in folders
that are outputs.

Law: it is recorded in the run's folder, when it is in place, by its stamp. Only what a run
recorded, and is as it was recorded, is replaced or deleted. What else is in the way gets another
name beside it, `NAME.before-1`, and is kept. Records of all runs that are kept in one place count.
A record that could not be written costs a name, never a file.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path

from windrow.deletion import Stamp, discard, discard_known, discard_made, move, stamp_at
from windrow.files import about_to_write, sync, sync_folder

_OUT = "out"
_MADE = "made"


class Made:
    """The records, as those of the run in this folder find them; without one there are none."""

    def __init__(self, run: str) -> None:
        self._run = run
        self.notes: list[str] = []
        """What a user should know: names that have changed."""

    @classmethod
    def beside(cls, out: str) -> Made:
        """As an attempt finds them whose output goes to the file `out` in the run's folder."""
        folder, _, _ = out.rpartition("/")
        run, _, name = folder.rpartition("/")
        return cls(run if name == _OUT else "")

    def note(self, path: str, *, lasting: bool = False) -> None:
        """This was made, and is in place. `lasting`: the record is to outlive the machine."""
        if (stamp := stamp_at(path)) is None or not self._run:
            return
        if stamp.is_folder:
            told = json.dumps(sorted(_below(path))).encode()
        else:
            told = path.encode(errors="surrogateescape")
        with contextlib.suppress(OSError):
            about_to_write(record := f"{self._run}/{_MADE}/{_called(stamp)}")
            os.makedirs(f"{self._run}/{_MADE}", mode=0o700, exist_ok=True)
            with open(record, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
                file.write(told)
                if lasting:
                    file.flush()
                    sync(file.fileno())
            if lasting:
                sync_folder(Path(record).parent)
                sync_folder(Path(self._run))

    def has(self, path: str) -> bool:
        """Whether a run made this, all that is in it included, and nothing changed it since."""
        if (stamp := stamp_at(path)) is None:
            return False
        records = self._records(stamp)
        if not stamp.is_folder:
            return next(records, None) is not None
        return _below(path) <= _recorded(records)

    def discard(self, path: str) -> bool:
        """Delete this as far as a run made it and nothing changed it since. Whether nothing is
        there now. OSError if a disk refuses."""
        stamp = stamp_at(path)
        if stamp is None:
            return True
        records = list(self._records(stamp))
        if not records:
            return False
        with contextlib.suppress(OSError):  # a full disk does not keep it from going
            about_to_write(path)
        if stamp.is_folder:
            is_gone = discard_known(path, _recorded(records))
        else:
            is_gone = discard_made(path, stamp)
        for record in records if is_gone else ():  # what has this stamp from now on is another
            with contextlib.suppress(OSError):
                discard(record)
        return is_gone

    def _records(self, stamp: Stamp) -> Iterator[Path]:
        if self._run:
            with contextlib.suppress(OSError):
                yield from Path(self._run).parent.glob(f"*/{_MADE}/{_called(stamp)}")

    def out_of_the_way(self, path: str, name: str = "") -> None:
        """Give what is there another name, after this one if it has another now."""
        for number in count(1):
            with contextlib.suppress(FileExistsError):
                move(path, kept := f"{name or path}.before-{number}")
                self.notes.append(
                    f"{name or path} was not made by a run, or was changed since: it is now {kept}"
                )
                return


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
