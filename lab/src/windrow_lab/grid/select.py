"""Which nodes of a grid a description selects, or which condition left too few. Pure; over
clusters, not over nodes.

Rule 1: a Cluster's nodes are of one cluster. Those of a TightBag are of one cluster, the seed, and
of those within `tight_s` of latency of it; every seed is tried. A LooseBag takes any.
Rule 2: a bag of nodes takes those of highest rank first (ties: the lower cluster), up to its most.
A bag of bags takes the best, then the best of what is left, and so on. It fails below its least,
and where a condition of its own fails.
Rule 3: of the bags that are possible the one of highest rank is taken: its own Rank, or the ranks
of its members summed (ties: the lower seed). Nodes without a Rank count 1.

The thesis does not give vgES's algorithm; these rules are ours. All bags that are possible are
looked at together, in arrays: O(C² + links), where links are pairs within `tight_s`; each TightBag
around another one multiplies the links by those of a cluster, and each bag of bags by its members.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from windrow.errors import UserError, unknown_name
from windrow.model.conditions import conjuncts
from windrow.model.graph import Ints
from windrow_lab.grid.clusters import Bools, Floats, Grid
from windrow_lab.grid.describe import Aggregate, Requirement

TIGHT_S = 0.010
"""The latency within which clusters are well connected."""
_MOST = 5_000_000
"""Clusters in all TightBags that are looked at together: some hundred megabytes."""


@dataclass(frozen=True, slots=True)
class Bag:
    """Nodes of clusters, by number; `bags` are what it is made of, if that is bags."""

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
    """Why nothing was selected, in a sentence; `condition` is the one that left too few, as it was
    written."""

    why: str
    condition: str = ""


@dataclass(frozen=True, slots=True)
class _Nodes:
    """What a description says of nodes: how many of each cluster are such, their rank, and its
    place by rank."""

    there: Ints
    ranks: Floats
    place: Ints
    refusal: Refusal | None


@dataclass(frozen=True, slots=True)
class _Layer:
    """The bags that are possible in each of some sets of clusters.

    sets: the clusters of all sets, one set after the other, ascending; up: of each cluster of each
    bag its place there; start: of each bag; first: of each set its first bag.
    """

    wanted: Aggregate
    sets: Ints
    up: Ints
    cluster: Ints
    start: Ints
    first: Ints


@dataclass(frozen=True, slots=True)
class _Best:
    """Of each set whether there is a bag, its rank, what it takes of each cluster, which it is;
    then of each bag tried how many members it has, and whether they are enough."""

    there: Bools
    rank: Floats
    taken: Ints
    chosen: Ints
    members: Ints
    enough: Bools


def select(description: Aggregate, grid: Grid, *, tight_s: float = TIGHT_S) -> Bag | Refusal:
    """The best nodes that the description allows. InputError if it names an attribute that no
    cluster has."""
    selector = _Selector(grid, tight_s)
    innermost = description
    while isinstance(innermost.of, Aggregate):
        innermost = innermost.of
    clusters = np.flatnonzero(selector.nodes(innermost.of, innermost.least).there)
    if not len(clusters):  # then the answer says why
        clusters = np.arange(len(grid.clusters))
    return selector.bag(selector.layers(description, clusters), grid.nodes[clusters])


class _Selector:
    def __init__(self, grid: Grid, tight_s: float) -> None:
        self._grid = grid
        self._tight_s = tight_s
        self._known: dict[int, _Nodes] = {}

    @cached_property
    def _attributes(self) -> list[dict[str, float | str]]:
        """What each node of a cluster has."""
        return [
            {"clock": c.speed}
            | {name.lower(): value for name, value in c.attributes.items()}
            | {"nodes": c.nodes, "speed": c.speed, "cluster": c.name}
            for c in self._grid.clusters
        ]

    def bag(self, layers: Sequence[_Layer], left: Ints) -> Bag | Refusal:
        """The best bag out of one set of clusters, of which `left` nodes remain, with the bags that
        it is of."""
        layer = layers[0]
        wanted = layer.wanted
        if isinstance(wanted.of, Requirement):
            refusal = self.nodes(wanted.of, wanted.least).refusal
            if refusal:
                return refusal
        best = self._best(layers, left)
        is_there = bool(best.there[0])
        if not is_there and best.enough.any():
            return _none_holds(wanted)
        bags: tuple[Bag, ...] = ()
        if isinstance(wanted.of, Aggregate):
            bags, end = self._inner_bags(layer, wanted.of, int(best.chosen[0]), left)
            if not is_there:
                return _too_few_bags(wanted, len(bags), end)
        elif not is_there:
            words = f"there is no {wanted.kind} of at least {wanted.least:,} nodes"
            return Refusal(f"{words}; the largest has {best.members.max():,}")
        nodes = {c: n for c, n in zip(layer.sets.tolist(), best.taken.tolist(), strict=True) if n}
        return Bag(wanted.kind, nodes, float(best.rank[0]), bags)

    def _inner_bags(
        self, layer: _Layer, wanted: Aggregate, chosen: int, left: Ints
    ) -> tuple[tuple[Bag, ...], Refusal | None]:
        """The bags that the chosen bag is of, the best first, each out of what those before it
        leave; and why there are no more, if there are fewer than the most."""
        inside = slice(*layer.start[chosen : chosen + 2])
        clusters = layer.cluster[inside]
        inner = self.layers(wanted, clusters)
        rest = left[layer.up[inside]]
        bags = list[Bag]()
        while len(bags) < layer.wanted.most:
            found = self.bag(inner, rest)
            if isinstance(found, Refusal):
                return tuple(bags), found
            bags.append(found)
            rest[np.searchsorted(clusters, list(found.nodes))] -= list(found.nodes.values())
        return tuple(bags), None

    def _best(self, layers: Sequence[_Layer], left: Ints) -> _Best:
        """The best bag of each set of clusters at once; left: of the nodes of each cluster of each
        set."""
        layer = layers[0]
        wanted = layer.wanted
        rest = left[layer.up]
        if isinstance(wanted.of, Aggregate):
            taken, members, ranks = self._of_bags(layers, wanted.most, rest)
        else:
            taken, members, ranks = self._of_nodes(layer, wanted.of, rest)
        enough = members >= wanted.least
        there = enough
        if wanted.wanted.conditions or wanted.wanted.rank:
            holds, ranks = self._own(layer, taken, ranks)
            there = enough & holds
        chosen, highest = _highest(layer, np.where(there & ~np.isnan(ranks), ranks, -np.inf))
        picked = np.zeros(len(there), dtype=bool)
        picked[chosen] = there[chosen]
        inside = np.repeat(picked, np.diff(layer.start))
        out = np.zeros_like(left)
        out[layer.up[inside]] = taken[inside]
        rank = np.where(there[chosen], highest, 0.0)
        return _Best(there[chosen], rank, out, chosen, members, enough)

    def _of_bags(
        self, layers: Sequence[_Layer], most: int, rest: Ints
    ) -> tuple[Ints, Ints, Floats]:
        """What each bag takes that is made of bags, how many these are, and their ranks in all."""
        bags = len(layers[0].start) - 1
        taken = np.zeros_like(rest)
        members = np.zeros(bags, dtype=np.int64)
        ranks = np.zeros(bags)
        for _ in range(most):
            inner = self._best(layers[1:], rest - taken)
            if not inner.there.any():
                break
            taken = taken + inner.taken
            members = members + inner.there
            ranks = ranks + inner.rank
        return taken, members, ranks

    def _of_nodes(
        self, layer: _Layer, wanted: Requirement, rest: Ints
    ) -> tuple[Ints, Ints, Floats]:
        """What each bag takes of nodes, how many these are, and their ranks in all."""
        nodes = self.nodes(wanted, layer.wanted.least)
        rest = np.minimum(nodes.there[layer.cluster], rest)
        before = np.cumsum(rest) - rest
        before -= np.repeat(before[layer.start[:-1]], np.diff(layer.start))
        taken = np.clip(layer.wanted.most - before, 0, rest)
        members = np.add.reduceat(taken, layer.start[:-1])
        return taken, members, np.add.reduceat(taken * nodes.ranks[layer.cluster], layer.start[:-1])

    def _own(self, layer: _Layer, taken: Ints, ranks: Floats) -> tuple[Bools, Floats]:
        """Of each bag whether the conditions on it hold, and its own rank, which is this one if
        it has none."""
        wanted = layer.wanted.wanted
        start = layer.start[:-1]
        has: dict[str, Any] = {"nodes": np.add.reduceat(taken, start, dtype=float)}
        has["clusters"] = np.add.reduceat(taken > 0, start, dtype=float)
        for name in wanted.names - has.keys():
            each = self._summed(wanted, name)
            has[name] = np.add.reduceat(taken * each[layer.cluster], start)
        holds = np.ones(len(start), dtype=bool)
        with np.errstate(all="ignore"):
            for condition in wanted.conditions:
                holds &= condition.holds(has)
            if wanted.rank is not None:
                ranks = np.full(len(start), wanted.rank(has))
        return holds, ranks

    def _summed(self, wanted: Requirement, name: str) -> Floats:
        """Of a node of each cluster what `total_...` sums; InputError if no cluster has it."""
        one = name.removeprefix("total").removeprefix("_")
        if not name.startswith("total") or not any(one in there for there in self._attributes):
            known = sorted({f"total_{name}" for there in self._attributes for name in there})
            what = unknown_name("attribute of an aggregate", name, ["nodes", "clusters", *known])
            raise wanted.fault(name, str(what))
        values = [there.get(one, 0.0) for there in self._attributes]
        return np.array([0.0 if isinstance(value, str) else value for value in values])

    def nodes(self, wanted: Requirement, least: int) -> _Nodes:
        """What it says of the nodes of each cluster. Its refusal: where one of its conditions
        leaves fewer."""
        if id(wanted) not in self._known:
            known = {name for has in self._attributes for name in has}
            for name in sorted(wanted.names - known):
                raise wanted.fault(name, str(unknown_name("attribute", name, sorted(known))))
            there, refusal = self._left(wanted, least)
            ranks = np.ones(len(self._attributes))
            if wanted.rank is not None:
                ranks = np.array([wanted.rank(has) for has in self._attributes])
            place = np.argsort(np.argsort(-ranks, kind="stable"))
            self._known[id(wanted)] = _Nodes(there, ranks, place, refusal)
        return self._known[id(wanted)]

    def _left(self, wanted: Requirement, least: int) -> tuple[Ints, Refusal | None]:
        """The nodes of each cluster for which all conditions hold, and the first condition that
        leaves fewer than the least."""
        there = self._grid.nodes.copy()
        refusal = None
        for condition in (part for whole in wanted.conditions for part in conjuncts(whole)):
            there *= np.array([condition.holds(has) for has in self._attributes])
            left = int(there.sum())
            if left < least and refusal is None:
                words = f"the condition {condition.text!r} leaves {left:,} of "
                words += f"{self._grid.processors:,} nodes; at least {least:,} are needed"
                refusal = Refusal(words, condition.text)
        return there, refusal

    def layers(self, wanted: Aggregate, clusters: Ints) -> list[_Layer]:
        """The bags that are possible out of these clusters, in each of them the bags that it may be
        of, and so on."""
        layers = [self._layer(wanted, np.array([0, len(clusters)]), clusters)]
        while isinstance(wanted.of, Aggregate):
            wanted = wanted.of
            layers.append(self._layer(wanted, layers[-1].start, layers[-1].cluster))
        return layers

    def _layer(self, wanted: Aggregate, sets: Ints, inside: Ints) -> _Layer:
        """The bags of each set, whose clusters they have in ascending order, or those of nodes by
        rank."""
        if wanted.kind == "Cluster":
            entries = np.arange(len(inside))
            return _Layer(wanted, inside, entries, inside, np.arange(len(inside) + 1), sets)
        if isinstance(wanted.of, Aggregate):
            place = np.arange(len(self._grid.clusters))
        else:
            place = self.nodes(wanted.of, wanted.least).place
        of_set = np.repeat(np.arange(len(sets) - 1), np.diff(sets))
        if wanted.kind == "LooseBag":
            up = np.argsort(of_set * len(place) + place[inside])
            return _Layer(wanted, inside, up, inside[up], sets, np.arange(len(sets)))
        return self._tight_layer(wanted, of_set, len(sets) - 1, inside, place)

    def _tight_layer(
        self, wanted: Aggregate, of_set: Ints, sets: int, inside: Ints, place: Ints
    ) -> _Layer:
        """A bag around every cluster of each set; its clusters by their place."""
        up, bag = self._tight(of_set, inside, sets)
        by = np.argsort(bag * len(place) + place[inside[up]])
        start = np.flatnonzero(np.diff(bag[by], prepend=-1, append=-1))
        first = np.searchsorted(bag[by][start[:-1]], np.arange(sets + 1) * len(place))
        return _Layer(wanted, inside, up[by], inside[up[by]], start, first)

    def _tight(self, of_set: Ints, inside: Ints, sets: int) -> tuple[Ints, Ints]:
        """The clusters of all bags of well connected ones, as places in `inside`, and the bag of
        each: one around every cluster of a set. UserError if there are too many."""
        count = len(self._grid.clusters)
        begin, seeds = self._near
        many = np.diff(begin)[inside]
        if many.sum() > _MOST:
            raise UserError(
                f"this description would have to be tried on {many.sum():,} combinations of "
                "clusters; nest it less deeply"
            )
        up = np.repeat(np.arange(len(inside)), many)
        first = np.cumsum(many) - many
        seed = seeds[np.arange(len(up)) - np.repeat(first - begin[inside], many)]
        bag = of_set[up] * count + seed
        if sets * count > _MOST:
            return up, bag
        kept = _without_twins(up, bag, first)
        return up[kept], bag[kept]

    @cached_property
    def _near(self) -> tuple[Ints, Ints]:
        """The seeds that each cluster is near to: where each list starts, and all lists. Of equal
        seeds, the first."""
        near = self._grid.latency_s <= self._tight_s
        np.fill_diagonal(near, True)
        alike = {row: c for c, row in reversed([*enumerate(map(bytes, np.packbits(near, axis=1)))])}
        kept = np.array(sorted(alike.values()))
        clusters, seeds = np.nonzero(near[kept].T)
        return np.searchsorted(clusters, np.arange(len(near) + 1)), kept[seeds]


def _without_twins(up: Ints, bag: Ints, first: Ints) -> Bools:
    """Of bags of the same one cluster the first will do: most are such. `first`: where the bags of
    each cluster begin."""
    alone = np.bincount(bag)[bag] == 1
    before = np.cumsum(alone) - alone
    kept: Bools = ~alone | (before == before[first][up])
    return kept


def _highest(layer: _Layer, ranks: Floats) -> tuple[Ints, Floats]:
    """Of each set the first bag of highest rank, and that rank."""
    highest = np.maximum.reduceat(ranks, layer.first[:-1])
    equal = np.flatnonzero(ranks == np.repeat(highest, np.diff(layer.first)))
    return equal[np.searchsorted(equal, layer.first[:-1])], highest


def _too_few_bags(wanted: Aggregate, found: int, end: Refusal | None) -> Refusal:
    assert end is not None
    words = f"a {wanted.kind} needs {wanted.least:,} members, but there are {found:,}: {end.why}"
    return replace(end, why=words)


def _none_holds(wanted: Aggregate) -> Refusal:
    texts = " and ".join(repr(condition.text) for condition in wanted.wanted.conditions)
    return Refusal(f"no {wanted.kind} of at least {wanted.least:,} members has {texts}", texts)
