"""What a workflow costs on a grid: run times by cluster, data along edges, means and ranks.

Law: `run_s[task, cluster]` is the task's run time times the cluster's slowness unless it is given;
each edge is a transfer of its own, of the sizes of all files that go along it, and free on one
processor. Means are the grid's. The thesis adds an entry and an exit that take no time and have no
data; nothing here would change by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from windrow.kernels.jit import in_python, is_small
from windrow.model import Workflow
from windrow.model.graph import Ints
from windrow_lab.grid.clusters import Floats, Grid, GridError
from windrow_lab.kernels.grid.placing import rank
from windrow_lab.kernels.grid.rooms import Given


@dataclass(frozen=True, eq=False)
class Costs:
    """A workflow on a grid. given_run_s: of task on cluster, if that is not by the clusters'
    speeds.

    A transfer in the mean takes the mean time over pairs of processors or, `by_mean_rate`, the time
    at mean bandwidth.
    """

    workflow: Workflow
    grid: Grid
    given_run_s: Floats | None = None
    by_mean_rate: bool = False

    @cached_property
    def run_s(self) -> Floats:
        """Of each task on each cluster."""
        if self.given_run_s is None:
            return self.workflow.runtime_s[:, None] * self.grid.slowness
        if self.given_run_s.shape != (len(self.workflow), len(self.grid.clusters)):
            raise GridError("run times need a row for each task and a column for each cluster")
        return np.ascontiguousarray(self.given_run_s, dtype=np.float64)

    @cached_property
    def given(self) -> Given:
        """As the kernels want it."""
        grid = self.grid
        parents = self.workflow.parents
        size = self.workflow.edge_bytes.astype(np.float64)
        return Given(
            self.run_s,
            grid.first,
            grid.latency_s,
            grid.s_per_byte,
            parents.start,
            parents.index,
            size,
        )

    @property
    def is_small(self) -> bool:
        """Whether kernels need not be loaded for it."""
        return is_small(len(self.workflow) + len(self.grid.clusters))

    @cached_property
    def ranks(self) -> tuple[Floats, Floats]:
        """Of each task, the longest way in the mean to an exit, with its own run, and from an
        entry, without."""
        grid = self.grid
        if self.by_mean_rate and grid.processors > 1:
            per_byte = 1 / grid.mean_bandwidth_bytes_s
        else:
            per_byte = grid.mean_s_per_byte
        return self._ranks(grid.mean_latency_s + self.given.size * per_byte)

    @cached_property
    def static_level(self) -> Floats:
        """The longest way to an exit without transfers."""
        return self._ranks(np.zeros(self.workflow.parents.edges))[0]

    def _ranks(self, transfer_s: Floats) -> tuple[Floats, Floats]:
        up = np.zeros(len(self.workflow))
        down = np.zeros(len(self.workflow))
        given = self.given
        if self.given_run_s is None:
            mean_run_s = self.workflow.runtime_s * np.average(
                self.grid.slowness, weights=self.grid.nodes
            )
        else:
            mean_run_s = np.average(self.run_s, axis=1, weights=self.grid.nodes)
        with in_python(really=self.is_small):
            rank(self.workflow.order, given.start, given.parent, mean_run_s, transfer_s, up, down)
        return up, down

    @property
    def critical_s(self) -> float:
        """The longest way from an entry to an exit in the mean, transfers included: makespans are
        measured by it."""
        return float(self.ranks[0].max())

    @property
    def width(self) -> int:
        """The most tasks of a level."""
        return int(np.bincount(self.workflow.levels).max())

    def by(self, *keys: Floats | Ints) -> Ints:
        """The tasks in the order of these keys, the first one first, then by level and by
        number."""
        return np.lexsort((self.workflow.levels, *reversed(keys)))

    def part(self, nodes: Mapping[int, int]) -> Costs:
        """The same on these numbers of nodes of these clusters alone."""
        if self.given_run_s is None:
            run_s = None
        else:
            run_s = self.run_s[:, list(nodes)]
        return replace(self, grid=self.grid.part(nodes), given_run_s=run_s)
