"""Holds tasks to what they state: memory by looking at what their processes have, cores by binding
them to some of those that the job has.

Rule 1: of a process group counts what its processes have in memory, shared pages in parts. A task
is over if it has more than 1.1 of what it states at two looks in a row. No limit is set for its
processes (RLIMIT_AS bounds addresses, which cost nothing).
Rule 2: tasks are bound only if the batch system has bound the job to just the cores that it has:
else it is not known which these are. Nothing is bound to fewer cores than it states.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

LOOK_S = 2.0
"""How often memory is looked at."""
TOLERANCE = 1.1
_PROC = Path("/proc")
_PSS = re.compile(r"^Pss:\s*(\d+) kB", re.MULTILINE)


def held_bytes(groups: Mapping[int, int], proc: Path = _PROC) -> dict[int, int]:
    """What those of these process groups have in memory that may have more than that many bytes."""
    page = os.sysconf("SC_PAGE_SIZE")
    members: dict[int, list[int]] = {group: [] for group in groups}
    resident = dict.fromkeys(groups, 0)
    for pid, group, pages in _processes(proc) if groups else ():
        if group in members:
            members[group].append(pid)
            resident[group] += pages * page
    over = [group for group, most in groups.items() if resident[group] > most]
    return {group: sum(_own_bytes(pid, proc) for pid in members[group]) for group in over}


def _own_bytes(pid: int, proc: Path) -> int:
    """What a process has in memory; of what it shares with others, its part."""
    found = _PSS.search(_text(proc / str(pid) / "smaps_rollup"))
    if found:
        return int(found[1]) * 1024
    return 0


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:  # it has ended, or is another user's
        return ""


class Memory:
    """The memory of tasks, by their process groups."""

    def __init__(self) -> None:
        self._stated: dict[int, int] = {}
        self._suspected: set[int] = set()
        self.taken: dict[int, int] = {}
        """What those have taken that are over."""

    @property
    def is_watching(self) -> bool:
        """Whether there is anything to look at."""
        return bool(self._stated)

    def begin(self, group: int, stated_bytes: int) -> None:
        """Watch this group, which states how much it needs."""
        self._stated[group] = stated_bytes

    def end(self, group: int) -> int:
        """It has ended. What it had taken if it was over; else 0."""
        self._stated.pop(group, None)
        self._suspected.discard(group)
        return self.taken.pop(group, 0)

    def look(self) -> list[int]:
        """The groups that are over, at the second look that shows it."""
        most = {group: int(TOLERANCE * stated) for group, stated in self._stated.items()}
        found = {group: taken for group, taken in held_bytes(most).items() if taken > most[group]}
        over = [group for group in found if group in self._suspected and group not in self.taken]
        self._suspected = set(found)
        self.taken |= {group: found[group] for group in over}
        return over


class Cores:
    """The cores of the job on this node, and which task has which."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._own: list[int] = []
        self._taken: dict[int, list[int]] = {}
        if hasattr(os, "sched_getaffinity"):
            allowed = sorted(os.sched_getaffinity(0))
            if environ.get("SLURM_CPUS_ON_NODE") == str(len(allowed)):
                self._own = allowed

    @contextlib.contextmanager
    def bound(self, task: int, cores: int) -> Iterator[None]:
        """What is started inside has that many cores for itself, if there are as many."""
        taken = self.take(task, cores)
        if taken:
            os.sched_setaffinity(0, taken)
        try:
            yield
        finally:
            if taken:
                os.sched_setaffinity(0, self._own)

    def take(self, task: int, cores: int) -> list[int]:
        """This many cores, for this task until it has ended; none if fewer are free."""
        taken = {core for others in self._taken.values() for core in others}
        free = [core for core in self._own if core not in taken]
        if len(free) < cores:
            return []
        self._taken[task] = free[:cores]
        return self._taken[task]

    def end(self, task: int) -> None:
        """The task has ended."""
        self._taken.pop(task, None)


def _processes(proc: Path) -> Iterator[tuple[int, int, int]]:
    """Each with its group and how many pages it has."""
    for entry in proc.iterdir():
        if entry.name.isdigit():
            fields = _text(entry / "stat").rpartition(")")[2].split()
            if len(fields) > 21:
                yield int(entry.name), int(fields[2]), int(fields[21])
