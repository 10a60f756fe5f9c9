"""A check of forecasts by the batch system's own word on the job that was chosen.

The twin knows only the jobs that it is shown, and neither priorities of users nor limits on them.
So before a job is submitted, the batch system is asked once when it would start (`sbatch
--test-only`).

Rule 1: of two waits that differ by more than five minutes and by more than half of the longer one,
the batch system's counts. If it hides jobs, its own counts if it is a minute longer.
Rule 2: a larger job then waits at least as long as that one, a smaller one at most: waits grow with
size. So the next decision is made with what was said of this one. After three such answers no job
is taken to start before all of them.
Rule 3: if it gives no answer, nothing changes.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from windrow.errors import OutsideError
from windrow.forecast.base import Clock, Ints
from windrow.model import NEVER_S, format_duration
from windrow.queues.port import Snapshot as Reading
from windrow.queues.port import SpecError

_FAR_S = 300
_FAR_PART = 0.5
_HIDDEN_FAR_S = 60
_KEEP_S = 300.0
_MANY = 3
_SOON_S = 86_400.0
_FEW_HIDDEN = 0.05  # of the nodes: that many may change hands while the queue is read

Forecast = Callable[[Ints, Ints], Ints]


@dataclass(frozen=True, slots=True)
class Told:
    """When the batch system said that such a job would start, when it said so, and whether that is
    late."""

    nodes: int
    requested_s: int
    start_s: float
    at_s: float
    is_later: bool


class HeldForecast:
    """Asks the batch system (`probe`) and holds forecasts to its word. `reading`: what forecasts
    are made from."""

    def __init__(
        self,
        probe: Callable[[int, int], float | None],
        reading: Callable[[], Reading],
        clock: Clock,
    ) -> None:
        self._probe = probe
        self._reading = reading
        self._clock = clock
        self._told: list[Told] = []
        self.words = ""
        """The last difference, for people, as long as it counts."""
        self.hidden = ""
        """That jobs are hidden, for people, by the last look."""
        self.closed = ""
        """That maintenance is near, for people, by the last look."""

    @property
    def notes(self) -> list[str]:
        """What people should know of forecasts here."""
        return [words for words in (self.hidden, self.closed, self.words) if words]

    def sees_all(self) -> bool:
        """Whether the queue is as it looks, so that it can be simulated."""
        try:
            reading = self._reading()
        except OutsideError:
            return not self._fresh()
        self.hidden = hidden_jobs(reading)
        self.closed = closed_soon(reading)
        return not self.hidden and not self._fresh()

    def bounded(self, forecast: Forecast) -> Forecast:
        """The same forecasts within what the batch system said."""

        def waits_s(nodes: Ints, requested_s: Ints) -> Ints:
            found = forecast(nodes, requested_s)
            now_s = self._clock()
            for told in self._fresh():
                wait_s = max(0, round(told.start_s - now_s))
                is_larger = (nodes >= told.nodes) & (requested_s >= told.requested_s)
                is_smaller = (
                    (nodes <= told.nodes) & (requested_s <= told.requested_s) & (found < NEVER_S)
                )
                found = np.where(is_larger, np.maximum(found, wait_s), found)
                found = np.where(is_smaller, np.minimum(found, wait_s), found)
            later = [max(0, round(told.start_s - now_s)) for told in self._fresh() if told.is_later]
            if len(later) >= _MANY:
                least_s = min(later)
            else:
                least_s = 0
            return np.asarray(np.maximum(found, least_s), dtype=np.int64)

        return waits_s

    def disagrees(self, nodes: int, requested_s: int, wait_s: int) -> bool:
        """Ask when such a job, expected to wait so long, would start. Whether that is far off; it
        then counts."""
        now_s = self._clock()
        if not self._fresh():
            self.words = ""
        try:
            start_s = self._probe(nodes, requested_s)
        except (OutsideError, SpecError):
            return False
        if start_s is None or wait_s >= NEVER_S:
            return False
        system_s = max(0, round(start_s - now_s))
        if not is_far(wait_s, system_s, hides=bool(self.hidden)):
            return False
        self._told.append(Told(nodes, requested_s, start_s, now_s, system_s > wait_s))
        said, seen = (format_duration(one) if one else "none" for one in (system_s, wait_s))
        self.words = (
            f"expected wait by the batch system {said}, by the jobs that it shows "
            f"{seen}: it is believed"
        )
        return True

    def said_s(self, nodes: int, requested_s: int) -> float | None:
        """When such a job starts by the batch system, if that counts."""
        told = [
            one for one in self._fresh() if (one.nodes, one.requested_s) == (nodes, requested_s)
        ]
        if told:
            return told[-1].start_s
        return None

    def _fresh(self) -> list[Told]:
        now_s = self._clock()
        self._told = [one for one in self._told if 0 <= now_s - one.at_s <= _KEEP_S]
        return self._told


def is_far(expected_s: float, system_s: float, *, hides: bool = False) -> bool:
    """Whether the batch system's wait differs so much from the expected one that it counts
    instead."""
    if hides and system_s > expected_s + _HIDDEN_FAR_S:
        return True
    return abs(expected_s - system_s) > max(_FAR_S, _FAR_PART * max(expected_s, system_s))


def hidden_jobs(reading: Reading) -> str:
    """That more nodes are in use than the jobs that are shown can explain, for people; empty if
    they are not."""
    if reading.hidden_nodes <= max(1, _FEW_HIDDEN * reading.nodes):
        return ""
    return (
        f"{reading.hidden_nodes} of {reading.nodes} nodes are in use by jobs that the batch "
        "system does not show you: "
        "where it says that a job waits longer than the queue looks, it is believed"
    )


def closed_soon(reading: Reading) -> str:
    """That maintenance begins within a day, for people; empty if none does."""
    for start_s, end_s, nodes in reading.closures:
        if start_s < reading.at_s + _SOON_S:
            which = f"{min(nodes, reading.nodes)} of {reading.nodes} nodes"
            return (
                f"maintenance of {which} from {_clock_time(start_s)} to {_clock_time(end_s)}: "
                "a job that cannot end before starts after it there"
            )
    return ""


def _clock_time(at_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at_s))
