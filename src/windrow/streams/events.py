"""What a pool hears of (past tense), and what it answers (imperative). Workflows are named by
number."""

from dataclasses import dataclass

from windrow.model import Workflow


@dataclass(frozen=True, slots=True)
class WorkflowArrived:
    """A workflow joins the queue under a number that no other has."""

    number: int
    workflow: Workflow
    at_s: float


@dataclass(frozen=True, slots=True)
class TaskFinished:
    """A started task has completed; `runtime_s` is what it took, for those who learn from it."""

    number: int
    task: int
    runtime_s: float


@dataclass(frozen=True, slots=True)
class TaskLost:
    """A started task ended without a result and must run again: its processors are free, it is
    eligible."""

    number: int
    task: int


@dataclass(frozen=True, slots=True)
class WorkflowWithdrawn:
    """A workflow leaves before its end; its running tasks have been stopped."""

    number: int


Event = WorkflowArrived | TaskFinished | TaskLost | WorkflowWithdrawn


@dataclass(frozen=True, slots=True)
class Start:
    """Start this task now."""

    number: int
    task: int
