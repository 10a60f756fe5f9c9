"""`python -m windrow.agent.data.mounts PLAN COMMAND...`: one attempt at a task that mounts volumes.

Rule 1: a scratch volume is a folder of this attempt, with a copy of what the task before left in
it: what fails, or is killed, has changed nothing. Rule 2: at absolute paths volumes are mounted in
a mount namespace of the task's own; no other process sees them, and they are gone with it. The user
stays the same. If a path does not exist, the nearest folder above it that does is replaced by
one with the same entries and the missing one. Rule 3: extracts are copied when the command has
succeeded. Its end is ours: the same exit code, or the same signal.

All this is in the time, the process group and the output of the attempt, and needs no thread in the
agent. What goes wrong here is said in the output, in one line that begins with `windrow:`.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windrow.agent.order import Order

_NEWNS = 0x00020000
_NEWUSER = 0x10000000
_RDONLY = 1
_REMOUNT = 32
_BIND = 4096
_REC = 16384
_SLAVE = 1 << 19
BIND = _BIND | _REC  # a folder, with what is mounted in it
_DETACH = 2
_KEPT_FLAGS = (
    2 | 4 | 8 | 1024 | 2048 | (1 << 21)
)  # nosuid, nodev, noexec, noatime, nodiratime, relatime
_ENTRIES_MAX = 500
CANNOT = 125  # the exit code if volumes cannot be mounted


def command_for(order: Order, written: Mapping[str, str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """What to start for an order that mounts volumes, and variables that say where these are.

    `written`: where this attempt writes each of the order's outputs.
    """
    from windrow.agent.travel import here  # noqa: PLC0415  (the process that is started loads nothing of ours)
    from windrow.model.volume import VolumeMount  # noqa: PLC0415

    mounts = [VolumeMount(*mount) for mount in order.mounts]
    folders = {mount.volume: written.get(mount.after, mount.before) for mount in mounts}
    plan = {
        "copies": [(mount.before, folders[mount.volume]) for mount in mounts if not mount.is_cache],
        "mounts": [
            (mount.path, folders[mount.volume], mount.is_cache)
            for mount in mounts
            if mount.path.startswith("/")
        ],
        "extracts": [
            (f"{folders[volume]}/{inside}", written[output])
            for volume, inside, output in order.extracts
        ],
    }
    paths = {
        mount.variable: mount.path if mount.path[:1] == "/" else folders[mount.volume]
        for mount in mounts
    }
    program = (
        (sys.executable, "-I", "-S", __file__) if os.path.isfile(__file__) else here("data.mounts")
    )
    return (*program, json.dumps(plan), *order.command), paths


def lost_volume(order: Order, inside: Callable[[str], str] = str) -> str:
    """Which volume of the order is not there any more, in words; empty if all are. `inside`:
    where a path is."""
    for _, volume, before, after, *_ in order.mounts:
        if before and "://" not in before and not os.path.exists(inside(before)):
            return f"volume lost: {volume}, {'as kept in' if after else 'from'} {before}"
    return ""


def can_mount() -> bool:
    """Whether this machine lets us mount anything: tried in a process that ends at once."""
    if (child := os.fork()) == 0:
        with contextlib.suppress(OSError):
            new_namespace(with_user=os.geteuid() != 0)
            os._exit(0)
        os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def main(arguments: Sequence[str]) -> int:
    """Prepare, run, extract. The exit code."""
    plan = json.loads(arguments[0])
    command = tuple(arguments[1:])
    for before, folder in plan["copies"]:
        os.makedirs(folder, exist_ok=True)
        if before and (code := _copied(f"{before}/.", folder)):
            return code
    child = os.fork()
    if child == 0:
        _become(plan["mounts"], command)
    for number in (
        signal.SIGTERM,
        signal.SIGINT,
        signal.SIGHUP,
        signal.SIGQUIT,
        signal.SIGUSR1,
        signal.SIGUSR2,
    ):
        signal.signal(
            number, signal.SIG_IGN
        )  # they are meant for the command, which decides what follows
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    for source, target in plan["extracts"] if code == 0 else ():
        if not os.path.lexists(source):
            print(
                f"windrow: {source} is to be extracted, but the command did not create it",
                file=sys.stderr,
            )
            return 1
        code = code or _copied(source, target)
    return code


def _copied(source: str, target: str) -> int:
    copier = os.posix_spawnp("cp", ("cp", "-a", "--reflink=auto", "--", source, target), os.environ)
    return os.waitstatus_to_exitcode(os.waitpid(copier, 0)[1])


def _become(mounts: Sequence[tuple[str, str, bool]], command: tuple[str, ...]) -> None:
    """Mount, and execute the command; never returns."""
    code = CANNOT
    try:
        if mounts:
            _mount_all(mounts)
        code = 127
        os.execvp(command[0], command)
    except OSError as error:
        hint = ""
        if code == CANNOT:
            hint = (
                "; if nothing can be mounted, write mounts as a list, and use $WINDROW_VOLUME_NAME"
            )
        print(
            f"windrow: {error.filename or command[0]}: {error.strerror}{hint}",
            file=sys.stderr,
            flush=True,
        )
    os._exit(code)


def _mount_all(mounts: Sequence[tuple[str, str, bool]]) -> None:
    workdir = os.getcwd()
    new_namespace(with_user=os.geteuid() != 0)
    held = [
        os.open(folder, os.O_PATH) for _, folder, _ in mounts
    ]  # whatever will be mounted over them
    ours: set[int] = set()  # file systems in which we may create what we want
    root = ""
    if any(_above(path) == "/" for path, _, _ in mounts):
        root = "/tmp"  # any folder: in the end nothing of it is seen
        _replace("/", root, ours)
    for (path, _, read_only), place in zip(mounts, held):  # noqa: B905  (Python 3.9)
        there = root + path
        source = f"/proc/self/fd/{place}"
        if not os.path.lexists(there):
            _make_place(there, ours, is_folder=os.path.isdir(source))
        _mount(source, there, BIND)
        if read_only:
            _mount(
                there, there, _BIND | _REMOUNT | _RDONLY | (os.statvfs(there).f_flag & _KEPT_FLAGS)
            )
    if root:
        os.chdir(root)
        system_call("pivot_root", b".", b".")
        system_call("umount2", b".", _DETACH)
    os.chdir(workdir)


def new_namespace(*, with_user: bool) -> None:
    """Go into a new mount namespace, where mounts of others arrive, and ours stay; with the same
    user, or no other."""
    uid = os.geteuid()
    gid = os.getegid()
    system_call("unshare", _NEWNS | (_NEWUSER if with_user else 0))
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {uid} 1"),
        ("gid_map", f"{gid} {gid} 1"),
    ):
        if with_user:
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    _mount("none", "/", _REC | _SLAVE)


def _above(path: str) -> str:
    """The nearest folder above it that exists; itself if it does."""
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    return path


def _make_place(path: str, ours: set[int], *, is_folder: bool) -> None:
    """Make a path exist, in this namespace only."""
    if os.stat(above := _above(path)).st_dev not in ours:
        _replace(above, above, ours)
    os.makedirs(path if is_folder else os.path.dirname(path), exist_ok=True)
    if not is_folder:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))


def _replace(folder: str, at: str, ours: set[int]) -> None:
    """Put a folder with the same entries there, in which others can be created."""
    entries = list(os.scandir(folder))
    if len(entries) > _ENTRIES_MAX:
        raise OSError(
            0,
            "a volume cannot be mounted in it, since it has many entries: create the folder",
            folder,
        )
    held = [
        (entry, -1 if entry.is_symlink() else os.open(entry.path, os.O_PATH)) for entry in entries
    ]
    links = {entry.name: os.readlink(entry.path) for entry, place in held if place < 0}
    kinds = {entry.name: entry.is_dir() for entry in entries}
    _mount("tmpfs", at, 0, "tmpfs")
    for entry, place in held:
        there = f"{at}/{entry.name}"
        if place < 0:
            os.symlink(links[entry.name], there)
            continue
        if kinds[entry.name]:
            os.mkdir(there)
        else:
            os.close(os.open(there, os.O_CREAT | os.O_WRONLY, 0o600))
        _mount(f"/proc/self/fd/{place}", there, BIND)
        if entry.path == at:  # with what we have just put over it, which goes
            system_call("umount2", os.fsencode(there), _DETACH)
        os.close(place)
    ours.add(os.stat(at).st_dev)


def _mount(source: str, target: str, flags: int, kind: str = "") -> None:
    system_call(
        "mount",
        os.fsencode(source),
        os.fsencode(target),
        os.fsencode(kind) or None,
        flags,
        None,
        what=target,
    )


def system_call(name: str, *given: bytes | int | None, what: str = "mounts") -> None:
    """Call the system by name. OSError if it refuses."""
    libc = ctypes.CDLL(None, use_errno=True)
    if (
        getattr(libc, name)(
            *(ctypes.c_ulong(one) if isinstance(one, int) else one for one in given)
        )
        != 0
    ):
        raise OSError(number := ctypes.get_errno(), f"{name}: {os.strerror(number)}", what)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
