"""How a run deals with its cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from windrow.errors import UserError
from windrow.model import NodeShape
from windrow.model.cause import Cause

if TYPE_CHECKING:
    from windrow.foresight.futures import Requests

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Terms:
    """How a run deals with its cluster.

    cap: the most jobs in the system. margin, round_s: a requested time is the run times `margin`, in whole `round_s`.
    forecast_with_margin: waits are asked for the time that will be requested, or (as in the GLUME thesis code) for the
    bare run. busy_is_request: a running job is taken to last as long as it asked for (also as there), or as it should.
    overhead_s: what a job needs beside its tasks. max_request_s: the longest time that may be asked for; a job that
    would need more does what it can, and the rest is cut anew.
    starts_at_once: no job waits, so each may have the longest time there is, which may be no limit at all.
    patience: how many jobs in a row may be lost to each cause, without a task finished in between, before the run gives
    up; None where it never does. site_nodes: all nodes that the site has for jobs, where that is known.
    """

    cluster_nodes: int
    shape: NodeShape = field(default_factory=NodeShape)
    cap: int = 16
    margin: float = 1.1
    round_s: int = 60
    forecast_with_margin: bool = True
    busy_is_request: bool = False
    overhead_s: int = 0
    max_request_s: int | None = None
    starts_at_once: bool = False
    patience: Mapping[Cause, int] | None = None
    site_nodes: int | None = None

    def __post_init__(self) -> None:
        if self.cap < 1 or self.margin < 1 or self.round_s < 1:
            raise UserError("a run needs a cap of at least 1 job, a margin of at least 1 and whole seconds of rounding")

    def requests(self) -> Requests:
        """The same, for those who play courses ahead."""
        from windrow.foresight.futures import Requests  # noqa: PLC0415  (with kernels that few runs need)

        return Requests(self.margin, self.round_s, self.overhead_s, self.max_request_s)

    def request_s(self, run_s: int) -> int:
        """How long to ask for, for a job that should run this long."""
        wanted_s = max(1, -int(-(run_s + self.overhead_s) * self.margin // self.round_s)) * self.round_s
        return wanted_s if self.max_request_s is None else min(wanted_s, self.max_request_s)

    def walltime_s(self, requested_s: int) -> int | None:
        """How long a job may take for which this time was requested. None: as long as it needs."""
        return self.max_request_s if self.starts_at_once else requested_s

    def requests_s(self, run_s: Ints) -> Ints:
        """The same for many jobs."""
        rounds = -np.floor_divide(-(run_s + self.overhead_s) * self.margin, self.round_s)
        wanted_s: Ints = np.maximum(1, rounds.astype(np.int64)) * self.round_s
        return wanted_s if self.max_request_s is None else np.minimum(wanted_s, self.max_request_s)
