"""Other readings of the paper's reservations, to look for the cause of a difference from table I.

Each reading is a policy of its own, run by the pool itself on fewer workflows; the answer is the
saturation (see `stream_stability`). None of them ships as a policy: all break an identity that the
paper states, or its prose.

- `shipped`: hold max(eligible, target).
- `exact`: the level of parallelism by Dilworth instead of by tokens.
- `rounded-down`: the fraction of SLoP rounded down.
- `not-renewed`: the target as it was at the arrival, until the end.
- `on-top`: hold the target beyond the eligible set.
- `future-on-top`: hold the widest future generation beyond the eligible set.
- `scaled-difference`: hold, beyond the eligible set, the fraction of what the widest generation
  exceeds it by.
- `whole`: once some generation is wider than the eligible set, hold the whole target beyond the
  eligible set.
- `distance`: generations by the shortest distance from the eligible set: one parent done is enough.
- `distance-whole`: the last two together.
- `lingering`: a task counts from its distance on until all its children could start: tokens that
  come early, go late.
- `lingering-whole`: the same, with the whole target; the nearest to print of all that were tried.

Rule: a reading has no number of its own that could be tuned.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np

from windrow.model import Workflow
from windrow.streams import Pool, Progress
from windrow_lab.stream.simulation import run_by_pool
from windrow_lab.stream.stability import STEPS
from windrow_lab.stream.workload import Workload, draw_workload

_ALL = 1 << 40  # generations
_RULES = {
    "sr": (1.0, _ALL),
    "slop:0.8": (0.8, _ALL),
    "slop:0.2": (0.2, _ALL),
    "fes:2": (1.0, 2),
    "fes:1": (1.0, 1),
}
RULES = tuple(_RULES)
_SLOTS = 100

Sizes = Callable[[Progress, list[list[int]]], list[int]]
"""Processors by generation, of what is left of a workflow with these children."""


@dataclass(frozen=True, slots=True)
class PoolReading:
    """The saturation of a pool under one reading of one policy."""

    reading: str
    workload: str
    policy: str
    saturation: float

    @property
    def step(self) -> float:
        """The highest utilization in steps of 0.05, as print has them, that is not above the
        saturation."""
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

    def place(self, at_s: float, length_s: float) -> float:  # noqa: ARG002
        """By arrival."""
        return at_s

    def target(self, progress: Progress) -> int:
        """As the reading says."""
        return _TARGETS[self.reading](self, progress)

    def scaled(self, processors: int) -> int:
        """The fraction, rounded up."""
        return math.ceil(self.fraction * processors - 1e-9)

    def whole(self, widest: int, eligible: int) -> int:
        """All of the target beyond the eligible set, once something is wider than it."""
        if widest > eligible:
            return eligible + self.scaled(widest)
        return eligible

    def widest(self, progress: Progress, sizes: Sizes) -> int:
        """The widest generation within the depth, with generations as `sizes` has them."""
        flow = progress.workflow
        if flow not in self.children:
            self.children[flow] = [flow.children.of(v).tolist() for v in range(len(flow))]
        return max(sizes(progress, self.children[flow])[: self.depth + 1])


def distances(progress: Progress, children: list[list[int]]) -> list[int]:
    """Of each task left: the fewest edges from an eligible task. -1 for a completed one."""
    found = [min(generation, 0) for generation in progress.generations]
    current = [v for v, generation in enumerate(progress.generations) if generation == 0]
    seen = [generation <= 0 for generation in progress.generations]
    distance = 0
    while current:
        distance += 1
        following = []
        for v in current:
            for c in children[v]:
                if not seen[c]:
                    seen[c] = True
                    found[c] = distance
                    following.append(c)
        current = following
    return found


def sizes_by_distance(progress: Progress, children: list[list[int]]) -> list[int]:
    """Processors of the tasks left, by their distance."""
    sizes = [0] * len(progress.sizes)
    for v, distance in enumerate(distances(progress, children)):
        if distance >= 0:
            sizes[distance] += progress.cores[v]
    return sizes


def sizes_lingering(progress: Progress, children: list[list[int]]) -> list[int]:
    """Processors by generation, where a task counts from its distance until all its children could
    start."""
    change = [0] * (len(progress.sizes) + 1)
    for v, distance in enumerate(distances(progress, children)):
        if distance >= 0:
            end = max(
                (progress.generations[c] for c in children[v]), default=progress.generations[v] + 1
            )
            change[distance] += progress.cores[v]
            change[end] -= progress.cores[v]
    return list(accumulate(change[:-1]))


_TARGETS: Mapping[str, Callable[[ReadingPolicy, Progress], int]] = {
    "shipped": lambda r, p: r.scaled(p.widest(r.depth)),
    "exact": lambda r, p: r.scaled(
        p.exact_parallelism if r.depth > len(p.sizes) else p.widest(r.depth)
    ),
    "rounded-down": lambda r, p: math.floor(r.fraction * p.widest(r.depth) + 1e-9),
    "not-renewed": lambda r, p: r.first.setdefault(p.workflow, r.scaled(p.widest(r.depth))),
    "on-top": lambda r, p: p.eligible + r.scaled(p.widest(r.depth)),
    "future-on-top": lambda r, p: p.eligible + r.scaled(max(p.sizes[1 : r.depth + 1], default=0)),
    "scaled-difference": lambda r, p: p.eligible + r.scaled(p.widest(r.depth) - p.eligible),
    "whole": lambda r, p: r.whole(p.widest(r.depth), p.eligible),
    "distance": lambda r, p: r.scaled(r.widest(p, sizes_by_distance)),
    "distance-whole": lambda r, p: r.whole(r.widest(p, sizes_by_distance), p.eligible),
    "lingering": lambda r, p: r.scaled(r.widest(p, sizes_lingering)),
    "lingering-whole": lambda r, p: r.whole(r.widest(p, sizes_lingering), p.eligible),
}
READINGS = tuple(_TARGETS)


def readings(name: str) -> tuple[PoolReading, ...]:
    """All readings of five policies on 150 workflows of a workload; about half a minute."""
    workload = draw_workload(name, workflows=150, seed=1)
    return tuple(
        PoolReading(
            reading,
            name,
            policy,
            pool_saturation(workload, ReadingPolicy(reading, fraction, depth)),
        )
        for reading in READINGS
        for policy, (fraction, depth) in _RULES.items()
    )


def pool_saturation(workload: Workload, policy: ReadingPolicy) -> float:
    """As `stream_stability.saturation`, by the pool itself."""
    starts, ends = run_by_pool(Pool(_SLOTS, policy), workload, [0.0] * len(workload))
    first_s = np.sort([float(s.min()) for s in starts])
    begin_s = float(first_s[len(workload) // 10])
    end_s = float(first_s[-1])
    start = np.concatenate(starts)
    end = np.concatenate(ends)
    within = np.clip(np.minimum(end, end_s) - np.maximum(start, begin_s), 0, None)
    return float(within.sum()) / (_SLOTS * (end_s - begin_s))
