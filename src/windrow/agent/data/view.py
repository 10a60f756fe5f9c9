"""The folder of a run as its tasks on a node see it: names as ever, what they write on the node's
own disk.

Law: with a view, a file below the run's root folder has the same name for a task, and whatever the
task writes there is on the node alone until it is committed. Files elsewhere are as they are.

If the kernel allows it a view is an overlay in a mount namespace: below it the shared folder,
above it a folder on the node's disk. A holder (`Holder`) has the namespace: a child of the agent
that does nothing but be there. Tasks enter it by `nsenter`, put before their command: no Python
starts. The agent looks into it through /proc/HOLDER/root; it never writes into the upper folder
itself, since an overlay does not see such changes, and remembers which files were not there: so
inputs are staged through the view. The run's own folder is bound over it, as it is. Else a view is
a folder of links that mirrors the root; only relative names lead there.

What the kernel allows is tried, never assumed: user namespaces are forbidden at some sites,
overlays on some disks.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
from collections.abc import Iterable, Sequence
from typing import NamedTuple, NoReturn

from windrow.agent.data.mounts import BIND, new_namespace, system_call
from windrow.deletion import discard, move

_PDEATHSIG = 1
_PATIENCE_S = 20.0


class Mount(NamedTuple):
    """One mount of a holder: of a file system of this kind, or, without one, a source bound to its
    target.

    Sources that are bound are opened before anything is mounted: so what a mount hides can be bound
    over it.
    """

    target: str
    source: str = ""
    kind: str = ""
    flags: int = 0
    data: str = ""


class Holder:
    """A process in mount (and user) namespaces of its own, with these mounts. OSError if they
    cannot be had.

    It is forked from a process with one thread, and ends with it. Only who is not root needs a user
    namespace; there users keep their ids, and see files of others as those of `nobody`.
    """

    def __init__(self, mounts: Sequence[Mount]) -> None:
        self.has_user = os.geteuid() != 0
        """Whether it has a user namespace."""
        told, telling = os.pipe()
        staying, self._stay = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._stay)
            _hold(mounts, telling, staying, has_user=self.has_user)
        os.close(telling)
        os.close(staying)
        is_told = select.select([told], [], [], _PATIENCE_S)[0]
        if is_told:
            word = os.read(told, 4096).decode(errors="replace")
        else:
            word = "mounting takes too long"
        os.close(told)
        if word != "held":
            self.close()
            raise OSError(word or "the holder of a mount namespace died")

    def inside(self, path: str) -> str:
        """Where we find what has this path there."""
        return f"/proc/{self.pid}/root{path}"

    def entering(self, workdir: str) -> tuple[str, ...]:
        """What to put before a command, so that it runs there in this folder."""
        user = ("-U", "--preserve-credentials") if self.has_user else ()
        return ("nsenter", "-t", str(self.pid), *user, "-m", f"--wd={self.inside(workdir)}", "--")

    def close(self) -> None:
        """Let it end, and with it, when the last task there has, the mounts."""
        if self._stay >= 0:
            os.close(self._stay)
            self._stay = -1
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)


def _close_all_but(*kept: int) -> None:
    """Of the files that are open here; the standard ones become empty."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):  # whose other ends would wait for us
        os.dup2(null, fd)
    for fd in set(map(int, os.listdir("/proc/self/fd"))) - {0, 1, 2, *kept}:
        with contextlib.suppress(OSError):
            os.close(fd)


def _mount_all(mounts: Sequence[Mount]) -> None:
    """What is bound is held first: a mount may hide the path of a later one."""
    fds = {mount: os.open(mount.source, os.O_PATH) for mount in mounts if not mount.kind}
    for mount in mounts:
        source = mount.source if mount.kind else f"/proc/self/fd/{fds[mount]}"
        flags = mount.flags | (0 if mount.kind else BIND)
        names = (os.fsencode(name) if name else None for name in (source, mount.target, mount.kind))
        system_call("mount", *names, flags, os.fsencode(mount.data) or None, what=mount.target)
    for fd in fds.values():
        os.close(fd)


def _hold(mounts: Sequence[Mount], telling: int, staying: int, *, has_user: bool) -> NoReturn:
    """In the child: mount, say so, and be there until the parent is not."""
    try:
        signal.set_wakeup_fd(-1)
        _close_all_but(telling, staying)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGCHLD):
            signal.signal(number, signal.SIG_IGN)
        os.setpgid(0, 0)
        os.chdir("/")
        system_call("prctl", _PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        new_namespace(with_user=has_user)
        _mount_all(mounts)
        os.write(telling, b"held")
        os.close(telling)
        os.read(staying, 1)
    except BaseException as error:  # noqa: BLE001  (a forked child: its parent reports it)
        with contextlib.suppress(OSError):
            os.write(telling, str(error).encode()[:4000])
    finally:
        os._exit(0)


class NodeView:
    """What tasks on this node see below `root`. `folder`, on the node's disk, is for what they
    write there.

    `back`: a folder that they see as it is. OSError if the disk refuses. Without a holder it is
    a folder of links: commands that name the root by its whole path would not come there, and
    cannot run in it.
    """

    def __init__(self, root: str, folder: str, back: str, *, is_plain: bool = False) -> None:
        self.root = root.rstrip("/")
        self.folder = folder
        self._back = [f"{back}/"]
        self.temporary = f"{folder}/tmp"
        """For TMPDIR of tasks."""
        for name in ("tmp", "upper", "work"):
            os.makedirs(f"{folder}/{name}", exist_ok=True)
        self.holder: Holder | None = None
        with contextlib.suppress(OSError):
            if is_plain:
                self.holder = None
            else:
                self.holder = self._overlay(back)

    def _overlay(self, back: str) -> Holder:
        """The holder of an overlay that works. OSError: there is none."""
        if (
            any(mark in name for mark in ",:\\" for name in (self.root, self.folder))
            or not self.root
        ):
            raise OSError(f"an overlay of {self.root} cannot be described to the kernel")
        layers = f"lowerdir={self.root},upperdir={self.folder}/upper,workdir={self.folder}/work"
        kept = {back, *_mounts_below(self.root)}  # what is mounted below, an overlay does not show
        kept = {path for path in kept if path.startswith(f"{self.root}/")}
        data = f"{layers}{',userxattr' if os.geteuid() else ''}"
        holder = Holder(
            [
                Mount(self.root, "overlay", "overlay", data=data),
                *(Mount(p, p) for p in sorted(kept)),
            ]
        )
        try:
            probe = holder.inside(f"{self.root}/.windrow-probe-{os.getpid()}")
            os.close(os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            move(probe, f"{probe}-2")
            discard(f"{probe}-2")
            command = (*holder.entering(self.root), "true")
            if os.waitpid(os.posix_spawnp(command[0], command, os.environ), 0)[1] != 0:
                raise OSError("nsenter cannot enter it")
        except OSError:
            holder.close()
            raise
        self._back = [f"{path}/" for path in kept]
        return holder

    def covers(self, path: str) -> bool:
        """Whether what has this path is in the view, and not as it is."""
        return path.startswith(f"{self.root}/") and not f"{path}/".startswith(tuple(self._back))

    def inside(self, path: str) -> str:
        """Where we find what has this path there; of what it does not cover, the path."""
        if path != self.root and not self.covers(path):
            return path
        if self.holder:
            return self.holder.inside(path)
        return f"{self.folder}/links{path[len(self.root) :]}"

    def can_run(self, command: Sequence[str]) -> bool:
        """Whether a command finds its files there."""
        return self.holder is not None or not any(self.root in part for part in command)

    def entering(self, workdir: str) -> tuple[str, ...]:
        """What to put before a command so that it runs there in this folder."""
        if self.holder:
            return self.holder.entering(workdir)
        return ()

    def ready(self, paths: Iterable[str]) -> None:
        """Tasks are about to read and write these: their folders are there."""
        for path in paths:
            folder = os.path.dirname(path)
            if self.holder is not None:
                os.makedirs(self.inside(folder), exist_ok=True)
            else:
                self._mirror(folder)

    def _mirror(self, shared: str) -> None:
        """A folder of our own for this shared one, with links to what is there and not here."""
        if shared != self.root:
            if not self.covers(shared):
                return
            self._mirror(os.path.dirname(shared))
        own = self.inside(shared)
        if os.path.islink(own):
            discard(own)
        os.makedirs(own, exist_ok=True)
        with contextlib.suppress(OSError):  # what is not there has nothing to link to
            for entry in set(os.listdir(shared)).difference(os.listdir(own)):
                os.symlink(f"{shared}/{entry}", f"{own}/{entry}")

    def close(self) -> None:
        """It is not needed any more."""
        if self.holder is not None:
            self.holder.close()


def _mounts_below(root: str) -> list[str]:
    with open("/proc/self/mountinfo", "rb") as file:
        names = [
            re.sub(rb"\\(\d{3})", lambda found: bytes([int(found[1], 8)]), line.split()[4])
            for line in file
        ]
    return sorted({name for name in map(os.fsdecode, names) if name.startswith(f"{root}/")})
