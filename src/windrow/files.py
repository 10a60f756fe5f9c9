"""What several processes do with files at the same time, in the few ways in which it is safe. Standard library only.

Made once: of all who try, one makes the file. Replaced: a reader finds the old content or the new, never a part of it.
Appended: a line is there whole or not at all. Held: one process at a time. And marked processes: those that carry some
variables in its environment passes them on to what it starts, so that all of it can be found, and killed.

OSError where the disk refuses; what that means is for the caller to say, with `disk_faults` for one.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import signal
from collections.abc import Callable, Collection, Iterator
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from windrow.errors import OutsideError

_PROCESSES = Path("/proc")
_WRITE_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC

watcher: Callable[[object], None] | None = None
"""For the lab: hears of each place at which files are about to change, and may refuse as a disk does (OSError)."""


def about_to_write(what: object) -> None:
    """This is about to change on disk."""
    if watcher is not None:
        watcher(what)


class Inside:
    """A file or folder of a fixed name, as an attribute of whatever has a `path`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, owner: Any, _kind: type[Any] | None = None) -> Path:
        return Path(owner.path, self._name)


@cache
def table_beside(module: str) -> dict[str, Any]:
    """The table of data that belongs to the module in this file: the TOML of the same name beside it."""
    import tomllib  # noqa: PLC0415  (agents need no tables)

    return tomllib.loads(Path(module).with_suffix(".toml").read_text(encoding="utf-8"))


@contextlib.contextmanager
def disk_faults(what: str) -> Iterator[None]:
    """OutsideError, with these words before the system's, where the disk refuses what is done inside the `with`."""
    try:
        yield
    except OSError as error:
        raise OutsideError(f"{what}: {error.strerror}") from error


def create_once(path: Path, content: bytes) -> bool:
    """Make the file, private, and see that it lasts. False if it already exists.

    It works on every file system; a reader may meet it before its content is there.
    """
    about_to_write(path)
    try:
        descriptor = os.open(path, _WRITE_NEW, 0o600)
    except FileExistsError:
        return False
    try:
        about_to_write(path)
        os.write(descriptor, content)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return True


@contextlib.contextmanager
def draft_beside(path: Path) -> Iterator[Path]:
    """A name beside the file's, for what is to take its place. What is left there in the end is removed."""
    draft = path.with_name(f".{path.name}.{os.urandom(4).hex()}.part")
    try:
        yield draft
    finally:
        draft.unlink(missing_ok=True)


def link_once(draft: Path, path: Path) -> bool:
    """Give what is whole under another name this one, too. False where it is taken.

    Unlike `create_once` it is never met half-written; the file system must know links.
    """
    try:
        os.link(draft, path)
    except FileExistsError:
        return False
    return True


@contextlib.contextmanager
def replacing(path: Path, mode: int = 0o600, *, lasting: bool = True) -> Iterator[BinaryIO]:
    """A stream for the file's new content, which is there, whole, when the `with` ends well.

    `lasting`: also after a crash of the machine, which takes its time.
    """
    with draft_beside(path) as draft:
        with os.fdopen(os.open(draft, _WRITE_NEW, mode), "wb") as file:
            yield file
            about_to_write(path)
            if lasting:
                file.flush()
                os.fsync(file.fileno())
        draft.replace(path)


def free_bytes(folder: Path) -> int | None:
    """What a user may still write to the file system of this folder; None where it does not say."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return None
    return found.f_bavail * found.f_frsize


def sync_folder(folder: Path) -> None:
    """Make the names in a folder last through a crash of the machine."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def append_whole(descriptor: int, data: bytes, size: int) -> None:
    """Append all of it or nothing, to a file of this size: readers stumble over half a line."""
    about_to_write(descriptor)
    try:
        written = os.write(descriptor, data)
        if written < len(data):  # the disk is nearly full; a second write has the error
            written += os.write(descriptor, data[written:])
        if written < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError:
        with contextlib.suppress(OSError):  # where not even this is allowed, readers skip the torn line
            os.ftruncate(descriptor, size)
        raise


def append_lines(path: Path, lines: Collection[str]) -> None:
    """Append these lines to a file, which is made where it is missing, and see that they last. OutsideError."""
    with disk_faults(f"{path} cannot be written"):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            append_whole(descriptor, "".join(f"{line}\n" for line in lines).encode(), os.fstat(descriptor).st_size)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """One process at a time: wait until no other process holds this file, which is made where it is missing."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def kill_marked(marks: Collection[bytes], spared: Collection[int] = ()) -> list[int]:
    """Kill every process with all of these `NAME=value` in its environment; those that were found.

    Linux only. Processes of others cannot be read, and a dead one has no environment.
    """
    found = []
    for entry in _PROCESSES.iterdir() if _PROCESSES.is_dir() else ():
        if entry.name.isdecimal() and int(entry.name) not in spared:
            with contextlib.suppress(OSError):  # gone meanwhile, or another user's
                if set(marks) <= set((entry / "environ").read_bytes().split(b"\0")):
                    found.append(int(entry.name))
                    os.kill(int(entry.name), signal.SIGKILL)
    return sorted(found)
