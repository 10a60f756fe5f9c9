"""On which node a task starts. The pool's policy has said that it starts; here it gets its cores and memory.

`streams.Pool` counts processors of all nodes together. So it can happen that enough are free, but not on one node.
Rule: first come, first placed. A task that finds no room holds up those behind it, else small tasks could keep it
waiting for ever.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from windrow.model.packing import Need
from windrow.model.resources import NodeShape


@dataclass(slots=True)
class _Node:
    cores: int
    memory_bytes: float
    tasks: int = 0
    is_lost: bool = False


class Placement:
    """The nodes of a pool and what is on them. Keys name attempts."""

    def __init__(self, nodes: int, shape: NodeShape) -> None:
        self._cores = shape.cores
        self._memory_bytes = float("inf") if shape.memory_bytes is None else float(shape.memory_bytes)
        self._nodes = [_Node(self._cores, self._memory_bytes) for _ in range(nodes)]
        self._waiting: deque[tuple[int, Need]] = deque()
        self._placed: dict[int, tuple[Need, tuple[int, ...]]] = {}

    def ask(self, key: int, need: Need) -> None:
        """The attempt starts as soon as there is room and nobody is before it."""
        self._waiting.append((key, need))

    def place(self) -> list[tuple[int, tuple[int, ...]]]:
        """Those that start now, and their nodes, in order."""
        placed = []
        while self._waiting:
            key, need = self._waiting[0]
            nodes = self._room(need)
            if not nodes:
                break
            self._waiting.popleft()
            self._take(need, nodes)
            self._placed[key] = need, nodes
            placed.append((key, nodes))
        return placed

    def misfits(self) -> list[int]:
        """Those that wait for more than the nodes that are left have: they would hold up all others for ever."""
        left = sum(not node.is_lost for node in self._nodes)
        return [key for key, need in self._waiting if need.nodes > left]

    def free(self, key: int) -> None:
        """The attempt has ended, or will not start."""
        if key in self._placed:
            need, nodes = self._placed.pop(key)
            self._take(need, nodes, -1)
        else:
            self._waiting = deque(entry for entry in self._waiting if entry[0] != key)

    def lose(self, node: int) -> None:
        """Nothing starts on this node any more."""
        self._nodes[node].is_lost = True

    def _take(self, need: Need, nodes: tuple[int, ...], sign: int = 1) -> None:
        for i in nodes:
            node = self._nodes[i]
            node.tasks += sign
            node.cores -= sign * (self._cores if need.nodes else need.cores)
            node.memory_bytes -= 0 if need.nodes else sign * need.memory_bytes

    def _room(self, need: Need) -> tuple[int, ...]:
        """The nodes where it can start now, or none."""
        alive = [(i, node) for i, node in enumerate(self._nodes) if not node.is_lost]
        if need.nodes:
            empty = [i for i, node in alive if node.tasks == 0]
            return tuple(empty[: need.nodes]) if len(empty) >= need.nodes else ()
        for i, node in alive:
            if node.cores >= need.cores and node.memory_bytes >= need.memory_bytes:
                return (i,)
        return ()
