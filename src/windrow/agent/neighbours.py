"""Which jobs of a run share data where the same files are seen: each says so in a file beside its events.

A job is one *group* of caches. What a group has not got it asks of a group that began before it, and of home only where
none can give it. So what several jobs read comes from home once while they run side by side, and since no group asks a
younger one, none wait for each other. Which of the older ones is asked differs from block to block: so not all come to
the oldest. A group whose members are not known yet is waited for; one that is over is passed by.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from typing import Any

from windrow.agent.folder import RunFolder
from windrow.agent.peers import MEET_S, Group, Peer
from windrow.files import replacing

_LOOK_EVERY_S = 0.2


class Neighbours:
    """The groups of a run's caches, as one of them sees them."""

    def __init__(self, folder: RunFolder, job: int, is_over: Callable[[int], bool]) -> None:
        """`is_over`: whether this is known of a job."""
        self._folder, self._job, self._is_over = folder, job, is_over

    def tell(self, members: Iterable[Peer] | None = None, sources: Iterable[str] = ()) -> None:
        """Who shares what in this job; at first, that some will. OSError. The file is removed when the job ends."""
        record = {} if members is None else {"members": list(members), "sources": list(sources)}
        with replacing(self._folder.cache(self._job), lasting=False) as file:
            file.write(json.dumps(record).encode("ascii"))

    def older(self) -> list[Group]:
        """Those that began before this one, the oldest first, and are not over as far as it is known. OSError."""
        until, own = time.monotonic() + MEET_S, self._began(self._job)
        jobs = [job for job in self._folder.numbers() if self._folder.cache(job).exists()]
        ages = sorted(age for age in map(self._began, jobs) if age < own)
        records = [self._record(job, until) for _, job in ages]
        return [Group([Peer(*one) for one in record["members"]], record["sources"]) for record in records if record]

    def _began(self, job: int) -> tuple[int, int]:
        """By the clock of the file system, which is the same for all."""
        return self._folder.claim(job).stat().st_mtime_ns, job

    def _record(self, job: int, until: float) -> dict[str, Any] | None:
        """What a group tells; None where it is over, or does not tell in time."""
        while not self._is_over(job):
            try:
                if record := json.loads(self._folder.cache(job).read_bytes()):
                    return dict(record)
            except OSError:  # it has ended
                return None
            if time.monotonic() > until:
                break
            time.sleep(_LOOK_EVERY_S)
        return None
