"""Which nodes of a grid a description selects, or which condition left too few. Pure; over clusters, not over nodes.

Rule 1: a Cluster's nodes are of one cluster. Those of a TightBag are of one cluster, the seed, and of those within
`tight_s` of latency (or at least `tight_bytes_s` of bandwidth) of it; every seed is tried. A LooseBag takes any.
Rule 2: a bag of nodes takes those of highest rank first (ties: the lower cluster), up to its most. A bag of bags takes
the best, then the best of what is left, and so on. It fails below its least, and where a condition of its own fails.
Rule 3: of the bags that are possible the one of highest rank is taken: its own Rank, or the ranks of its members summed
(ties: the lower seed). Nodes without a Rank count 1.

The thesis does not give vgES's algorithm; these rules are ours. O(C² + links), where links are pairs within `tight_s`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from windrow.errors import UserError, unknown_name
from windrow.grid.clusters import Floats, Grid
from windrow.grid.describe import Aggregate, Wanted
from windrow.model.conditions import Attributes, conjuncts
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
    """What a description says of nodes: which clusters have such, with which rank, best first, and each seed's."""

    counts: NDArray[np.bool_]
    ranks: Floats
    order: Ints
    refusal: Refusal | None


def select(
    description: Aggregate, grid: Grid, *, tight_s: float = TIGHT_S, tight_bytes_s: float = np.inf
) -> Bag | Refusal:
    """The best nodes that the description allows. UserError where it names an attribute that no cluster has."""
    tries, inner = 1, description
    while isinstance(inner.of, Aggregate):
        tries, inner = tries * (1 if inner.kind == "LooseBag" else len(grid.clusters)), inner.of
    if tries > _TRIES:
        raise UserError(
            f"so deep a description would have to be tried {tries:,} times on this grid; nest it less deeply"
        )
    return _Selector(grid, tight_s, tight_bytes_s).best(description, grid.nodes)


class _Selector:
    def __init__(self, grid: Grid, tight_s: float, tight_bytes_s: float) -> None:
        self._grid, self._tight = grid, (tight_s, tight_bytes_s)
        self._known: dict[int, _Nodes] = {}
        self._groups: dict[tuple[str, int], tuple[Ints, Ints]] = {}

    @cached_property
    def _attributes(self) -> list[Attributes]:
        """What each node of a cluster has."""
        found: list[Attributes] = []
        for cluster in self._grid.clusters:
            own = {name.lower(): value for name, value in cluster.attributes.items()}
            standard: Attributes = {"nodes": cluster.nodes, "speed": cluster.speed, "cluster": cluster.name}
            found.append({"clock": cluster.speed, **own, **standard})
        return found

    def best(self, wanted: Aggregate, left: Ints) -> Bag | Refusal:
        """The best bag out of the nodes that are left of each cluster."""
        if isinstance(wanted.of, Aggregate):
            return self._bag_of_bags(wanted, wanted.of, left)
        return self._bag_of_nodes(wanted, wanted.of, left)

    def _bag_of_nodes(self, wanted: Aggregate, of: Wanted, left: Ints) -> Bag | Refusal:
        nodes = self._nodes(of, wanted.least)
        if nodes.refusal is not None:
            return nodes.refusal
        start, members = self._grouped(wanted.kind, of, nodes)
        there = np.where(nodes.counts, left, 0)[members]
        before = np.cumsum(there) - there
        before -= np.repeat(before[start[:-1]], np.diff(start))
        taken = np.clip(wanted.most - before, 0, there)
        sizes = np.add.reduceat(taken, start[:-1])
        ranks = np.add.reduceat(taken * nodes.ranks[members], start[:-1])
        enough = sizes >= wanted.least
        if not enough.any():
            most = int(sizes.max())
            return Refusal(f"a {wanted.kind} of at least {wanted.least:,} nodes is not there; the largest has {most:,}")

        def content(group: int) -> dict[int, int]:
            part = slice(start[group], start[group + 1])
            found = zip(members[part].tolist(), taken[part].tolist(), strict=True)
            return {c: n for c, n in sorted(found) if n}

        if wanted.wanted.names or wanted.wanted.rank:
            clusters = np.add.reduceat(taken > 0, start[:-1], dtype=np.int64)
            for group in np.flatnonzero(enough).tolist():
                size = int(sizes[group]), int(clusters[group])
                rank = self._own_rank(wanted.wanted, size, partial(content, group), float(ranks[group]))
                enough[group], ranks[group] = rank is not None, rank or 0.0
            if not enough.any():
                return _none_holds(wanted)
        group = int(np.argmax(np.where(enough, ranks, -np.inf)))
        return Bag(wanted.kind, content(group), float(ranks[group]))

    def _bag_of_bags(self, wanted: Aggregate, of: Aggregate, left: Ints) -> Bag | Refusal:
        best: Bag | None = None
        refusal: Refusal | None = None
        start, members = self._grouped(wanted.kind, None, None)
        for group in range(len(start) - 1):
            inside = np.zeros_like(left)
            inside[members[start[group] : start[group + 1]]] = 1
            bags: list[Bag] = []
            rest = left * inside
            while len(bags) < wanted.most:
                found = self.best(of, rest)
                if isinstance(found, Refusal):
                    words = f"a {wanted.kind} needs {wanted.least:,} members, {len(bags):,} are there: {found.why}"
                    refusal = refusal or Refusal(words, found.condition)
                    break
                bags.append(found)
                rest[list(found.nodes)] -= list(found.nodes.values())
            if len(bags) < wanted.least:
                continue
            nodes: dict[int, int] = {}
            for bag in bags:
                nodes |= {c: nodes.get(c, 0) + n for c, n in bag.nodes.items()}
            size = sum(nodes.values()), len(nodes)
            rank = self._own_rank(wanted.wanted, size, partial(dict, nodes), sum(bag.rank for bag in bags))
            if rank is None:
                refusal = _none_holds(wanted)
            elif best is None or rank > best.rank:
                best = Bag(wanted.kind, dict(sorted(nodes.items())), rank, tuple(bags))
        return best or refusal or Refusal(f"a {wanted.kind} is not there")

    def _own_rank(
        self, wanted: Wanted, size: tuple[int, int], nodes: Callable[[], Mapping[int, int]], otherwise: float
    ) -> float | None:
        """The rank of a bag of so many nodes and clusters; None where a condition on the bag does not hold."""
        has: dict[str, float | str] = {"nodes": size[0], "clusters": size[1]}
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
        if id(wanted) in self._known:
            return self._known[id(wanted)]
        known = {name for has in self._attributes for name in has}
        for name in sorted(wanted.names - known):
            raise unknown_name("attribute", name, sorted(known))
        counts, refusal = np.ones(len(self._attributes), dtype=bool), None
        for condition in (part for whole in wanted.conditions for part in conjuncts(whole)):
            counts &= np.fromiter((condition.holds(has) for has in self._attributes), dtype=bool)
            there = int(self._grid.nodes[counts].sum())
            if there < least and refusal is None:
                words = f"the condition {condition.text!r} leaves {there:,} of {self._grid.processors:,} nodes"
                refusal = Refusal(f"{words}; at least {least:,} are needed", condition.text)
        rank = wanted.rank
        ranks = np.array([1.0 if rank is None else rank(has) for has in self._attributes])
        made = _Nodes(counts, ranks, np.argsort(-ranks, kind="stable"), refusal)
        self._known[id(wanted)] = made
        return made

    def _grouped(self, kind: str, wanted: Wanted | None, nodes: _Nodes | None) -> tuple[Ints, Ints]:
        """The clusters of each bag that is possible: where each list starts, and all lists, best first."""
        key = kind, id(wanted)
        if key not in self._groups:
            count = len(self._grid.clusters)
            order = np.arange(count) if nodes is None else nodes.order
            if kind == "LooseBag":
                found = np.array([0, count]), order
            elif kind == "Cluster":
                found = np.arange(count + 1), np.arange(count)
            else:
                tight_s, tight_bytes_s = self._tight
                near = (self._grid.latency_s <= tight_s) | (self._grid.bandwidth_bytes_s >= tight_bytes_s)
                np.fill_diagonal(near, True)
                seeds, places = np.nonzero(near[:, order])
                found = np.searchsorted(seeds, np.arange(count + 1)), order[places]
            self._groups[key] = found
        return self._groups[key]


def _none_holds(wanted: Aggregate) -> Refusal:
    texts = " and ".join(repr(condition.text) for condition in wanted.wanted.conditions)
    return Refusal(f"no {wanted.kind} of at least {wanted.least:,} members has {texts}", texts)
