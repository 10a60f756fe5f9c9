"""Replaying a whole log: one call, every job's start."""

from __future__ import annotations

import time
from dataclasses import replace

from windrow.model import Log, Repairs
from windrow.sim.cluster import Cluster
from windrow.sim.settings import REQUESTS, choice
from windrow.sim.simulation import Simulation


def simulate(
    log: Log,
    *,
    nodes: int | None = None,
    policy: str = "conservative",
    priority: str = "arrival",
    requests: str = "actual",
    events: str = "batched",
    placement: str = "count",
    cap: int | None = None,
    from_s: int = 0,
) -> Simulation:
    """Replay the log's jobs submitted at `from_s` or later, on an empty cluster, until the last has ended.

    `wall_s` of the answer is the time that the simulation took, without reading the log and compiling.
    """
    choice("kind of requests", requests, REQUESTS)
    jobs = _from(log.accurate() if requests == "accurate" else log, from_s)
    cluster = Cluster(
        jobs, nodes=nodes, policy=policy, priority=priority, events=events, placement=placement, cap=cap, record=True
    )
    Cluster(nodes=1).advance()  # loads or compiles the kernels, so that the clock below does not count it
    begin = time.perf_counter()
    cluster.advance()
    wall_s = time.perf_counter() - begin
    settings = {"policy": policy, "priority": priority, "requests": requests, "events": events, "placement": placement}
    if cap is not None:
        settings["cap"] = str(cap)
    return Simulation(policy, jobs, cluster.nodes, cluster.log_starts_s, wall_s, settings)


def _from(log: Log, from_s: int) -> Log:
    if from_s <= 0:
        return log
    later = log.submit_s >= from_s
    columns = {name: getattr(log, name)[later] for name in ("job", "submit_s", "nodes", "requested_s", "run_s", "user")}
    return replace(log, repairs=Repairs(), **columns)
