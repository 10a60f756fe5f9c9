"""Tasks that outlived their server: only where server and guardian were killed within the same instant.

Every task carries the pool's id in its environment, and passes it on to what it starts. Before a server starts anything
it kills what still carries it, so that no task runs twice at the same time. Linux only, and on this machine only; on
other nodes of an allocation the queue ends what is left.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from windrow.errors import OutsideError

VARIABLE = "WINDROW_POOL_ID"
_PATIENCE_S = 10.0
_PROCESSES = Path("/proc")


def kill_leftovers(pool_id: str) -> int:
    """Kill every process of an earlier server's tasks; how many there were. OutsideError where one does not go."""
    killed: set[int] = set()
    end = time.monotonic() + _PATIENCE_S
    while found := _carriers(f"{VARIABLE}={pool_id}".encode()):
        if time.monotonic() > end:
            raise OutsideError(f"process {found[0]}, a task of an earlier server of this pool, cannot be killed")
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        killed.update(found)
        time.sleep(0.02)
    return len(killed)


def _carriers(mark: bytes) -> list[int]:
    """Processes with the mark in their environment; those of others cannot be read, and a dead one has none."""
    spared = {os.getpid(), os.getppid()}
    found = []
    for entry in _PROCESSES.iterdir() if _PROCESSES.is_dir() else ():
        if entry.name.isdecimal() and int(entry.name) not in spared:
            with contextlib.suppress(OSError):
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return sorted(found)
