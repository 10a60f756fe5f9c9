"""The one module that deletes files, and that renames one over another. Standard library only.

Law: nothing goes that Windrow did not make. `discard` takes one file that its caller keeps in a
folder of Windrow's own (of a run, a queue, a cache), never a folder. For all else a caller says
why it may delete, and that is checked here: `discard_tree` takes a folder of a name that only
Windrow gives, or one with a mark in it; `discard_unfinished` what is at the place of an output
since what was there was set aside; `discard_made` what was recorded when a task had made it, and is
still the same (`Stamp`). What is deleted is looked up from a handle on the folder that has
it. Links are deleted, and never followed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple, Union

AnyPath = Union[str, "os.PathLike[str]"]
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PATH = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
_OWN = re.compile(
    r"\.windrow-.+|windrow-[0-9a-f]{12}-\d+-(\d+|shared)|\..+\.windrow-old(\.gone)?|\.new-[0-9a-f]{8}"
)
"""Names that only Windrow gives."""
_VIEW = re.compile(r"/proc/\d+/root/.")
"""Where an agent finds the files of a node's view: the shared ones below it stay as they are."""


class Stamp(NamedTuple):
    """What tells a file from any other that ever has its path; of a folder, only which it is.

    Without the number of the device: the nodes of a cluster do not agree on that of a network file
    system.
    """

    inode: int
    size_bytes: int
    changed_ns: int

    @property
    def is_folder(self) -> bool:
        """Whether it is that of a folder."""
        return self.size_bytes == _FOLDER


_FOLDER = -1


def stamp_of(found: os.stat_result) -> Stamp:
    """The stamp of what has this status."""
    if stat.S_ISDIR(found.st_mode):
        return Stamp(found.st_ino, _FOLDER, 0)
    return Stamp(found.st_ino, found.st_size, found.st_mtime_ns)


def stamp_at(path: AnyPath) -> Stamp | None:
    """The stamp of what is at the path, of a link its own; None if nothing is, or it cannot be
    seen."""
    try:
        return stamp_of(os.lstat(path))
    except (OSError, ValueError):
        return None


def is_own_name(name: str) -> bool:
    """Whether only Windrow gives such a name to a file or folder."""
    return _OWN.fullmatch(name) is not None


def is_in_view(path: AnyPath) -> bool:
    """Whether it is what a node's view shows: nothing that happens there changes the files below
    it."""
    return _VIEW.match(os.fspath(path)) is not None


def discard(path: AnyPath) -> None:
    """Delete a file of Windrow's own, never a folder; fine if there is none."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def discard_empty(folder: AnyPath) -> None:
    """Delete a folder in which nothing is; OSError if something is."""
    os.rmdir(folder)


def discard_tree(folder: AnyPath, mark: str = "", made: Stamp | None = None) -> None:
    """Delete a folder with all that is in it, or what else has its name; fine if there is none.

    It must have a name, or be in a folder of a name, that only Windrow gives; be in the view of a
    node; have an entry `mark`; or have this stamp since it was made. ValueError: it has not.
    """
    path = Path(folder)
    if (found := stamp_at(path)) is None:
        return
    if not (mark or made or any(map(is_own_name, path.parts)) or is_in_view(path)):
        raise ValueError(f"{path} is not a folder of Windrow's own")
    with _held(path.parent) as above:
        if (mark and not _has(above, path.name, mark)) or (made and found != made):
            why = f": it has no {mark}" if mark else ""
            raise ValueError(f"{path} is not a folder of Windrow's own{why}")
        _remove(above, path.name)


def discard_unfinished(path: AnyPath, aside: AnyPath) -> None:
    """Delete what was written at the place of an output since what was there was renamed to
    `aside`."""
    if stamp_at(aside) is None:
        raise ValueError(f"nothing of {path} was set aside")
    with _held(os.path.dirname(path) or ".") as above:
        _remove(above, os.path.basename(path))


def discard_made(path: AnyPath, made: Stamp, below: AnyPath = "") -> bool:
    """Delete a file that had this stamp when it was made, or an empty folder. False if another
    is there, or none.

    `below`: the folder from which the path leads, by no links.
    """
    folder, name = os.path.split(path)
    try:
        with _held(below or folder or ".") as top, _below(top, folder if below else "") as above:
            if stamp_of(os.stat(name, dir_fd=above, follow_symlinks=False)) != made:
                return False
            if made.is_folder:
                os.rmdir(name, dir_fd=above)
            else:
                os.unlink(name, dir_fd=above)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ELOOP):
            return False
        raise
    return True


def discard_known(folder: AnyPath, known: Collection[Stamp]) -> bool:
    """Delete a folder, as far as what is in it has these stamps; folders when nothing is in them
    any more. Whether it is gone."""
    with _held(os.path.dirname(folder) or ".") as above:
        return _remove_known(above, os.path.basename(folder), known)


def put(source: AnyPath, target: AnyPath) -> None:
    """Rename a file of ours to a name of which it is known that what has it may go: that goes in
    the same step."""
    os.replace(source, target)


def move(source: AnyPath, target: AnyPath) -> None:
    """Rename to a name that nothing has. FileExistsError if something has it."""
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(target))
    os.rename(source, target)


@contextlib.contextmanager
def _held(folder: AnyPath) -> Iterator[int]:
    """A handle on a folder, as the user names it."""
    descriptor = os.open(folder, _PATH)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _below(top: int, path: str) -> Iterator[int]:
    """A handle on a folder below another, to which no link leads."""
    here = os.dup(top)
    try:
        for part in filter(None, path.split("/")):
            there = os.open(part, _PATH | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = there
        yield here
    finally:
        os.close(here)


def _has(above: int, name: str, mark: str) -> bool:
    try:
        descriptor = os.open(name, _OPEN, dir_fd=above)
    except OSError:
        return False
    try:
        os.stat(mark, dir_fd=descriptor, follow_symlinks=False)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _remove(above: int, name: str) -> None:
    """Delete what has this name in a folder; fine if there is none."""
    try:
        os.unlink(name, dir_fd=above)
    except FileNotFoundError:
        return
    except (IsADirectoryError, PermissionError):  # the second is what some systems say of folders
        try:
            descriptor = _opened(above, name)
        except NotADirectoryError:
            descriptor = -1
        if descriptor < 0:
            raise
        try:
            _empty(descriptor, os.fstat(above).st_dev)
        finally:
            os.close(descriptor)
        os.rmdir(name, dir_fd=above)


def _remove_known(above: int, name: str, known: Collection[Stamp]) -> bool:
    """Delete what has this name in a folder, as far as its stamp is among these. Whether nothing
    has the name now."""
    try:
        found = stamp_of(os.stat(name, dir_fd=above, follow_symlinks=False))
        if not found.is_folder:
            if found in known:
                os.unlink(name, dir_fd=above)
            return found in known
        descriptor = _opened(above, name)
        try:
            if os.fstat(descriptor).st_dev != os.fstat(above).st_dev:
                return False
            for below in os.listdir(descriptor):
                _remove_known(descriptor, below, known)
        finally:
            os.close(descriptor)
        os.rmdir(name, dir_fd=above)
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        raise
    return True


def _opened(above: int, name: str) -> int:
    """A folder, also one that its program has closed to all."""
    try:
        return os.open(name, _OPEN, dir_fd=above)
    except PermissionError:
        descriptor = os.open(name, _PATH | os.O_NOFOLLOW, dir_fd=above)
        try:
            os.chmod(f"/proc/self/fd/{descriptor}", 0o700)
        finally:
            os.close(descriptor)
        return os.open(name, _OPEN, dir_fd=above)


def _empty(folder: int, device: int) -> None:
    """Delete all that is in a folder, but for what is mounted in it."""
    found = os.fstat(folder)
    if found.st_dev != device:
        raise OSError(errno.EXDEV, "another file system is mounted in it")
    if not found.st_mode & stat.S_IWUSR or not found.st_mode & stat.S_IXUSR:
        with contextlib.suppress(
            PermissionError
        ):  # some programs make folders in which nothing can be removed
            os.fchmod(folder, 0o700)
    for name in os.listdir(folder):
        _remove(folder, name)
