"""Which nodes a run avoids: those on which jobs fail again and again, for a while. Pure.

The core and the story hold one `Avoidance` each and hear the same events, so both know the same.
"""

from __future__ import annotations

from dataclasses import dataclass

FAILURES = 2
WITHIN_S = 3600
FOR_S = 3600


@dataclass(frozen=True, slots=True)
class Avoided:
    """A node on which no job is to run for now."""

    node: str
    why: str
    until_s: int


class Avoidance:
    """Counts failures by node: after `FAILURES` of them within `WITHIN_S` a node is avoided for
    `FOR_S`."""

    def __init__(self) -> None:
        self._failures_s: dict[str, list[int]] = {}
        self._avoided: dict[str, Avoided] = {}

    def failed(self, node: str, at_s: int) -> None:
        """A job failed on this node."""
        recent = [t for t in self._failures_s.get(node, []) if at_s - t < WITHIN_S] + [at_s]
        self._failures_s[node] = recent
        if len(recent) >= FAILURES:
            self._avoided[node] = Avoided(node, f"{len(recent)} jobs failed on it", at_s + FOR_S)

    def at(self, at_s: float) -> tuple[Avoided, ...]:
        """The nodes that are avoided at this time, the latest to fail first."""
        found = [avoided for avoided in self._avoided.values() if avoided.until_s > at_s]
        return tuple(sorted(found, key=lambda avoided: (-avoided.until_s, avoided.node)))

    def names(self, at_s: float, spare: int) -> tuple[str, ...]:
        """The nodes that a job is to avoid which has this number of nodes to spare, by name."""
        return tuple(sorted(avoided.node for avoided in self.at(at_s)[: max(0, spare)]))
