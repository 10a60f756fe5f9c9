"""Loads of the test bed: pipelines alike, and the ways in which their data go."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, slots=True)
class Stage:
    """Bytes of its batch file, how often it reads what the stage before wrote, its mean time, bytes
    that it writes."""

    batch: int
    reads: int
    run_s: float
    written: int


@dataclass(frozen=True)
class Work:
    """Pipelines of these stages; what the last one writes is the result. Times are normal, half of
    the mean apart.

    Were they all alike, nodes would wait for the link together, and compute together.
    """

    width: int
    stages: tuple[Stage, ...]

    @cached_property
    def run_s(self) -> list[list[float]]:
        """How long each stage of each pipeline takes."""
        draw = random.Random(1)
        return [
            [max(0.0, draw.gauss(one.run_s, one.run_s / 2)) for one in self.stages]
            for _ in range(self.width)
        ]

    @property
    def batch(self) -> int:
        """Bytes that all pipelines read."""
        return sum(stage.batch for stage in self.stages)

    @property
    def result(self) -> int:
        """Bytes that must go home."""
        return self.stages[-1].written


@dataclass(frozen=True, slots=True)
class Way:
    """Whether batch data are cached, and where pipeline data are written and read."""

    name: str
    is_cached: bool
    writes_home: bool
    reads_disk: bool


REMOTE = Way("remote", is_cached=False, writes_home=True, reads_disk=False)
LOCALISED = Way("localised", is_cached=False, writes_home=False, reads_disk=True)
CACHED = Way("cached", is_cached=True, writes_home=True, reads_disk=False)
BOTH = Way("both", is_cached=True, writes_home=False, reads_disk=True)
STANDALONE = Way("standalone", is_cached=True, writes_home=True, reads_disk=True)
"""A cache on each node that knows of no other, and writes through to home."""


def arithmetic(work: Work, way: Way, nodes: int, *, is_warm: bool = False) -> int:
    """Bytes that must cross to and from home."""
    pairs = list(zip(work.stages, work.stages[1:], strict=False))
    written = sum(one.written for one, _ in pairs) * way.writes_home
    read = sum(one.written * after.reads for one, after in pairs) * (not way.reads_disk)
    copies = (
        work.width if not way.is_cached else 0 if is_warm else nodes if way is STANDALONE else 1
    )
    return copies * work.batch + work.width * (written + read + work.result)


def scoped(share: float, width: int, size: int, run_s: float) -> Work:
    """Figure 3.3: pipelines of four stages and this many bytes, of which a share is batch data."""
    batch = int(share * size) // 4
    piece = int((1 - share) * size) // 6
    stages = [Stage(batch, 1 if depth and piece else 0, run_s, piece) for depth in range(3)]
    return Work(width, (*stages, Stage(batch, 1 if piece else 0, run_s, 10)))


def blast(width: int, scale: float) -> Work:
    """Table 2.4: one stage that reads much batch data (the traffic for all ways is that of what is
    unique)."""
    return Work(width, (Stage(int(323.46e6 * scale), 0, 264.2 * scale, int(0.12e6 * scale)),))


def hartree_fock(width: int, scale: float) -> Work:
    """Table 2.4: `argos` writes 664 MB, which `scf` reads six times."""
    argos = Stage(0, 0, 597.6 * scale, int(663.8e6 * scale))
    return Work(width, (argos, Stage(0, 6, 19.8 * scale, int(1.96e6 * scale))))


def cms(width: int, scale: float, run_s: float) -> Work:
    """Table 2.4: 49 MB of batch data; the run time is not to its scale, which would be 300 times
    that of the data."""
    return Work(width, (Stage(int(49.04e6 * scale), 0, run_s, int(0.63e6 * scale)),))
