"""Keeping a run open for tasks to come: a lease, renewed by those who want it (`agent.holds`)."""

import contextlib
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

from windrow.agent.holds import KEEP_S, LEASE_S, Hold, write_hold
from windrow.app.background import start_manager
from windrow.app.runs import RunView
from windrow.deletion import discard
from windrow.errors import UserError, WindrowError
from windrow.files import disk_faults

_LOOK_S = 0.05
_RENEWALS = 3
"""How often a lease is renewed before it would be over."""


class Holder:
    """Keeps one run open until it is closed, or its process ends. `is_over`: someone else ended it,
    as who stops the run does."""

    def __init__(self, path: Path, hold: Hold) -> None:
        self._path = path
        self.hold = hold
        self._closed = threading.Event()
        self.is_over = False
        write_hold(path, hold, is_first=True)
        self._thread = threading.Thread(target=self._renew, name="windrow-hold", daemon=True)
        self._thread.start()

    def _renew(self) -> None:
        beat = self.hold.beat
        while not self._closed.wait(self.hold.lease_s / _RENEWALS):
            beat += 1
            hold = Hold(self.hold.who, beat, self.hold.lease_s, self.hold.keep_s)
            with contextlib.suppress(WindrowError):  # the next beat may get through
                if not write_hold(self._path, hold):
                    self.is_over = True
                    return

    def close(self) -> None:
        """No more tasks come from here. Closing twice does no harm."""
        if not self._closed.is_set():
            self._closed.set()
            self._thread.join()
            with disk_faults(f"{self._path} cannot be removed"):
                discard(self._path)


def hold_run(
    told: RunView, who: str = "", *, keep_s: float = KEEP_S, lease_s: float = LEASE_S
) -> Holder:
    """Keep the run open from now on; it has a manager, which knows, on return.

    `who`: what people are told; by default this process.
    """
    if not 0 <= keep_s < float("inf") or not 0 < lease_s < float("inf"):
        raise UserError(
            f"nodes cannot be kept for {keep_s} s, or a lease be {lease_s} s long; say how many "
            "seconds, the lease above 0"
        )
    hold = Hold(who or f"process {os.getpid()} on {socket.gethostname()}", 0, lease_s, keep_s)
    folder = told.paths.folder.holds
    with disk_faults(f"{folder} cannot be made"):
        folder.mkdir(mode=0o700, exist_ok=True)
    holder = Holder(folder / secrets.token_hex(8), hold)
    try:
        _see_to_manager(told, lambda: told.story.held is not None and not holder.is_over)
    except BaseException:
        holder.close()
        raise
    return holder


def _see_to_manager(told: RunView, is_heard: Callable[[], bool]) -> None:
    """Wait until the run's manager has heard; start one if there is none, or it is just leaving."""
    told.refresh()
    while told.holder is None or not is_heard():
        if told.holder is None:
            start_manager(told.paths, retry=False)
        else:
            time.sleep(_LOOK_S)
        told.refresh()
