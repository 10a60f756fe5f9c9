"""A guardian, so that no task outlives its agent, even one killed with kill -9.

The process that the queue starts forks: the child works, the parent guards. Both are reapers of
their descendants: an orphan becomes a child of the next of the two that lives, whatever group or
session it made for itself, and is killed when that one ends. So when the child dies, the parent
kills what it left. The child asks the kernel for SIGTERM when the parent dies, and is in a session
of its own, so that a kill -9 of the parent, or of its whole group, makes the child stop in good
order.

Only both killed within the same instant leave tasks behind; if that happens (the end of a Slurm
job) the queue kills the tasks too.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from windrow.deletion import discard, discard_tree

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PATIENCE_S = 20.0
_telling = -1  # what is to be removed in the end is written here


def remove_in_the_end(folder: str) -> None:
    """Let this folder be removed when all processes of the work are gone, however they go."""
    if _telling >= 0:
        os.write(_telling, os.fsencode(folder) + b"\0")


def guarded(work: Callable[[], int]) -> int:
    """Do the work in a child process, then kill what it left behind. Returns its exit code."""
    global _telling  # there is one work in a process
    told, _telling = os.pipe()
    os.set_blocking(told, False)
    try:
        return _guarded(work)
    finally:
        with contextlib.suppress(BlockingIOError):
            for folder in os.read(told, 1 << 16).split(b"\0")[:-1]:
                with contextlib.suppress(OSError, ValueError):
                    (discard_tree if os.path.isdir(folder) else discard)(os.fsdecode(folder))  # noqa: PTH112


def adopt_orphans() -> bool:
    """Be the parent of descendants whose own has ended; whether this system can do that."""
    if sys.platform != "linux":
        return False
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    return True


def _guarded(work: Callable[[], int]) -> int:
    if not adopt_orphans():  # no such services there; the work is then unguarded
        return work()
    stops = {signal.SIGTERM, signal.SIGINT, signal.SIGUSR1}
    signal.pthread_sigmask(
        signal.SIG_BLOCK, stops
    )  # until each of the two can deal with them; see Wake
    guardian = os.getpid()
    child = os.fork()
    if child == 0:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        os.setsid()
        if os.getppid() != guardian:  # it died before we asked to be told
            os._exit(1)
        adopt_orphans()
        code = work()
        _kill_orphans()
        return code
    for number in stops:
        signal.signal(number, lambda got, _frame: os.kill(child, got))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, stops)
    _, status = os.waitpid(child, 0)
    for number in stops:
        signal.signal(number, signal.SIG_IGN)
    _kill_orphans()
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        print(f"the agent was killed by signal {-code}; its tasks were killed too", file=sys.stderr)
    if code >= 0:
        return code
    return 128 - code


def _kill_orphans() -> None:
    """Kill and reap all children until there are none; those of the killed become ours in turn."""
    end = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            for entry in Path("/proc").iterdir():
                if entry.name.isdigit() and _parent(entry) == os.getpid():
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(int(entry.name), signal.SIGKILL)
            time.sleep(0.01)


def _parent(entry: Path) -> int:
    try:
        status = (entry / "stat").read_bytes()
    except OSError:  # gone since it was listed
        return 0
    # The name, in parentheses, may have anything in it; after it come the state and the parent.
    return int(status[status.rfind(b")") + 2 :].split()[1])


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
