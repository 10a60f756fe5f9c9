"""Which nodes of a grid a description selects, or which condition left too few. Pure; over clusters, not over nodes.

Rule 1: a Cluster's nodes are of one cluster. Those of a TightBag are of one cluster, the seed, and of those within
`tight_s` of latency of it; every seed is tried. A LooseBag takes any.
Rule 2: a bag of nodes takes those of highest rank first (ties: the lower cluster), up to its most. A bag of bags takes
the best, then the best of what is left, and so on. It fails below its least, and where a condition of its own fails.
Rule 3: of the bags that are possible the one of highest rank is taken: its own Rank, or the ranks of its members summed
(ties: the lower seed). Nodes without a Rank count 1.

The thesis does not give vgES's algorithm; these rules are ours. O(C² + links), where links are pairs within `tight_s`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from windrow.errors import UserError, unknown_name
from windrow.grid.clusters import Floats, Grid
from windrow.grid.describe import Aggregate, Wanted
from windrow.model.conditions import conjuncts
from windrow.model.graph import Ints

TIGHT_S = 0.010
"""The latency within which clusters are well connected."""
_TRIES = 100_000


@dataclass(frozen=True, slots=True)
class Bag:
    """Nodes of clusters, by number; `bags` are what it is made of, where that is bags."""

    kind: str
    nodes: Mapping[int, int]
    rank: float
    bags: tuple[Bag, ...] = ()

    @property
    def size(self) -> int:
        """How many nodes."""
        return sum(self.nodes.values())


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why nothing was selected, in a sentence; `condition` is the one that left too few, as it was written."""

    why: str
    condition: str = ""


@dataclass(frozen=True, slots=True)
class _Nodes:
    """What a description says of nodes: how many of each cluster are such, their rank, and clusters, best first."""

    there: Ints
    ranks: Floats
    order: Ints
    refusal: Refusal | None


def select(description: Aggregate, grid: Grid, *, tight_s: float = TIGHT_S) -> Bag | Refusal:
    """The best nodes that the description allows. UserError where it names an attribute that no cluster has."""
    tries, inner = 1, description
    while isinstance(inner.of, Aggregate):
        tries, inner = tries * (1 if inner.kind == "LooseBag" else len(grid.clusters)), inner.of
    if tries > _TRIES:
        raise UserError(f"this description would have to be tried {tries:,} times on this grid; nest it less deeply")
    return _Selector(grid, tight_s).best(description, grid.nodes)


class _Selector:
    def __init__(self, grid: Grid, tight_s: float) -> None:
        self._grid, self._tight_s = grid, tight_s
        self._known: dict[int, _Nodes] = {}
        self._groups: dict[tuple[str, int], tuple[Ints, Ints]] = {}

    @cached_property
    def _attributes(self) -> list[dict[str, float | str]]:
        """What each node of a cluster has."""
        return [
            {"clock": c.speed}
            | {name.lower(): value for name, value in c.attributes.items()}
            | {"nodes": c.nodes, "speed": c.speed, "cluster": c.name}
            for c in self._grid.clusters
        ]

    def best(self, wanted: Aggregate, left: Ints) -> Bag | Refusal:
        """The best bag out of the nodes that are left of each cluster."""
        if isinstance(wanted.of, Aggregate):
            return self._of_bags(wanted, wanted.of, left)
        return self._of_nodes(wanted, wanted.of, left)

    def _of_nodes(self, wanted: Aggregate, of: Wanted, left: Ints) -> Bag | Refusal:
        nodes = self._nodes(of, wanted.least)
        if nodes.refusal is not None:
            return nodes.refusal
        start, members = self._grouped(wanted.kind, nodes.order, id(of))
        there = np.minimum(nodes.there, left)[members]
        before = np.cumsum(there) - there
        before -= np.repeat(before[start[:-1]], np.diff(start))
        taken = np.clip(wanted.most - before, 0, there)
        sizes, used = np.add.reduceat(taken, start[:-1]), np.add.reduceat(taken > 0, start[:-1], dtype=np.int64)
        ranks = np.add.reduceat(taken * nodes.ranks[members], start[:-1])

        def content(group: int) -> dict[int, int]:
            part = slice(start[group], start[group + 1])
            return {c: n for c, n in sorted(zip(members[part].tolist(), taken[part].tolist(), strict=True)) if n}

        enough = sizes >= wanted.least
        if not enough.any():
            most = int(sizes.max())
            return Refusal(f"a {wanted.kind} of at least {wanted.least:,} nodes is not there; the largest has {most:,}")
        if wanted.wanted.conditions or wanted.wanted.rank:
            for group in np.flatnonzero(enough).tolist():
                has = {"nodes": float(sizes[group]), "clusters": float(used[group])}
                rank = self._own_rank(wanted.wanted, has, lambda: content(group), float(ranks[group]))  # noqa: B023
                enough[group], ranks[group] = rank is not None, rank or 0.0
            if not enough.any():
                return _none_holds(wanted)
        group = int(np.argmax(np.where(enough, ranks, -np.inf)))
        return Bag(wanted.kind, content(group), float(ranks[group]))

    def _of_bags(self, wanted: Aggregate, of: Aggregate, left: Ints) -> Bag | Refusal:
        best: Bag | None = None
        refusal = Refusal("")
        start, members = self._grouped(wanted.kind, np.arange(len(left)), 0)
        for group in range(len(start) - 1):
            rest, bags = np.zeros_like(left), list[Bag]()
            inside = members[start[group] : start[group + 1]]
            rest[inside] = left[inside]
            while len(bags) < wanted.most and isinstance(found := self.best(of, rest), Bag):
                bags.append(found)
                rest[list(found.nodes)] -= list(found.nodes.values())
            if len(bags) < wanted.least:
                assert isinstance(found, Refusal)
                words = f"a {wanted.kind} needs {wanted.least:,} members, {len(bags):,} are there: {found.why}"
                refusal = refusal if refusal.why else replace(found, why=words)
                continue
            taken = left * 0
            taken[inside] = (left - rest)[inside]
            nodes = {c: int(taken[c]) for c in np.flatnonzero(taken).tolist()}
            has = {"nodes": float(taken.sum()), "clusters": float(len(nodes))}
            rank = self._own_rank(wanted.wanted, has, lambda: nodes, sum(bag.rank for bag in bags))  # noqa: B023
            if rank is None:
                refusal = _none_holds(wanted)
            elif best is None or rank > best.rank:
                best = Bag(wanted.kind, nodes, rank, tuple(bags))
        return best or refusal

    def _own_rank(
        self, wanted: Wanted, has: dict[str, float], nodes: Callable[[], Mapping[int, int]], otherwise: float
    ) -> float | None:
        """The rank of a bag that has so many nodes and clusters; None where a condition on the bag does not hold."""
        for name in wanted.names - has.keys():
            one = name.removeprefix("total").removeprefix("_")
            if not name.startswith("total") or not any(one in there for there in self._attributes):
                known = sorted({f"total_{name}" for there in self._attributes for name in there})
                raise unknown_name("attribute of an aggregate", name, ["nodes", "clusters", *known])
            values = ((self._attributes[c].get(one, 0.0), n) for c, n in nodes().items())
            has[name] = sum(value * n for value, n in values if not isinstance(value, str))
        if not all(condition.holds(has) for condition in wanted.conditions):
            return None
        return otherwise if wanted.rank is None else wanted.rank(has)

    def _nodes(self, wanted: Wanted, least: int) -> _Nodes:
        if id(wanted) not in self._known:
            known = {name for has in self._attributes for name in has}
            for name in sorted(wanted.names - known):
                raise unknown_name("attribute", name, sorted(known))
            there, refusal = self._grid.nodes.copy(), None
            for condition in (part for whole in wanted.conditions for part in conjuncts(whole)):
                there *= np.array([condition.holds(has) for has in self._attributes])
                if there.sum() < least and refusal is None:
                    words = (
                        f"the condition {condition.text!r} leaves {there.sum():,} of {self._grid.processors:,} nodes"
                    )
                    refusal = Refusal(f"{words}; at least {least:,} are needed", condition.text)
            ranks = np.array([1.0 if wanted.rank is None else wanted.rank(has) for has in self._attributes])
            self._known[id(wanted)] = _Nodes(there, ranks, np.argsort(-ranks, kind="stable"), refusal)
        return self._known[id(wanted)]

    def _grouped(self, kind: str, order: Ints, key: int) -> tuple[Ints, Ints]:
        """The clusters of each bag that is possible: where each list starts, and all lists, in this order."""
        if (kind, key) not in self._groups:
            count = len(order)
            found = np.array([0, count]), order
            if kind == "Cluster":
                found = np.arange(count + 1), np.arange(count)
            elif kind == "TightBag":
                near = self._grid.latency_s <= self._tight_s
                np.fill_diagonal(near, True)
                seeds, members = np.nonzero(near)
                place = np.argsort(order)  # of each cluster in the order
                members = members[np.lexsort((place[members], seeds))]
                found = np.searchsorted(seeds, np.arange(count + 1)), members
            self._groups[kind, key] = found
        return self._groups[kind, key]


def _none_holds(wanted: Aggregate) -> Refusal:
    texts = " and ".join(repr(condition.text) for condition in wanted.wanted.conditions)
    return Refusal(f"no {wanted.kind} of at least {wanted.least:,} members has {texts}", texts)
