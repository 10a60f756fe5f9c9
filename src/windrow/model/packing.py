"""Which task starts where inside an allocation: list scheduling with packing, one task at a time.

Rule 1: among the tasks offered, the longest expected run goes first; equals by number.
Rule 2: a task starts on the first node that has room for it; a task for whole nodes on the first that are empty.
Rule 3: a task that finds no room does not hold up those behind it.

The same rules run in simulation, in estimates (`kernels.listing`, which must agree) and on real nodes, so the module
needs nothing but the standard library.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

from windrow.model.resources import NodeShape


class Need(NamedTuple):
    """What a task takes: cores and memory of one node, or so many whole nodes (then the rest does not matter)."""

    cores: int = 1
    memory_bytes: int = 0
    nodes: int = 0


@dataclass(slots=True)
class _Node:
    cores: int
    memory_bytes: float
    tasks: int = 0


class Packing:
    """The nodes of one allocation, and the tasks on them."""

    def __init__(self, nodes: int, shape: NodeShape) -> None:
        self._cores = shape.cores
        self._memory_bytes = float("inf") if shape.memory_bytes is None else float(shape.memory_bytes)
        self._nodes = [_Node(self._cores, self._memory_bytes) for _ in range(nodes)]
        # Tasks that need the same fit alike: if one finds no room, no other of its kind need be tried.
        self._offered: dict[Need, list[tuple[float, int]]] = {}
        self._places: dict[int, tuple[Need, tuple[int, ...]]] = {}
        self.held = Need(0)
        """The cores and the memory that tasks have."""
        self.limit: Need | None = None
        """The most that tasks may have, where the nodes are shared with others; it may change at any time."""

    def can_ever_run(self, need: Need) -> bool:
        """Whether the task would fit if the allocation were empty."""
        if need.nodes:
            return need.nodes <= len(self._nodes)
        return need.cores <= self._cores and need.memory_bytes <= self._memory_bytes

    def offer(self, task: int, expected_s: float, need: Need) -> None:
        """The task may start whenever there is room."""
        heappush(self._offered.setdefault(need, []), (-expected_s, task))

    @property
    def has_offers(self) -> bool:
        """Whether any task waits for room."""
        return any(self._offered.values())

    def start(self) -> list[tuple[int, tuple[int, ...]]]:
        """Start what has room now: tasks and their nodes, in the order of starting.

        Cost: a look at each node for each task started and for each kind of need offered.
        """
        started: list[tuple[int, tuple[int, ...]]] = []
        open_kinds = [(tasks[0], need) for need, tasks in self._offered.items() if tasks]
        while open_kinds:
            first = min(open_kinds)
            need = first[1]
            open_kinds.remove(first)
            places = self._room(need)
            if not places or not self._is_allowed(need):
                continue
            tasks = self._offered[need]
            task = heappop(tasks)[1]
            self._take(task, need, places)
            started.append((task, places))
            if tasks:
                open_kinds.append((tasks[0], need))
        return started

    def wanted(self) -> tuple[Need, int]:
        """What could start on these nodes but for the limit: the least that a task takes, and the cores of all."""
        costs = [(self._cost(need), len(tasks)) for need, tasks in self._offered.items() if tasks and self._room(need)]
        if not costs:
            return Need(0), 0
        free = sum(node.cores for node in self._nodes)
        return min(costs)[0], min(free, sum(cost.cores * tasks for cost, tasks in costs))

    def withdraw(self) -> None:
        """Nothing that was offered may start any more."""
        self._offered.clear()

    def finish(self, task: int) -> None:
        """The task has ended, and its room is free again."""
        need, places = self._places.pop(task)
        self._count(need, -1)
        for place in places:
            node = self._nodes[place]
            node.tasks -= 1
            node.cores += self._cores if need.nodes else need.cores
            node.memory_bytes += 0 if need.nodes else need.memory_bytes

    def _take(self, task: int, need: Need, places: tuple[int, ...]) -> None:
        for place in places:
            node = self._nodes[place]
            node.tasks += 1
            node.cores -= self._cores if need.nodes else need.cores
            node.memory_bytes -= 0 if need.nodes else need.memory_bytes
        self._places[task] = need, places
        self._count(need, 1)

    def _cost(self, need: Need) -> Need:
        """What a task takes in all: of whole nodes, all cores."""
        return Need(need.nodes * self._cores) if need.nodes else need

    def _count(self, need: Need, tasks: int) -> None:
        cost = self._cost(need)
        self.held = Need(self.held.cores + tasks * cost.cores, self.held.memory_bytes + tasks * cost.memory_bytes)

    def _is_allowed(self, need: Need) -> bool:
        if self.limit is None:
            return True
        cost = self._cost(need)
        cores, memory = self.held.cores + cost.cores, self.held.memory_bytes + cost.memory_bytes
        return cores <= self.limit.cores and memory <= self.limit.memory_bytes

    def _room(self, need: Need) -> tuple[int, ...]:
        """The nodes where it can start, or none."""
        if need.nodes == 0:
            for i, node in enumerate(self._nodes):
                if node.cores >= need.cores and node.memory_bytes >= need.memory_bytes:
                    return (i,)
            return ()
        empty = [i for i, node in enumerate(self._nodes) if node.tasks == 0]
        return tuple(empty[: need.nodes]) if len(empty) >= need.nodes else ()
