"""What the core asks the world to do. Imperative; the outcome of each comes back as an event."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.strategies import JobPlan


@dataclass(frozen=True, slots=True)
class Decide:
    """Ask the strategy what to submit now; the answer comes back as JobsPlanned."""


@dataclass(frozen=True, slots=True)
class SubmitJob:
    """Submit a job to the queue."""

    job: int
    plan: JobPlan


@dataclass(frozen=True, slots=True)
class StopJob:
    """Take a job out of the queue, or make it give its nodes back."""

    job: int


@dataclass(frozen=True, slots=True)
class Abandon:
    """Let no allocation wait for these tasks: they will not run."""

    tasks: tuple[int, ...]


Action = Decide | SubmitJob | StopJob | Abandon
