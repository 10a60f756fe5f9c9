"""First come, first served, each to the best match, as Condor's DAGMan has it.

A task becomes ready when its parents have ended. It goes to the fastest processor that is idle then, or, where none is,
to the one that is idle first; of equals, the first. Data are not looked at; the processor waits for them.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np

from windrow.grid.costs import Costs
from windrow.grid.schedule import Schedule


def matchmaking(costs: Costs) -> Schedule:
    """The schedule."""
    workflow, given, cluster = costs.workflow, costs.given, costs.grid.cluster_of(np.arange(costs.grid.processors))
    idle = list(zip(costs.grid.slowness[cluster].tolist(), range(len(cluster)), strict=True))
    heapify(idle)
    busy: list[tuple[float, float, int]] = []  # until when, and the processor as it is in `idle`
    missing = workflow.parents.degrees()
    ready = [(0.0, int(i)) for i in np.flatnonzero(missing == 0)]
    processor, start_s, end_s = np.zeros(len(workflow), dtype=np.int64), *np.zeros((2, len(workflow)))
    now = 0.0
    while ready:
        then, i = heappop(ready)
        now = max(now, then) if idle or busy[0][0] <= then else busy[0][0]
        while busy and busy[0][0] <= now:
            heappush(idle, heappop(busy)[1:])
        match = heappop(idle)
        c, edges = cluster[match[1]], slice(given.start[i], given.start[i + 1])
        at = processor[given.parent[edges]]
        way_s = given.latency_s[cluster[at], c] + given.size[edges] * given.s_per_byte[cluster[at], c]
        there = end_s[given.parent[edges]] + np.where(at == match[1], 0, way_s)
        processor[i], start_s[i] = match[1], max(now, there.max(initial=0))
        end_s[i] = start_s[i] + costs.run_s[i, c]
        heappush(busy, (float(end_s[i]), *match))
        for child in workflow.children.of(i):
            missing[child] -= 1
            if missing[child] == 0:
                heappush(ready, (float(end_s[workflow.parents.of(child)].max()), int(child)))
    return Schedule(costs, np.arange(len(workflow)), processor, start_s)
