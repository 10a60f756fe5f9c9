"""Room on nodes: which have what a task needs, and who took it.

Rule 1: a task goes to the first node that has room for it, a task for whole nodes to the first that
are empty.
Rule 2: who goes next is not said here: a job (`packing`) and a pool (`pool.placement`) have orders
of their own.
Rule 3: a GPU is one task's at a time. On a node they go by their places, from 0; the lowest that
are free are taken.

Standard library only: it runs on compute nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from windrow.model.resources import GPUS, Counts, NodeShape, amount_text
from windrow.model.size import format_memory


class Need(NamedTuple):
    """What a task takes of one node; or how many whole nodes, each with such a disk and such counts
    at least.

    Of whole nodes a task has all cores and all memory, whatever the number here.
    """

    cores: int = 1
    memory_bytes: int = 0
    nodes: int = 0
    disk_bytes: int = 0
    counts: Counts = ()

    def amounts(self) -> dict[str, int]:
        """What a node must have for it, by name."""
        if self.nodes:
            shared = {}
        else:
            shared = {"cores": self.cores, "memory": self.memory_bytes}
        return {**shared, "disk": self.disk_bytes, **dict(self.counts)}

    def fits(self, shape: NodeShape) -> bool:
        """Whether an empty node of this shape could hold it, or be one of its nodes."""
        there = shape.amounts()
        return all(amount <= there.get(name, 0) for name, amount in self.amounts().items())

    def plus(self, other: Need, times: int = 1) -> Need:
        """Both together, the other `times` times."""
        counts = self.counts
        if other.counts:
            here = dict(counts)
            more = dict(other.counts)
            counts = tuple(
                (name, here.get(name, 0) + times * more.get(name, 0))
                for name in sorted({*here, *more})
            )
        cores = self.cores + times * other.cores
        memory_bytes = self.memory_bytes + times * other.memory_bytes
        return Need(cores, memory_bytes, 0, self.disk_bytes + times * other.disk_bytes, counts)

    def is_within(self, limit: Need) -> bool:
        """Whether it takes no more than this of anything."""
        most = limit.amounts()
        return all(amount <= max(0, most.get(name, 0)) for name, amount in self.amounts().items())


NOTHING = Need(0)


class _Node:
    """What is free of a node. `rest`: its disk and its named resources."""

    __slots__ = ("cores", "gpus", "memory_bytes", "place", "rest", "shape", "tasks")

    def __init__(self, place: int, shape: NodeShape) -> None:
        self.place = place
        self.shape = shape
        self.tasks = 0
        self.cores, self.memory_bytes, rest, gpus = _empty(shape)
        self.rest = dict(rest)
        self.gpus = list(range(gpus))

    def has(self, rest: Iterable[tuple[str, int]]) -> bool:
        """Whether that much of these is free."""
        return all(self.rest.get(name, 0) >= amount for name, amount in rest)


@cache
def _empty(shape: NodeShape) -> tuple[int, float, dict[str, float], int]:
    """What an empty node has: cores, memory, the rest by name, and GPUs."""
    rest = shape.amounts()
    return int(rest.pop("cores")), rest.pop("memory"), rest, int(rest.get(GPUS, 0))


class Nodes:
    """Nodes, each of its shape, and the tasks on them. Nodes go by their places, from 0."""

    def __init__(self, shapes: Iterable[NodeShape]) -> None:
        self._nodes = [_Node(place, shape) for place, shape in enumerate(shapes)]
        self._left = list(self._nodes)
        self._taken: dict[int, tuple[Need, tuple[int, ...], list[int]]] = {}
        self.busy_gpus: frozenset[int] = frozenset()
        """Those that tasks of others have, if nodes are shared."""

    def __len__(self) -> int:
        return len(self._nodes)

    def __contains__(self, task: int) -> bool:
        return task in self._taken

    @property
    def free_cores(self) -> int:
        """The cores that are free."""
        return sum(node.cores for node in self._left)

    def can_ever_hold(self, need: Need) -> bool:
        """Whether it would fit if the nodes that are left were empty."""
        able = {
            shape
            for shape in {node.shape for node in self._left or self._nodes}
            if need.fits(shape)
        }
        return bool(able) and need.nodes <= sum(node.shape in able for node in self._left)

    def cost(self, need: Need, places: tuple[int, ...]) -> Need:
        """What a task takes of these nodes in all: of whole ones, all cores and named resources."""
        if need.nodes:
            cost = NOTHING
        else:
            cost = need
        for place in places if need.nodes else ():
            shape = self._nodes[place].shape
            cost = cost.plus(Need(shape.cores, counts=shape.counts))
        return cost

    def _tried(self, first: Sequence[int]) -> list[_Node]:
        """Those first, in their order, then the others."""
        return sorted(
            self._left,
            key=lambda node: first.index(node.place) if node.place in first else len(first),
        )

    def room(self, need: Need, first: Sequence[int] = ()) -> tuple[int, ...]:
        """The nodes where it can start, or none; for a share of a node, these are tried `first`."""
        rest = _rest(need)
        if need.nodes == 0:
            cores = need.cores
            memory_bytes = need.memory_bytes
            for node in self._tried(first) if first else self._left:
                if (
                    node.cores >= cores
                    and node.memory_bytes >= memory_bytes
                    and (not rest or node.has(rest))
                ):
                    return (node.place,)
            return ()
        empty = [
            node.place for node in self._left if node.tasks == 0 and (not rest or node.has(rest))
        ]
        if len(empty) >= need.nodes:
            return tuple(empty[: need.nodes])
        return ()

    def has_room(self, need: Need, place: int) -> bool:
        """Whether a share of this node can start there."""
        node = self._nodes[place]
        rest = _rest(need)
        is_enough = node.cores >= need.cores and node.memory_bytes >= need.memory_bytes
        return is_enough and (not rest or node.has(rest)) and node in self._left

    def take(self, task: int, need: Need, places: tuple[int, ...]) -> None:
        """The task takes what it needs of these nodes, which have room for it."""
        chosen: list[int] = []
        if free := self._nodes[places[0]].gpus:
            if need.nodes:
                gpus = len(free)
            else:
                gpus = dict(need.counts).get(GPUS, 0)
            chosen = sorted(free, key=lambda gpu: (gpu in self.busy_gpus, gpu))[:gpus]
            self._nodes[places[0]].gpus = [gpu for gpu in free if gpu not in chosen]
        self._taken[task] = need, places, chosen
        self._move(need, places, 1)

    def give(self, task: int) -> None:
        """The task gives back what it took."""
        need, places, gpus = self._taken.pop(task)
        self._nodes[places[0]].gpus += gpus
        self._move(need, places, -1)

    def held(self) -> Need:
        """What tasks have in all. Added up when asked: few nodes are shared, and every task
        starts."""
        held = NOTHING
        for need, places, _ in self._taken.values():
            held = held.plus(self.cost(need, places))
        return held

    def gpus_of(self, task: int) -> tuple[int, ...] | None:
        """The GPUs of its node that a task has; None if it has all there are, or they are not
        counted there."""
        need, places, gpus = self._taken[task]
        is_counted = any(name == GPUS for name, _ in self._nodes[places[0]].shape.counts)
        if is_counted and not need.nodes:
            return tuple(gpus)
        return None

    def held_gpus(self) -> set[int]:
        """All that tasks have of the first node."""
        return {gpu for _, places, gpus in self._taken.values() if places[0] == 0 for gpu in gpus}

    def add(self, shape: NodeShape) -> tuple[int, ...]:
        """One more node; its place."""
        node = _Node(len(self._nodes), shape)
        self._nodes.append(node)
        self._left.append(node)
        return (node.place,)

    def lose(self, place: int) -> None:
        """This node has no room any more."""
        self._left = [node for node in self._left if node.place != place]

    def _move(self, need: Need, places: tuple[int, ...], tasks: int) -> None:
        for place in places:
            node = self._nodes[place]
            node.tasks += tasks
            if need.nodes:
                node.cores -= tasks * node.shape.cores
                continue
            node.cores -= tasks * need.cores
            node.memory_bytes -= tasks * need.memory_bytes
            for name, amount in _rest(need):
                node.rest[name] -= tasks * amount


def lacking(need: Need, shapes: Sequence[NodeShape]) -> tuple[str, str, str]:
    """Of what a task needs more than any node of these shapes has: its name, and how much, needed
    and there, in words.

    If there is enough of each, but not on the same nodes, that is said.
    """
    most = {name: max(shape.amounts().get(name, 0) for shape in shapes) for name in need.amounts()}
    for name, amount in need.amounts().items():
        if amount > most[name]:
            if name in ("memory", "disk"):
                has = format_memory(most[name])
            else:
                has = f"{int(most[name]):,}"
            return name, amount_text(name, amount), has
    words = [amount_text(name, amount) for name, amount in need.amounts().items() if amount]
    return "needs", ", ".join(words), "not all of that at once"


def _rest(need: Need) -> Counts:
    """What a task needs beside cores and memory; of most tasks nothing."""
    if need.disk_bytes or need.counts:
        return (("disk", need.disk_bytes), *need.counts)
    return ()
