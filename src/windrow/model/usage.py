"""How a machine is used, as its log tells: jobs a day, how large they are, and how well people know
how long they run.

What runs longer than requested is killed, so a run counts at most for what was requested. All is
over the time from the first submission to the last.
"""

from dataclasses import dataclass

import numpy as np

from windrow.model.log import Log

_HOUR_S = 3600
_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Usage:
    """What a log says of its machine in the mean. Loads are parts of the machine; a requested one
    may be above 1."""

    nodes: int
    jobs_per_day: float
    width: float
    run_h: float
    request_node_h: float
    actual_load: float
    requested_load: float


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How far requested times are from run times: hours too many in the mean, and the part of the
    request that a job runs for, in the mean and in the middle."""

    over_request_h: float
    mean: float
    median: float


def usage_of(log: Log) -> Usage:
    """Of all jobs of a log, which has at least one."""
    span_s = max(1, int(log.submit_s[-1] - log.submit_s[0]))
    run_s = np.minimum(log.run_s, log.requested_s)
    requested_s = log.requested_s
    capacity = log.machine_nodes * span_s
    return Usage(
        nodes=log.machine_nodes,
        jobs_per_day=len(log) * _DAY_S / span_s,
        width=float(log.nodes.mean()),
        run_h=float(run_s.mean()) / _HOUR_S,
        request_node_h=float((log.nodes * requested_s).mean()) / _HOUR_S,
        actual_load=float((log.nodes * run_s).sum()) / capacity,
        requested_load=float((log.nodes * requested_s).sum()) / capacity,
    )


def accuracy_of(log: Log) -> Accuracy:
    """Of all jobs of a log, which has at least one."""
    run_s = np.minimum(log.run_s, log.requested_s)
    part = run_s / log.requested_s
    return Accuracy(
        over_request_h=float((log.requested_s - run_s).mean()) / _HOUR_S,
        mean=float(part.mean()),
        median=float(np.median(part)),
    )
