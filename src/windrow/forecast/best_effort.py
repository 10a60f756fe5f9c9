"""Going on if a history cannot be used.

Rule 1: what earlier runs took and waited is a convenience. No run stops for the want of it,
whatever is wrong with the files: not writable, broken, of another program. Rule 2: it is said, and
once.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from windrow.errors import WindrowError
from windrow.forecast.failures import Lives
from windrow.forecast.runtimes import DEFAULT_RISK, FilledTime, RunTimes, check_risk, fill
from windrow.forecast.waits import History
from windrow.forecast.waits import default_path as waits_path
from windrow.model import Runnable
from windrow.model.hazard import NO_HAZARD, Hazard

logger = logging.getLogger(__name__)
Say = Callable[[str], None]
T = TypeVar("T")


class Remembered(Generic[T]):
    """Hands on what is to be remembered, until that fails for the first time."""

    def __init__(
        self, record: Callable[[Sequence[T]], None], what: str, say: Say = logger.warning
    ) -> None:
        self._record: Callable[[Sequence[T]], None] | None = record
        self._what = what
        self._say = say

    def keep(self, values: Sequence[T]) -> None:
        """Remember these, if anything is remembered."""
        if self._record is None or not values:
            return
        try:
            self._record(values)
        except WindrowError as error:
            self._record = None
            self._say(f"{self._what} are not remembered: {error}")


def filled(
    runnable: Runnable, default_s: float, risk: float = DEFAULT_RISK, say: Say = logger.warning
) -> tuple[Runnable, tuple[FilledTime, ...]]:
    """`runtimes.fill` from the user's history, or from none if that cannot be read."""
    check_risk(risk)
    try:
        return fill(runnable, RunTimes(), default_s, risk)
    except WindrowError as error:
        say(f"run times of earlier runs are not used: {error}")
        return fill(runnable, None, default_s, risk)


def past_waits(say: Say = logger.warning) -> History | None:
    """The user's history of waits; None if it cannot be used."""
    try:
        return History(waits_path())
    except WindrowError as error:
        say(f"waits of earlier jobs are neither used nor remembered: {error}")
        return None


def known_hazard(place: str, at_s: float, say: Say = logger.warning) -> Hazard:
    """What was learned of how jobs of a place are lost; nothing if that cannot be used."""
    try:
        return Lives().hazard(place, at_s)
    except WindrowError as error:
        say(f"losses of earlier jobs are not used: {error}")
        return NO_HAZARD
