"""Four ways to run a workflow over batch queues (Zhang 5.2, 5.3): each task is a job, and goes to a queue.

Law: of the tasks that can be mapped the next one is that which can end first, where it does (min-min over queues):

    end(task, queue) = max(data there, max(earliest node of the queue, ready) + its wait) + run

| way | queues | mapped | after a trigger | model |
| --- | --- | --- | --- | --- |
| hybrid | chosen (`estimate.choose`) | when ready | chosen again, and combined | learns |
| static | chosen | all at the beginning | - | as it was |
| static rescheduling | all | all at the beginning | what is not submitted, again | learns |
| dynamic | all | when ready, without data | - | as it was |

Trigger: the last `window` tasks took more than 1 + `tolerance` times what was expected of them, in the mean; from ready
to ended, as expected when they were mapped. What becomes of a job is for the world to say (`World`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heapreplace
from typing import Any, NamedTuple, Protocol

import numpy as np

from windrow.grid.clusters import Floats
from windrow.grid.estimate import Model, Work, choose, combined
from windrow.model.graph import Ints


class Way(NamedTuple):
    """How a workflow is run; see the table above."""

    chooses: bool
    ahead: bool
    reacts: bool
    moves_count: bool = True


WAYS: Mapping[str, Way] = {
    "hybrid": Way(chooses=True, ahead=False, reacts=True),
    "static": Way(chooses=True, ahead=True, reacts=False),
    "static rescheduling": Way(chooses=False, ahead=True, reacts=True),
    "dynamic": Way(chooses=False, ahead=False, reacts=False, moves_count=False),
}


class Trigger(NamedTuple):
    """When to choose again."""

    tolerance: float
    window: int


AGGRESSIVE, CONSERVATIVE = Trigger(0.2, 3), Trigger(0.3, 5)


class Move(NamedTuple):
    """Data of a parent on their way to a task's queue, from a time on."""

    source: int
    mb: float
    from_s: float


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of a task; `wait_s` is until it had a node, `moves_s` what each of its moves took."""

    task: int
    queue: int
    submitted_s: float
    wait_s: float
    started_s: float
    run_s: float
    moves: Sequence[Move]
    moves_s: Sequence[float]

    @property
    def end_s(self) -> float:
        """When it ended."""
        return self.started_s + self.run_s


class World(Protocol):
    """Queues in one time."""

    now_s: float

    def submit(self, task: int, queue: int, moves: Sequence[Move], iterations: float, mb: float) -> None:
        """Now."""

    def next_end(self) -> Ended:
        """Go on until a task ends."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A workflow's run: how long it took, how often queues were chosen or tasks mapped again, and who ran where."""

    turnaround_s: float
    chosen: int
    queue_of: tuple[int, ...]


def plan_length_s(work: Work, model: Model) -> float:
    """What the static way expects in the beginning."""
    run = _Run(work, model, WAYS["static"], AGGRESSIVE, {})
    return max(end for _, end in run.mapped(range(len(work.workflow)), 0.0).values())


def execute(
    way: str, work: Work, model: Model, world: World, trigger: Trigger, *, own_waits: bool = False, **reading: Any
) -> Outcome:
    """Run the workflow that way; `reading` are options of `estimate.choose`."""
    return _Run(work, model.copy(), WAYS[way], trigger, reading, own_waits).all(world)


@dataclass
class _Run:
    work: Work
    model: Model
    way: Way
    trigger: Trigger
    reading: Mapping[str, Any]
    own_waits: bool = False
    pool: list[int] = field(init=False)
    plan: dict[int, tuple[int, float]] = field(default_factory=dict)
    """Tasks that are mapped: the queue, and when they are expected to end."""
    expected_s: dict[int, float] = field(default_factory=dict)
    ended: dict[int, Ended] = field(default_factory=dict)
    submitted: dict[int, float] = field(default_factory=dict)
    """Tasks in queues, with their expected ends, in the order of their submissions."""
    sent: dict[int, int] = field(default_factory=dict)
    """The queue of each task that was submitted."""
    held_s: dict[int, float] = field(default_factory=dict)
    ratios: list[float] = field(default_factory=list)
    chosen: int = 0

    def __post_init__(self) -> None:
        self.pool = self._choose() if self.way.chooses else list(range(len(self.model.nodes)))
        parents = self.work.workflow.parents
        self._moved = [self.work.moved_mb[a:b] for a, b in zip(parents.start[:-1], parents.start[1:], strict=True)]

    def _choose(self) -> list[int]:
        self.chosen += 1
        left = np.array([v not in self.ended and v not in self.submitted for v in range(len(self.work.workflow))])
        return choose(self.work, self.model, left if left.any() else None, **self.reading)

    def all(self, world: World) -> Outcome:
        """Until every task has ended."""
        began, n = world.now_s, len(self.work.workflow)
        waiting = self.work.workflow.parents.degrees()
        ready = [v for v in range(n) if waiting[v] == 0]
        if self.way.ahead:
            self.plan = self.mapped(range(n), began)
        while True:
            self._submit(ready, world)
            if len(self.ended) == n:
                queues = tuple(self.ended[v].queue for v in range(n))
                return Outcome(world.now_s - began, self.chosen, queues)
            end = world.next_end()
            self._hear(end)
            ready = []
            for child in self.work.workflow.children.of(end.task).tolist():
                waiting[child] -= 1
                if waiting[child] == 0:
                    ready.append(child)

    def _submit(self, ready: Sequence[int], world: World) -> None:
        now = world.now_s
        mapped = {v: self.plan[v] for v in ready} if self.way.ahead else self.mapped(ready, now)
        for task, (queue, end_s) in mapped.items():
            moves = []
            for parent, mb in zip(self.work.workflow.parents.of(task).tolist(), self._moved[task], strict=True):
                if self.ended[parent].queue != queue:  # where it is to go is known early only if all was mapped ahead
                    from_s = self.ended[parent].end_s if self.way.ahead else now
                    moves.append(Move(self.ended[parent].queue, float(mb), max(from_s, 0.0)))
            self.held_s[task] = self._held_s(queue, now)
            self.submitted[task], self.sent[task] = end_s, queue
            if not self.way.ahead:
                self.expected_s[task] = end_s - now
            world.submit(task, queue, moves, self.work.iterations[task], self.work.written_mb[task])

    def _hear(self, end: Ended) -> None:
        self.ended[end.task] = end
        del self.submitted[end.task]
        if not self.way.reacts:
            return
        task, queue = end.task, end.queue
        wait_s = end.wait_s
        if not self.own_waits:  # without the time for which, as we believe, our own tasks held all nodes
            wait_s = max(0.0, wait_s - self.held_s[task])
        self.model.saw(queue, wait_s, end.run_s, self.work.iterations[task], self.work.written_mb[task])
        for move, took_s in zip(end.moves, end.moves_s, strict=True):
            self.model.saw_move((move.source, queue), move.mb, took_s)
        self.ratios.append((end.end_s - end.submitted_s) / max(self.expected_s[task], 1e-9))
        last = self.ratios[-self.trigger.window :]
        if len(last) < self.trigger.window or sum(last) <= self.trigger.window * (1 + self.trigger.tolerance):
            return
        if self.way.chooses:
            self.pool = combined(self._choose(), self.pool)
        else:
            self.chosen += 1
            rest = [v for v in range(len(self.work.workflow)) if v not in self.ended and v not in self.submitted]
            self.plan |= self.mapped(rest, end.end_s)

    def mapped(self, tasks: Sequence[int], now_s: float) -> dict[int, tuple[int, float]]:
        """These tasks, each with its queue and its expected end, in the order of mapping; parents come first."""
        workflow, pool = self.work.workflow, np.array(self.pool)
        run_s, wait_s = self.model.run_s(self.work), self.model.wait_s[pool]
        free = self._free(now_s, len(tasks))
        known = {v: (end.queue, end.end_s) for v, end in self.ended.items()}
        known |= {v: (self.sent[v], end_s) for v, end_s in self.submitted.items()}
        missing = {v: sum(p not in known for p in workflow.parents.of(v).tolist()) for v in tasks}
        front = {v: self._data(v, known, pool, now_s) for v in tasks if missing[v] == 0}
        found: dict[int, tuple[int, float]] = {}
        while front:
            at = list(front)
            there, ready_s = np.array([front[v][0] for v in at]), [front[v][1] for v in at]
            nodes = np.maximum(np.array([heap[0] for heap in free]), np.array(ready_s)[:, None])
            ends = np.maximum(there, nodes + wait_s) + run_s[np.array(at)[:, None], pool]
            row, column = np.unravel_index(int(np.argmin(ends)), ends.shape)
            task, end_s = at[int(row)], float(ends[row, column])
            heapreplace(free[int(column)], end_s)
            found[task] = known[task] = int(pool[column]), end_s
            if self.way.ahead:
                self.expected_s[task] = end_s - ready_s[int(row)]
            del front[task]
            for child in workflow.children.of(task).tolist():
                if child in missing:
                    missing[child] -= 1
                    if missing[child] == 0:
                        front[child] = self._data(child, known, pool, now_s)
        return found

    def _data(
        self, task: int, known: Mapping[int, tuple[int, float]], pool: Ints, now_s: float
    ) -> tuple[Floats, float]:
        """When its data would be on each queue of the pool, and when its last parent has ended."""
        ready_s, there = now_s, np.full(len(pool), now_s)
        for parent, mb in zip(self.work.workflow.parents.of(task).tolist(), self._moved[task], strict=True):
            queue, end_s = known[parent]
            ready_s = max(ready_s, end_s)
            if self.way.moves_count:
                there = np.maximum(there, max(end_s, now_s) + self.model.link_s_per_mb[queue, pool] * mb)
        return np.maximum(there, ready_s), ready_s

    def _held_s(self, queue: int, now_s: float) -> float:
        """For how long our own tasks hold all nodes of a queue from now on, as expected."""
        ends = sorted(max(now_s, end_s) for task, end_s in self.submitted.items() if self.sent[task] == queue)
        return ends[-int(self.model.nodes[queue])] - now_s if len(ends) >= self.model.nodes[queue] else 0.0

    def _free(self, now_s: float, more: int) -> list[list[float]]:
        """When nodes of each queue of the pool become free of our own tasks; as many as may matter."""
        heaps = []
        for queue in self.pool:
            held = [max(now_s, end_s) for task, end_s in self.submitted.items() if self.sent[task] == queue]
            heap = [now_s] * min(int(self.model.nodes[queue]), len(held) + more + 1)
            heapify(heap)
            for end_s in held:
                heapreplace(heap, max(end_s, heap[0]))
            heaps.append(heap)
        return heaps
