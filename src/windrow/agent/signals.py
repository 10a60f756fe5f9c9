"""What a loop sleeps by: signals as something to wait for beside files, and a clock that never
steps.

A signal makes `fd` readable, so a loop sleeps in one place and misses nothing. SIGTERM and SIGINT
are remembered; SIGCHLD only wakes, and SIGUSR1 is a batch system's word that the end is near.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from types import FrameType

_DOUBT_S = 1.0


class SteadyClock:
    """Seconds since the epoch when it was made, and steady from then on: a step of the system's
    clock is not seen."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        """Seconds since the epoch, to the microsecond."""
        return round(self._offset + time.monotonic(), 6)


class Wake:
    """Takes over this process's signals; one object for one process, in its main thread."""

    def __init__(self) -> None:
        self.fd, writing = os.pipe()
        os.set_blocking(self.fd, False)
        os.set_blocking(writing, False)
        self.stop_signal: int | None = None
        """The signal that told this process to stop, if any."""
        self.is_noticed = False
        """Whether the end was said to be near."""
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.signal(signal.SIGUSR1, self._notice)
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1))

    def clear(self) -> None:
        """Forget that it was woken."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.fd, 4096)

    def wait_for_stop(self) -> None:
        """Give a stop the time to come: a queue that ends a job may end its tasks and steps an
        instant before us."""
        end = time.monotonic() + _DOUBT_S
        while self.stop_signal is None and time.monotonic() < end:
            time.sleep(0.02)

    def _stop(self, number: int, _frame: FrameType | None) -> None:
        self.stop_signal = number

    def _notice(self, _number: int, _frame: FrameType | None) -> None:
        self.is_noticed = True
