"""Moves files between home and a place that is reached by ssh, with rsync.

Rule 1: no caller waits: a thread for each link moves one lot at a time. Rule 2: a file is in place
when it is whole and its checksum is that of the original; what was interrupted continues where it
was. Rule 3: it tries once, and says what became of it; when to try again is for the caller to say.
"""

import re
import shlex
import subprocess
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

from windrow.data.catalogue import HOME
from windrow.queues.port import QueueError
from windrow.queues.ssh import Ssh

_OPTIONS = (
    "-rLpt",
    "--checksum",
    "--partial-dir=.windrow-part",
    "--from0",
    "--files-from=-",
    "--stats",
    "--timeout=120",
)
_GONE = re.compile(r'link_stat "(?P<path>[^"]*)" failed: No such file')
_SENT = re.compile(r"^Literal data: ([\d,.]+) bytes", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class MoveFiles:
    """These files are wanted at `to`, and are at `origin`."""

    files: tuple[str, ...]
    origin: str
    to: str

    @property
    def link(self) -> tuple[str, str]:
        """Over which link."""
        return self.origin, self.to


@dataclass(frozen=True, slots=True)
class MovedFiles:
    """What became of it. An empty `why`: all arrived. `gone`: files that are not at the origin."""

    move: MoveFiles
    size_bytes: int = 0
    took_s: float = 0.0
    why: str = ""
    gone: tuple[str, ...] = ()


class FileMover(Protocol):
    """Who moves files: `start` begins, one lot for each link at a time; `ended` tells once what
    became of each."""

    def start(self, move: MoveFiles) -> None: ...  # noqa: D102
    def ended(self) -> list[MovedFiles]: ...  # noqa: D102
    def close(self) -> None: ...  # noqa: D102


@dataclass
class Rsync:
    """Moves between `root` at home and the folder of each place, which is reached by its ssh; an
    empty host is here."""

    root: str
    places: dict[str, tuple[Ssh, str]]
    _threads: dict[tuple[str, str], ThreadPoolExecutor] = field(default_factory=dict)
    _under_way: list[Future[MovedFiles]] = field(default_factory=list)
    _processes: set[subprocess.Popen[str]] = field(default_factory=set)

    def start(self, move: MoveFiles) -> None:
        """Begin to move these, in the thread of their link."""
        thread = self._threads.setdefault(move.link, ThreadPoolExecutor(1))
        self._under_way.append(thread.submit(self.move, move))

    def ended(self) -> list[MovedFiles]:
        """What became of lots, each told once."""
        done = [one for one in self._under_way if one.done()]
        self._under_way = [one for one in self._under_way if one not in done]
        return [one.result() for one in done]

    def close(self) -> None:
        """Stop what is under way; what has been sent of it counts next time."""
        for process in list(self._processes):
            process.terminate()
        for thread in self._threads.values():
            thread.shutdown(wait=True, cancel_futures=True)

    def move(self, move: MoveFiles) -> MovedFiles:
        """Move them now."""
        begun_s = time.monotonic()
        try:
            code, out, err = self._run(
                self._argv(move), "".join(f"{path}\0" for path in move.files)
            )
        except (QueueError, OSError) as error:
            return MovedFiles(move, why=str(error))
        took_s = time.monotonic() - begun_s
        sent = _SENT.search(out)
        if sent:
            size_bytes = int(re.sub(r"\D", "", sent[1]))
        else:
            size_bytes = 0
        if code == 0:
            return MovedFiles(move, size_bytes, took_s)
        absent = [found["path"] for found in _GONE.finditer(err)]
        gone = tuple(
            path for path in move.files if any(there.endswith(f"/{path}") for there in absent)
        )
        lines = [
            line
            for line in err.splitlines()
            if line.strip() and not line.startswith("rsync error: some files")
        ]
        return MovedFiles(
            move, size_bytes, took_s, f"rsync: {'; '.join(lines[:3]) or f'exit code {code}'}", gone
        )

    def _argv(self, move: MoveFiles) -> list[str]:
        ssh, folder = self.places[move.to or move.origin]
        if ssh.host:
            there = f"{ssh.host}:{folder}/"
        else:
            there = f"{folder}/"
        way = ("-e", shlex.join(ssh.command), "--protect-args") if ssh.host else ()
        if move.origin == HOME:
            ends = (f"{self.root}/", there)
        else:
            ends = (there, f"{self.root}/")
        return ["rsync", *_OPTIONS, *way, *ends]

    def _run(self, argv: Sequence[str], stdin: str) -> tuple[int, str, str]:
        pipe = subprocess.PIPE
        with subprocess.Popen(
            argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True, errors="replace"
        ) as process:
            self._processes.add(process)
            out, err = process.communicate(stdin)
        self._processes.discard(process)
        return process.returncode, out, err
