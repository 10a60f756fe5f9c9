"""What a forecast of start times is, whatever makes it.

Rule 1: a forecast is about one job more, submitted now, while no others arrive. Asking changes
nothing in the queue.
Rule 2: waits are whole seconds from the moment of asking. `NEVER_S` says that the job does not fit
on the usable nodes.
Rule 3: who cannot always answer says so in `known_s`, with `UNKNOWN_S`; its `waits_s` takes those
from another.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from windrow.model import NEVER_S

Ints = NDArray[np.int64]

Clock = Callable[[], float]
"""The time now, in seconds since the epoch."""

UNKNOWN_S = -1


class Forecaster(Protocol):
    """Tells how long jobs would wait."""

    @property
    def name(self) -> str:
        """What users call it; predictions are kept under it."""

    def waits_s(self, nodes: Ints, requested_s: Ints) -> Ints:
        """How long each (nodes, requested time) would wait if it alone were submitted now."""


class AtOnce:
    """Who answers if no job ever waits."""

    name = "at once"

    def waits_s(self, nodes: Ints, requested_s: Ints) -> Ints:  # noqa: ARG002  (whatever is asked for)
        """None does."""
        return np.zeros(np.shape(nodes), dtype=np.int64)


@runtime_checkable
class PartialForecaster(Forecaster, Protocol):
    """A forecaster that has no word of its own on some jobs."""

    def known_s(self, nodes: Ints, requested_s: Ints) -> Ints:
        """As `waits_s`, but `UNKNOWN_S` if it cannot tell; no other forecaster is asked."""


@runtime_checkable
class CountingForecaster(Forecaster, Protocol):
    """A forecaster to which jobs count as soon as they are submitted, before anybody has read the
    queue again."""

    def add(self, nodes: int, requested_s: int) -> None:
        """We have just submitted such a job."""


@runtime_checkable
class WatchingForecaster(Forecaster, Protocol):
    """A forecaster that also tells of jobs that wait already."""

    def waits_of(self, ids: Collection[str]) -> Mapping[str, int]:
        """How long the jobs that the queue calls so will wait yet; none of those that are not in
        its reading."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """That a job of this size, submitted at `at_s`, waits for `wait_s`, in the view of one
    source."""

    source: str
    nodes: int
    requested_s: int
    wait_s: int
    at_s: float

    @property
    def start_s(self) -> float:
        """When it starts, in seconds since the epoch."""
        return self.at_s + self.wait_s


def predict(
    forecaster: Forecaster, nodes: Ints, requested_s: Ints, at_s: float
) -> list[Prediction | None]:
    """What this source itself says of each job, to be kept and compared with what happens.

    None if it has no word of its own (what its fallback says is the fallback's), or if the
    job cannot start.
    """
    if isinstance(forecaster, PartialForecaster):
        own_word = forecaster.known_s
    else:
        own_word = forecaster.waits_s
    waits = own_word(nodes, requested_s)
    rows = zip(nodes.tolist(), requested_s.tolist(), waits.tolist(), strict=True)
    return [
        None
        if wait in (UNKNOWN_S, NEVER_S)
        else Prediction(forecaster.name, wide, long, wait, at_s)
        for wide, long, wait in rows
    ]


def shortened(waits_s: Callable[[Ints, Ints], Ints], part: float) -> Callable[[Ints, Ints], Ints]:
    """The forecasts of which this part is expected to come true."""

    def expected_s(nodes: Ints, requested_s: Ints) -> Ints:
        found = waits_s(nodes, requested_s)
        return np.where(found < NEVER_S, np.round(found * part), found).astype(np.int64)

    return expected_s


def filled(known_s: Ints, fallback: Forecaster, nodes: Ints, requested_s: Ints) -> Ints:
    """The known waits, with those of `fallback` if there are none. It is asked once at most, and
    only for those."""
    missing = known_s == UNKNOWN_S
    if not missing.any():
        return known_s
    waits = known_s.copy()
    waits[missing] = fallback.waits_s(nodes[missing], requested_s[missing])
    return waits
