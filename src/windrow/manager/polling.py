"""How often the queue is asked: its controller serves everybody."""

from __future__ import annotations

from dataclasses import dataclass

POLL_S = 2.0
"""The least time between two queries of the queue."""
SLOWEST_POLL_S = 30.0
_SLOWER = 1.5


@dataclass(slots=True)
class PollTimes:
    """When to ask the queue next: soon after something happened, ever more rarely while nothing does."""

    gap_s: float = POLL_S
    last_s: float = float("-inf")

    def is_due(self, now_s: float) -> bool:
        """Whether it is time to ask."""
        return now_s >= self.last_s + self.gap_s

    def asked(self, now_s: float) -> None:
        """The queue was asked: the next time comes later."""
        self.gap_s = POLL_S if self.last_s == float("-inf") else min(self.gap_s * _SLOWER, SLOWEST_POLL_S)
        self.last_s = now_s

    def hurry(self) -> None:
        """Something happened: ask again as soon as is decent."""
        self.gap_s = POLL_S
