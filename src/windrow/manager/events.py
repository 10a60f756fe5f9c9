"""What can happen to a run. Past tense, with the time it happened; a journal of these is the whole story of a run."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.strategies import Decision


@dataclass(frozen=True, slots=True)
class RunBegan:
    """The run begins, or goes on after it was stopped; tasks that had failed are tried anew."""

    at_s: int


@dataclass(frozen=True, slots=True)
class RunStopped:
    """The user wants the run to stop."""

    at_s: int


@dataclass(frozen=True, slots=True)
class JobsPlanned:
    """A strategy has decided. Decisions are events, so that replaying a journal asks no strategy again."""

    at_s: int
    decision: Decision


@dataclass(frozen=True, slots=True)
class JobSubmitted:
    """The queue has accepted a job, and calls it `id`."""

    at_s: int
    job: int
    id: str


@dataclass(frozen=True, slots=True)
class JobRejected:
    """The queue will never take this job."""

    at_s: int
    job: int
    why: str


@dataclass(frozen=True, slots=True)
class JobStarted:
    """The queue gave a job its nodes."""

    at_s: int
    job: int


@dataclass(frozen=True, slots=True)
class JobEnded:
    """A job gave its nodes back, or left the queue, because it was asked to or had no more to do."""

    at_s: int
    job: int


@dataclass(frozen=True, slots=True)
class JobKilled:
    """A job was ended by something else: its time was up, or, where `is_expiry` is not set, whatever `why` says."""

    at_s: int
    job: int
    is_expiry: bool = True
    why: str = ""


@dataclass(frozen=True, slots=True)
class TaskStarted:
    """A task began to run in a job's allocation."""

    at_s: int
    job: int
    task: int


@dataclass(frozen=True, slots=True)
class TaskRetried:
    """An attempt at a task failed; the allocation tries again."""

    at_s: int
    job: int
    task: int


@dataclass(frozen=True, slots=True)
class TaskFinished:
    """A task has done its work."""

    at_s: int
    task: int


@dataclass(frozen=True, slots=True)
class TaskUndone:
    """A task that had finished is to run again: an output of it is gone, and a task that is left needs it."""

    at_s: int
    task: int


@dataclass(frozen=True, slots=True)
class TaskFailed:
    """A task ended without having done its work, as often as it may be tried."""

    at_s: int
    task: int


@dataclass(frozen=True, slots=True)
class TaskDropped:
    """A job will not run this task of its own: there is no time left for it, or it waits for one that failed."""

    at_s: int
    job: int
    task: int


Event = (
    RunBegan
    | RunStopped
    | JobsPlanned
    | JobSubmitted
    | JobRejected
    | JobStarted
    | JobEnded
    | JobKilled
    | TaskStarted
    | TaskRetried
    | TaskFinished
    | TaskUndone
    | TaskFailed
    | TaskDropped
)
