"""What follows from lost jobs: after how many in a row a run gives up, and which nodes it avoids. Pure.

Rule 1: causes are counted apart, and a task that finishes sets all counts back. Rule 2: what has no one at fault has no
limit (preemption: what is lost too often goes elsewhere for a while), or a generous one (nodes that fail).
Rule 3: nodes on which jobs fail again and again are avoided for a while. The core and the story hold one `Avoidance`
each and hear the same events, so both know the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from windrow.model.cause import Cause

FAILURES = 2
WITHIN_S = 3600
FOR_S = 3600

PATIENCE: Mapping[Cause, int] = {
    Cause.MEMORY: 3,
    Cause.TIME_LIMIT: 12,  # each doubles what is expected of the tasks that ran
    Cause.NODE_FAILED: 20,
    Cause.CANCELLED: 3,
    Cause.LOST: 3,
    Cause.AGENT: 3,
}
"""Jobs in a row that may be lost before a task finishes. A cause that is not here has no limit."""

_WHAT = {
    Cause.MEMORY: "ran out of memory",
    Cause.TIME_LIMIT: "reached their time limit",
    Cause.NODE_FAILED: "were lost to failed nodes",
    Cause.CANCELLED: "were cancelled by someone else",
    Cause.LOST: "disappeared from the queue",
    Cause.AGENT: "ended before they had done anything",
}
_ADVICE = {
    Cause.MEMORY: "give the tasks the memory that they need (memory: in the workflow)",
    Cause.TIME_LIMIT: "state how long the tasks run (runtime: in the workflow)",
    Cause.NODE_FAILED: "ask the site's administrators about its nodes",
    Cause.CANCELLED: "find out who cancels them",
    Cause.LOST: "check that the batch system works",
    Cause.AGENT: "look at jobs/N/output in the run's folder",
}


class Losses:
    """The jobs that were lost since a task last finished."""

    def __init__(self, patience: Mapping[Cause, int] | None) -> None:
        """Without `patience` a run never gives up, as in simulation."""
        self._patience = {} if patience is None else patience
        self._counts: Counter[Cause] = Counter()

    def forget(self) -> None:
        """A task has finished, or the user wants to try again."""
        if self._counts:
            self._counts.clear()

    def add(self, cause: Cause, why: str) -> str:
        """A job was lost before it had done anything. Why the run should give up now; empty where it should not."""
        self._counts[cause] += 1
        count, limit = self._counts[cause], self._patience.get(cause)
        if limit is None or count < limit:
            return ""
        what = _WHAT.get(cause, f"were lost ({cause})")
        advice = f"{_ADVICE.get(cause, 'fix the cause')}, then resume the run"
        return f"{count} jobs in a row {what}, with no task finished in between (last: {why}); {advice}"


@dataclass(frozen=True, slots=True)
class Avoided:
    """A node on which no job is to run for now."""

    node: str
    why: str
    until_s: int


class Avoidance:
    """Counts failures by node: after `FAILURES` of them within `WITHIN_S` a node is avoided for `FOR_S`."""

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
