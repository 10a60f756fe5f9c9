"""Graphs as two flat arrays, so that a million tasks are a few megabytes.

An `Adjacency` lists, for each vertex, its neighbours: those of vertex v are `index[start[v]:start[v
+ 1]]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class CycleError(ValueError):
    """The graph has a cycle; `cycle` lists its vertices in order."""

    def __init__(self, cycle: list[int]) -> None:
        self.cycle = cycle
        super().__init__(f"cycle through {len(cycle)} vertices")


@dataclass(frozen=True, slots=True, eq=False)
class Adjacency:
    """Neighbour lists of vertices 0..n-1 in compressed form. Do not write to the arrays."""

    start: Ints
    index: Ints

    @staticmethod
    def from_lists(lists: Iterable[Sequence[int]]) -> Adjacency:
        """From one sequence of neighbours per vertex."""
        counts: list[int] = [0]
        flat: list[int] = []
        for neighbours in lists:
            flat.extend(neighbours)
            counts.append(len(flat))
        return Adjacency(np.array(counts, dtype=np.int64), np.array(flat, dtype=np.int64))

    @staticmethod
    def from_edges(n: int, source: Ints, target: Ints) -> Adjacency:
        """Lists of targets per source, each list in the order in which its edges come."""
        order = np.argsort(source, kind="stable")
        start = np.zeros(n + 1, dtype=np.int64)
        np.cumsum(np.bincount(source, minlength=n), out=start[1:])
        return Adjacency(start, np.ascontiguousarray(target[order], dtype=np.int64))

    def followed_by(self, lists: Iterable[Sequence[int]]) -> Adjacency:
        """The same with more vertices behind its own, which have these neighbours."""
        more = Adjacency.from_lists(lists)
        start = np.concatenate([self.start, more.start[1:] + self.edges])
        return Adjacency(start, np.concatenate([self.index, more.index]))

    @property
    def vertices(self) -> int:
        """How many vertices."""
        return len(self.start) - 1

    @property
    def edges(self) -> int:
        """How many edges."""
        return len(self.index)

    def of(self, vertex: int) -> Ints:
        """The neighbours of one vertex."""
        return self.index[self.start[vertex] : self.start[vertex + 1]]

    def freed_by(self, vertex: int, missing: list[int]) -> Iterator[int]:
        """The neighbours that were missing this vertex alone; `missing` counts down for each."""
        for neighbour in self.of(vertex).tolist():
            missing[neighbour] -= 1
            if missing[neighbour] == 0:
                yield neighbour

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Each edge as its vertex and the neighbour, in the order of the lists."""
        return zip(self.sources().tolist(), self.index.tolist(), strict=True)

    def below(self, vertices: Iterable[int]) -> set[int]:
        """All that can be reached from these; they themselves only if an edge leads back to
        them."""
        found = set[int]()
        stack = list(vertices)
        while stack:
            new = set(self.of(stack.pop()).tolist()) - found
            found |= new
            stack += new
        return found

    def degrees(self) -> Ints:
        """How many neighbours each vertex has."""
        return np.diff(self.start)

    def sources(self) -> Ints:
        """For each edge, the vertex whose list it stands in."""
        return np.repeat(np.arange(self.vertices, dtype=np.int64), self.degrees())

    def reversed(self) -> Adjacency:
        """The same edges the other way round; each list ascending."""
        return Adjacency.from_edges(self.vertices, self.index, self.sources())


def order_and_levels(parents: Adjacency, children: Adjacency) -> tuple[Ints, Ints]:
    """A topological order, and each vertex's level: the longest hop count from an entry.

    The order goes level by level and depends on the graph alone. Raises CycleError. Linear in
    vertices and edges.
    """
    # Plain lists: element access on them is several times faster than on numpy arrays.
    waiting = parents.degrees().tolist()
    start = children.start.tolist()
    index = children.index.tolist()
    levels = [0] * len(waiting)
    order = [v for v, count in enumerate(waiting) if count == 0]
    for v in order:  # grows while we walk it: a queue without pops
        below = levels[v] + 1
        for c in index[start[v] : start[v + 1]]:
            waiting[c] -= 1
            if waiting[c] == 0:
                # v is its last parent, and since vertices come level by level, one of the deepest
                levels[c] = below
                order.append(c)
    if len(order) < len(waiting):
        raise CycleError(_find_cycle(parents, waiting))
    return np.array(order, dtype=np.int64), np.array(levels, dtype=np.int64)


def _find_cycle(parents: Adjacency, waiting: list[int]) -> list[int]:
    """Walk from any stuck vertex to a stuck parent until one repeats: that loop is a cycle."""
    v = next(i for i, count in enumerate(waiting) if count > 0)
    seen: dict[int, int] = {}
    path: list[int] = []
    while v not in seen:
        seen[v] = len(path)
        path.append(v)
        v = next(int(p) for p in parents.of(v) if waiting[p] > 0)
    cycle = path[seen[v] :][::-1]
    first = cycle.index(min(cycle))
    return cycle[first:] + cycle[:first]
