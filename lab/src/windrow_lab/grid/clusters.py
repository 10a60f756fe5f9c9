"""A grid: clusters of equal nodes, each of its speed, and the links between and inside them.

Law: a Grid that exists is valid, and nothing in it changes. A node is one processor. Processors are
numbered cluster by cluster. `latency_s[c, d]` and `bandwidth_bytes_s[c, d]` are of data on the way
from a node of c to another one of d; on the diagonal stands what two nodes of one cluster have
between them.

Means are over processors, or over ordered pairs of different processors, in closed form from the
sizes of clusters alone. A task takes its run time times `slowness`, which is 1 in the mean over the
grid's processors: a grid that is a part of another one keeps the speed that those of the whole were
measured by (`reference_speed`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from windrow.errors import UserError
from windrow.model.bounds import NODES_MAX
from windrow.model.graph import Ints

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class GridError(UserError):
    """The grid is not valid. The message names the cluster or the link."""


@dataclass(frozen=True, slots=True)
class GridCluster:
    """Equal nodes. `attributes` are what descriptions may ask for, beside nodes and speed:
    Processor, Memory, Clock."""

    name: str
    nodes: int
    speed: float
    attributes: Mapping[str, str | float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 1 <= self.nodes <= NODES_MAX:
            raise GridError(
                f"cluster {self.name!r} has {self.nodes} nodes; it needs from 1 to {NODES_MAX:,}"
            )
        if not 0 < self.speed < np.inf:
            raise GridError(
                f"cluster {self.name!r} has a speed of {self.speed}; it must be a number above 0"
            )

    def table(self) -> dict[str, str | float]:
        """As a file has it."""
        return {"name": self.name, "nodes": self.nodes, "speed": self.speed, **self.attributes}


@dataclass(frozen=True, eq=False)
class Grid:
    """Clusters and links. reference_speed: of a processor on which tasks take their own run times;
    0: by the mean."""

    clusters: tuple[GridCluster, ...]
    latency_s: Floats
    bandwidth_bytes_s: Floats
    reference_speed: float = 0.0

    def __post_init__(self) -> None:
        names = [cluster.name for cluster in self.clusters]
        if not names:
            raise GridError("a grid needs at least one cluster")
        if len(set(names)) < len(names):
            raise GridError(
                f"two clusters are called {max(names, key=names.count)!r}; names must be unique"
            )
        latency_s = self._table("latency_s")
        self._require(latency_s, (latency_s >= 0) & (latency_s < np.inf), "latency_s", "0 or more")
        bandwidth = self._table("bandwidth_bytes_s")
        self._require(bandwidth, bandwidth > 0, "bandwidth_bytes_s", "above 0")
        speed = self.reference_speed or self.processors / float(self.nodes @ (1 / self.speeds))
        object.__setattr__(self, "reference_speed", speed)

    def _table(self, what: str) -> Floats:
        """The values of all links, which are kept as numbers that do not change."""
        values = np.array(getattr(self, what), dtype=np.float64)
        count = len(self.clusters)
        if values.shape != (count, count):
            raise GridError(f"{what} must have a row and a column for each of the {count} clusters")
        values.flags.writeable = False
        object.__setattr__(self, what, values)
        return values

    def _require(self, values: Floats, good: Bools, what: str, least: str) -> None:
        """GridError that names the first link whose value is not good."""
        if not good.all():
            c, d = (int(i[0]) for i in np.nonzero(~good))
            raise GridError(
                f"{what} from {self.clusters[c].name} to {self.clusters[d].name} is "
                f"{values[c, d]}; it must be {least}"
            )

    @cached_property
    def nodes(self) -> Ints:
        """Of each cluster, its processors."""
        return np.array([cluster.nodes for cluster in self.clusters], dtype=np.int64)

    @cached_property
    def speeds(self) -> Floats:
        """Of each cluster."""
        return np.array([cluster.speed for cluster in self.clusters], dtype=np.float64)

    @property
    def slowness(self) -> Floats:
        """Of each cluster, how many times its own run time a task takes there."""
        return self.reference_speed / self.speeds

    @cached_property
    def first(self) -> Ints:
        """The number of each cluster's first processor, and behind the last cluster that of all
        processors."""
        return np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(self.nodes)))

    @property
    def processors(self) -> int:
        """All of them."""
        return int(self.first[-1])

    def cluster_of(self, processor: Ints) -> Ints:
        """The cluster of each of these processors."""
        return np.searchsorted(self.first, processor, side="right") - 1

    @cached_property
    def s_per_byte(self) -> Floats:
        """From cluster to cluster."""
        return 1 / self.bandwidth_bytes_s

    @cached_property
    def mean_latency_s(self) -> float:
        """Over ordered pairs of different processors; 0 if there is but one."""
        return self._over_pairs(self.latency_s)

    @cached_property
    def mean_s_per_byte(self) -> float:
        """Over the same pairs: what a byte takes at their (harmonic) mean bandwidth."""
        return self._over_pairs(self.s_per_byte)

    @cached_property
    def mean_bandwidth_bytes_s(self) -> float:
        """Over the same pairs, the arithmetic mean, which fast links dominate."""
        return self._over_pairs(self.bandwidth_bytes_s)

    def _over_pairs(self, values: Floats) -> float:
        pairs = self.processors * (self.processors - 1)
        nodes = self.nodes.astype(np.float64)
        if pairs:
            return float(nodes @ values @ nodes - nodes @ np.diagonal(values)) / pairs
        return 0.0

    def part(self, nodes: Mapping[int, int] | Sequence[int]) -> Grid:
        """The grid of these clusters alone, in this order, each with that number of its nodes, or
        all."""
        if isinstance(nodes, Mapping):
            chosen = nodes
        else:
            chosen = {c: self.clusters[c].nodes for c in nodes}
        rows = np.ix_(list(chosen), list(chosen))
        clusters = tuple(replace(self.clusters[c], nodes=n) for c, n in chosen.items())
        return Grid(
            clusters, self.latency_s[rows], self.bandwidth_bytes_s[rows], self.reference_speed
        )
