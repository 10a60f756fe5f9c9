"""Waiting for facts, never for a while; and what /proc knows of processes.

Patience is long, since a busy machine is no fault, and costs nothing where all is well.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

PATIENCE_S = 200.0


def wait_until(holds: Callable[[], object], patience_s: float = PATIENCE_S) -> None:
    """Wait until it holds; fail if it does not within the patience."""
    end = time.monotonic() + patience_s
    while not holds():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that has ended and that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def children(pid: int) -> list[int]:
    """The processes that it has started and not waited for."""
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has just ended
            found += [int(child) for child in thread.read_text().split()]
    return found


def read_pid(path: Path) -> int:
    """The process number that somebody writes to this file, once it is there."""
    wait_until(lambda: path.exists() and path.read_text().endswith("\n"))
    return int(path.read_text())
