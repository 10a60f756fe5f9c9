"""The batch system's own word on when a job would start, asked for sparingly.

Rule 1: at most one probe per `every_s`, whatever is asked here; a probe takes locks in the
controller. After a failure the next one waits twice as long, and so on up to an hour.
Rule 2: an answer is kept for `keep_s` as a point (nodes, walltime). Between points, answers are
interpolated; a job is answered for only if a point at most as large and one at least as large
are known, since waits grow with size.
Rule 3: each probe goes where least is known: to the wanted point that is furthest from all points
known.

Known bias of Slurm's answer (`sbatch --test-only`): it looks at running jobs alone, then adds the
work of all waiting jobs of higher priority divided by the partition, without any backfilling;
limits of users and QOS are not seen.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from windrow.errors import OutsideError
from windrow.forecast.base import UNKNOWN_S, Clock, Forecaster, Ints, filled
from windrow.queues.port import SpecError

_MINUTE = 60
_HOUR = 3600
_DAY = 86400
# Walltimes that people ask for and sites take for limits.
LADDER_S = (
    *(minutes * _MINUTE for minutes in (5, 10, 15, 30)),
    *(hours * _HOUR for hours in (1, 2, 4, 8, 12, 24, 48)),
    *(days * _DAY for days in (3, 5, 7, 10, 14, 21, 28)),
)
_LONGEST_PAUSE_S = 3600.0

_Point = tuple[int, int]  # nodes, walltime
_Floats = NDArray[np.float64]


class Probed(Protocol):
    """The part of a queue that this source needs."""

    def probe(self, nodes: int, walltime_s: int) -> float | None:
        """The queue's own estimate of when such a job would start; None if it gives none."""


def rung_s(requested_s: int) -> int:
    """The walltime of the ladder that is at least as long; beyond its end the next multiple of four
    weeks."""
    place = bisect_left(LADDER_S, requested_s)
    if place < len(LADDER_S):
        return LADDER_S[place]
    return -(-requested_s // LADDER_S[-1]) * LADDER_S[-1]


class System:
    """Forecasts by the batch system itself. If it has no answer yet, `fallback` is asked.

    `bucket` gives the walltime that is probed instead of the requested one, so that few points
    serve many jobs.
    """

    name = "system"

    def __init__(
        self,
        queue: Probed,
        clock: Clock,
        fallback: Forecaster,
        *,
        every_s: float = 10.0,
        keep_s: float = 300.0,
        bucket: Callable[[int], int] = rung_s,
    ) -> None:
        self.every_s = every_s
        self.keep_s = keep_s
        self._queue = queue
        self._clock = clock
        self._fallback = fallback
        self._bucket = bucket
        self._answers: dict[_Point, tuple[float | None, float]] = {}
        """The start that each probe brought (None: none), and when."""
        self._not_before_s = -math.inf
        self._failures = 0

    def waits_s(self, nodes: Ints, requested_s: Ints) -> Ints:
        """How long each would wait: the system's own word if it is known, else the fallback's.
        One probe at most."""
        return filled(self.known_s(nodes, requested_s), self._fallback, nodes, requested_s)

    def known_s(self, nodes: Ints, requested_s: Ints) -> Ints:
        """The waits that follow from the system's answers; `UNKNOWN_S` elsewhere. One probe at
        most."""
        self.ask(nodes, requested_s)
        now = self._clock()
        self._drop_old(now)
        points = [
            (*point, start_s)
            for point, (start_s, _) in self._answers.items()
            if start_s is not None
        ]
        if not points:
            return np.full(nodes.shape, UNKNOWN_S, dtype=np.int64)
        known = np.array(points, dtype=np.float64)
        known[:, 2] = np.maximum(0.0, known[:, 2] - now)
        return _between(known, nodes, self._buckets(requested_s))

    def ask(self, nodes: Ints, requested_s: Ints) -> bool:
        """Probe the one of these jobs that tells most, if the pace allows it. Whether the batch
        system was asked."""
        now = self._clock()
        if (
            now < self._not_before_s <= now + _LONGEST_PAUSE_S
        ):  # further off: the clock was set back
            return False
        self._drop_old(now)
        point = self._most_telling(
            np.stack([nodes, self._buckets(requested_s)], axis=-1).reshape(-1, 2)
        )
        if point is None:
            return False
        self._probe(point, now)
        return True

    def _probe(self, point: _Point, now: float) -> None:
        start = None
        try:
            start = self._queue.probe(*point)
            self._failures = 0
        except SpecError:
            self._failures = (
                0  # the system works; it would not take such a job, so it has no start to tell
            )
        except OutsideError:
            self._failures += 1
            pause = max(self.every_s, 1.0) * 2.0 ** min(self._failures, 30)
            self._not_before_s = now + min(pause, _LONGEST_PAUSE_S)
            return
        self._answers[point] = (start, now)
        self._not_before_s = now + self.every_s

    def _most_telling(self, wanted: Ints) -> _Point | None:
        """The wanted point furthest from all that were asked; the smallest one first. None if
        all were asked."""
        choices = np.unique(wanted, axis=0)
        if not len(choices):
            return None
        if not self._answers:
            return int(choices[0, 0]), int(choices[0, 1])
        asked = np.array(list(self._answers), dtype=np.float64)
        nearest = _distances(choices[:, 0], choices[:, 1], asked).min(axis=1)
        best = int(np.argmax(nearest))
        if nearest[best] > 0:
            return (int(choices[best, 0]), int(choices[best, 1]))
        return None

    def _buckets(self, requested_s: Ints) -> Ints:
        distinct, places = np.unique(requested_s, return_inverse=True)
        rungs = np.array([self._bucket(int(seconds)) for seconds in distinct], dtype=np.int64)
        return rungs[places].reshape(requested_s.shape)

    def _drop_old(self, now: float) -> None:
        self._answers = {p: a for p, a in self._answers.items() if 0 <= now - a[1] <= self.keep_s}


def _distances(nodes: Ints, walltime_s: Ints, points: _Floats) -> _Floats:
    """From each job to each point: how often one doubles nodes and walltime on the way."""
    across = np.abs(np.log2(nodes)[:, None] - np.log2(points[:, 0]))
    along = np.abs(np.log2(walltime_s)[:, None] - np.log2(points[:, 1]))
    return np.asarray(across + along, dtype=np.float64)


def _between(points: _Floats, nodes: Ints, walltime_s: Ints) -> Ints:
    """Waits of jobs that lie between points (nodes, walltime, wait); `UNKNOWN_S` for those that do
    not.

    The wait is at least that of every smaller point and at most that of every larger one; in that
    gap it lies in proportion to the distances to the nearest of both. A job that is a point has
    that point's wait.
    """
    distance = _distances(nodes, walltime_s, points)
    smaller = (points[:, 0] <= nodes[:, None]) & (points[:, 1] <= walltime_s[:, None])
    larger = (points[:, 0] >= nodes[:, None]) & (points[:, 1] >= walltime_s[:, None])
    least = np.where(smaller, points[:, 2], -np.inf).max(axis=1)
    most = np.where(larger, points[:, 2], np.inf).min(axis=1)
    is_between = np.isfinite(least) & np.isfinite(most)
    down = np.where(smaller, distance, np.inf).min(axis=1)
    up = np.where(larger, distance, np.inf).min(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        waits = least + (most - least) * (down / (down + up))
    nearest = distance.argmin(axis=1)
    waits = np.where(down == 0, points[nearest, 2], waits)
    return np.where(is_between, np.where(is_between, waits, 0).round(), UNKNOWN_S).astype(np.int64)
