"""The outputs of one attempt, from before its start to after its end.

Rule 1: what is at an output's path when the attempt has succeeded was made by it; when it has not,
it is what was there before. Half a file stays nowhere.
Rule 2: if the command may write elsewhere (`Order.elsewhere`), each attempt writes into a hidden
folder beside its outputs, `counts/.windrow-emma.txt.1/emma.txt`, under the same base name. What it
leaves there comes into place when it has succeeded, undeclared files too.
Rule 3: else what is there is set aside before the start, as `counts/.emma.txt.windrow-old`; a link
to nowhere stands for nothing. While that is there, the output beside it is unfinished: a process
that finds it without a live attempt throws the output away and puts the old one back. So a crash at
any point is repaired by the next attempt, or by `clean_up`. If other jobs may run the task at
the same time (`Order.commit`), an attempt only writes into its own folder until it has the claim on
the outputs (`claim`); it throws away what earlier attempts left when it has.
Rule 4: devices and their like, folders in which others write too, and what the task also reads,
stay where they are.

Each operation on a file is one that network file systems do whole or not at all: rename, link,
remove.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from windrow.agent import claim
from windrow.agent.made import Made
from windrow.agent.order import Order
from windrow.deletion import (
    discard,
    discard_empty,
    discard_tree,
    discard_unfinished,
    move,
    put,
)
from windrow.files import PASSING, about_to_write, patiently

_NOTHING = "windrow: there was nothing here"
_PLAIN = re.compile(
    r"[A-Za-z0-9_.-]{1,200}"
)  # means nothing to any shell, and leaves room for more in a name
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS)
_COARSE_S = 2.0  # file times of network file systems may be as coarse


class Outputs:
    """What one attempt makes. Nothing is touched before `prepare`; then comes either `keep` or
    `discard`."""

    def __init__(self, order: Order, paths: Iterable[str] = ()) -> None:
        """`paths`: only these of them."""
        self.paths = tuple(dict.fromkeys(paths or order.outputs))
        self._order = order
        self._written = {path: path for path in self.paths}
        self._hidden: list[str] = []
        self._aside: list[str] = []
        self._before: dict[str, tuple[int, ...] | None] = {}  # of what stays where it is
        self._older: set[str] = set()
        self._has_claim = False

    @property
    def written(self) -> tuple[str, ...]:
        """Where the command writes them."""
        return tuple(self._written.values())

    @property
    def places(self) -> Mapping[str, str]:
        """Where the command writes each."""
        return self._written

    def _make_room(self, fixed: Collection[str]) -> None:
        """Put aside what is there, but at places that are `fixed`."""
        for path in self.paths:
            if path in fixed:
                self._before[path] = _look(path)
                Path(path).parent.mkdir(parents=True, exist_ok=True)
            else:
                self._aside.append(path)
                if _set_aside(path):
                    self._older.add(path)

    def prepare(self) -> tuple[str, ...]:
        """Make room. The command as it is to be started. OSError if there cannot be room; then
        nothing has changed."""
        order = self._order
        try:
            about_to_write(order.out)
            if order.attempt > 1 and not order.commit:
                _all(discard_tree, map(_gone_name, self.paths))
            fixed = _fixed(order)
            if order.elsewhere and not fixed:
                return self.go_elsewhere()
            if order.commit:
                raise OSError(
                    errno.EBUSY,
                    "several jobs run it, and it cannot be written elsewhere first",
                    fixed[0],
                )
            self._make_room(fixed)
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError):
                self.discard()
            raise
        return order.command

    def why_not_made(self, missing: str | None) -> str:
        """Why the attempt has not made its outputs, although it said so. `missing`: one that was
        waited for."""
        for path, written in self._written.items():
            if written == missing:
                if path in self._older or (self._hidden and os.path.lexists(path)):
                    return (
                        f"its output {path} was not created (an older {path} exists and was "
                        "left unchanged)"
                    )
                return f"its output {path} is missing"
        for path, before in self._before.items():
            if before is not None and before == _look(path):
                return f"its output {path}, which existed before, was not changed"
        return ""

    @property
    def is_beaten(self) -> bool:
        """Whether another job has the claim on the outputs."""
        commit = self._order.commit
        return (
            bool(commit) and os.path.exists(commit) and claim.holder(commit) != self._order.holder
        )

    def may_keep(self) -> bool:
        """Claim the outputs for this attempt, which has succeeded, if other jobs may. False: it
        came too late."""
        order = self._order
        if order.commit and not claim.commit(order.commit, order.holder):
            return False
        if order.commit:
            self._has_claim = True
            self._clear_earlier()
            _all(discard_tree, map(_gone_name, self.paths))
        return True

    def keep(self) -> list[str]:
        """The attempt has succeeded: all its outputs come into place. OSError if they cannot; then
        `discard` it.

        Returned: what its user should know.
        """
        about_to_write(self.paths)
        made = Made.beside(self._order.out)
        self._note(made)
        known = set(self._written.values())
        for folder in self._hidden:
            # Also what was left there without naming it: an index, a log.
            for name in patiently(partial(os.listdir, folder)):
                if (left := f"{folder}/{name}") not in known:
                    patiently(partial(_merge, left, f"{os.path.dirname(folder)}/{name}", made))
        if self._hidden and not self._kept_at_once(made):
            for path in self.paths:
                self._aside.append(path)
                patiently(partial(_set_aside, path))
            for path, written in self._written.items():
                patiently(partial(_put, written, path))
                patiently(partial(os.stat, path))  # a link may lead to another place from here
        for path in self._aside:
            patiently(partial(_forget, path, made))
        self._aside = []
        with contextlib.suppress(OSError):
            for folder in self._hidden:
                discard_empty(folder)
        return made.notes

    def _note(self, made: Made) -> None:
        """Record what this attempt made. What stays where it is was there before."""
        temporary = self._order.temporary
        mine = {path: file for path, file in self._written.items() if path not in self._before}
        made.note(*(file for path, file in mine.items() if path not in temporary))
        made.note(
            *(file for path, file in self._written.items() if path in temporary), lasting=True
        )

    def sizes(self) -> tuple[int, ...]:
        """Bytes of what is in place, output by output; of a folder, of all that is in it. 0 if
        that is unknown."""
        return tuple(map(size_of, self.paths))

    def discard(self) -> None:
        """The attempt has failed, or is lost: nothing of it stays. OSError if something does; the
        next one tries."""
        try:
            _all(_put_back, self._aside)
            _all(discard_tree, self._hidden)
        finally:
            if self._has_claim:
                self._has_claim = False
                discard(self._order.commit)

    @property
    def _named(self) -> dict[str, str]:
        """What the folders of attempts are called, for each folder of these outputs."""
        folders = {path.rpartition("/")[0] for path in self.paths}
        return {
            folder: name
            for folder, name in hidden_names(self._order.outputs).items()
            if folder in folders
        }

    def _clear_earlier(self) -> None:
        """Throw away what earlier attempts left, and put back what they had set aside."""
        for folder, name in self._named.items():
            for earlier in range(1, self._order.attempt):
                discard_tree(f"{folder}/{name}.{earlier}")
        for path in self.paths:
            _put_back(path)

    def go_elsewhere(self) -> tuple[str, ...]:
        """Make the hidden folders. The command that writes into them."""
        attempt = self._order.attempt
        named = self._named
        if not self._order.commit:
            self._clear_earlier()
        for folder, name in named.items():
            self._hidden.append(_fresh(f"{folder}/{name}.{attempt}"))
        for path in self.paths:
            folder, _, base = path.rpartition("/")
            self._written[path] = f"{folder}/{named[folder]}.{attempt}/{base}"
        return self._command_elsewhere()

    def _command_elsewhere(self) -> tuple[str, ...]:
        order = self._order
        command = list(order.command)
        for at, place, output in sorted(order.elsewhere, reverse=True):
            # from the end: what comes later moves nothing
            name = self._named.get(order.outputs[output].rpartition("/")[0], "")
            command[at] = f"{command[at][:place]}{name}.{order.attempt}/{command[at][place:]}"
        return tuple(command)

    def _kept_at_once(self, made: Made) -> bool:
        """Rename a single file: that replaces what a run made there in one step."""
        ((path, written), *more) = self._written.items()
        if (
            more
            or os.path.isdir(path)
            or not stat.S_ISREG(patiently(partial(os.lstat, written)).st_mode)
            or not made.may_replace(path)
        ):
            return False
        patiently(partial(_put, written, path))
        return True


def _put(source: str, target: str) -> None:
    """Fine if it was done and its answer was lost."""
    try:
        put(source, target)
    except OSError as error:
        if error.errno not in PASSING or os.path.lexists(source) or not os.path.lexists(target):
            raise


def may_be_copied(order: Order) -> bool:
    """Whether several jobs may run this task at the same time: all that it writes can be kept apart
    until one wins."""
    return (
        bool(order.outputs and order.elsewhere) and not order.has_checkpoints and not _fixed(order)
    )


def _fixed(order: Order) -> list[str]:
    """Outputs that must not be moved: neither file nor folder, or holding what is not one attempt's
    alone."""
    held = {order.workdir, *order.inputs, *order.shared}
    held |= _folders_above((order.out, *held))
    paths = dict.fromkeys(order.outputs)
    return [
        path
        for path in paths
        if path in held or os.path.normpath(path) in held or _is_odd(path, order)
    ]


def clean_up(outputs: Sequence[str], attempts: int, *, is_done: bool = False) -> None:
    """Throw away what a task left that was started so often and whose outputs are not to be touched
    if it `is_done`.

    OSError if something stays.
    """
    for folder, name in hidden_names(outputs).items():
        _all(discard_tree, [f"{folder}/{name}.{attempt}" for attempt in range(1, attempts + 1)])
    if is_done:
        return
    _all(_put_back, outputs)
    _all(discard_tree, map(_gone_name, outputs))


def aside_name(path: str) -> str:
    """Where what was there before an attempt is in the meantime."""
    folder, _, base = path.rpartition("/")
    fits = len(os.fsencode(base)) <= 200
    return f"{folder}/.{base if fits else _digest(base)}.windrow-old"


def _gone_name(path: str) -> str:
    return f"{aside_name(path)}.gone"


def hidden_names(outputs: Iterable[str]) -> dict[str, str]:
    """For each folder of outputs: what the folders of attempts in it are called, but for the
    attempt's number.

    After the first output there: no other task makes it. Only characters that mean nothing to a
    shell.
    """
    first: dict[str, str] = {}
    for path in outputs:
        folder, _, base = path.rpartition("/")
        first.setdefault(folder, f".windrow-{base if _PLAIN.fullmatch(base) else _digest(base)}")
    return first


def _digest(text: str) -> str:
    return hashlib.sha256(os.fsencode(text)).hexdigest()[:16]


def shared(outputs: Iterable[str]) -> frozenset[str]:
    """Those of a run's outputs that are folders in which others of its outputs lie: no one task
    makes them."""
    names = frozenset(outputs)
    return names & _folders_above(names)


def _folders_above(paths: Iterable[str]) -> set[str]:
    """All folders in which these lie, however deep."""
    found: set[str] = set()
    for path in paths:
        folder = os.path.dirname(path)
        while folder and folder not in found:
            found.add(folder)
            folder = os.path.dirname(folder)
    return found


def _is_odd(path: str, order: Order) -> bool:
    try:
        mode = os.stat(path).st_mode
    except OSError:  # nothing, or a link to nothing; or the next operation says it
        return False
    if not stat.S_ISDIR(mode):
        return not stat.S_ISREG(mode)
    inside = os.path.join(os.path.realpath(path), "")  # links may lead to where we are
    return any(
        os.path.join(os.path.realpath(place), "").startswith(inside)
        for place in (order.workdir, order.out)
    )


def _look(path: str) -> tuple[int, ...] | None:
    """What changes when the file does. None if that is unknown: what was not there, folders,
    fresh files."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode) or abs(time.time() - found.st_mtime) < _COARSE_S:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def size_of(path: str) -> int:
    """The bytes of a file, or of all that is in a folder; 0 if that cannot be seen."""
    try:
        if not os.path.isdir(path):
            return os.stat(path).st_size
        found = (os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)
        return sum(os.lstat(name).st_size for name in found)
    except OSError:
        return 0


def _set_aside(path: str) -> bool:
    """Move what is there aside; whether anything was. If an earlier attempt died, what it set aside
    stays there."""
    aside = aside_name(path)
    there, was = _set_aside_before(aside)
    if there:
        discard_unfinished(path, aside)
        return was
    try:
        move(path, aside)
    except FileNotFoundError:
        _mark_nothing(aside)
        return False
    return True


def _set_aside_before(aside: str) -> tuple[bool, bool]:
    """Whether something was set aside and not put back, and whether it is more than the mark for
    nothing."""
    try:
        return True, os.readlink(aside) != _NOTHING
    except OSError as error:
        if error.errno == errno.EINVAL:  # a file or a folder
            return True, True
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return False, False
        raise


def _mark_nothing(aside: str) -> None:
    try:
        os.symlink(_NOTHING, aside)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(aside), exist_ok=True)
        os.symlink(_NOTHING, aside)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise


def _put_back(path: str) -> None:
    """Undo `_set_aside`, and with it whatever has been written there since. Nothing if nothing
    was set aside."""
    aside = aside_name(path)
    there, was = _set_aside_before(aside)
    if not there:
        return
    discard_unfinished(path, aside)
    if was:
        move(aside, path)
    else:
        discard(aside)


def _forget(path: str, made: Made) -> None:
    """Remove what was set aside. A folder goes at once by its name, since half of one must never be
    put back.

    What no run made, or a folder with such a thing in it, is kept, under another name.
    """
    aside = aside_name(path)
    _, was = _set_aside_before(aside)
    if was and not made.may_replace(aside):
        made.out_of_the_way(aside, path)
        return
    try:
        discard(aside)
    except (IsADirectoryError, PermissionError):
        if not _is_folder(aside):
            raise
        gone = _gone_name(path)
        discard_tree(gone)
        move(aside, gone)
        with contextlib.suppress(OSError):
            discard_tree(gone)


def _fresh(folder: str) -> str:
    """An empty folder of this name."""
    try:
        os.mkdir(folder)
    except FileExistsError:
        discard_tree(folder)
        os.mkdir(folder)
    except FileNotFoundError:
        os.makedirs(folder)
    return folder


def _merge(source: str, target: str, made: Made) -> None:
    """Move it there, as if it had been written there: files that a run made are replaced, folders
    united."""
    if not (_is_folder(source) and _is_folder(target)):
        made.note(*_files_in(source))
        if not made.may_replace(target):
            made.out_of_the_way(target)
        put(source, target)
        return
    for name in os.listdir(source):
        _merge(f"{source}/{name}", f"{target}/{name}", made)
    discard_empty(source)


def _files_in(path: str) -> Iterator[str]:
    """All files in a folder, or the file that it is."""
    if not _is_folder(path):
        yield path
    for folder, _, names in os.walk(path) if _is_folder(path) else ():
        yield from (f"{folder}/{name}" for name in names)


def _is_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def delete(path: str, workdir: str, run: Path) -> str:
    """Remove an output that is not needed any more, as far as a task of the run in this folder made
    it, and nothing in which tasks run. Why it stays, if it does. OSError."""
    inside = os.path.join(os.path.realpath(path), "")
    is_held = os.path.join(os.path.realpath(workdir), "").startswith(inside)
    if is_held or Made(str(run)).discard(path):
        return ""
    return f"{path} is no longer needed, but was changed since its task made it: it stays"


def _all(do: Callable[[str], None], paths: Iterable[str]) -> None:
    """Do it with all, also if some fail; then OSError for the last of those."""
    failed: OSError | None = None
    for path in paths:
        try:
            do(path)
        except OSError as error:
            failed = error
    if failed is not None:
        raise failed
