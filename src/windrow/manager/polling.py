"""How often a manager looks: at the queue, whose controller serves everybody, and at what agents write."""

from __future__ import annotations

from dataclasses import dataclass

POLL_S = 2.0
"""The least time between two queries of the queue."""
SLOWEST_POLL_S = 30.0
_SLOWER = 1.5
MANY = 32
"""Of more jobs than these, those that the queue does not call running are listened to in turn, so many at a time."""
_BUSY_S, _IDLE_S, _IDLE_WITH_MANY_S = 0.1, 0.5, 1.0


def next_look_s(jobs: int, *, happened: bool) -> float:
    """How long to sleep before agents of so many jobs are listened to again; `happened`: one of them spoke."""
    return _BUSY_S if happened else _IDLE_S if jobs <= MANY else _IDLE_WITH_MANY_S


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
