"""What happened in a pool, told from its journal: for people who ask, and for a server that begins
again.

Definitions are those of `windrow_lab.stream.metrics`. Wait: submission to first start. Makespan:
first start to end. Response: their sum. Slowdown: response over the workflow's makespan alone on
the pool by its measured run times.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import assert_never

from windrow.pool import events as e
from windrow.pool.workflow_state import WorkflowPast


@dataclass(slots=True)
class WorkflowStory:
    """One workflow. Times are seconds since the epoch, None before they are known."""

    number: int
    name: str
    tasks: int
    submitted_s: float
    begun_s: float | None = None
    ended_s: float | None = None
    outcome: str = ""
    why: str = ""
    alone_s: float = 0.0
    is_cancelled: bool = False
    running: dict[int, e.PoolTaskStarted] = field(default_factory=dict)
    took_s: dict[int, float] = field(default_factory=dict)
    attempts: dict[int, int] = field(default_factory=dict)
    failures: dict[int, int] = field(default_factory=dict)
    given_up: set[int] = field(default_factory=set)

    @property
    def state(self) -> str:
        """In one word."""
        if self.outcome:
            return self.outcome
        if self.is_cancelled:
            return "leaving"
        if self.running:
            return "running"
        return "waiting"

    @property
    def wait_s(self) -> float | None:
        """Submission to first start."""
        if self.begun_s is None:
            return None
        return self.begun_s - self.submitted_s

    @property
    def makespan_s(self) -> float | None:
        """First start to end."""
        if self.begun_s is None or self.ended_s is None:
            return None
        return self.ended_s - self.begun_s

    @property
    def response_s(self) -> float | None:
        """Submission to end."""
        if self.ended_s is None:
            return None
        return self.ended_s - self.submitted_s

    @property
    def slowdown(self) -> float | None:
        """Response over length alone; only of complete workflows."""
        if self.outcome != e.COMPLETE or self.response_s is None or self.alone_s <= 0:
            return None
        return self.response_s / self.alone_s

    @property
    def past(self) -> WorkflowPast:
        """What a server must know to continue it."""
        return WorkflowPast(self.took_s, self.attempts, self.failures, frozenset(self.given_up))


@dataclass(frozen=True, slots=True)
class PoolFigure:
    """One measure over many workflows."""

    mean: float
    max: float


@dataclass(slots=True)
class PoolStory:
    """All workflows, by number, and the server that last served them."""

    workflows: dict[int, WorkflowStory] = field(default_factory=dict)
    opened: e.PoolOpened | None = None
    closed: e.PoolClosed | None = None
    lost_hosts: list[str] = field(default_factory=list)

    @staticmethod
    def of(events: Iterable[e.Event]) -> PoolStory:
        """The story that these events tell."""
        story = PoolStory()
        for event in events:
            story.hear(event)
        return story

    @property
    def busy(self) -> int:
        """Processors on which tasks run."""
        return sum(start.slots for w in self.workflows.values() for start in w.running.values())

    def figures(self) -> dict[str, PoolFigure]:
        """Mean and maximum of wait, makespan, response, slowdown over complete workflows; empty
        before the first."""
        complete = [
            self.workflows[n]
            for n in sorted(self.workflows)
            if self.workflows[n].slowdown is not None
        ]
        if not complete:
            return {}
        names = ("wait_s", "makespan_s", "response_s", "slowdown")
        columns = {
            name: [float(getattr(workflow, name)) for workflow in complete] for name in names
        }
        return {
            name: PoolFigure(sum(values) / len(values), max(values))
            for name, values in columns.items()
        }

    def count(self, state: str) -> int:
        """How many workflows are in this state."""
        return sum(w.state == state for w in self.workflows.values())

    def _refused(self, event: e.WorkflowRefused) -> None:
        unread = WorkflowStory(event.number, "", 0, event.at_s)
        refused = self.workflows.setdefault(event.number, unread)
        refused.outcome = "refused"
        refused.why = event.why
        refused.ended_s = event.at_s

    def hear(self, event: e.Event) -> None:
        """Take one more event in."""
        match event:
            case e.PoolOpened():
                self.opened = event
                self.closed = None
                self.lost_hosts = []
                # a server that was killed did not say what became of these
                for workflow in self.workflows.values():
                    workflow.running.clear()
            case e.PoolClosed():
                self.closed = event
            case e.NodeLost():
                self.lost_hosts.append(event.host)
            case e.WorkflowAccepted():
                fresh = WorkflowStory(event.number, event.name, event.tasks, event.at_s)
                self.workflows[event.number] = fresh
            case e.WorkflowRefused():
                self._refused(event)
            case _:
                _hear(self.workflows[event.number], event)


def _hear(workflow: WorkflowStory, event: e.TaskEvent | e.CancelAsked | e.WorkflowEnded) -> None:
    match event:
        case e.PoolTaskStarted():
            workflow.begun_s = event.at_s if workflow.begun_s is None else workflow.begun_s
            workflow.running[event.task] = event
            workflow.attempts[event.task] = event.attempt
        case e.PoolTaskFinished():
            workflow.running.pop(event.task, None)
            workflow.took_s[event.task] = event.at_s - event.begun_s
        case e.PoolTaskFailed():
            workflow.running.pop(event.task, None)
            workflow.failures[event.task] = workflow.failures.get(event.task, 0) + 1
            if event.final:
                workflow.given_up.add(event.task)
                workflow.why = workflow.why or event.why
        case e.PoolTaskLost():
            workflow.running.pop(event.task, None)
        case e.CancelAsked():
            workflow.is_cancelled = True
        case e.WorkflowEnded():
            workflow.ended_s = event.at_s
            workflow.outcome = event.outcome
            workflow.alone_s = event.alone_s
        case _:
            assert_never(event)
