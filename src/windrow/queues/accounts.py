"""What a site's accounts remember of everybody's jobs, for queues that can ask them.

A part of its own beside the port: most queues have no accounts, and a run does without them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class PastJob:
    """A job of anyone, waiting, running or over. Times are seconds since the epoch, None where it has not come so far.

    What was cancelled before it ran is none: it took nobody's nodes.
    """

    id: str
    user: str
    nodes: int
    requested_s: int
    submitted_s: float
    started_s: float | None = None
    ended_s: float | None = None

    @property
    def run_s(self) -> float | None:
        """How long it ran; None where that is not known."""
        return None if self.started_s is None or self.ended_s is None else self.ended_s - self.started_s


@runtime_checkable
class Accounts(Protocol):
    """A queue whose site may keep accounts."""

    @property
    def place(self) -> str:
        """Which queue of which cluster this is: what was learnt of one says nothing of another."""

    def past_jobs(self, since_s: float) -> list[PastJob] | None:
        """All jobs that were in the queue since then, without those of our own runs. None where nobody keeps accounts.

        Raises QueueError where they do not answer. A site may show each user no jobs but their own.
        """
