"""What can happen to a run. Past tense, with the time it happened; a journal of these is the whole story of a run."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.strategies import Decision


@dataclass(frozen=True, slots=True)
class RunBegan:
    """The run begins."""

    at_s: int


@dataclass(frozen=True, slots=True)
class JobsPlanned:
    """A strategy has decided. Decisions are events, so that replaying a journal asks no strategy again."""

    at_s: int
    decision: Decision


@dataclass(frozen=True, slots=True)
class JobStarted:
    """The queue gave a job its nodes."""

    at_s: int
    job: int


@dataclass(frozen=True, slots=True)
class JobEnded:
    """A job gave its nodes back, or left the queue, because it was asked to."""

    at_s: int
    job: int


@dataclass(frozen=True, slots=True)
class JobKilled:
    """A job was ended by the queue: its time was up."""

    at_s: int
    job: int


@dataclass(frozen=True, slots=True)
class TaskFinished:
    """A task has done its work."""

    at_s: int
    task: int


@dataclass(frozen=True, slots=True)
class TaskFailed:
    """A task ended without having done its work; it will have to start again from zero."""

    at_s: int
    task: int


Event = RunBegan | JobsPlanned | JobStarted | JobEnded | JobKilled | TaskFinished | TaskFailed
