"""Which task starts where inside an allocation: list scheduling with packing, one task at a time.

Rule 1: among the tasks offered, the one with the highest priority goes first; of equals the longest
expected run, then by number.
Rule 2: where it starts is what `nodes` says. Tasks with data on nodes come before all others, if
there is room where most of a task's data are; after all others they start elsewhere, too: no room
stays empty that a task could use.
Rule 3: a task that finds no room does not hold up those behind it.
Rule 4: if the space of files is limited, `space` says which task is next, and whether it
may start.

The same rules run in simulation, in estimates (`kernels.run.estimate`, which must agree) and on
real nodes, so the module needs nothing but the standard library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heappush
from typing import Protocol

from windrow.model.nodes import NOTHING, Need, Nodes
from windrow.model.resources import NodeShape

Kind = tuple[Need, int]
"""What a task needs, and the node that has most of its data; `_NONE` if none has any, or all
nodes are alike."""
_NONE = -1
Turn = tuple[int, float, int]
"""By what the next task is chosen: priority and expected time, the other way round, and number."""


class Space(Protocol):
    """The space for files, if it is limited (`storage.admission`)."""

    def offer(self, task: int) -> None:
        """The task may start as far as others are concerned."""

    def candidates(self) -> Iterable[int]:
        """What was offered, in the order in which it is to start."""

    def admit(self, task: int) -> bool:
        """Start it, if there is space."""

    def finish(self, task: int, sizes: Sequence[int] | None = None) -> list[str]:
        """The task is done, and its files have these sizes; which files nothing needs any more."""

    def give_up(self, tasks: Sequence[int]) -> None:
        """These tasks will not run, or not again."""


class Packing:
    """The nodes of one allocation, and the tasks on them."""

    def __init__(self, nodes: int, shape: NodeShape, space: Space | None = None) -> None:
        self.nodes = Nodes([shape] * nodes)
        """The nodes."""
        # Tasks of a kind fit alike: if one finds no room, no other of its kind need be tried.
        self._offered: dict[Kind, list[Turn]] = {}
        self.limit: Need | None = None
        """The most that tasks may have, if the nodes are shared with others; it may change at
        any time."""
        self.prefer: Callable[[int], Sequence[int]] | None = None
        """The nodes where a task should run if they have room, the best first; None: all nodes are
        alike."""
        self.space = space
        self._needs: dict[int, tuple[Need, Turn]] = {}  # of what was offered, if space is limited
        self.lacks_space = False
        """Whether at the last start there were nodes for some task, and space for none."""

    def can_ever_run(self, need: Need) -> bool:
        """Whether the task would fit if the allocation were empty."""
        return self.nodes.can_ever_hold(need)

    def offer(self, task: int, expected_s: float, need: Need, priority: int = 0) -> None:
        """The task may start whenever there is room."""
        at = _NONE
        if self.prefer is not None and self.space is None and not need.nodes:
            near = self.prefer(task)
            if near:
                at = near[0]
        turn = -priority, -expected_s, task
        heappush(self._offered.setdefault((need, at), []), turn)
        if self.space is not None:
            self._needs[task] = need, turn
            self.space.offer(task)

    def rank(self, before: Turn, now: Turn) -> None:
        """What was offered with this turn has another one, if it waits for room."""
        for offered in self._offered.values():
            if before in offered:
                offered.remove(before)
                offered.append(now)
                if self.space is None:
                    heapify(offered)
        task = before[-1]
        if task in self._needs:
            self._needs[task] = (self._needs[task][0], now)

    @property
    def held(self) -> Need:
        """What tasks have in all."""
        return self.nodes.held()

    @property
    def has_offers(self) -> bool:
        """Whether any task waits for room."""
        return any(self._offered.values())

    def start(self) -> list[tuple[int, tuple[int, ...]]]:
        """Start what has room now: tasks and their nodes, in the order of starting.

        Cost: a look at each node for each task started and for each kind of task offered.
        """
        if self.space is not None:
            return self._start_within(self.space)
        near = [kind for kind in self._offered if kind[1] != _NONE]
        others = [kind for kind in self._offered if kind[1] == _NONE]
        return [*self._start(near, at_data=True), *self._start(others), *self._start(near)]

    def _near(self, need: Need, place: int) -> tuple[int, ...]:
        """This node, if it has room."""
        return (place,) if self.nodes.has_room(need, place) else ()

    def _start(
        self, kinds: Iterable[Kind], *, at_data: bool = False
    ) -> list[tuple[int, tuple[int, ...]]]:
        """Start tasks of these kinds; only if most of their data are, or anywhere."""
        started: list[tuple[int, tuple[int, ...]]] = []
        open_kinds = [(self._offered[kind][0], kind) for kind in kinds if self._offered[kind]]
        heapify(open_kinds)
        while open_kinds:
            need, near = kind = heappop(open_kinds)[1]
            if at_data:
                places = self._near(need, near)
            else:
                places = self.nodes.room(need)
            if not places or not self._is_allowed(need, places):
                continue
            tasks = self._offered[kind]
            task = heappop(tasks)[-1]
            if self.prefer is not None and not at_data:
                places = self.nodes.room(need, self.prefer(task))
            self.nodes.take(task, need, places)
            started.append((task, places))
            if tasks:
                heappush(open_kinds, (tasks[0], kind))
        return started

    def _start_within(self, space: Space) -> list[tuple[int, tuple[int, ...]]]:
        started: list[tuple[int, tuple[int, ...]]] = []
        no_room = {need for (need, _), tasks in self._offered.items() if not tasks}
        self.lacks_space = False
        has_nodes = False
        for task in space.candidates():
            if len(no_room) == len(self._offered):
                break
            need, turn = self._needs.get(task, (NOTHING, (0, 0.0, task)))
            if need in no_room or task not in self._needs:
                continue
            places = self.nodes.room(need)
            if not places or not self._is_allowed(need, places):
                no_room.add(need)
                continue
            has_nodes = True
            if space.admit(task):
                if self.prefer is not None:
                    places = self.nodes.room(need, self.prefer(task))
                self.nodes.take(task, need, places)
                started.append((task, places))
                self._offered[need, _NONE].remove(
                    turn
                )  # no heap any more: the space says what is first
                del self._needs[task]
        self.lacks_space = has_nodes and not started
        return started

    def wanted(self) -> tuple[Need, int]:
        """What could start on these nodes but for the limit: the least that a task takes, and the
        cores of all."""
        nodes = self.nodes
        offered = self._offered.items()
        able = [
            (need, places, len(tasks))
            for (need, _), tasks in offered
            if tasks and (places := nodes.room(need))
        ]
        costs = [(nodes.cost(need, places), tasks) for need, places, tasks in able]
        if not costs:
            return NOTHING, 0
        return min(costs)[0], min(
            nodes.free_cores, sum(cost.cores * tasks for cost, tasks in costs)
        )

    def withdraw(self) -> None:
        """Nothing that was offered may start any more."""
        self._offered.clear()
        self._needs.clear()

    def finish(self, task: int) -> None:
        """The task has ended, and its room is free again."""
        self.nodes.give(task)

    def _is_allowed(self, need: Need, places: tuple[int, ...]) -> bool:
        return self.limit is None or self.held.plus(self.nodes.cost(need, places)).is_within(
            self.limit
        )
