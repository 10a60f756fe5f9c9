"""The mechanism that all policies share: one queue of workflows, one number of processors, one pass after each event.

A pass goes through the queue from its head while processors are free. From each workflow it starts as many eligible
tasks as it can; then it keeps back, idle, as many processors as the policy's target exceeds the eligible set. What is
left goes to the next workflow. So the reservation of a workflow is max(0, target - eligible) beyond what runs, and is
worked out anew in every pass: what an earlier workflow no longer holds is free for all at once.

Rule 1: `handle` is the only door; it answers with the tasks to start now. Rule 2: a task that needs more processors
than are free ends the pass: nothing behind it may take what it waits for. (Tasks of one core never do that.)
Rule 3: nothing here reads a clock or draws from a shared source of chance.
"""

from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import assert_never

from windrow.errors import UserError
from windrow.streams.estimates import Estimates, Exact, length_s
from windrow.streams.events import Event, Start, TaskFinished, TaskLost, WorkflowArrived, WorkflowWithdrawn
from windrow.streams.policies import Policy
from windrow.streams.progress import Progress
from windrow.streams.selection import RandomReady, RankedReady, Ready, Selection, at_random, first_draw


@dataclass(slots=True)
class _Guest:
    """A workflow in the queue. `reserve` is max(0, target - eligible), renewed whenever its progress changes."""

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
        """`estimates` are asked for only by policies that order the queue by length; by default exact ones."""
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
        self._guests: dict[int, _Guest] = {}
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
                guest = self._guests[event.number]
                self._release(guest, event.task)
                guest.ready.add(event.task)
            case WorkflowWithdrawn():
                guest = self._guests[event.number]
                for task in sorted(guest.running):
                    self._release(guest, task)
                self._leave(guest)
            case _:
                assert_never(event)
        return list(self._pass())

    @property
    def queue(self) -> list[int]:
        """Numbers of the workflows in the pool, in the order in which they are served."""
        return [number for _, number in self._queue]

    def progress(self, number: int) -> Progress:
        """How far a workflow in the pool is."""
        return self._guests[number].progress

    def running(self, number: int) -> list[int]:
        """Its running tasks, ascending."""
        return sorted(self._guests[number].running)

    def _arrive(self, event: WorkflowArrived) -> None:
        workflow = event.workflow
        widest = int(workflow.cores.max())
        if widest > self.slots:
            raise UserError(f"{workflow.name} has a task of {widest} cores, but the pool has {self.slots}")
        assert event.number not in self._guests, "numbers name workflows"
        ranks = self._selection(workflow)
        ready = RandomReady(first_draw(self._seed, event.number)) if ranks is None else RankedReady(ranks)
        length = length_s(workflow, self._estimates.runtimes_s(event.number, workflow), self.slots)
        place = (self.policy.place(event.at_s, length), self._arrived)
        guest = _Guest(event.number, Progress(workflow), ready, place)
        self._arrived += 1
        for task in guest.progress.entries():
            guest.ready.add(task)
        self._guests[event.number] = guest
        insort(self._queue, (place, event.number))
        self._renew(guest)

    def _finish(self, event: TaskFinished) -> None:
        guest = self._guests[event.number]
        self._release(guest, event.task)
        guest.took_s[event.task] = event.runtime_s
        for task in guest.progress.finish(event.task):
            guest.ready.add(task)
        if guest.progress.left:
            self._renew(guest)
        else:
            took_s = [guest.took_s[task] for task in range(len(guest.took_s))]
            self._estimates.learn(guest.progress.workflow, took_s)
            self._leave(guest)

    def _renew(self, guest: _Guest) -> None:
        guest.reserve = max(0, self.policy.target(guest.progress) - guest.progress.eligible)

    def _release(self, guest: _Guest, task: int) -> None:
        guest.running.remove(task)
        self.free += guest.progress.cores[task]

    def _leave(self, guest: _Guest) -> None:
        del self._guests[guest.number]
        self._queue.remove((guest.place, guest.number))

    def _pass(self) -> Iterable[Start]:
        left = self.free
        self.reserved = 0
        for _, number in self._queue:
            if left == 0:
                break
            guest = self._guests[number]
            while guest.ready and left > 0:
                task = guest.ready.choose()
                cores = guest.progress.cores[task]
                if cores > left:  # Rule 2
                    self.reserved += left
                    return
                guest.ready.take()
                guest.running.add(task)
                left -= cores
                self.free -= cores
                yield Start(number, task)
            kept = min(left, guest.reserve)
            self.reserved += kept
            left -= kept
