"""A batch-scheduled cluster in virtual time.

`settings` and `simulation` are light; whatever needs the compiled kernels is loaded when first asked for.
"""

from typing import TYPE_CHECKING, Any

from windrow.sim.settings import EVENTS, PLACEMENTS, POLICIES, PRIORITIES, REQUESTS, parse_policy, parse_priority
from windrow.sim.simulation import Simulation, Summary

if TYPE_CHECKING:
    from windrow.sim.cluster import Cluster, Event, EventKind, RunningJob, WaitingJob
    from windrow.sim.replay import simulate

_LAZY = {
    "Cluster": "cluster",
    "Event": "cluster",
    "EventKind": "cluster",
    "WaitingJob": "cluster",
    "RunningJob": "cluster",
    "simulate": "replay",
}

__all__ = [
    "EVENTS",
    "PLACEMENTS",
    "POLICIES",
    "PRIORITIES",
    "REQUESTS",
    "Cluster",
    "Event",
    "EventKind",
    "RunningJob",
    "Simulation",
    "Summary",
    "WaitingJob",
    "parse_policy",
    "parse_priority",
    "simulate",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        from importlib import import_module  # noqa: PLC0415

        return getattr(import_module(f"windrow.sim.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
