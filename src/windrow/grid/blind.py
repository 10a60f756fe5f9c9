"""Two that look at nothing: processors in turn, or by lot. They show what there is to win."""

from __future__ import annotations

import numpy as np

from windrow.grid.costs import Costs
from windrow.grid.schedule import Schedule, listed


def round_robin(costs: Costs) -> Schedule:
    """Level by level, each task to the next processor."""
    order = costs.by()
    return listed(costs, order, np.argsort(order) % costs.grid.processors, insertion=False)


def at_random(costs: Costs, *, seed: int = 0) -> Schedule:
    """Level by level, each task to any processor."""
    pinned = np.random.default_rng(seed).integers(costs.grid.processors, size=len(costs.workflow))
    return listed(costs, costs.by(), pinned, insertion=False)
