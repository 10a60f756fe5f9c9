"""Replaying a whole log: one call, every job's start."""

import time
from dataclasses import dataclass, replace
from typing import Any

from windrow.model import Log, Repairs
from windrow.model.graph import Ints
from windrow.sim.cluster import Cluster
from windrow.sim.settings import REQUESTS, choice
from windrow.sim.simulation import Simulation


@dataclass(frozen=True, slots=True)
class WaitingAt:
    """A job of a log that waits: for how long it has, and when it should start."""

    job: int
    nodes: int
    requested_s: int
    waited_s: int
    start_s: int


@dataclass(frozen=True, slots=True)
class QueueAt:
    """A moment of a log under one policy; waiting jobs by expected start."""

    policy: str
    at_s: int
    nodes: int
    running_jobs: int
    busy_nodes: int
    waiting: tuple[WaitingAt, ...]


def queue_at(log: Log, at_s: int, *, requests: str = "actual", **rules: Any) -> QueueAt:
    """The queue at that second of the log, with the starts that its jobs would be told then: if no
    other came and all ran as long as they requested."""
    zero = int(log.submit_s[0])
    known = log.accurate() if requests == "accurate" else log
    cluster = Cluster(known, **rules)
    cluster.advance(zero + at_s)
    starts = cluster.expected_starts()
    running = cluster.running()
    waiting = [
        WaitingAt(
            int(log.job[row]),
            int(log.nodes[row]),
            int(known.requested_s[row]),
            zero + at_s - int(log.submit_s[row]),
            start_s - zero,
        )
        for row, start_s in sorted(starts.items(), key=lambda item: (item[1], item[0]))
    ]
    busy = sum(job.nodes for job in running)
    return QueueAt(
        rules.get("policy", "conservative"), at_s, cluster.nodes, len(running), busy, tuple(waiting)
    )


def prepare() -> None:
    """Load or compile the kernels, so that no clock counts it."""
    Cluster(nodes=1).advance()


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
    failures: Ints | None = None,
) -> Simulation:
    """Replay the log's jobs submitted at `from_s` or later, on an empty cluster, until the last has
    ended.

    `failures` of nodes are as for `Cluster`; `Failures.draw` draws some. `wall_s` of the result is
    the time that the simulation took, without reading the log and compiling.
    """
    choice("kind of requests", requests, REQUESTS)
    if requests == "accurate":
        jobs = log.accurate()
    else:
        jobs = log
    if from_s > 0:
        columns = ("job", "submit_s", "nodes", "requested_s", "run_s", "user")
        later = {name: getattr(jobs, name)[jobs.submit_s >= from_s] for name in columns}
        jobs = replace(jobs, repairs=Repairs(), **later)
    rules: dict[str, Any] = {
        "policy": policy,
        "priority": priority,
        "events": events,
        "placement": placement,
    }
    cluster = Cluster(jobs, nodes=nodes, cap=cap, record=True, failures=failures, **rules)
    prepare()
    begin = time.perf_counter()
    cluster.advance()
    wall_s = time.perf_counter() - begin
    settings = {"policy": policy, "priority": priority, "requests": requests, **rules}
    if cap is not None:
        settings["cap"] = str(cap)
    found = cluster.nodes, cluster.log_starts_s, wall_s, settings, failures, cluster.log_hits
    return Simulation(policy, jobs, *found)
