"""Many workflows share one pool of processors: which tasks start now? Events in, starts out; no
clock, no I/O.

`Pool` is the mechanism that all policies share; a policy says how many processors a workflow should
hold and where it stands in the queue. The same objects serve a simulation and a real pool. Theory:
docs/theory/streams.md.
"""

from windrow.streams.demand import in_processors
from windrow.streams.estimates import ESTIMATES, Estimates, find_estimates
from windrow.streams.events import (
    Event,
    Start,
    TaskFinished,
    TaskLost,
    WorkflowArrived,
    WorkflowWithdrawn,
)
from windrow.streams.help_texts import POLICY_FORMS
from windrow.streams.parallelism import ExactParallelism
from windrow.streams.policies import (
    Backfilling,
    DueDates,
    FutureEligibleSets,
    Policy,
    ScaledParallelism,
    StrictReservation,
    find_policy,
)
from windrow.streams.pool import Pool
from windrow.streams.progress import Progress
from windrow.streams.selection import SELECTIONS, find_selection

__all__ = [
    "ESTIMATES", "POLICY_FORMS", "SELECTIONS", "Backfilling", "DueDates", "Estimates", "Event",
    "ExactParallelism",
    "FutureEligibleSets", "Policy", "Pool", "Progress", "ScaledParallelism", "Start",
    "StrictReservation",
    "TaskFinished", "TaskLost", "WorkflowArrived", "WorkflowWithdrawn", "find_estimates",
    "find_policy",
    "find_selection", "in_processors",
]  # fmt: skip
