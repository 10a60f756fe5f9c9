"""On which node a task starts. The pool's policy has said that it starts; here it gets its cores
and memory.

`streams.Pool` counts processors of all nodes together. So it can happen that enough are free, but
not on one node. Rule: first come, first placed. A task that finds no room holds up those behind it,
else small tasks could keep it waiting for ever.
"""

from collections import deque

from windrow.model.nodes import Need, Nodes
from windrow.model.resources import NodeShape


class Placement:
    """The nodes of a pool and what is on them. Keys name attempts."""

    def __init__(self, nodes: int, shape: NodeShape) -> None:
        self._nodes = Nodes([shape] * nodes)
        self._waiting: deque[tuple[int, Need]] = deque()

    def ask(self, key: int, need: Need) -> None:
        """The attempt starts as soon as there is room and none is before it."""
        self._waiting.append((key, need))

    def place(self) -> list[tuple[int, tuple[int, ...]]]:
        """Those that start now, and their nodes, in order."""
        placed = []
        while self._waiting and (nodes := self._nodes.room(self._waiting[0][1])):
            key, need = self._waiting.popleft()
            self._nodes.take(key, need, nodes)
            placed.append((key, nodes))
        return placed

    def misfits(self) -> list[int]:
        """Those that wait for more than the nodes that are left have: they would hold up all others
        for ever."""
        return [key for key, need in self._waiting if not self._nodes.can_ever_hold(need)]

    def free(self, key: int) -> None:
        """The attempt has ended, or will not start."""
        if key in self._nodes:
            self._nodes.give(key)
        else:
            self._waiting = deque(entry for entry in self._waiting if entry[0] != key)

    def lose(self, node: int) -> None:
        """Nothing starts on this node any more."""
        self._nodes.lose(node)
