"""Figure 11 of Zhang, Koelbel and Cooper: what the clusters' logs hold, ours beside the printed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from windrow.model import Log
from windrow.recipes.logs.clusters import CLUSTERS
from windrow.reproductions.zhang.plan import ZhangPlan

_DAY_S = 86_400
_HOUR_S = 3600


@dataclass(frozen=True, slots=True)
class Usage:
    """One row of the figure. Loads are parts of the machine; a requested load may be above 1."""

    nodes: int
    jobs_per_day: float
    width: float
    run_h: float
    request_node_h: float
    actual_load: float
    requested_load: float


def figure_11(plan: ZhangPlan) -> Iterator[tuple[str, Usage, Usage | None]]:
    """For each cluster of the plan its name, our row, and the printed one where there is one."""
    for source in plan.logs:
        yield source.name, usage(source.load("actual")), printed_usage(source.name)


def usage(log: Log) -> Usage:
    """The row of a log, over the time from its first submission to its last."""
    span_s = max(1, int(log.submit_s[-1] - log.submit_s[0]))
    run_s, requested_s = np.minimum(log.run_s, log.requested_s), log.requested_s
    capacity = log.machine_nodes * span_s
    return Usage(
        log.machine_nodes,
        len(log) * _DAY_S / span_s,
        float(log.nodes.mean()),
        float(run_s.mean()) / _HOUR_S,
        float((log.nodes * requested_s).mean()) / _HOUR_S,
        float((log.nodes * run_s).sum()) / capacity,
        float((log.nodes * requested_s).sum()) / capacity,
    )


def printed_usage(cluster: str) -> Usage | None:
    """The row that the paper prints; None for a cluster that it does not have."""
    row = CLUSTERS.get(cluster.lower())
    if row is None:
        return None
    means = (row.jobs_per_day, row.width, row.run_h, row.request_node_h, row.actual_load, row.requested_load)
    return Usage(row.nodes, *means)
