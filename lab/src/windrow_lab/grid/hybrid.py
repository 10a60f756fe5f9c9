"""Four ways to run a workflow over batch queues (Zhang 5.2, 5.3): each task is a job, and goes to a
queue.

Law: of the tasks that can be mapped the next one is that which can end first, where it does
(min-min over queues):

    end(task, queue) = max(data there, max(earliest node of the queue, ready) + its wait) + run

| way | queues | mapped | after a trigger | model |
| --- | --- | --- | --- | --- |
| hybrid | chosen (`estimate.choose`) | when ready | chosen again, and combined | learns |
| static | chosen | all at the beginning | - | as it was |
| static rescheduling | all | all at the beginning | what is not submitted, again | learns |
| dynamic | all | when ready, without data | - | as it was |

Trigger: the last `window` tasks took more than 1 + `tolerance` times what was expected of them, in
the mean; from ready to ended, as expected when they were mapped. What becomes of a job is for the
world to say (`QueueWorld`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapreplace
from typing import Any, NamedTuple, Protocol

import numpy as np

from windrow.model.graph import Ints
from windrow_lab.grid.clusters import Floats
from windrow_lab.grid.estimate import LoopWork, Model, choose, combined


class HybridWay(NamedTuple):
    """How a workflow is run; see the table above."""

    chooses: bool
    ahead: bool
    reacts: bool
    moves_count: bool = True


WAYS: Mapping[str, HybridWay] = {
    "hybrid": HybridWay(chooses=True, ahead=False, reacts=True),
    "static": HybridWay(chooses=True, ahead=True, reacts=False),
    "static rescheduling": HybridWay(chooses=False, ahead=True, reacts=True),
    "dynamic": HybridWay(chooses=False, ahead=False, reacts=False, moves_count=False),
}


class Trigger(NamedTuple):
    """When to choose again."""

    tolerance: float
    window: int


AGGRESSIVE = Trigger(0.2, 3)
CONSERVATIVE = Trigger(0.3, 5)


class DataMove(NamedTuple):
    """Data of a parent on their way to a task's queue, from a time on."""

    source: int
    mb: float
    from_s: float


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of a task; `wait_s` is until it had a node, `moves_s` what each of its moves
    took."""

    task: int
    queue: int
    submitted_s: float
    wait_s: float
    started_s: float
    run_s: float
    moves: Sequence[DataMove]
    moves_s: Sequence[float]

    @property
    def end_s(self) -> float:
        """When it ended."""
        return self.started_s + self.run_s


class QueueWorld(Protocol):
    """Queues in one time."""

    now_s: float

    def submit(
        self, task: int, queue: int, moves: Sequence[DataMove], iterations: float, mb: float
    ) -> None:
        """Now."""

    def next_end(self) -> Ended:
        """Let time pass until a task ends."""


@dataclass(frozen=True, slots=True)
class WorkflowRun:
    """A workflow's run: how long it took, how often queues were chosen or tasks mapped again, and
    who ran where."""

    turnaround_s: float
    chosen: int
    queue_of: tuple[int, ...]


class _Mapped(NamedTuple):
    """Where a task is to run, when it is expected to end, and how long that is from when it is
    ready."""

    queue: int
    end_s: float
    expected_s: float


def plan_length_s(work: LoopWork, model: Model) -> float:
    """What the static way expects in the beginning."""
    found = _Execution(work, model, WAYS["static"], AGGRESSIVE).mapped(
        range(len(work.workflow)), 0.0
    )
    return max(task.end_s for task in found.values())


def execute(
    way: str, work: LoopWork, model: Model, world: QueueWorld, trigger: Trigger, **reading: Any
) -> WorkflowRun:
    """Run the workflow that way. reading: options of `estimate.choose`; and own_waits, where a wait
    as observed is to contain the time for which our own tasks were expected to hold all nodes,
    which the mapper counts apart.
    """
    return _Execution(work, model.copy(), WAYS[way], trigger, **reading).all(world)


def _inputs(work: LoopWork) -> list[list[tuple[int, float]]]:
    """Of each task its parents, and how many MB come from each."""
    ends = work.workflow.parents.start[1:-1]
    parents = np.split(work.workflow.parents.index, ends)
    moved = np.split(work.moved_mb, ends)
    return [
        list(zip(p.tolist(), mb.tolist(), strict=True))
        for p, mb in zip(parents, moved, strict=True)
    ]


class _Execution:
    def __init__(
        self,
        work: LoopWork,
        model: Model,
        way: HybridWay,
        trigger: Trigger,
        *,
        own_waits: bool = False,
        **reading: Any,
    ) -> None:
        self.work = work
        self.model = model
        self.way = way
        self.trigger = trigger
        self.own_waits = own_waits
        self.reading = reading
        self.chosen = 0
        self.ended: dict[int, Ended] = {}
        self.queued: dict[int, _Mapped] = {}  # in the order of submission
        self.held_s: dict[int, float] = {}
        self.ratios: list[float] = []
        self.inputs = _inputs(work)
        if way.chooses:
            self.pool = self._choose()
        else:
            self.pool = list(range(len(model.nodes)))
        self.plan: dict[int, _Mapped] = {}
        self.moved_again_s: dict[int, float] = {}

    def _rest(self) -> list[int]:
        return [
            v
            for v in range(len(self.work.workflow))
            if v not in self.ended and v not in self.queued
        ]

    def _choose(self) -> list[int]:
        self.chosen += 1
        left = np.zeros(len(self.work.workflow), dtype=bool)
        left[self._rest()] = True
        return choose(self.work, self.model, left if left.any() else None, **self.reading)

    def all(self, world: QueueWorld) -> WorkflowRun:
        """Until every task has ended."""
        began = world.now_s
        waiting = self.work.workflow.parents.degrees().tolist()
        if self.way.ahead:
            self.plan = self.mapped(range(len(waiting)), began)
        ready = [v for v, count in enumerate(waiting) if count == 0]
        while len(self.ended) < len(waiting):
            self._submit(ready, world)
            end = world.next_end()
            self._hear(end)
            ready = list(self.work.workflow.children.freed_by(end.task, waiting))
        return WorkflowRun(
            world.now_s - began,
            self.chosen,
            tuple(self.ended[v].queue for v in range(len(waiting))),
        )

    def _submit(self, ready: Sequence[int], world: QueueWorld) -> None:
        now_s = world.now_s
        if self.way.ahead:
            targets = {task: to for task, to in self.plan.items() if task in ready}
        else:
            targets = self.mapped(ready, now_s)
        for task, to in targets.items():
            moves = self._moves(task, to.queue, now_s)
            self.held_s[task] = self._free(to.queue, now_s, 0)[0] - now_s
            self.queued[task] = to
            world.submit(
                task, to.queue, moves, self.work.iterations[task], self.work.written_mb[task]
            )

    def _moves(self, task: int, queue: int, now_s: float) -> list[DataMove]:
        """Of the data that are on other queues. Where they are to go is known before now only if
        all was mapped ahead."""
        if self.way.ahead:
            known_s = self.moved_again_s.get(task, 0.0)
        else:
            known_s = now_s
        sources = ((self.ended[parent], mb) for parent, mb in self.inputs[task])
        return [
            DataMove(p.queue, mb, max(p.end_s, known_s)) for p, mb in sources if p.queue != queue
        ]

    def _hear(self, end: Ended) -> None:
        expected = self.queued.pop(end.task).expected_s
        self.ended[end.task] = end
        if not self.way.reacts:
            return
        self._learn(end)
        self.ratios.append((end.end_s - end.submitted_s) / max(expected, 1e-9))
        if not self._is_triggered():
            return
        if self.way.chooses:
            self.pool = combined(self._choose(), self.pool)
        else:
            self.chosen += 1
            self._map_again(end.end_s)

    def _learn(self, end: Ended) -> None:
        """The model sees how long the task waited and ran, and how long its data took."""
        if self.own_waits:
            wait_s = end.wait_s
        else:
            wait_s = max(0.0, end.wait_s - self.held_s[end.task])
        iterations = self.work.iterations[end.task]
        self.model.saw(end.queue, wait_s, end.run_s, iterations, self.work.written_mb[end.task])
        for move, took_s in zip(end.moves, end.moves_s, strict=True):
            self.model.saw_move((move.source, end.queue), move.mb, took_s)

    def _is_triggered(self) -> bool:
        tolerance, window = self.trigger
        last = self.ratios[-window:]
        return len(last) == window and sum(last) > window * (1 + tolerance)

    def _map_again(self, now_s: float) -> None:
        for task, to in self.mapped(self._rest(), now_s).items():
            if to.queue != self.plan[task].queue:
                self.moved_again_s[task] = now_s
            self.plan[task] = to

    def mapped(self, tasks: Iterable[int], now_s: float) -> dict[int, _Mapped]:
        """These tasks, in the order of mapping; parents come first."""
        pool = np.array(self.pool)
        run_s = self.model.run_s(self.work)
        known = {v: (end.queue, end.end_s) for v, end in self.ended.items()}
        known |= {v: (to.queue, to.end_s) for v, to in self.queued.items()}
        missing = {v: sum(p not in known for p, _ in self.inputs[v]) for v in tasks}
        free = {queue: self._free(queue, now_s, len(missing)) for queue in self.pool}
        front = {v: self._data(v, known, pool, now_s) for v, count in missing.items() if count == 0}
        found: dict[int, _Mapped] = {}
        while front:
            task, to = self._first_to_end(front, free, run_s)
            heapreplace(free[to.queue], to.end_s)
            found[task] = to
            known[task] = (to.queue, to.end_s)
            del front[task]
            for child in self._ready_after(task, missing):
                front[child] = self._data(child, known, pool, now_s)
        return found

    def _first_to_end(
        self,
        front: Mapping[int, tuple[Floats, float]],
        free: Mapping[int, Sequence[float]],
        run_s: Floats,
    ) -> tuple[int, _Mapped]:
        """Of the tasks that can be mapped that which can end first, and where it does."""
        pool = np.array(self.pool)
        tasks = list(front)
        there = np.array([data_s for data_s, _ in front.values()])
        ready_s = np.array([after_s for _, after_s in front.values()])
        nodes = np.maximum(np.array([heap[0] for heap in free.values()]), ready_s[:, None])
        ends = np.maximum(there, nodes + self.model.wait_s[pool])
        ends = ends + run_s[np.array(tasks)[:, None], pool]
        row, column = divmod(int(np.argmin(ends)), len(pool))
        end_s = float(ends[row, column])
        return tasks[row], _Mapped(self.pool[column], end_s, end_s - float(ready_s[row]))

    def _ready_after(self, task: int, missing: dict[int, int]) -> Iterator[int]:
        """The tasks of which no parent is `missing` any more when this one is mapped."""
        for child in self.work.workflow.children.of(task).tolist():
            if child in missing:
                missing[child] -= 1
                if missing[child] == 0:
                    yield child

    def _data(
        self, task: int, known: Mapping[int, tuple[int, float]], pool: Ints, now_s: float
    ) -> tuple[Floats, float]:
        """When its data would be on each queue of the pool, and when its last parent has ended."""
        sources = [(*known[parent], mb) for parent, mb in self.inputs[task]]
        ready_s = max([now_s, *(end_s for _, end_s, _ in sources)])
        there = np.zeros(len(pool))
        for queue, end_s, mb in sources if self.way.moves_count else ():
            there = np.maximum(
                there, max(end_s, now_s) + self.model.link_s_per_mb[queue, pool] * mb
            )
        return np.maximum(there, ready_s), ready_s

    def _free(self, queue: int, now_s: float, more: int) -> list[float]:
        """A heap of when nodes of a queue become free of our own tasks; as many as may matter."""
        held = [max(now_s, to.end_s) for to in self.queued.values() if to.queue == queue]
        heap = [now_s] * min(int(self.model.nodes[queue]), len(held) + more + 1)
        for end_s in held:
            heapreplace(heap, max(end_s, heap[0]))
        return heap
