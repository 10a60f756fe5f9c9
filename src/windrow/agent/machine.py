"""What this machine offers to this process, and which processes live on it. Linux; standard library
only.

Cores are those that the process may run on, within the CPU quota of its control groups (versions 1
and 2); memory is the machine's, within their memory limit. A container therefore has what it was
given, not what its host has. GPUs are those that its environment names, else NVIDIA's devices; they
go by their places among those, from 0. Their names are what the environment calls them: the batch
system may have given this job some of several.

Whether the kernel killed something because memory ran out is told by a counter of the control group
that confines it, which covers all that runs below. If there is none, or it cannot be read,
nothing is claimed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from windrow.model.resources import GPUS, NodeShape

SHARES = "WINDROW_SHARES"
"""The variable that names the file by which agents share a machine (`shares`)."""
SHOWN_BY = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")
"""What programs for NVIDIA, AMD and Intel devices read."""
_SAID_BY = (*SHOWN_BY, "SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "GPU_DEVICE_ORDINAL")
_NONE = ("", "-1", "NoDevFiles")

_GROUPS = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")
_DEVICES = Path("/dev")
_KILLS = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Identity:
    """A process: its number, and when it began in clock ticks since the boot; numbers come again,
    pairs do not."""

    pid: int
    began_ticks: int


def identity(pid: int) -> Identity | None:
    """The process with this number, or None. The name in the second field may hold anything, so
    count from its end."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return Identity(pid, int(fields[19]))


def takers(leader: int, number: int) -> list[int]:
    """Who takes this signal, and does not die of it: the leader of a process group, else those of
    the group that do."""

    def takes(pid: int) -> bool:
        masks = re.findall(
            r"^Sig(?:Cgt|Blk):\s*(\w+)$", _text(Path(f"/proc/{pid}/status")), re.MULTILINE
        )
        return any(
            int(mask, 16) >> (number - 1) & 1 for mask in masks
        )  # with a handler, or waits for it

    if takes(leader):
        return [leader]
    numbers = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return [pid for pid in numbers if _group(pid) == leader and takes(pid)]


def _group(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except OSError:  # gone since it was listed
        return 0


def this_machine(groups: Path = _GROUPS, own: Path = _OWN) -> NodeShape:
    """All cores, all memory and all GPUs that this process may use."""
    cores = [len(os.sched_getaffinity(0))]
    memory = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for group in _own_groups(groups, own):
        quota = _words(group / "cpu.max") or _words(group / "cpu.cfs_quota_us") + _words(
            group / "cpu.cfs_period_us"
        )
        if len(quota) == 2 and all(
            word.isdecimal() for word in quota
        ):  # "max" and -1 stand for no limit
            cores.append(max(1, -(-int(quota[0]) // int(quota[1]))))  # whole cores, rounded up
        limits = _words(group / "memory.max") + _words(group / "memory.limit_in_bytes")
        memory += [int(word) for word in limits if word.isdecimal() and int(word) > 0]
    seen = visible(os.environ)
    gpus = len(list(_DEVICES.glob("nvidia[0-9]*")) if seen is None else seen)
    return NodeShape(min(cores), min(memory), counts=((GPUS, gpus),) if gpus else ())


class MemoryKills:
    """Counts the kernel's kills in this process's control group."""

    def __init__(self, own: Path = _OWN, groups: Path = _GROUPS) -> None:
        places = [
            groups / path / "memory.events"
            if not kinds
            else groups / "memory" / path / "memory.oom_control"
            for kinds, path in _lines(own)
            if not kinds or "memory" in kinds.split(",")
        ]
        self._file = next((place for place in places if place.exists()), None)
        self._seen = self._count()

    def is_new(self) -> bool:
        """Whether the kernel has killed something since the last call."""
        before = self._seen
        self._seen = self._count()
        return self._seen > before

    def _count(self) -> int:
        if self._file:
            found = _KILLS.search(_text(self._file))
        else:
            found = None
        if found:
            return int(found[1])
        return 0


def _own_groups(groups: Path, own: Path) -> Iterator[Path]:
    """The control groups of this process and all above them. Inside a container its own may be
    shown as the root."""
    for controllers, path in _lines(own):
        if controllers and not {"cpu", "memory"} & set(controllers.split(",")):
            continue
        root = groups / controllers
        group = root / path
        while group != root:
            yield group
            group = group.parent
        yield root


def _lines(own: Path) -> list[tuple[str, str]]:
    """The controllers and the path in each line; version 2 names none."""
    return [
        (kinds, path.lstrip("/"))
        for _, kinds, path in (line.split(":", 2) for line in _text(own).splitlines())
    ]


def _words(file: Path) -> list[str]:
    return _text(file).split()


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""


def visible(environ: Mapping[str, str]) -> list[str] | None:
    """The names of the GPUs that are seen there; None if nothing says which."""
    said = next((environ[name] for name in _SAID_BY if name in environ), None)
    if said is None:
        return None
    return _names(said)


def shown(environ: Mapping[str, str], gpus: Sequence[int]) -> dict[str, str]:
    """The variables by which a program sees these GPUs of a node with this environment, and no
    others."""
    found = visible(environ) or []
    each = {variable: _names(environ.get(variable, "")) or found for variable in SHOWN_BY}
    return {
        variable: ",".join(name_of(gpu, names) for gpu in gpus) for variable, names in each.items()
    }


def name_of(gpu: int, names: Sequence[str]) -> str:
    """What a GPU is called; its place, if it has no name."""
    if gpu < len(names):
        return names[gpu]
    return str(gpu)


def _names(said: str) -> list[str]:
    return [name for name in (word.strip() for word in said.split(",")) if name not in _NONE]
