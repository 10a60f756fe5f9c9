"""What the pool believes and wants: `streams.Pool` decides, and this turns the fate of real tasks
into what it knows.

Rule 1: no clock, no I/O. Rule 2: every call answers with the attempts that are to start now, in
order.
Rule 3: `streams.Pool` knows no failures. A task that failed for good has finished as far as it can
tell; a task that can never run because of that takes no time when its turn comes; one that is to be
tried again was lost. So what does not depend on a failed task continues.
Rule 4: a workflow that was cancelled leaves when the last of its running tasks has ended. Until
then nothing of it starts.
"""

import heapq
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from windrow.model import NodeShape, Runnable
from windrow.pool.events import CANCELLED, COMPLETE, FAILED
from windrow.pool.workflow_state import ServedWorkflow, WorkflowPast
from windrow.streams import (
    Backfilling,
    Pool,
    Start,
    TaskFinished,
    TaskLost,
    WorkflowArrived,
    WorkflowWithdrawn,
)
from windrow.streams.selection import Selection


class PoolAttempt(NamedTuple):
    """Start this task of this workflow now."""

    number: int
    task: int
    attempt: int


class PoolCore:
    """The workflows in the pool."""

    def __init__(self, pool: Pool, shape: NodeShape) -> None:
        """`shape` is what each node has."""
        self.pool = pool
        self.workflows: dict[int, ServedWorkflow] = {}
        self._shape = shape
        self._ended: list[tuple[ServedWorkflow, str]] = []

    def take_ended(self) -> list[tuple[ServedWorkflow, str]]:
        """The workflows that have ended since the last call, and how."""
        ended = self._ended
        self._ended = []
        return ended

    def arrive(
        self, number: int, runnable: Runnable, at_s: float, past: WorkflowPast | None = None
    ) -> list[PoolAttempt]:
        """A workflow joins. UserError if it asks for more than the pool has; then nothing has
        changed."""
        served = ServedWorkflow(number, runnable, self._shape, past or WorkflowPast())
        if served.left == 0:
            self._end(served)
            return []
        starts = self.pool.handle(WorkflowArrived(number, served.rest_workflow(), at_s))
        self.workflows[number] = served
        return self._follow(starts)

    def finished(self, number: int, task: int, runtime_s: float) -> list[PoolAttempt]:
        """An attempt succeeded."""
        served = self.workflows[number]
        served.finish(task, runtime_s)
        return self._over(served, task, runtime_s)

    def failed(self, number: int, task: int, runtime_s: float) -> list[PoolAttempt]:
        """An attempt failed; ask `is_final` first what comes of it."""
        served = self.workflows[number]
        if not self.is_final(number, task):
            served.failures[task] = served.failures.get(task, 0) + 1
            return self.lost(number, task)
        served.give_up(task)
        return self._over(served, task, runtime_s)

    def is_final(self, number: int, task: int) -> bool:
        """Whether the next failure of this task is the last."""
        served = self.workflows[number]
        return served.failures.get(task, 0) >= served.runnable.steps[task].retries

    def lost(self, number: int, task: int) -> list[PoolAttempt]:
        """An attempt is over without a result; the task starts again when its turn comes."""
        served = self.workflows[number]
        served.running.remove(task)
        if served.is_withdrawn:
            return self._leave_if_idle(served)
        return self._follow(self.pool.handle(TaskLost(number, served.place(task))))

    def withdraw(self, number: int) -> list[PoolAttempt]:
        """The workflow is to leave. The caller must stop its tasks, and say so with `lost`."""
        served = self.workflows[number]
        served.is_withdrawn = True
        return self._leave_if_idle(served)

    def _over(self, served: ServedWorkflow, task: int, runtime_s: float) -> list[PoolAttempt]:
        if served.is_withdrawn and served.left:
            return self._leave_if_idle(served)
        starts = self._tell(served, task, runtime_s)
        if served.left == 0:
            starts += self._leave(served)
        return self._follow(starts)

    def _follow(self, starts: Iterable[Start]) -> list[PoolAttempt]:
        """Go through what `streams.Pool` wants started; what it starts because of our answers,
        too."""
        wanted: list[PoolAttempt] = []
        queue = deque(starts)
        while queue:
            start = queue.popleft()
            served = self.workflows.get(start.number)
            if (
                served is None or served.is_withdrawn
            ):  # it has left, or is about to, and takes this along
                continue
            task = served.rest[start.task]
            if task in served.blocked:
                queue.extend(self._tell(served, task, 0.0))
                continue
            served.running.add(task)
            served.attempts[task] = served.attempts.get(task, 0) + 1
            wanted.append(PoolAttempt(start.number, task, served.attempts[task]))
        return wanted

    def _tell(self, served: ServedWorkflow, task: int, runtime_s: float) -> list[Start]:
        """`streams.Pool` need not hear of the task any more."""
        served.unseen -= 1
        return self.pool.handle(TaskFinished(served.number, served.place(task), runtime_s))

    def _leave_if_idle(self, served: ServedWorkflow) -> list[PoolAttempt]:
        if served.running:
            return []
        return self._follow(self._leave(served))

    def _leave(self, served: ServedWorkflow) -> list[Start]:
        """Nothing of the workflow runs, and nothing will."""
        del self.workflows[served.number]
        self._end(served)
        if served.unseen:
            return self.pool.handle(WorkflowWithdrawn(served.number))
        return []

    def _end(self, served: ServedWorkflow) -> None:
        if served.left:
            outcome = CANCELLED
        elif served.given_up:
            outcome = FAILED
        else:
            outcome = COMPLETE
        self._ended.append((served, outcome))


def alone_s(served: ServedWorkflow, shape: NodeShape, slots: int, selection: Selection) -> float:
    """The makespan that a finished workflow would have had alone in a pool of this size, by the
    times its tasks had.

    The same pool code says so; 0 if a task has no run time, for then it cannot be known.
    """
    if len(served.took_s) < len(served.runnable.workflow):
        return 0.0
    pool = Pool(slots, Backfilling(), selection=selection)
    alone = ServedWorkflow(served.number, served.runnable, shape, WorkflowPast())
    starts = pool.handle(WorkflowArrived(alone.number, alone.rest_workflow(), 0.0))
    running: list[tuple[float, int]] = []
    now_s = 0.0
    while starts or running:
        for start in starts:
            heapq.heappush(running, (now_s + served.took_s[start.task], start.task))
        now_s, task = heapq.heappop(running)
        starts = pool.handle(TaskFinished(alone.number, task, served.took_s[task]))
    return now_s
