"""How far off are the starts that waiting jobs are told? (Thesis, 7.2: "within 5 %" in the mean.)

Law: at each moment the cluster tells every waiting job of the log its start, as `showstart` does:
as if no other job came and all ran as long as requested. What each then waited is known later.
"""

from collections.abc import Sequence
from typing import NamedTuple

from windrow.sim.cluster import Cluster
from windrow_lab.campaign.sources import LogSource

_AFTER_S = 30 * 86_400


class Told(NamedTuple):
    """On one cluster: over how many jobs, and the mean wait that they were told and that they
    had yet."""

    cluster: str
    jobs: int
    told_s: float
    waited_s: float


def told_waits(logs: tuple[LogSource, ...], times_s: Sequence[int], priority: str) -> Told:
    """What the waiting jobs of a log are told at these moments, in order, under EASY."""
    (source,) = logs
    cluster = Cluster(source.load("actual"), policy="easy", priority=priority, record=True)
    told: list[tuple[int, int, int]] = []
    for at_s in times_s:
        cluster.advance(at_s)
        told += [(job, at_s, start_s) for job, start_s in cluster.expected_starts().items()]
    cluster.advance(times_s[-1] + _AFTER_S)
    starts = cluster.log_starts_s
    known = [
        (start_s - at_s, int(starts[job]) - at_s) for job, at_s, start_s in told if starts[job] >= 0
    ]
    count = max(1, len(known))
    return Told(
        source.name,
        len(known),
        sum(ours for ours, _ in known) / count,
        sum(real for _, real in known) / count,
    )
