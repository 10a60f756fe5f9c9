"""The states of tasks, attempts, jobs and runs, and which may follow which: the one table of each.

A story checks what it takes in against these tables, and remembers what they do not allow
(`RunStory.strays`). A run does not fail for it: a queue may say anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class TaskState(StrEnum):
    """Of a task in a run."""

    PENDING = "pending"  # in no job yet, or no more
    SUBMITTED = "submitted"  # in a job, which waits or has not come to it
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"  # for good, unless the run is resumed
    BLOCKED = "blocked"  # a task that it needs failed, or was cancelled
    CANCELLED = "cancelled"  # the user does not want it any more
    SKIPPED = "skipped"  # it is for a failure that did not come

    @property
    def is_out(self) -> bool:
        """Whether nothing more will happen to it by itself."""
        return self in (TaskState.FINISHED, TaskState.SKIPPED) or self.is_never

    @property
    def is_never(self) -> bool:
        """Whether it will not be done, unless someone does something about it."""
        return self in (TaskState.FAILED, TaskState.BLOCKED, TaskState.CANCELLED)


class AttemptState(StrEnum):
    """Of one attempt at a task."""

    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    LOST = "lost"  # with its job or its node
    SUPERSEDED = "superseded"  # stopped: another attempt at the task finished first
    KEPT = "kept"  # ended after a checkpoint, from which the next continues

    @property
    def is_in_vain(self) -> bool:
        """Whether the attempt came to nothing."""
        return self not in (AttemptState.RUNNING, AttemptState.FINISHED, AttemptState.KEPT)


class JobStage(StrEnum):
    """Of a job of a run. From `ENDED` on it is out of the system."""

    PLANNED = "planned"  # and not yet submitted
    WAITING = "waiting"  # in the queue
    RUNNING = "running"
    ENDED = "ended"  # it gave its nodes back
    KILLED = "killed"  # by its time limit, or whatever else
    CANCELLED = "cancelled"  # the user stopped the run
    STOPPED = "stopped"  # by the run itself, before it started: it was of no use any more
    REJECTED = "rejected"  # the queue will never take it


class RunState(StrEnum):
    """Of a run."""

    RUNNING = "running"
    STOPPING = "stopping"  # the user wants it to stop, and jobs are still there
    COMPLETE = "complete"
    FAILED = "failed"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"  # it is not managed, and not over
    CONTINUED = "continued"  # by another run


ACTIVE = (RunState.RUNNING, RunState.STOPPING)
"""A process manages the run, so its time passes."""

_T = TaskState
_J = JobStage
_R = RunState

TASK_MOVES: Mapping[TaskState, tuple[TaskState, ...]] = {
    _T.PENDING: (
        _T.SUBMITTED,
        _T.RUNNING,
        _T.FINISHED,
        _T.FAILED,
        _T.BLOCKED,
        _T.CANCELLED,
        _T.SKIPPED,
    ),
    _T.SUBMITTED: (_T.RUNNING, _T.PENDING, _T.FINISHED, _T.FAILED, _T.BLOCKED, _T.CANCELLED),
    _T.RUNNING: (_T.FINISHED, _T.FAILED, _T.SUBMITTED, _T.PENDING, _T.CANCELLED),
    _T.FINISHED: (_T.PENDING, _T.FAILED),
    _T.FAILED: (_T.PENDING, _T.RUNNING, _T.FINISHED, _T.CANCELLED),
    _T.BLOCKED: (_T.PENDING, _T.RUNNING, _T.FINISHED, _T.FAILED, _T.CANCELLED, _T.SKIPPED),
    _T.CANCELLED: (_T.PENDING, _T.FINISHED, _T.FAILED),
    _T.SKIPPED: (_T.PENDING, _T.RUNNING, _T.FINISHED, _T.FAILED, _T.CANCELLED),
}
"""Beyond the plain way (pending, submitted, running, finished): a job that was given up for lost
may continue, so that a task starts, finishes or fails out of any state; an output that is gone, or
the user, makes a task pending again; one that cannot be brought to its place lets a finished task
fail."""

JOB_MOVES: Mapping[JobStage, tuple[JobStage, ...]] = {
    _J.PLANNED: (_J.WAITING, _J.RUNNING, _J.KILLED, _J.CANCELLED, _J.STOPPED, _J.REJECTED),
    _J.WAITING: (_J.RUNNING, _J.KILLED, _J.CANCELLED, _J.STOPPED),
    _J.RUNNING: (_J.ENDED, _J.KILLED, _J.CANCELLED),
    **dict.fromkeys((_J.ENDED, _J.KILLED, _J.CANCELLED, _J.STOPPED, _J.REJECTED), ()),
}

RUN_MOVES: Mapping[RunState, tuple[RunState, ...]] = {
    _R.RUNNING: (_R.STOPPING, _R.COMPLETE, _R.FAILED, _R.INTERRUPTED),
    _R.STOPPING: (_R.STOPPED, _R.COMPLETE, _R.INTERRUPTED),
    **dict.fromkeys(
        (_R.COMPLETE, _R.FAILED, _R.STOPPED, _R.INTERRUPTED), (_R.RUNNING, _R.CONTINUED)
    ),
    _R.CONTINUED: (),
}
"""A run state is worked out each time that someone looks; the table is for readers, and for
tests."""
