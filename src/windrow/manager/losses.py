"""How many jobs in a row a run may lose to each cause before it gives up.

Rule 1: causes are counted apart, and a task that finishes sets all counts back. Rule 2: what is nobody's fault has no
limit (preemption), or a generous one (nodes that fail).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from windrow.model.cause import Cause

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
        return f"{count} jobs in a row {what} before a task finished (last: {why}); {advice}"
