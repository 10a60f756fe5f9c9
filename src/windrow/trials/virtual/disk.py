"""The disk of a virtual world: a real folder, in memory if that exists, which may have no room
at any write.

Each place at which manager or agents are about to change a file (`files.about_to_write`) is heard
of here: it is where a disk may refuse, and where a process may be killed.
"""

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from windrow import files

_MEMORY = Path("/dev/shm")


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder that is gone in the end: thousands of small files are written and thrown away."""
    path = Path(tempfile.mkdtemp(prefix="windrow-", dir=_MEMORY if _MEMORY.is_dir() else None))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def watched(
    by: Callable[[object], None],
    synced: Callable[[int], None] = lambda _: None,
    tried: Callable[[], None] = lambda: None,
) -> Iterator[None]:
    """Every change on disk is about to be made with the consent of `by`; `synced` hears of what
    lasts, and `tried` of what is tried again if it fails for a moment."""
    before = files.watcher, files.sync_watcher, files.stumbler
    files.watcher = by
    files.sync_watcher = synced
    files.stumbler = tried
    try:
        yield
    finally:
        files.watcher, files.sync_watcher, files.stumbler = before


def no_room() -> OSError:
    """What a full disk says."""
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
