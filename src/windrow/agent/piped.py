"""A process of our own, spoken to in JSON lines through pipes: a step on another node, or what
moves bytes on this one.

Rule 1: writing never blocks; what the pipe does not take waits here. Rule 2: when the process ends,
for whatever reason, it is lost; what it said before that is still read.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Mapping, Sequence
from typing import Any

RESET = (signal.SIGPIPE, signal.SIGXFSZ)
"""Python ignores these two in itself; a program expects them as the system made them."""


class Piped:
    """One such process, in a group of its own: a signal for ours must not end it first. OSError: it
    cannot start."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str] = os.environ) -> None:
        self.is_lost = False
        self._unsent = b""
        self._unread = b""
        there, self._to = os.pipe()
        self.fd, back = os.pipe()
        actions = ((os.POSIX_SPAWN_DUP2, there, 0), (os.POSIX_SPAWN_DUP2, back, 1))
        how: dict[str, Any] = {
            "file_actions": actions,
            "setpgroup": 0,
            "setsigmask": (),
            "setsigdef": RESET,
        }
        try:
            self._pid = os.posix_spawnp(command[0], tuple(command), environ, **how)
        finally:
            os.close(there)
            os.close(back)
        os.set_blocking(self._to, False)
        os.set_blocking(self.fd, False)

    @property
    def has_unsent(self) -> bool:
        """Whether something waits for room in the pipe."""
        return bool(self._unsent)

    def send(self, line: bytes = b"") -> None:
        """Send a line, and what waits."""
        self._unsent += line
        try:
            while self._unsent and self._to >= 0:
                self._unsent = self._unsent[os.write(self._to, self._unsent) :]
        except BlockingIOError:
            pass
        except OSError:  # nothing reads it any more; the end of its output will say so
            self._unsent = b""

    def read(self) -> list[dict[str, Any]]:
        """What it said since the last call. Sets `is_lost` when it is gone."""
        self.send()
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self.fd, 1 << 16):
                self._unread += data
            self.is_lost = True
        *lines, self._unread = self._unread.split(b"\n")
        return [json.loads(line) for line in lines if line.startswith(b"{")]

    def close(self) -> None:
        """Let it end: its input ends."""
        self._unsent = b""
        if self._to >= 0:
            os.close(self._to)
            self._to = -1

    def kill(self) -> None:
        """End it the hard way, if it has not ended."""
        if not self.is_lost:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._pid, signal.SIGKILL)

    def end(self) -> None:
        """End it, and forget it."""
        self.close()
        self.kill()
        self.is_lost = True
        os.close(self.fd)
