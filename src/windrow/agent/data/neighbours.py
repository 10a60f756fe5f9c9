"""Which jobs of a run share data where the same files are seen: each says so in a file while it
runs.

A job is one *group* of caches. What a group has not got it asks of a group that began before it,
and of home only if none can give it. So what several jobs read comes from home once while they
run side by side, and since no group asks a younger one, none wait for each other. Which of the
older ones is asked differs from block to block: so not all come to the oldest. A group whose
members are not known yet is waited for; one that is over is passed by.

A group says that it will be there before it looks for others. So of two that begin at the same time
one sees the other, and their ages, by the clock of the file system, are the same to both.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from windrow.agent.data.members import Group, Peer
from windrow.agent.data.peers import MEET_S
from windrow.files import replacing

_LOOK_EVERY_S = 0.2


class Neighbours:
    """The groups of a run's caches, as one of them sees them."""

    def __init__(self, folder: Path, job: int, is_over: Callable[[int], bool]) -> None:
        """`folder`: for their files; `is_over`: whether this is known of a job."""
        self._folder = folder
        self._job = job
        self._is_over = is_over

    def tell(self, members: Iterable[Peer] | None = None, sources: Iterable[str] = ()) -> None:
        """Who shares what in this job; at first, that some will. OSError. The file is removed when
        the job ends."""
        record = {}
        if members is not None:
            record = {
                "since": self._read(self._job)[0],
                "members": list(members),
                "sources": list(sources),
            }
        self._folder.mkdir(mode=0o700, exist_ok=True)
        with replacing(self._folder / str(self._job), lasting=False) as file:
            file.write(json.dumps(record).encode("ascii"))

    def older(self) -> list[Group]:
        """Those that began before this one, the oldest first, and are not over as far as it is
        known. OSError."""
        until = time.monotonic() + MEET_S
        own = (self._read(self._job)[0], self._job)
        ages = list[tuple[int, int]]()
        for job in (int(path.name) for path in self._folder.iterdir() if path.name.isdecimal()):
            with contextlib.suppress(OSError):  # it has ended since
                ages.append((self._read(job)[0], job))
        records = [self._record(job, until) for age, job in sorted(ages) if (age, job) < own]
        return [
            Group([Peer(*one) for one in record["members"]], record["sources"])
            for record in records
            if record
        ]

    def _read(self, job: int) -> tuple[int, dict[str, Any]]:
        """Since when this group is there, and what it tells so far. OSError if it is not."""
        with (self._folder / str(job)).open("rb") as file:
            record = dict(json.loads(file.read()))
            return record.get("since", os.fstat(file.fileno()).st_mtime_ns), record

    def _record(self, job: int, until: float) -> dict[str, Any] | None:
        """What a group tells; None if it is over, or does not tell in time."""
        while not self._is_over(job) and time.monotonic() < until:
            try:
                if record := self._read(job)[1]:
                    return record
            except OSError:  # it has ended
                return None
            time.sleep(_LOOK_EVERY_S)
        return None
