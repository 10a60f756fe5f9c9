"""Other readings of the paper's reservations, to look for the cause of a difference from table I.

Each reading is a policy of its own, run by the pool itself on fewer workflows; the answer is the saturation (see
`stream_stability`). None of them ships as a policy: all break an identity that the paper states, or its prose.

- `shipped`: hold max(eligible, target).
- `exact`: the level of parallelism by Dilworth instead of by tokens.
- `rounded-down`: the fraction of SLoP rounded down.
- `not-renewed`: the target as it was at the arrival, until the end.
- `on-top`: hold the target beyond the eligible set.
- `future-on-top`: hold the widest future generation beyond the eligible set.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from windrow.lab.stream_simulation import run_by_pool
from windrow.lab.stream_workload import Workload, draw_workload
from windrow.model import Workflow
from windrow.streams import Pool, Progress
from windrow.streams.policy import by_arrival

READINGS = ("shipped", "exact", "rounded-down", "not-renewed", "on-top", "future-on-top")
_RULES: dict[str, tuple[float, int]] = {
    "sr": (1.0, 1 << 40),
    "slop:0.8": (0.8, 1 << 40),
    "slop:0.2": (0.2, 1 << 40),
    "fes:2": (1.0, 2),
    "fes:1": (1.0, 1),
}
RULES = tuple(_RULES)
_SLOTS = 100


@dataclass(frozen=True, slots=True)
class Reading:
    """The saturation of a pool under one reading of one policy."""

    reading: str
    workload: str
    policy: str
    saturation: float


@dataclass(slots=True)
class ReadingPolicy:
    """One reading of one policy."""

    reading: str
    fraction: float
    depth: int
    first: dict[Workflow, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """For messages."""
        return self.reading

    def place(self, at_s: float, length_s: float) -> float:
        """By arrival."""
        return by_arrival(at_s, length_s)

    def target(self, progress: Progress) -> int:
        """As the reading says."""
        widest = progress.widest(self.depth)
        match self.reading:
            case "exact" if self.depth > len(progress.sizes):
                return self._scaled(progress.exact_parallelism)
            case "rounded-down":
                return math.floor(self.fraction * widest + 1e-9)
            case "not-renewed":
                return self.first.setdefault(progress.workflow, self._scaled(widest))
            case "on-top":
                return progress.eligible + self._scaled(widest)
            case "future-on-top":
                return progress.eligible + self._scaled(max(progress.sizes[1 : self.depth + 1], default=0))
        return self._scaled(widest)

    def _scaled(self, processors: int) -> int:
        return math.ceil(self.fraction * processors - 1e-9)


def readings(*, full: bool) -> tuple[Reading, ...]:
    """All readings of five policies on three workloads; nothing where not `full`."""
    found = []
    for name in ("montage", "ligo", "sipht") if full else ():
        workload = draw_workload(name, workflows=150, seed=1)
        for reading in READINGS:
            for policy, (fraction, depth) in _RULES.items():
                rate = pool_saturation(workload, ReadingPolicy(reading, fraction, depth))
                found.append(Reading(reading, name, policy, rate))
    return tuple(found)


def pool_saturation(workload: Workload, policy: ReadingPolicy) -> float:
    """As `stream_stability.saturation`, by the pool itself."""
    starts, ends = run_by_pool(Pool(_SLOTS, policy), workload, [0.0] * len(workload))
    first_s = np.sort([float(s.min()) for s in starts])
    begin_s, end_s = float(first_s[len(workload) // 10]), float(first_s[-1])
    start, end = np.concatenate(starts), np.concatenate(ends)
    within = np.clip(np.minimum(end, end_s) - np.maximum(start, begin_s), 0, None)
    return float(within.sum()) / (_SLOTS * (end_s - begin_s))
