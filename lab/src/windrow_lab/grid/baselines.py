"""What others are compared with: CPoP, matchmaking, and two that look at nothing and show what
there is to win.

CPoP (Topcuoglu, Hariri, Wu 2002): next is the ready task with the longest way through it. The tasks
of a critical path, from the entry always to the child through which the longest way leads, go to
one processor of the cluster on which they take least; the others where they end first.

Matchmaking, as Condor's DAGMan has it: first come, first served. A task becomes ready when its
parents have ended. It goes to the fastest processor that is idle then, or, if none is, to the
one that is idle first; of equals, the first. Data are not looked at; the processor waits for them.
"""

from heapq import heapify, heappop, heappush

import numpy as np

from windrow.model.graph import Ints
from windrow_lab.grid.clusters import Floats
from windrow_lab.grid.costs import Costs
from windrow_lab.grid.schedule import Schedule, listed


def round_robin(costs: Costs) -> Schedule:
    """Level by level, each task to the next processor."""
    order = costs.by()
    return listed(costs, order, np.argsort(order) % costs.grid.processors, insertion=False)


def at_random(costs: Costs, *, seed: int = 0) -> Schedule:
    """Level by level, each task to any processor."""
    pinned = np.random.default_rng(seed).integers(costs.grid.processors, size=len(costs.workflow))
    return listed(costs, costs.by(), pinned, insertion=False)


def cpop(costs: Costs, *, insertion: bool = True) -> Schedule:
    """A critical path on one processor."""
    workflow = costs.workflow
    through = np.add(*costs.ranks)
    path = [int(np.argmax(costs.ranks[0]))]
    while len(children := workflow.children.of(path[-1])):
        path.append(int(children[np.argmax(through[children])]))
    pinned = np.full(len(workflow), -1, dtype=np.int64)
    pinned[path] = costs.grid.first[np.argmin(costs.run_s[path].sum(axis=0))]
    return listed(costs, _ready_first(costs, through.tolist()), pinned, insertion=insertion)


def _ready_first(costs: Costs, through: list[float]) -> Ints:
    """Of the tasks whose parents are all placed, always the one with the longest way through it."""
    missing = costs.workflow.parents.degrees().tolist()
    order = []
    ready = [(-through[i], i) for i, parents in enumerate(missing) if parents == 0]
    heapify(ready)
    while ready:
        order.append(heappop(ready)[1])
        for child in costs.workflow.children.freed_by(order[-1], missing):
            heappush(ready, (-through[child], child))
    return np.array(order, dtype=np.int64)


class _Processors:
    """Which processors are idle, the fastest first, and until when the others are busy; time goes
    forward only. A processor is named by its slowness and its number."""

    def __init__(self, slowness: Floats) -> None:
        self.now_s = 0.0
        self._idle = list(zip(slowness.tolist(), range(len(slowness)), strict=True))
        heapify(self._idle)
        self._busy: list[tuple[float, float, int]] = []

    def take(self, ready_s: float) -> tuple[float, int]:
        """For a task that is ready then: the fastest that is idle, or the first to become so."""
        if self._idle or self._busy[0][0] <= ready_s:
            self.now_s = max(self.now_s, ready_s)
        else:
            self.now_s = self._busy[0][0]
        while self._busy and self._busy[0][0] <= self.now_s:
            heappush(self._idle, heappop(self._busy)[1:])
        return heappop(self._idle)

    def hold(self, processor: tuple[float, int], until_s: float) -> None:
        """It is busy until then."""
        heappush(self._busy, (until_s, *processor))


def matchmaking(costs: Costs) -> Schedule:
    """Each task to the fastest idle processor."""
    workflow = costs.workflow
    cluster = costs.grid.cluster_of(np.arange(costs.grid.processors))
    processors = _Processors(costs.grid.slowness[cluster])
    missing = workflow.parents.degrees().tolist()
    ready = [(0.0, i) for i, parents in enumerate(missing) if parents == 0]
    processor = np.zeros(len(workflow), dtype=np.int64)
    start_s = np.zeros(len(workflow))
    end_s = np.zeros(len(workflow))
    while ready:
        then, i = heappop(ready)
        match = processors.take(then)
        processor[i] = match[1]
        start_s[i] = max(processors.now_s, _data_there_s(costs, i, processor, cluster, end_s))
        end_s[i] = start_s[i] + costs.run_s[i, cluster[match[1]]]
        processors.hold(match, float(end_s[i]))
        for child in workflow.children.freed_by(i, missing):
            heappush(ready, (float(end_s[workflow.parents.of(child)].max()), child))
    return Schedule(costs, np.arange(len(workflow)), processor, start_s)


def _data_there_s(costs: Costs, task: int, processor: Ints, cluster: Ints, end_s: Floats) -> float:
    """When all that a task reads is on its processor; 0 if it reads nothing."""
    given = costs.given
    edges = slice(given.start[task], given.start[task + 1])
    mine = processor[task]
    c = cluster[mine]
    at = processor[given.parent[edges]]
    way_s = given.latency_s[cluster[at], c] + given.size[edges] * given.s_per_byte[cluster[at], c]
    there_s = end_s[given.parent[edges]] + np.where(at == mine, 0, way_s)
    return float(there_s.max(initial=0))
