"""Whether the kernel killed something here because memory ran out, as far as the control group tells. Best effort.

Batch systems confine a job's memory by a control group; its counter of kills covers all that runs below it. Where there
is none, or it cannot be read, nothing is claimed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

_COUNT = re.compile(rb"^oom_kill (\d+)$", re.MULTILINE)


class MemoryKills:
    """Counts the kernel's kills in this process's control group."""

    def __init__(self, proc: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> None:
        self._files = [path for path in _candidates(proc, root) if path.exists()][:1]
        self._seen = self._count()

    def is_new(self) -> bool:
        """Whether the kernel has killed something since the last call."""
        before, self._seen = self._seen, self._count()
        return self._seen > before

    def _count(self) -> int:
        for path in self._files:
            try:
                found = _COUNT.search(path.read_bytes())
            except OSError:
                return 0
            return int(found[1]) if found else 0
        return 0


def _candidates(proc: Path, root: Path) -> Iterator[Path]:
    """The files of version 2 and of version 1 of control groups."""
    try:
        lines = proc.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, kinds, path = (*line.split(":", 2), "", "")[:3]
        if not kinds:
            yield root / path.lstrip("/") / "memory.events"
        elif "memory" in kinds.split(","):
            yield root / "memory" / path.lstrip("/") / "memory.oom_control"
