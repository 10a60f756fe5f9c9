"""Another node of the allocation: one long-lived step there, spoken to in JSON lines through pipes.

Rule 1: writing never blocks the agent; what the pipe does not take waits here.
Rule 2: when the step ends, for whatever reason, the node is lost with all that ran on it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from windrow.agent.order import Order, Result, to_line
from windrow.agent.runner import RESET, Runner
from windrow.errors import OutsideError


class RemoteNode:
    """The processes of another node."""

    def __init__(self, host: str, command: tuple[str, ...]) -> None:
        self.host = host
        self.is_lost = self.is_noticed = False
        self.running: set[int] = set()
        """The tasks that run there."""
        self._unsent = b""
        self._unread = b""
        there, self._to = os.pipe()
        self.fd, back = os.pipe()
        actions = ((os.POSIX_SPAWN_DUP2, there, 0), (os.POSIX_SPAWN_DUP2, back, 1))
        try:
            # Its own group: a signal for the agent's group must not end the nodes before the agent has.
            how: dict[str, Any] = {"file_actions": actions, "setpgroup": 0, "setsigmask": (), "setsigdef": RESET}
            self._pid = os.posix_spawnp(command[0], command, os.environ, **how)
        except OSError as error:
            raise OutsideError(f"cannot start anything on node {host}: {command[0]}: {error.strerror}") from error
        finally:
            os.close(there)
            os.close(back)
        os.set_blocking(self._to, False)
        os.set_blocking(self.fd, False)

    @property
    def is_idle(self) -> bool:
        """Whether no task runs there."""
        return not self.running

    def start(self, order: Order) -> None:
        """Start it there."""
        self.running.add(order.task)
        self._send(to_line(order))

    def signal(self, number: int, tasks: Iterable[int] | None = None) -> None:
        """Send a signal to these tasks, or to all. Those that do not run there are passed over."""
        chosen = None if tasks is None else sorted(self.running.intersection(tasks))
        if chosen != []:
            self._send(json.dumps({"signal": int(number), "tasks": chosen}).encode() + b"\n")

    def ask(self, tasks: Iterable[int]) -> None:
        """Ask those of these tasks that run there for checkpoints."""
        if chosen := sorted(self.running.intersection(tasks)):
            self._send(json.dumps({"asked": chosen}).encode() + b"\n")

    def look_again_s(self) -> float | None:
        """Seconds until `collect` should be called though nothing came; None for whenever something does."""
        return 0.05 if self._unsent else None

    def collect(self) -> list[Result]:
        """The attempts that have ended there. Sets `is_lost` when the step is gone. OutsideError if it said why."""
        self._send(b"")
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self.fd, 1 << 16):
                self._unread += data
            self.is_lost = True
        *lines, self._unread = self._unread.split(b"\n")
        results = []
        for record in (json.loads(line) for line in lines if line.startswith(b"{")):
            if "broken" in record:
                raise OutsideError(f"node {self.host}: {record['broken']}")
            if "notice" in record:
                self.is_noticed = True
                continue
            result = Result(**record)
            self.running.discard(result.task)
            results.append(result)
        return results

    def close(self) -> None:
        """Let the step end: its input ends."""
        self._unsent = b""
        if self._to >= 0:
            os.close(self._to)
            self._to = -1

    def kill(self) -> None:
        """End the step the hard way, if it has not ended."""
        if not self.is_lost:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._pid, signal.SIGKILL)

    def _send(self, data: bytes) -> None:
        self._unsent += data
        try:
            while self._unsent and self._to >= 0:
                self._unsent = self._unsent[os.write(self._to, self._unsent) :]
        except BlockingIOError:
            pass
        except OSError:  # nobody reads it any more; the end of its output will say so
            self._unsent = b""


def let_end(
    nodes: Sequence[Runner | RemoteNode],
    patience_s: float,
    wait: Callable[[float], None],
    take: Callable[[Result], None],
) -> None:
    """Tell all tasks there to end (SIGTERM), and give them the time; `take` gets what comes of it, as it comes."""
    for node in nodes:
        if not node.is_idle:
            node.signal(signal.SIGTERM)
    end = time.monotonic() + patience_s
    while not all(node.is_idle for node in nodes) and time.monotonic() < end:
        wait(0.05)
        for node in nodes:
            for result in node.collect():
                take(result)
