"""Checkpoints of an application: files from which the next attempt at its task continues. Standard
library only."""

from __future__ import annotations

from typing import NamedTuple

SIGNALS = ("USR1", "USR2", "HUP", "INT", "QUIT", "TERM")
"""Those by which a task can be asked for a checkpoint."""
NOTICE_S = 60.0


class Checkpoint(NamedTuple):
    """How a task keeps what it has done.

    `files`: patterns of its checkpoint files, from its working folder. `signal` asks it to write
    them; empty: it writes them by itself. `notice_s`: how long before an end it is asked, and what
    it then has. `every_s`: how often it is asked while it runs; 0: as often as pays, if it is
    known how often jobs are lost. `keep_existing`: what is there before the run may be started
    from, and stays.
    """

    files: tuple[str, ...]
    signal: str = ""
    notice_s: float = NOTICE_S
    every_s: float = 0.0
    keep_existing: bool = False

    @property
    def piece_s(self) -> float:
        """The least time that is worth a start: as long to work as to write."""
        return 2 * self.notice_s
