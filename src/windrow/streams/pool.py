"""The mechanism that all policies share: one queue of workflows, one number of processors, one pass
after each event.

A pass goes through the queue from its head while processors are free. From each workflow it starts
as many eligible tasks as it can; then it keeps back, idle, as many processors as the policy's
target exceeds the eligible set. What is left goes to the next workflow. So the reservation of a
workflow is max(0, target - eligible) beyond what runs, and is worked out again in every pass: what
an earlier workflow no longer holds is free for all at once.

Rule 1: `handle` is the only door; it answers with the tasks to start now. Rule 2: a task that needs
more processors than are free ends the pass: nothing behind it may take what it waits for. (Tasks of
one core never do that.)
Rule 3: nothing here reads a clock or draws from a shared source of chance.
"""

from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import assert_never

from windrow.errors import UserError
from windrow.streams.estimates import Estimates, Exact, length_s
from windrow.streams.events import (
    Event,
    Start,
    TaskFinished,
    TaskLost,
    WorkflowArrived,
    WorkflowWithdrawn,
)
from windrow.streams.policies import Policy
from windrow.streams.progress import Progress
from windrow.streams.selection import (
    RandomReady,
    RankedReady,
    Ready,
    Selection,
    at_random,
    first_draw,
)


@dataclass(slots=True)
class _Queued:
    """A workflow in the queue. `reserve` is max(0, target - eligible), renewed whenever its
    progress changes."""

    number: int
    progress: Progress
    ready: Ready
    place: tuple[float, int]
    reserve: int = 0
    running: set[int] = field(default_factory=set)
    took_s: dict[int, float] = field(default_factory=dict)


class Pool:
    """A pool of `slots` processors, shared by one policy."""

    def __init__(
        self,
        slots: int,
        policy: Policy,
        *,
        selection: Selection = at_random,
        seed: int = 0,
        estimates: Estimates | None = None,
    ) -> None:
        """`estimates` are asked for only by policies that order the queue by length; by default
        exact ones."""
        if slots < 1:
            raise UserError(f"a pool needs at least 1 processor, not {slots}")
        self.slots = slots
        self.policy = policy
        self.free = slots
        """Processors on which no task runs."""
        self.reserved = 0
        """How many of those the last pass kept back for workflows."""
        self._selection = selection
        self._seed = seed
        self._estimates = estimates or Exact()
        self._workflows: dict[int, _Queued] = {}
        self._queue: list[tuple[tuple[float, int], int]] = []
        self._arrived = 0

    def handle(self, event: Event) -> list[Start]:
        """Take note of the event; the tasks to start now, in order."""
        match event:
            case WorkflowArrived():
                self._arrive(event)
            case TaskFinished():
                self._finish(event)
            case TaskLost():
                queued = self._workflows[event.number]
                self._release(queued, event.task)
                queued.ready.add(event.task)
            case WorkflowWithdrawn():
                queued = self._workflows[event.number]
                for task in sorted(queued.running):
                    self._release(queued, task)
                self._leave(queued)
            case _:
                assert_never(event)
        return list(self._pass())

    @property
    def queue(self) -> list[int]:
        """Numbers of the workflows in the pool, in the order in which they are served."""
        return [number for _, number in self._queue]

    def progress(self, number: int) -> Progress:
        """How far a workflow in the pool is."""
        return self._workflows[number].progress

    def running(self, number: int) -> list[int]:
        """Its running tasks, ascending."""
        return sorted(self._workflows[number].running)

    def _ready(self, event: WorkflowArrived) -> Ready:
        """Where its tasks wait until they start, in the order in which they should."""
        ranks = self._selection(event.workflow)
        if ranks is None:
            return RandomReady(first_draw(self._seed, event.number))
        return RankedReady(ranks)

    def _arrive(self, event: WorkflowArrived) -> None:
        workflow = event.workflow
        widest = int(workflow.cores.max())
        if widest > self.slots:
            raise UserError(
                f"{workflow.name} has a task of {widest} cores, but the pool has {self.slots}"
            )
        assert event.number not in self._workflows, "numbers name workflows"
        ready = self._ready(event)
        length = length_s(workflow, self._estimates.runtimes_s(event.number, workflow), self.slots)
        place = (self.policy.place(event.at_s, length), self._arrived)
        queued = _Queued(event.number, Progress(workflow), ready, place)
        self._arrived += 1
        for task in queued.progress.entries():
            queued.ready.add(task)
        self._workflows[event.number] = queued
        insort(self._queue, (place, event.number))
        self._renew(queued)

    def _finish(self, event: TaskFinished) -> None:
        queued = self._workflows[event.number]
        self._release(queued, event.task)
        queued.took_s[event.task] = event.runtime_s
        for task in queued.progress.finish(event.task):
            queued.ready.add(task)
        if queued.progress.left:
            self._renew(queued)
        else:
            took_s = [queued.took_s[task] for task in range(len(queued.took_s))]
            self._estimates.learn(queued.progress.workflow, took_s)
            self._leave(queued)

    def _renew(self, queued: _Queued) -> None:
        queued.reserve = max(0, self.policy.target(queued.progress) - queued.progress.eligible)

    def _release(self, queued: _Queued, task: int) -> None:
        queued.running.remove(task)
        self.free += queued.progress.cores[task]

    def _leave(self, queued: _Queued) -> None:
        del self._workflows[queued.number]
        self._queue.remove((queued.place, queued.number))

    def _pass(self) -> Iterable[Start]:
        left = self.free
        self.reserved = 0
        for _, number in self._queue:
            if left == 0:
                break
            queued = self._workflows[number]
            while queued.ready and left > 0:
                task = queued.ready.choose()
                cores = queued.progress.cores[task]
                if cores > left:  # Rule 2
                    self.reserved += left
                    return
                queued.ready.take()
                queued.running.add(task)
                left -= cores
                self.free -= cores
                yield Start(number, task)
            kept = min(left, queued.reserve)
            self.reserved += kept
            left -= kept
