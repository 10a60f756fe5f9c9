"""After how many lost jobs in a row a run gives up. Pure.

Rule 1: causes are counted apart, and a task that finishes for the first time sets all counts back.
One that was undone and is made again does so once; else a run that undoes all that it does would
never give up. Rule 2: what has no one at fault has no limit (preemption: what is lost too often
goes elsewhere for a while), or a generous one (nodes that fail).
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
    Cause.SPACE: 3,
}
"""Jobs in a row that may be lost before a task finishes. A cause that is not here has no limit."""

_WHAT = {
    Cause.MEMORY: "ran out of memory",
    Cause.TIME_LIMIT: "reached their time limit",
    Cause.NODE_FAILED: "were lost to failed nodes",
    Cause.CANCELLED: "were cancelled by someone else",
    Cause.LOST: "disappeared from the queue",
    Cause.AGENT: "ended before they had done anything",
    Cause.SPACE: "found no room on a disk, or could not reach it",
}
_ADVICE = {
    Cause.MEMORY: "give the tasks the memory that they need (memory: in the workflow)",
    Cause.TIME_LIMIT: "state how long the tasks run (runtime: in the workflow)",
    Cause.NODE_FAILED: "ask the site's administrators about its nodes",
    Cause.CANCELLED: "find out who cancels them",
    Cause.LOST: "check that the batch system works",
    Cause.AGENT: "look at jobs/N/output in the run's folder",
    Cause.SPACE: "make room",
}


class Losses:
    """The jobs that were lost since a task last finished."""

    def __init__(self, patience: Mapping[Cause, int] | None) -> None:
        """Without `patience` a run never gives up, as in simulation."""
        self._patience = {} if patience is None else patience
        self._counts: Counter[Cause] = Counter()
        self._refused: dict[
            int, set[int]
        ] = {}  # by task: the jobs in which a disk refused what it made

    def forget(self) -> None:
        """A task has finished for the first time."""
        if self._counts:
            self._counts.clear()

    def forget_all(self) -> None:
        """The user wants to try again."""
        self._counts.clear()
        self._refused.clear()

    def refused(self, task: int, job: int, why: str) -> str:
        """A disk refused what a task made in this job. Why the run should give up now; empty if
        it should not.

        That is counted for each task, whatever else is done meanwhile.
        """
        jobs = self._refused.setdefault(task, set())
        jobs.add(job)
        limit = self._patience.get(Cause.SPACE)
        if limit is None or len(jobs) < limit:
            return ""
        return (
            f"{len(jobs)} jobs {_WHAT[Cause.SPACE]} for the same task (last: {why}); "
            f"{_fix(Cause.SPACE)}"
        )

    def add(self, cause: Cause, why: str) -> str:
        """A job was lost before it had done anything. Why the run should give up now; empty if
        it should not."""
        self._counts[cause] += 1
        count = self._counts[cause]
        limit = self._patience.get(cause)
        if limit is None or count < limit:
            return ""
        what = _WHAT.get(cause, f"were lost ({cause})")
        return (
            f"{count} jobs in a row {what}, with no task finished in between (last: {why}); "
            f"{_fix(cause)}"
        )


def _fix(cause: Cause) -> str:
    return f"{_ADVICE.get(cause, 'fix the cause')}, then resume the run"
