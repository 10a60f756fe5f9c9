"""Tasks one after the other, in a given order: ranks to order them by, and each to its best processor.

Rule: an order has parents before children. A task with a `pinned` processor goes there, the others to the best one.
"""

from __future__ import annotations

import numpy as np

from windrow.kernels.grid.rooms import Floats, Given, Plan, arrivals, choose, put
from windrow.kernels.jit import kernel
from windrow.model.graph import Ints


@kernel
def place(given: Given, plan: Plan, order: Ints, pinned: Ints) -> None:
    """Put all tasks somewhere, in this order."""
    ready = np.zeros(len(given.first) - 1)
    for i in order:
        p = pinned[i]
        if p < 0:
            arrivals(given, plan, i, ready)
            p = choose(given, plan, i, ready, 0, len(ready))
        put(given, plan, i, p)


@kernel
def rank(order: Ints, start: Ints, parent: Ints, run_s: Floats, way: Floats, up: Floats, down: Floats) -> None:
    """The longest paths from each task to an exit, its own run included, and from an entry to it, without."""
    for i in order[::-1]:
        up[i] += run_s[i]
        for e in range(start[i], start[i + 1]):
            up[parent[e]] = max(up[parent[e]], way[e] + up[i])
    for i in order:
        for e in range(start[i], start[i + 1]):
            down[i] = max(down[i], down[parent[e]] + run_s[parent[e]] + way[e])
