"""EACP, effective aggregated computing power (Zhang 3.4.2): a few clusters chosen before anything
is scheduled.

Law: a cluster's power for a workflow is its speed times its nodes, of which no more count than the
workflow is wide. Clusters are taken by descending power (of equals the faster, then the first),
each as a whole, until their nodes are as many as the workflow is wide. What lies between the
clusters is not looked at.
"""

from collections.abc import Callable

import numpy as np

from windrow_lab.grid.clusters import Floats, Grid
from windrow_lab.grid.costs import Costs
from windrow_lab.grid.schedule import Schedule, on_part


def powers(grid: Grid, width: int) -> Floats:
    """Of each cluster, for a workflow that wide."""
    return grid.speeds * np.minimum(grid.nodes, width)


def chosen(grid: Grid, width: int) -> list[int]:
    """The clusters to use, the most powerful first."""
    order = np.lexsort((-grid.speeds, -powers(grid, width)))
    enough = int(np.searchsorted(np.cumsum(grid.nodes[order]), width)) + 1
    return [int(c) for c in order[:enough]]


def on_chosen(costs: Costs, scheduler: Callable[[Costs], Schedule]) -> Schedule:
    """The schedule that the scheduler makes on these clusters alone, in the order in which the grid
    has them."""
    clusters = sorted(chosen(costs.grid, costs.width))
    return on_part(costs, {c: costs.grid.clusters[c].nodes for c in clusters}, scheduler)
