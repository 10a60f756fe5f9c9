"""What this machine offers to this process, and which processes live on it. Linux; standard library only.

Cores are those that the process may run on, within the CPU quota of its control groups (versions 1 and 2); memory is
the machine's, within their memory limit. A container therefore has what it was given, not what its host has.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from windrow.model.resources import NodeShape

_GROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Identity:
    """A process: its number, and when it began in clock ticks since the boot; numbers come again, pairs do not."""

    pid: int
    began_ticks: int


def identity(pid: int) -> Identity | None:
    """The process with this number, or None. The name in the second field may hold anything, so count from its end."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return Identity(pid, int(fields[19]))


def this_machine(groups: Path = _GROUPS, own: Path = Path("/proc/self/cgroup")) -> NodeShape:
    """All cores and all memory that this process may use."""
    folders = list(_own_groups(groups, own))
    quotas = [quota for folder in folders for quota in _quotas(folder)]
    limits = [limit for folder in folders for limit in _memory_limits(folder)]
    cores = min([len(os.sched_getaffinity(0)), *quotas])
    return NodeShape(cores, min([os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), *limits]))


def _own_groups(groups: Path, own: Path) -> Iterator[Path]:
    """The control groups of this process and all above them. Inside a container its own may be shown as the root."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and not {"cpu", "memory"} & set(controllers.split(",")):
            continue
        root = groups / controllers
        group = root / path.lstrip("/")
        while group != root:
            yield group
            group = group.parent
        yield root


def _quotas(folder: Path) -> Iterator[int]:
    """Whole cores that the quota of a group allows, rounded up."""
    words = _words(folder / "cpu.max") or _words(folder / "cpu.cfs_quota_us") + _words(folder / "cpu.cfs_period_us")
    if len(words) == 2 and all(word.isdecimal() for word in words):  # "max" and -1 stand for no limit
        yield max(1, -(-int(words[0]) // int(words[1])))


def _memory_limits(folder: Path) -> Iterator[int]:
    for word in _words(folder / "memory.max") + _words(folder / "memory.limit_in_bytes"):
        if word.isdecimal() and int(word) > 0:
            yield int(word)


def _words(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except OSError:
        return []
