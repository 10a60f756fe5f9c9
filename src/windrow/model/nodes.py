"""Room on nodes that are alike: which have cores and memory left, and who took them.

Rule 1: a task goes to the first node that has room for it, a task for whole nodes to the first that are empty.
Rule 2: who goes next is not said here: a job (`packing`) and a pool (`pool.placement`) have orders of their own.

Standard library only: it runs on compute nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from windrow.model.resources import NodeShape


class Need(NamedTuple):
    """What a task takes: cores and memory of one node, or so many whole nodes (then the rest does not matter)."""

    cores: int = 1
    memory_bytes: int = 0
    nodes: int = 0


@dataclass(slots=True)
class _Node:
    place: int
    cores: int
    memory_bytes: float
    tasks: int = 0


class Nodes:
    """So many nodes of one shape, and the tasks on them. Nodes go by their places, from 0."""

    def __init__(self, count: int, shape: NodeShape) -> None:
        self._cores = shape.cores
        self._memory_bytes = float("inf") if shape.memory_bytes is None else float(shape.memory_bytes)
        self._nodes = [_Node(place, self._cores, self._memory_bytes) for place in range(count)]
        self._left = list(self._nodes)
        self._taken: dict[int, tuple[Need, tuple[int, ...]]] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def __contains__(self, task: int) -> bool:
        return task in self._taken

    @property
    def free_cores(self) -> int:
        """The cores that nobody has."""
        return sum(node.cores for node in self._left)

    def can_ever_hold(self, need: Need) -> bool:
        """Whether it would fit if the nodes that are left were empty."""
        if need.nodes:
            return need.nodes <= len(self._left)
        return need.cores <= self._cores and need.memory_bytes <= self._memory_bytes

    def cost(self, need: Need) -> Need:
        """What a task takes in all: of whole nodes, all cores."""
        return Need(need.nodes * self._cores) if need.nodes else need

    def room(self, need: Need) -> tuple[int, ...]:
        """The nodes where it can start, or none."""
        if need.nodes == 0:
            for node in self._left:
                if node.cores >= need.cores and node.memory_bytes >= need.memory_bytes:
                    return (node.place,)
            return ()
        empty = [node.place for node in self._left if node.tasks == 0]
        return tuple(empty[: need.nodes]) if len(empty) >= need.nodes else ()

    def take(self, task: int, need: Need, places: tuple[int, ...]) -> None:
        """The task takes what it needs of these nodes, which have room for it."""
        self._taken[task] = need, places
        self._move(need, places, 1)

    def give(self, task: int) -> Need:
        """The task gives back what it took; what that was."""
        need, places = self._taken.pop(task)
        self._move(need, places, -1)
        return need

    def add(self) -> tuple[int, ...]:
        """One more node; its place."""
        node = _Node(len(self._nodes), self._cores, self._memory_bytes)
        self._nodes.append(node)
        self._left.append(node)
        return (node.place,)

    def lose(self, place: int) -> None:
        """This node has no room any more."""
        self._left = [node for node in self._left if node.place != place]

    def _move(self, need: Need, places: tuple[int, ...], tasks: int) -> None:
        cores = tasks * (self._cores if need.nodes else need.cores)
        memory_bytes = 0 if need.nodes else tasks * need.memory_bytes
        for place in places:
            node = self._nodes[place]
            node.tasks += tasks
            node.cores -= cores
            node.memory_bytes -= memory_bytes
