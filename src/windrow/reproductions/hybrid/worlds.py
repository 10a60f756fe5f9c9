"""Two worlds for chapter 5: queues with constant waits, as in print, and queues of real logs under our own simulation.

In both, reality differs from the model in what the thesis blames (5.4): tasks on one queue share its disk, moves
between two queues share their link, and all times vary. How much is not printed: `stand_ins.toml`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush, heapreplace

import numpy as np

from windrow.grid.estimate import Model
from windrow.grid.hybrid import Ended, Move
from windrow.sim.cluster import Cluster, EventKind


@dataclass(frozen=True, slots=True)
class Reality:
    """How the world differs from the model. Loads are on the first queue (Ada)."""

    noise: float
    disk: float
    network: float
    load_period_s: float = 0.0
    load_jobs: int = 0
    load_s: float = 0.0
    disk_load: float = 1.0


@dataclass
class _Shared:
    """What both worlds have in common: how long moves and runs take; the same draws for a task, whatever the way."""

    model: Model
    reality: Reality
    seed: int
    now_s: float = 0.0
    runs: list[tuple[int, float, float]] = field(default_factory=list)
    links: list[tuple[int, int, float]] = field(default_factory=list)
    events: list[tuple[float, int]] = field(default_factory=list)
    ended: dict[int, Ended] = field(default_factory=dict)

    def _noise(self, task: int) -> list[float]:
        draws = np.random.default_rng([self.seed, task]).normal(0.0, self.reality.noise, 3)
        return [float(factor) for factor in np.exp(draws)]

    def moves_s(self, moves: Sequence[Move], queue: int, noise: float) -> list[float]:
        """What each takes, slower the more there are on its link."""
        found = []
        for move in moves:
            busy = sum((a, b) == (move.source, queue) and end > move.from_s for a, b, end in self.links)
            took = float(self.model.link_s_per_mb[move.source, queue]) * move.mb * noise
            took *= 1 + self.reality.network * busy
            self.links.append((move.source, queue, move.from_s + took))
            found.append(took)
        return found

    def run_s(self, queue: int, start_s: float, iterations: float, mb: float, noise: float) -> float:
        """How long a task runs that starts then."""
        busy = sum(q == queue and begin <= start_s < end for q, begin, end in self.runs)
        disk = 1 + self.reality.disk * busy
        disk *= self.reality.disk_load if queue == 0 else 1.0
        run = self.model.start_s[queue] + self.model.iteration_s[queue] * iterations * noise
        run += self.model.s_per_mb[queue] * mb * disk
        self.runs.append((queue, start_s, start_s + float(run)))
        return float(run)

    def starts(self, queue: int, job: Ended, start_s: float, work: tuple[float, float], noise: float) -> None:
        """The task of a job has its data and its node."""
        run_s = self.run_s(queue, start_s, *work, noise)
        self.ended[job.task] = replace(job, started_s=start_s, run_s=run_s)
        heappush(self.events, (start_s + run_s, job.task))


class ConstantWaits(_Shared):
    """A job waits as long as its queue's wait, and for a node among those that our tasks and the load hold."""

    def __init__(self, model: Model, reality: Reality, seed: int) -> None:
        super().__init__(model, reality, seed)
        self.free = [[0.0] * int(n) for n in self.model.nodes]
        self.loads = 0

    def submit(self, task: int, queue: int, moves: Sequence[Move], iterations: float, mb: float) -> None:
        """Now."""
        self._load()
        run_noise, move_noise, wait_noise = self._noise(task)
        moves_s = self.moves_s(moves, queue, move_noise)
        there = max((move.from_s + took for move, took in zip(moves, moves_s, strict=True)), default=self.now_s)
        wait = max(float(self.model.wait_s[queue]) * wait_noise, self.free[queue][0] - self.now_s)
        job = Ended(task, queue, self.now_s, wait, 0.0, 0.0, moves, moves_s)
        self.starts(queue, job, max(there, self.now_s + wait), (iterations, mb), run_noise)
        heapreplace(self.free[queue], self.ended[task].end_s)

    def next_end(self) -> Ended:
        """Go on until a task ends."""
        self.now_s, task = heappop(self.events)
        return self.ended[task]

    def _load(self) -> None:
        """Others' jobs on the first queue, those that came up to now."""
        while self.reality.load_jobs and self.loads * self.reality.load_period_s <= self.now_s:
            came = self.loads * self.reality.load_period_s
            for _ in range(self.reality.load_jobs):
                heapreplace(self.free[0], max(came, self.free[0][0]) + self.reality.load_s)
            self.loads += 1


class RealQueues(_Shared):
    """Each queue is a simulated cluster with a log's jobs, all in one time.

    A cluster cannot go back, so the next start is looked for on clones, and then all clusters go to that time together.
    """

    def __init__(self, model: Model, reality: Reality, seed: int, clusters: Sequence[Cluster]) -> None:
        super().__init__(model, reality, seed, float(clusters[0].now_s))
        self.clusters = [cluster.clone() for cluster in clusters]
        self.jobs: dict[tuple[int, int], tuple[Ended, tuple[float, float], float]] = {}
        self.numbers: dict[int, int] = {}

    def submit(self, task: int, queue: int, moves: Sequence[Move], iterations: float, mb: float) -> None:
        """Now, for as long as it would take in the worst case: the end of a task ends its job."""
        run_noise, move_noise, _ = self._noise(task)
        moves_s = self.moves_s(moves, queue, move_noise)
        work = (iterations, mb)
        most = sum(moves_s) + 10 * float(self.model.iteration_s[queue] * iterations + self.model.s_per_mb[queue] * mb)
        number = self.clusters[queue].submit(1, math.ceil(most) + 3600)
        self.jobs[queue, number] = Ended(task, queue, self.now_s, 0.0, 0.0, 0.0, moves, moves_s), work, run_noise
        self.numbers[task] = number

    def next_end(self) -> Ended:
        """Go on until a task ends."""
        while True:
            until = math.ceil(self.events[0][0]) if self.events else None
            until = min(at for at in (until, *self._starts(until)) if at is not None)
            for queue, cluster in enumerate(self.clusters):
                while news := cluster.advance(until):
                    for event in news:
                        if event.kind is EventKind.STARTED:
                            self._started(queue, event.job, float(event.at_s))
            self.now_s = float(until)
            if self.events and math.ceil(self.events[0][0]) <= until:
                _, task = heappop(self.events)
                end = self.ended[task]
                self.clusters[end.queue].end(self.numbers[task])
                return end

    def _starts(self, until: int | None) -> list[int]:
        """When a job of ours starts next on each cluster where one waits, if by then."""
        found = []
        for queue in {queue for queue, _ in self.jobs}:
            peek = self.clusters[queue].clone()
            news = peek.advance(until)
            if news:
                found.append(peek.now_s)
        return found

    def _started(self, queue: int, number: int, start_s: float) -> None:
        job, work, noise = self.jobs.pop((queue, number))
        there = max((move.from_s + took for move, took in zip(job.moves, job.moves_s, strict=True)), default=start_s)
        waited = replace(job, wait_s=start_s - job.submitted_s)
        self.starts(queue, waited, max(start_s, there), work, noise)
