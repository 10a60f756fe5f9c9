"""What a pool's journal holds, in the past tense. Workflows go by number, tasks by their place in
the workflow."""

from dataclasses import dataclass
from typing import get_args

COMPLETE = "complete"
FAILED = "failed"
CANCELLED = "cancelled"
"""How a workflow can end; a refused one never began."""


@dataclass(frozen=True, slots=True)
class WorkflowAccepted:
    """The pool has taken a workflow in; its content is in the pool's folder. `at_s` is when it was
    submitted."""

    at_s: float
    number: int
    name: str
    tasks: int


@dataclass(frozen=True, slots=True)
class WorkflowRefused:
    """The pool cannot run this workflow as it is."""

    at_s: float
    number: int
    why: str


@dataclass(frozen=True, slots=True)
class PoolTaskStarted:
    """An attempt begins on these nodes. `slots` is how many processors it takes."""

    at_s: float
    number: int
    task: int
    attempt: int
    nodes: tuple[int, ...]
    slots: int


@dataclass(frozen=True, slots=True)
class PoolTaskFinished:
    """An attempt succeeded: the task is done for good."""

    at_s: float
    number: int
    task: int
    attempt: int
    begun_s: float
    cpu_s: float = 0.0
    peak_bytes: int = 0


@dataclass(frozen=True, slots=True)
class PoolTaskFailed:
    """An attempt failed. `final`: there will not be another."""

    at_s: float
    number: int
    task: int
    attempt: int
    begun_s: float
    why: str
    final: bool
    tail: str = ""


@dataclass(frozen=True, slots=True)
class PoolTaskLost:
    """An attempt ended through no fault of its own; unless the workflow was cancelled, the task
    starts again."""

    at_s: float
    number: int
    task: int
    attempt: int
    why: str


@dataclass(frozen=True, slots=True)
class CancelAsked:
    """Someone wants the workflow to leave: nothing of it starts any more, and what runs is being
    stopped."""

    at_s: float
    number: int


@dataclass(frozen=True, slots=True)
class WorkflowEnded:
    """Nothing of it is left to do. `alone_s`: its makespan alone on the pool by its measured run
    times (0: unknown)."""

    at_s: float
    number: int
    outcome: str
    alone_s: float = 0.0


@dataclass(frozen=True, slots=True)
class PoolOpened:
    """A server began to serve the pool under these settings."""

    at_s: float
    policy: str
    selection: str
    slots: int
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PoolClosed:
    """The server has left in good order."""

    at_s: float
    why: str


@dataclass(frozen=True, slots=True)
class NodeLost:
    """A node of the allocation is gone; nothing starts there any more."""

    at_s: float
    node: int
    host: str


TaskEvent = PoolTaskStarted | PoolTaskFinished | PoolTaskFailed | PoolTaskLost
Event = (
    WorkflowAccepted
    | WorkflowRefused
    | TaskEvent
    | CancelAsked
    | WorkflowEnded
    | PoolOpened
    | PoolClosed
    | NodeLost
)

KINDS: dict[type[Event], str] = {
    **{kind: kind.__name__ for kind in get_args(Event)},
    WorkflowAccepted: "WorkflowArrived",
    PoolTaskStarted: "TaskStarted",
    PoolTaskFinished: "TaskFinished",
    PoolTaskFailed: "TaskFailed",
    PoolTaskLost: "TaskLost",
}
"""What each is called in a journal."""
