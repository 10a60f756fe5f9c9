"""CPoP (Topcuoglu, Hariri, Wu 2002): the tasks of a critical path on one processor, the others where they end first.

Next is the ready task with the longest way through it. The path begins at the entry, and goes on to the child, through
which the longest way leads; its processor is one of the cluster on which it takes least.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np

from windrow.grid.costs import Costs
from windrow.grid.schedule import Schedule, listed
from windrow.model.graph import Ints


def cpop(costs: Costs, *, insertion: bool = True) -> Schedule:
    """The schedule."""
    workflow, through = costs.workflow, np.add(*costs.ranks)
    path = [int(np.argmax(costs.ranks[0]))]
    while len(children := workflow.children.of(path[-1])):
        path.append(int(children[np.argmax(through[children])]))
    pinned = np.full(len(workflow), -1, dtype=np.int64)
    pinned[path] = costs.grid.first[np.argmin(costs.run_s[path].sum(axis=0))]
    return listed(costs, _ready_first(costs, through.tolist()), pinned, insertion=insertion)


def _ready_first(costs: Costs, through: list[float]) -> Ints:
    """Of the tasks whose parents are all placed, always the one with the longest way through it."""
    missing, order = costs.workflow.parents.degrees().tolist(), []
    ready = [(-through[i], i) for i, parents in enumerate(missing) if parents == 0]
    heapify(ready)
    while ready:
        order.append(heappop(ready)[1])
        for child in costs.workflow.children.of(order[-1]).tolist():
            missing[child] -= 1
            if missing[child] == 0:
                heappush(ready, (-through[child], child))
    return np.array(order, dtype=np.int64)
