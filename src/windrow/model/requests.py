"""How run times become requested times. The kernels' copy of these rules is
`kernels/run/requests.py`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windrow.model.duration import NEVER_S

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Requests:
    """A requested time is the run and `overhead_s`, times `margin`, in whole `round_s`, and at most
    `max_request_s`."""

    margin: float
    round_s: int
    overhead_s: int
    max_request_s: int | None

    @property
    def longest_s(self) -> int:
        """The longest run that a job may be asked to do."""
        if self.max_request_s is None:
            return NEVER_S
        return max(1, self.max_request_s - self.overhead_s)

    def request_s(self, run_s: int) -> int:
        """How long to ask for, for a job that should run this long."""
        wanted_s = (
            max(1, -int(-(run_s + self.overhead_s) * self.margin // self.round_s)) * self.round_s
        )
        if self.max_request_s is None:
            return wanted_s
        return min(wanted_s, self.max_request_s)

    def requests_s(self, run_s: Ints) -> Ints:
        """The same for many jobs."""
        rounds = -np.floor_divide(-(run_s + self.overhead_s) * self.margin, self.round_s)
        wanted_s: Ints = np.maximum(1, rounds.astype(np.int64)) * self.round_s
        if self.max_request_s is None:
            return wanted_s
        return np.minimum(wanted_s, self.max_request_s)

    def numbers(self, late: float = 1.0) -> NDArray[np.float64]:
        """For the kernel, if later jobs ask for `late` times what they should run."""
        most = float(NEVER_S if self.max_request_s is None else self.max_request_s)
        return np.array([self.margin, self.round_s, self.overhead_s, most, late], dtype=np.float64)
