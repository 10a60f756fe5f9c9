"""The run's folder at another place, and its mirror at home: the same names, so that all who read a
run find them here.

Rule 1: what managers write goes out (job files, fences, what was abandoned, what has arrived), what
agents write comes back (claims, events, what was printed), each file as far as it is not known; all
of it in one round trip.
Rule 2: the mirror only grows by what follows what it has. Whatever is lost on the way is asked for
again.
Rule 3: a job's file, and every fence, are there before a job is submitted there; what agents had
written by then is here before the queue's word on jobs counts.
"""

import base64
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from windrow.agent.folder import RunFolder
from windrow.errors import OutsideError
from windrow.files import append_whole, disk_faults
from windrow.queues.port import Queue, QueueError

Ask = Callable[[dict[str, Any]], dict[str, Any]]
"""One request to the porter there (`agent.porter`). QueueError if there is no answer."""
_ALL_EVERY = 8
_SKEW_S = 2.0


@dataclass
class Mirror:
    """One place with files of its own. `jobs` says which are of interest now."""

    name: str
    folder: RunFolder
    ask: Ask
    there: str = ""
    """The path of the run's folder at the place itself."""
    agent: tuple[str, ...] = ()
    """What runs a module of the agent there."""
    jobs: Callable[[], Collection[int]] = lambda: ()
    trouble: str = ""
    """Why it could not be reached, while that lasts."""
    skew_s: float = 0.0
    """How far its clock is ahead of ours, as far as it matters."""
    _sent: dict[str, tuple[int, int]] = field(default_factory=dict)
    _looks: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _thread: ThreadPoolExecutor | None = None
    _looking: Future[None] | None = None

    def begin(self, out: Path) -> None:
        """Make the mirror; what tasks print there is found where that of all others is."""
        with disk_faults(f"{self.folder.path} cannot be created"):
            self.folder.jobs.mkdir(mode=0o700, parents=True, exist_ok=True)
            out.mkdir(mode=0o700, exist_ok=True)
            if not self.folder.out.is_symlink():
                self.folder.out.symlink_to(os.path.relpath(out, self.folder.path))

    def look(self) -> None:
        """Start an exchange, unless one is under way; the caller does not wait for it."""
        self._thread = self._thread or ThreadPoolExecutor(1)
        if self._looking is None or self._looking.done():
            self._looking = self._thread.submit(self._try)

    def _try(self) -> None:
        with suppress(QueueError, OutsideError):  # it is in `trouble`, and there is another look
            self.exchange()

    def exchange(self, *, everything: bool = False) -> None:
        """Send what is new here, get what is new there. QueueError if it cannot be reached, or
        has no room."""
        with self._lock:
            more = True
            while more:
                self._looks += 1
                sending = dict(self._outgoing())
                jobs = sorted(self.jobs())
                wide = everything or self._looks % _ALL_EVERY == 1
                request = {"jobs": jobs, "all": wide, "known": dict(self._known(jobs, wide=wide))}
                request |= {"put": {name: text for name, (text, _) in sending.items()}}
                begun_s = time.time()
                try:
                    reply = self.ask(request)
                except (QueueError, OutsideError) as error:
                    self.trouble = str(error)
                    raise
                skew_s = reply["now"] - (begun_s + time.time()) / 2
                if abs(skew_s) > _SKEW_S:
                    self.skew_s = skew_s
                else:
                    self.skew_s = 0.0
                self._sent |= {name: stamp for name, (_, stamp) in sending.items()}
                for name, begin, data in reply["files"]:
                    self._append(name, begin, base64.b64decode(data))
                self.trouble = ""
                more = reply["more"]

    def remove(self) -> None:
        """Remove the folder there. QueueError if that cannot be done now."""
        with self._lock:
            if self.ask({"remove": True})["left"]:
                raise QueueError("the folder of the run there cannot be removed")

    def close(self) -> None:
        """Let go of its thread."""
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)

    def _outgoing(self) -> Iterator[tuple[str, tuple[str, tuple[int, int]]]]:
        """Files that the manager has written or changed since they were last sent."""
        folder = self.folder
        jobs = self.jobs()
        paths = [folder.job_file(number) for number in jobs] + [
            folder.over(number) for number in folder.numbers()
        ]
        for path in (*paths, folder.abandoned, folder.arrived):
            name = str(path.relative_to(folder.path))
            try:
                found = path.stat()
                stamp = found.st_mtime_ns, found.st_size
                if self._sent.get(name) != stamp:
                    yield name, (path.read_text(), stamp)
            except FileNotFoundError:
                continue

    def _known(self, jobs: Collection[int], *, wide: bool) -> Iterator[tuple[str, int]]:
        base = self.folder.path
        paths = [
            self.folder.jobs / str(number) / part
            for number in jobs
            for part in ("claim", "events", "output")
        ]
        if wide:
            paths += [*base.glob("out/*"), *base.glob("commits/*")]
        yield from (
            (str(path.relative_to(base)), path.stat().st_size) for path in paths if path.exists()
        )

    def _append(self, name: str, begin: int, data: bytes) -> None:
        path = self.folder.path / name
        with disk_faults(f"{path} cannot be written"):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                if begin <= (size := os.fstat(descriptor).st_size) < begin + len(data):
                    append_whole(descriptor, data[size - begin :], size)
            finally:
                os.close(descriptor)


def through(mirror: Mirror, queue: Queue) -> dict[str, Callable[..., Any]]:
    """The calls of a queue at such a place, each with the exchange that must come before or after
    it (rule 3)."""

    def after(name: str) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            mirror.exchange()
            return getattr(queue, name)(*args)

        return call

    def status(ids: Collection[str]) -> Any:
        found = queue.status(ids)
        if any(one.state.is_over for one in found.values()) or len(found) < len(ids):
            mirror.exchange()
        return found

    return {**{name: after(name) for name in ("submit", "submit_array", "find")}, "status": status}
