"""One manager for a run, one server for a pool: the lock, and who holds it.

The lock is the kernel's, so that it goes when its holder dies. Commands that the holder starts may
inherit it (`lend`): then it is held until they have ended, too, and a new manager cannot overtake a
submission that is still on its way.
"""

import contextlib
import fcntl
import os
import socket
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from windrow.errors import OutsideError, UserError
from windrow.files import disk_faults

_RETRY_S = 0.1
_FIX = "windrow status -f shows it, windrow cancel stops it"


class RunLock:
    """The right to manage a run, or to serve a pool, while it lives."""

    def __init__(
        self, path: Path, wait_s: float = 0.0, refusal: Callable[[str], str] | None = None
    ) -> None:
        """Take the lock, waiting for so long. UserError if someone else has it; `refusal` words
        it."""
        with disk_faults(f"{path} cannot be written"):
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        until = time.monotonic() + wait_s
        word = refusal or partial(_is_managed, path)
        while not _try(self._fd, path):
            if time.monotonic() >= until:
                holder = _name(self._fd)
                os.close(self._fd)
                raise UserError(word(holder))
            time.sleep(_RETRY_S)
        # on a full disk the lock holds, too; only its name is missing
        with contextlib.suppress(OSError):
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)

    def lend(self) -> None:
        """Let commands that this process starts hold the lock, too, until they end."""
        os.set_inheritable(self._fd, True)

    def release(self) -> None:
        """Give the lock back."""
        os.close(self._fd)


def holder_of(path: Path) -> str | None:
    """Who has the lock, in words; None if it is free."""
    try:
        descriptor = os.open(path, os.O_RDONLY)  # all who may read a run may ask
    except FileNotFoundError:
        return None
    except PermissionError:  # a colleague's, who does not let us look
        return None
    try:
        # Shared, so that those who ask at the same time do not take each other for the holder.
        if _try(descriptor, path, fcntl.LOCK_SH):
            return None
        return _name(descriptor)
    finally:
        os.close(descriptor)


def _name(descriptor: int) -> str:
    return os.pread(descriptor, 200, 0).decode(errors="replace").strip() or "another process"


def _try(descriptor: int, path: Path, kind: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:  # shared file systems may be mounted without locks
        raise OutsideError(
            f"{path} cannot be locked: {error.strerror}; start it in a folder on a file system "
            "that has locks"
        ) from error
    return True


def _is_managed(lock: Path, holder: str) -> str:
    return f"{lock.parent.name} is being managed by {holder}; {_FIX}"
