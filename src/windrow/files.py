"""What several processes do with files at the same time, in the few ways in which it is safe.
Standard library only.

Made once: of all who try, one makes the file. Replaced: a reader finds the old content or the new,
never a part of it. Appended: a line is there whole or not at all. Held: one process at a time. And
marked processes: those that carry some variables in its environment passes them on to what it
starts, so that all of it can be found, and killed.

OSError if the disk refuses; what that means is for the caller to say, with `disk_faults` for
one.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import signal
import time
from collections.abc import Callable, Collection, Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from windrow.deletion import discard, put
from windrow.errors import OutsideError

_PROCESSES = Path("/proc")
_WRITE_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC

NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
PASSING = (errno.EINTR, errno.EAGAIN, errno.ECONNABORTED)
"""What file systems across a network say now and then, and not when they are asked again."""
_OF_DISK = (
    *NO_SPACE,
    *PASSING,
    errno.EIO,
    errno.ESTALE,
    errno.ETIMEDOUT,
    errno.ENOTCONN,
    errno.ESHUTDOWN,
)
_PAUSES_S = (0.02, 0.1, 0.5)

T = TypeVar("T")

watcher: Callable[[object], None] | None = None
"""For the virtual world: hears of each place at which files are about to change, and may refuse
as a disk does (OSError)."""


stumbler: Callable[[], None] | None = None
"""For the virtual world: hears of each try of what is done patiently, and may refuse for a moment
(OSError)."""


sync_watcher: Callable[[int], None] | None = None
"""For the virtual world: hears of each file and folder that lasts from now on (descriptors)."""


def about_to_write(what: object) -> None:
    """This is about to change on disk."""
    if watcher is not None:
        watcher(what)


def sync(descriptor: int) -> None:
    """Make what was written to this file, or the names in this folder, last through a crash of the
    machine."""
    os.fsync(descriptor)
    if sync_watcher is not None:
        sync_watcher(descriptor)


@lru_cache(maxsize=1024)
def joined(folder: str | Path, *names: str) -> Path:
    """A path in a folder. The same are asked for again and again, and to make one takes time."""
    return Path(folder, *names)


class Inside:
    """A file or folder of a fixed name, as an attribute of whatever has a `path`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, owner: Any, _kind: type[Any] | None = None) -> Path:
        return joined(owner.path, self._name)


_LOCAL = frozenset(
    (
        *(
            "btrfs",
            "ext2",
            "ext3",
            "ext4",
            "f2fs",
            "jfs",
            "overlay",
            "ramfs",
            "reiserfs",
            "tmpfs",
            "xfs",
            "zfs",
        ),
        *("exfat", "fuse.fuse-overlayfs", "fuseblk", "vfat"),
    )
)
_MOUNTS = Path("/proc/self/mountinfo")


def file_system(path: str | os.PathLike[str], mounts: Path = _MOUNTS) -> str:
    """What the kernel calls the kind of file system on which this is; empty if that is
    unknown."""
    place = os.path.realpath(path)
    found = ("", "")
    try:
        lines = os.fsdecode(mounts.read_bytes()).splitlines()
    except OSError:  # no Linux
        return ""
    for line in lines:
        before, _, after = line.partition(" - ")
        mount = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), before.split()[4])
        is_below = mount in (place, "/") or place.startswith(f"{mount}/")
        if is_below and len(mount) >= len(
            found[0]
        ):  # of several at the same place the last one counts
            found = mount, after.split()[0]
    return found[1]


def is_shared(path: str | os.PathLike[str], mounts: Path = _MOUNTS) -> bool:
    """Whether other machines may write there, and what they write may be seen here late (NFS,
    Lustre, FUSE, ...)."""
    return file_system(path, mounts) not in (_LOCAL | {""})


@cache
def table_beside(module: str) -> dict[str, Any]:
    """The table of data that belongs to the module in this file: the TOML of the same name beside
    it."""
    import tomllib  # noqa: PLC0415  (agents need no tables)

    return tomllib.loads(Path(module).with_suffix(".toml").read_text(encoding="utf-8"))


def is_of_disk(number: int | None) -> bool:
    """Whether an error of this number is not a program's fault: a full disk, or one whose server
    does not answer."""
    return number in _OF_DISK


def _tried(do: Callable[[], T]) -> T:
    if stumbler is not None:
        stumbler()
    return do()


def patiently(do: Callable[[], T]) -> T:
    """Do it; after an error that passes by itself try it again, a few times. It must not matter if
    it is done twice."""
    for pause_s in _PAUSES_S:
        try:
            return _tried(do)
        except OSError as error:
            if error.errno not in PASSING:
                raise
        time.sleep(pause_s)
    return _tried(do)


@contextlib.contextmanager
def disk_faults(what: str) -> Iterator[None]:
    """OutsideError, with these words before the system's, if the disk refuses what is done
    inside the `with`."""
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
        sync(descriptor)
    finally:
        os.close(descriptor)
    return True


@contextlib.contextmanager
def draft_beside(path: Path) -> Iterator[Path]:
    """A name beside the file's, for what is to take its place. What is left there in the end is
    removed."""
    draft = path.with_name(f".{path.name}.{os.urandom(4).hex()}.part")
    try:
        yield draft
    finally:
        discard(draft)


def link_once(draft: Path, path: Path) -> bool:
    """Give what is whole under another name this one, too. False if it is taken.

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
                sync(file.fileno())
        put(draft, path)


def free_bytes(folder: Path) -> int | None:
    """What a user may still write to the file system of this folder; None if it does not say."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return None
    return found.f_bavail * found.f_frsize


def sync_folder(folder: Path) -> None:
    """Make the names in a folder last through a crash of the machine."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        sync(descriptor)
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
        with contextlib.suppress(
            OSError
        ):  # if not even this is allowed, readers skip the torn line
            os.ftruncate(descriptor, size)
        raise


def append_lines(path: Path, lines: Collection[str]) -> None:
    """Append these lines to a file, which is made if it is missing, and see that they last.
    OutsideError."""
    with disk_faults(f"{path} cannot be written"):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            append_whole(
                descriptor,
                "".join(f"{line}\n" for line in lines).encode(),
                os.fstat(descriptor).st_size,
            )
            sync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """One process at a time: wait until no other process holds this file, which is made if it is
    missing."""
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
