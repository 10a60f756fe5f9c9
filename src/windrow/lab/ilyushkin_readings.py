"""Other readings of the paper's reservations, to look for the cause of a difference from table I.

Each reading is a policy of its own, run by the pool itself on fewer workflows; the answer is the saturation (see
`stream_stability`). None of them ships as a policy: all break an identity that the paper states, or its prose.

- `shipped`: hold max(eligible, target).
- `exact`: the level of parallelism by Dilworth instead of by tokens.
- `rounded-down`: the fraction of SLoP rounded down.
- `not-renewed`: the target as it was at the arrival, until the end.
- `on-top`: hold the target beyond the eligible set.
- `future-on-top`: hold the widest future generation beyond the eligible set.
- `scaled-difference`: hold, beyond the eligible set, the fraction of what the widest generation exceeds it by.
- `whole`: once some generation is wider than the eligible set, hold the whole target beyond the eligible set.
- `distance`: generations by the shortest distance from the eligible set: one parent done is enough.
- `distance-whole`: the last two together; the nearest to print of all that were tried.

Rule: a reading has no number of its own that could be tuned.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from windrow.lab.stream_simulation import run_by_pool
from windrow.lab.stream_stability import STEPS
from windrow.lab.stream_workload import WORKLOADS, Workload, draw_workload
from windrow.model import Workflow
from windrow.streams import Pool, Progress
from windrow.streams.policy import by_arrival

READINGS = (
    "shipped",
    "exact",
    "rounded-down",
    "not-renewed",
    "on-top",
    "future-on-top",
    "scaled-difference",
    "whole",
    "distance",
    "distance-whole",
)
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

    @property
    def step(self) -> float:
        """The highest utilization in steps of 0.05, as print has them, that is not above the saturation."""
        return max((u for u in STEPS if u <= self.saturation), default=0.0)


@dataclass(slots=True)
class ReadingPolicy:
    """One reading of one policy."""

    reading: str
    fraction: float
    depth: int
    first: dict[Workflow, int] = field(default_factory=dict)
    children: dict[Workflow, list[list[int]]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """For messages."""
        return self.reading

    def place(self, at_s: float, length_s: float) -> float:
        """By arrival."""
        return by_arrival(at_s, length_s)

    def target(self, progress: Progress) -> int:
        """As the reading says."""
        widest, eligible = progress.widest(self.depth), progress.eligible
        match self.reading:
            case "exact" if self.depth > len(progress.sizes):
                return self._scaled(progress.exact_parallelism)
            case "rounded-down":
                return math.floor(self.fraction * widest + 1e-9)
            case "not-renewed":
                return self.first.setdefault(progress.workflow, self._scaled(widest))
            case "on-top":
                return eligible + self._scaled(widest)
            case "future-on-top":
                return eligible + self._scaled(max(progress.sizes[1 : self.depth + 1], default=0))
            case "scaled-difference":
                return eligible + self._scaled(widest - eligible)
            case "whole":
                return self._whole(widest, eligible)
            case "distance":
                return self._scaled(self._widest_by_distance(progress))
            case "distance-whole":
                return self._whole(self._widest_by_distance(progress), eligible)
        return self._scaled(widest)

    def _whole(self, widest: int, eligible: int) -> int:
        return eligible + self._scaled(widest) if widest > eligible else eligible

    def _widest_by_distance(self, progress: Progress) -> int:
        flow = progress.workflow
        if flow not in self.children:
            self.children[flow] = [flow.children.of(v).tolist() for v in range(len(flow))]
        return max(sizes_by_distance(progress, self.children[flow])[: self.depth + 1])

    def _scaled(self, processors: int) -> int:
        return math.ceil(self.fraction * processors - 1e-9)


def sizes_by_distance(progress: Progress, children: list[list[int]]) -> list[int]:
    """Processors of the tasks left, by the fewest edges from an eligible task."""
    seen = [generation <= 0 for generation in progress.generations]  # completed, or eligible
    current = [v for v, generation in enumerate(progress.generations) if generation == 0]
    sizes = []
    while current:
        sizes.append(sum(progress.cores[v] for v in current))
        following = []
        for v in current:
            for c in children[v]:
                if not seen[c]:
                    seen[c] = True
                    following.append(c)
        current = following
    return sizes


def readings(*, full: bool) -> tuple[Reading, ...]:
    """All readings of five policies on all workloads; nothing where not `full`."""
    found = []
    for name in WORKLOADS if full else ():
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
