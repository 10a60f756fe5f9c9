"""`python -m windrow.agent.data.carrier`: the process that moves bytes on a node, beside the one
that runs its tasks.

There is one where a job has node-local data, and none elsewhere. It alone moves bytes, so the agent
never waits for a disk; it has threads, and nothing else of the agent has. To the agent it is a
`Carrier`.

Law: whatever is copied comes into place once, whole: it is written under a hidden name in the
target's folder, and renamed. A copy that fails leaves nothing there. *Staging* copies to the node,
through the view of its tasks; *committing* copies from there to the shared file system, into the
hidden folder of the attempt that made it, from which `outputs` brings it into place. Both are
copies from a source to a target. A source is a path; or, with `shared:` before it, a path or an
address that the node's mover brings (`sharing`), to which the target is then a link. Without a
target it is removed.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from windrow.agent.job_file import tuples
from windrow.agent.outputs import size_of
from windrow.agent.piped import Piped
from windrow.agent.travel import here
from windrow.deletion import discard_tree, put
from windrow.errors import WindrowError
from windrow.files import patiently

if TYPE_CHECKING:
    from windrow.agent.data.sharing import Mover

THREADS = 4
SHARED = "shared:"
_NO_TIMES = (
    errno.EPERM,
    errno.ENOTSUP,
    errno.ENOSYS,
)  # of file systems that keep no modes or times
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS)
_movers: list[Mover] = []  # of this process: one or none
_numbers = count()


class Copied(NamedTuple):
    """What came of a request. `why`: the error, empty if all is there; `errno` its number, if
    it has one.

    `from_nodes`: of the bytes, those that came from other nodes. `wrong`: who gave bytes that were
    not those of the home and were fetched again, and how many.
    """

    why: str = ""
    errno: int = 0
    size_bytes: int = 0
    took_s: float = 0.0
    from_nodes: int = 0
    wrong: tuple[tuple[str, int], ...] = ()


class Share(NamedTuple):
    """What a mover has to know. `folder`: for what it brings, not there yet; one path on all nodes
    for `sbcast`.

    `home` is the run's folder, `run` what the run is called among movers. `over`, `over_below`: as
    in a `JobFile`.
    """

    how: str
    run: str
    home: str
    job: int
    place: int
    nodes: int
    facing: str
    folder: str
    sources: tuple[str, ...]
    over: tuple[int, ...] = ()
    over_below: int = 0


Then = Callable[[Copied], None]


class Carrier:
    """The carrier of this node, as the agent's single thread sees it. OSError if it cannot be
    started."""

    def __init__(self) -> None:
        self._process = Piped(here("data.carrier"))
        self.fd = self._process.fd
        """Readable when there is an answer; then `collect`."""
        self._asked: dict[int, Then] = {}
        self.said: list[Any] = []
        """What its mover said to those of other nodes, and was not passed on yet."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way."""
        return not self._asked

    def copy(self, files: Iterable[tuple[str, str]], then: Then) -> None:
        """Copy these, each from its source to its target; `then` hears of it within a later
        `collect`."""
        number = next(_numbers)
        self._asked[number] = then
        self.say({"id": number, "files": list(files)})

    def say(self, record: dict[str, Any]) -> None:
        """Also `share`: let it have a mover; `place` and `what`: what the mover of that node
        said."""
        self._process.send(json.dumps(record).encode() + b"\n")

    def collect(self) -> None:
        """Take in the answers. If the carrier is gone, all that was asked of it has failed."""
        for record in self._process.read():
            if "tell" in record:
                self.said.append(record["tell"])
            else:
                self._asked.pop(record.pop("id"))(Copied(**record))
        if self._process.is_lost:
            asked = self._asked
            self._asked = {}
            for then in asked.values():
                then(Copied("the process that copies files has ended", errno.EIO))

    def close(self) -> None:
        """Let it go; what is under way is dropped."""
        self._process.close()


def main() -> int:
    """Serve until the input ends."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  (the agent, which asks, has no threads)

    saying = threading.Lock()

    def say(record: dict[str, Any]) -> None:
        with saying:
            sys.stdout.write(json.dumps(record) + "\n")
            sys.stdout.flush()

    def serve(number: int, files: Sequence[Sequence[str]]) -> None:
        say({"id": number, **copied([(source, target) for source, target in files])._asdict()})

    with ThreadPoolExecutor(THREADS) as pool:
        for line in sys.stdin.buffer:
            record = json.loads(line)
            if "share" in record:
                from windrow.agent.data.sharing import begin  # noqa: PLC0415  (few jobs share)

                _movers.extend(
                    begin(Share(*map(tuples, record["share"])), lambda what: say({"tell": what}))
                )
            elif "place" in record:
                for mover in _movers:
                    mover.hear(record["place"], record["what"])
            else:
                pool.submit(serve, record["id"], record["files"])
        os._exit(0)  # who asked is gone, and what is half copied is thrown away by who comes next


def copied(files: Iterable[tuple[str, str]]) -> Copied:
    """Copy these one after the other, here and now, up to the first that fails."""
    begun = time.monotonic()
    size_bytes = 0
    from_nodes = 0
    wrong: list[tuple[str, int]] = []
    try:
        for source, target in files:
            size_bytes += patiently(partial(_copy, source, target))
            if source.startswith(SHARED) and os.path.islink(target):
                from_nodes += _movers[0].from_nodes(source[len(SHARED) :])
                wrong += _movers[0].wrong(source[len(SHARED) :]).items()
    except (OSError, ValueError, WindrowError) as error:
        name = getattr(error, "filename", None)
        why = f"{name}: {error.strerror}" if isinstance(error, OSError) and name else str(error)
        return Copied(why, getattr(error, "errno", None) or 0, size_bytes, time.monotonic() - begun)
    return Copied("", 0, size_bytes, round(time.monotonic() - begun, 6), from_nodes, tuple(wrong))


def _copy(source: str, target: str) -> int:
    if not target:
        discard_tree(source)
        return 0
    folder, _, base = target.rpartition("/")
    os.makedirs(folder, exist_ok=True)
    part = f"{folder}/.windrow-{os.getpid()}-{next(_numbers)}.part"
    try:
        if source.startswith(SHARED) and _movers:
            where = _movers[0].bring(source[len(SHARED) :])
        else:
            where = None
        if source.startswith(SHARED):
            source = source[len(SHARED) :]
        if where is not None:
            os.symlink(where, part)
        else:
            _copy_all(source, part, os.stat(source).st_mode)
        if os.path.isdir(part) and os.path.lexists(target):
            discard_tree(target)
        put(part, f"{folder}/{base}")
    except BaseException:  # an interrupt too: no partial file may stay
        discard_tree(part)
        raise
    return size_of(target)


def _copy_all(source: str, target: str, mode: int) -> None:
    """A file, or a folder with all that is in it; links in it stay links. OSError names what cannot
    be copied."""
    if stat.S_ISLNK(mode):
        return _copy_link(source, target)
    if stat.S_ISDIR(mode):
        os.mkdir(target, 0o700)
        for name in os.listdir(source):
            inside = f"{source}/{name}"
            _copy_all(inside, f"{target}/{name}", os.lstat(inside).st_mode)
    elif stat.S_ISREG(mode):
        shutil.copyfile(source, target)
    else:
        if stat.S_ISFIFO(mode):
            kind = "a named pipe"
        elif stat.S_ISSOCK(mode):
            kind = "a socket"
        else:
            kind = "a device"
        raise OSError(errno.EOPNOTSUPP, f"{kind} cannot be copied", source)
    try:
        shutil.copystat(source, target)
    except OSError as error:
        if error.errno not in _NO_TIMES:
            raise
    return None


def _copy_link(source: str, target: str) -> None:
    """The link itself. What it leads to may be missing or belong to others, so its times are not
    copied."""
    try:
        os.symlink(os.readlink(source), target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        raise OSError(error.errno, "its file system has no symbolic links", source) from error


if __name__ == "__main__":
    sys.exit(main())
