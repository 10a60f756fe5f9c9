"""How long a workflow would have taken alone on the pool, by the run times that its tasks really had."""

from __future__ import annotations

import heapq
from collections.abc import Mapping

from windrow.model import NodeShape
from windrow.pool.workflow_state import Guest, WorkflowPast
from windrow.streams import Backfilling, Pool, TaskFinished, WorkflowArrived
from windrow.streams.selection import Selection


def alone_s(guest: Guest, shape: NodeShape, slots: int, selection: Selection) -> float:
    """The makespan of a finished workflow in an empty pool of this size: the same pool code over the measured times.

    0 where a task has no run time, for then nobody can know.
    """
    whole = guest.runnable.workflow
    if len(guest.took_s) < len(whole):
        return 0.0
    alone = Guest(guest.number, guest.runnable, shape, WorkflowPast())
    return _makespan_s(Pool(slots, Backfilling(), selection=selection), alone, guest.took_s)


def _makespan_s(pool: Pool, guest: Guest, took_s: Mapping[int, float]) -> float:
    starts = pool.handle(WorkflowArrived(guest.number, guest.rest_workflow(), 0.0))
    running: list[tuple[float, int]] = []
    now_s = 0.0
    while starts or running:
        for start in starts:
            heapq.heappush(running, (now_s + took_s[start.task], start.task))
        now_s, task = heapq.heappop(running)
        starts = pool.handle(TaskFinished(guest.number, task, took_s[task]))
    return now_s
