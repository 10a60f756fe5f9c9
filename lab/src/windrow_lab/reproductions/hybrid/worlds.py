"""Two worlds for chapter 5: queues with constant waits, as in print, and queues of real logs under
our own simulation.

In both, reality differs from the model in what the thesis blames (5.4): tasks on one queue share
its disk, moves between two queues share their link, and all times vary. How much is not printed:
`stand_ins.toml`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush, heapreplace

import numpy as np

from windrow.sim.cluster import Cluster, EventKind
from windrow_lab.grid.estimate import Model
from windrow_lab.grid.hybrid import DataMove, Ended


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


class _Shared:
    """What both worlds have in common: how long moves and runs take; the same draws for a task,
    whatever the way."""

    def __init__(self, model: Model, reality: Reality, seed: int, now_s: float = 0.0) -> None:
        self.model = model
        self.reality = reality
        self.seed = seed
        self.now_s = now_s
        self.runs: list[tuple[int, float, float]] = []
        self.links: list[tuple[int, int, float]] = []
        self.events: list[tuple[float, int]] = []
        self.ended: dict[int, Ended] = {}

    def _noise(self, task: int) -> list[float]:
        """Of its run, its moves, its wait."""
        draws = np.random.default_rng([self.seed, task]).normal(0.0, self.reality.noise, 3)
        return [float(factor) for factor in np.exp(draws)]

    def _sent(self, task: int, queue: int, moves: Sequence[DataMove]) -> Ended:
        """A task that is submitted now; its moves are slower the more there are on their link."""
        took = []
        noise = self._noise(task)[1]
        for move in moves:
            busy = sum(
                (a, b) == (move.source, queue) and end > move.from_s for a, b, end in self.links
            )
            rate = (
                float(self.model.link_s_per_mb[move.source, queue])
                * noise
                * (1 + self.reality.network * busy)
            )
            took.append(rate * move.mb)
            self.links.append((move.source, queue, move.from_s + took[-1]))
        return Ended(task, queue, self.now_s, 0.0, 0.0, 0.0, moves, took)

    def _starts(self, job: Ended, node_s: float, iterations: float, mb: float) -> None:
        """It has a node from then on; it runs when its data are there, the longer the more others
        write."""
        queue = job.queue
        there = (move.from_s + took_s for move, took_s in zip(job.moves, job.moves_s, strict=True))
        start_s = max([node_s, *there])
        busy = sum(q == queue and begin <= start_s < end for q, begin, end in self.runs)
        disk = 1 + self.reality.disk * busy
        if queue == 0:
            disk *= self.reality.disk_load
        model = self.model
        computing_s = model.iteration_s[queue] * iterations * self._noise(job.task)[0]
        writing_s = model.s_per_mb[queue] * mb * disk
        run_s = float(model.start_s[queue] + computing_s + writing_s)
        self.runs.append((queue, start_s, start_s + run_s))
        wait_s = node_s - job.submitted_s
        self.ended[job.task] = replace(job, wait_s=wait_s, started_s=start_s, run_s=run_s)
        heappush(self.events, (start_s + run_s, job.task))


class ConstantWaits(_Shared):
    """A job waits as long as its queue's wait, and for a node among those that our tasks and the
    load hold."""

    def __init__(self, model: Model, reality: Reality, seed: int) -> None:
        super().__init__(model, reality, seed)
        self.free = [[0.0] * int(n) for n in model.nodes]
        self.loads = 0

    def submit(
        self, task: int, queue: int, moves: Sequence[DataMove], iterations: float, mb: float
    ) -> None:
        """Now, behind others' jobs on the first queue that came up to now."""
        reality = self.reality
        while reality.load_jobs and self.loads * reality.load_period_s <= self.now_s:
            for _ in range(reality.load_jobs):
                begin = max(self.loads * reality.load_period_s, self.free[0][0])
                heapreplace(self.free[0], begin + reality.load_s)
            self.loads += 1
        wait = max(
            float(self.model.wait_s[queue]) * self._noise(task)[2], self.free[queue][0] - self.now_s
        )
        self._starts(self._sent(task, queue, moves), self.now_s + wait, iterations, mb)
        heapreplace(self.free[queue], self.ended[task].end_s)

    def next_end(self) -> Ended:
        """Let time pass until a task ends."""
        self.now_s, task = heappop(self.events)
        return self.ended[task]


class RealQueues(_Shared):
    """Each queue is a simulated cluster with a log's jobs, all in one time.

    A cluster cannot go back, so the next start is looked for on clones, and then all clusters go to
    that time together.
    """

    def __init__(
        self, model: Model, reality: Reality, seed: int, clusters: Sequence[Cluster]
    ) -> None:
        super().__init__(model, reality, seed, float(clusters[0].now_s))
        self.clusters = [cluster.clone() for cluster in clusters]
        self.waiting: dict[tuple[int, int], tuple[Ended, float, float]] = {}
        self.number: dict[int, int] = {}
        self.next_load_s = self.now_s if reality.load_jobs else math.inf

    def submit(
        self, task: int, queue: int, moves: Sequence[DataMove], iterations: float, mb: float
    ) -> None:
        """Now, for longer than it can take: the end of a task ends its job."""
        job = self._sent(task, queue, moves)
        model = self.model
        most = (
            sum(job.moves_s)
            + 10 * float(model.iteration_s[queue] * iterations + model.s_per_mb[queue] * mb)
            + 3600
        )
        self.number[task] = self.clusters[queue].submit(1, math.ceil(most))
        self.waiting[queue, self.number[task]] = job, iterations, mb

    def next_end(self) -> Ended:
        """Let time pass until a task ends."""
        while True:
            until = self._next_news_s()
            for queue, cluster in enumerate(self.clusters):
                self._start_jobs(queue, cluster, until)
            self.now_s = float(until)
            if self.next_load_s <= until:
                self._load()
            if self.events and self.events[0][0] <= until:
                end = self.ended[heappop(self.events)[1]]
                self.clusters[end.queue].end(self.number[end.task])
                return end

    def _start_jobs(self, queue: int, cluster: Cluster, until: int) -> None:
        """The jobs of ours that start up to then."""
        while news := cluster.advance(until):
            for event in news:
                if event.kind is EventKind.STARTED and (queue, event.job) in self.waiting:
                    job, *work = self.waiting.pop((queue, event.job))
                    self._starts(job, float(event.at_s), *work)

    def _next_news_s(self) -> int:
        """When a task ends, one of our jobs starts or others' jobs come, whichever is first."""
        times = []
        if self.events:
            times.append(math.ceil(self.events[0][0]))
        if self.next_load_s < math.inf:
            times.append(math.ceil(self.next_load_s))
        for queue in {queue for queue, _ in self.waiting}:
            peek = self.clusters[queue].clone()
            if peek.advance(min(times, default=None)):
                times.append(peek.now_s)
        return min(times)

    def _load(self) -> None:
        """Others' jobs come to the first queue."""
        for _ in range(self.reality.load_jobs):
            self.clusters[0].submit(1, math.ceil(self.reality.load_s))
        self.next_load_s += self.reality.load_period_s
