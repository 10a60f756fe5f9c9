"""A look ahead for one run: what was seen of its queue, what its tasks took, and how good earlier looks ahead were."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from windrow.forecast.ledger import Promise
from windrow.forecast.twin import Twin
from windrow.foresight.live import Ahead
from windrow.foresight.observed_file import SeenFile
from windrow.foresight.observer import Watch
from windrow.manager import events as e
from windrow.manager.journal import Record
from windrow.queues.accounts import Accounts
from windrow.queues.port import Queue
from windrow.strategies import Decision


def look_ahead(
    queue: Queue,
    twin: Twin,
    errors: Callable[[], NDArray[np.float64] | None] = lambda: None,
    *,
    is_trusted: bool = True,
    keeps: bool = True,
) -> Ahead:
    """A look ahead on this queue; `keeps` False: what is seen meanwhile is not kept for other runs."""
    accounts = queue if isinstance(queue, Accounts) else None
    place = queue.name if accounts is None else accounts.place
    return Ahead(twin, Watch(SeenFile(place), accounts, keeps=keeps), errors, is_trusted=is_trusted)


class FirstPromise:
    """Hears what the first look ahead of a run expected of it, and when its last task was done."""

    def __init__(self) -> None:
        self._at_s = self._expected_s = self._done_s = 0.0

    def hear(self, records: Iterable[Record]) -> None:
        """Take in what happens in the run."""
        for record in records:
            match record.event:
                case e.JobsPlanned(decision=decision) if not self._expected_s and decision.jobs:
                    self._at_s, self._expected_s = record.at_s, expected_s(decision)
                case e.TaskFinished():
                    self._done_s = record.at_s
                case _:
                    pass

    def kept(self) -> Promise | None:
        """The promise and what came of it, now that all is done; None where nobody looked ahead at first."""
        return Promise(self._at_s, self._expected_s, self._done_s - self._at_s) if self._expected_s else None


def expected_s(decision: Decision) -> float:
    """How long all that is left should take, by a look ahead; 0 where the decision comes from none."""
    return float(decision.candidates[0].makespan_s or 0) if decision.is_played else 0.0
