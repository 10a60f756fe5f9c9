"""The rules of `kernels.flows` once more, as plainly as they can be said: lists, one step of time
after another."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from windrow_lab.storage.allocations import ALL, ALL_BATCH, ALL_PRIVATE, MINIMAL, Environment
from windrow_lab.storage.flows import DataFlow

CLOSE = 1e-9


@dataclass
class Crossing:
    """Something on the wide area. What it is for: ("input", node), ("volume", v) or ("result",
    job)."""

    what: tuple[str, int]
    left: float
    weight: int = 1


@dataclass
class Node:
    job: int | None = None
    stage: str = ""
    own_s: float = 0.0
    until_s: float = inf


@dataclass
class Law:
    flow: DataFlow
    allocation: str
    where: Environment
    failures: list[tuple[float, int]] = field(default_factory=list)
    now: float = 0.0
    crossed: float = 0.0
    fetches: int = 0
    hits: int = 0
    fastest: float = 0.0

    def run(self) -> float:
        """The makespan; infinite where it is stuck."""
        flow = self.flow
        self.jobs_of = [
            list(range(a, b)) for a, b in zip(flow.pipes[:-1], flow.pipes[1:], strict=True)
        ]
        self.nodes = [Node() for _ in range(self.where.nodes)]
        self.idle = list(reversed(range(self.where.nodes)))
        self.queue, self.group = list(range(len(self.jobs_of))), set[int]()
        self.open, self.done, self.ready = set[int](), set[int](), set[int]()
        self.held: list[set[int]] = [set() for _ in self.jobs_of]
        self.home_later: dict[int, set[int]] = {p: set() for p in self.queue}
        self.missing = [float(size) for size in flow.volumes]
        self.keeps = self.allocation in (ALL, ALL_BATCH)
        self.there = set(range(len(self.missing))) if self.keeps else set[int]()
        self.crossings: list[Crossing] = []
        self.finished = 0
        while True:
            self.start_all()
            if self.finished == len(self.jobs_of):
                return self.now
            if not self.step():
                return inf

    # Space.
    def guarantee(self, pipe: int) -> float:
        if self.allocation in (ALL, ALL_PRIVATE):
            files = {
                f
                for j in self.jobs_of[pipe]
                for f in (*self.flow.inputs.of(j), *self.flow.outputs.of(j))
            }
            return float(sum(self.flow.files[f] for f in files))
        return float(self.flow.peaks[pipe]) if self.allocation == ALL_BATCH else 0.0

    def charge(self, pipe: int, more: float = 0.0) -> float:
        held = more + float(sum(self.flow.files[f] for f in self.held[pipe]))
        return max(held, self.guarantee(pipe) if pipe in self.open else 0.0)

    def used(self) -> float:
        return sum(map(self.charge, range(len(self.jobs_of)))) + float(
            sum(self.flow.volumes[v] for v in self.there)
        )

    def wanted(self, job: int) -> set[int]:
        """Files that need space when the job starts."""
        return {int(f) for f in self.flow.inputs.of(job) if not self.flow.is_written[f]} | set(
            map(int, self.flow.outputs.of(job))
        )

    # Starting.
    def order(self, job: int) -> tuple[int, ...]:
        pipe, level = int(self.flow.pipe_of[job]), int(self.flow.level[job])
        return (pipe, level, job) if self.keeps else (level, job)

    def start_all(self) -> None:
        while self.idle:
            if not self.ready:
                if not self.admit():
                    return
                continue
            job = min(self.ready, key=self.order)
            pipe = int(self.flow.pipe_of[job])
            more = self.charge(
                pipe, sum(self.flow.files[f] for f in self.wanted(job))
            ) - self.charge(pipe)
            new = {int(v) for v in self.flow.batch.of(job)} - self.there
            if self.used() + more + sum(self.flow.volumes[v] for v in new) > self.where.storage:
                return
            self.ready.remove(job)
            self.there |= new
            self.held[pipe] |= self.wanted(job)
            self.begin(job, self.nodes[self.idle.pop()])

    def admit(self) -> bool:
        if not self.queue or (not self.keeps and self.group):
            return False
        if self.keeps:
            if self.used() + self.guarantee(self.queue[0]) > self.where.storage:
                return False
            self.open_pipe()
            return True
        room = self.where.storage - self.flow.batch_need
        while self.queue:
            room -= self.flow.peaks[self.queue[0]]
            if self.allocation == MINIMAL and self.group and room < 0:
                break
            self.open_pipe()
        return True

    def open_pipe(self) -> None:
        pipe = self.queue.pop(0)
        self.open.add(pipe)
        self.group.add(pipe)
        self.ready |= {job for job in self.jobs_of[pipe] if not len(self.flow.parents.of(job))}

    def begin(self, job: int, node: Node) -> None:
        node.job, node.stage = job, "batch"
        node.own_s = (
            self.now + sum(self.flow.volumes[v] for v in self.flow.batch.of(job)) / self.where.local
        )
        node.until_s = node.own_s
        for v in map(int, self.flow.batch.of(job)):
            if self.missing[v] > 0:
                node.until_s = inf
                if same := [c for c in self.crossings if c.what == ("volume", v)]:
                    same[0].weight += 1
                else:
                    self.fetches += 1
                    self.crossings.append(Crossing(("volume", v), self.missing[v]))

    # Time.
    def step(self) -> bool:
        weights = sum(c.weight for c in self.crossings)
        share = min(self.where.local, self.where.remote / weights) if weights else 0.0
        ends = [node.until_s for node in self.nodes] + [
            self.now + c.left / c.weight / share for c in self.crossings
        ]
        if min(ends) == inf:
            return False
        when = max(self.now, min(ends + [t for t, _ in self.failures[:1]]))
        for c in self.crossings:
            moved = min(c.left, c.weight * share * (when - self.now))
            c.left -= moved
            self.crossed += moved
        self.fastest = max(self.fastest, share * weights)
        self.now, soon = when, CLOSE * (1 + when)
        while due := [n for n, node in enumerate(self.nodes) if node.until_s <= when + soon]:
            for n in due:
                self.end_of_stage(n, self.nodes[n])
        while over := [c for c in self.crossings if share and c.left / c.weight / share <= soon]:
            for c in over:
                self.crossings.remove(c)
                self.arrived(*c.what)
        while self.failures and self.failures[0][0] <= when:
            self.fail(self.failures.pop(0)[1])
        return True

    def end_of_stage(self, number: int, node: Node) -> None:
        assert node.job is not None
        if node.stage == "compute":
            self.end_job(number, node)
            return
        far = sum(
            self.flow.files[f] for f in self.flow.inputs.of(node.job) if not self.flow.is_written[f]
        )
        if far:
            node.stage, node.until_s = "home", inf
            self.crossings.append(Crossing(("input", number), far))
        else:
            self.compute(node, 0.0)

    def compute(self, node: Node, late_s: float) -> None:
        assert node.job is not None
        near = sum(
            self.flow.files[f] for f in self.flow.inputs.of(node.job) if self.flow.is_written[f]
        )
        near += sum(self.flow.files[f] for f in self.flow.outputs.of(node.job))
        node.stage = "compute"
        node.until_s = self.now + late_s + near / self.where.local + self.flow.run_s[node.job]

    def end_job(self, number: int, node: Node) -> None:
        job = node.job
        assert job is not None
        pipe = int(self.flow.pipe_of[job])
        self.nodes[number] = Node()
        self.idle.append(number)
        self.done.add(job)
        if results := {int(f) for f in self.flow.outputs.of(job) if self.flow.is_kept[f]}:
            self.home_later[pipe] |= results
            self.crossings.append(
                Crossing(("result", job), sum(self.flow.files[f] for f in results))
            )
        self.tidy(pipe)
        for kid in self.jobs_of[pipe]:
            parents = set(self.flow.parents.of(kid).tolist())
            if job in parents and parents <= self.done:
                self.ready.add(kid)
        if self.done >= set(self.jobs_of[pipe]):
            self.open.discard(pipe)
        self.end_pipe(pipe)

    def tidy(self, pipe: int) -> None:
        """Files and volumes that nobody will need any more are not there."""
        left = [job for job in self.jobs_of[pipe] if job not in self.done]
        needed = {
            int(f) for job in left for f in (*self.flow.inputs.of(job), *self.flow.outputs.of(job))
        }
        self.held[pipe] &= needed | self.home_later[pipe]
        if not self.keeps:
            todo = {job for p in self.group for job in self.jobs_of[p]} - self.done
            gone = self.there - {int(v) for job in todo for v in self.flow.batch.of(job)}
            self.there -= gone
            for v in gone:
                self.missing[v] = float(self.flow.volumes[v])
            self.crossings = [
                c for c in self.crossings if c.what[0] != "volume" or c.what[1] not in gone
            ]

    def end_pipe(self, pipe: int) -> None:
        if self.done >= set(self.jobs_of[pipe]) and not self.home_later[pipe]:
            self.group.discard(pipe)
            self.finished += 1

    def arrived(self, what: str, number: int) -> None:
        if what == "input":
            self.compute(self.nodes[number], self.where.latency_s)
        elif what == "volume":
            self.missing[number] = 0.0
            fetched = {c.what[1] for c in self.crossings if c.what[0] == "volume"}
            for node in self.nodes:
                waits = node.job is not None and node.stage == "batch" and node.until_s == inf
                if waits and not fetched & set(self.flow.batch.of(node.job or 0).tolist()):
                    node.until_s = max(node.own_s, self.now + self.where.latency_s)
        else:
            pipe = int(self.flow.pipe_of[number])
            self.home_later[pipe] -= set(self.flow.outputs.of(number).tolist())
            self.tidy(pipe)
            self.end_pipe(pipe)

    # Failures.
    def fail(self, number: int) -> None:
        fetched = {c.what[1] for c in self.crossings if c.what[0] == "volume"}
        for v in self.there - fetched:
            size = float(self.flow.volumes[v])
            self.missing[v] = min(size, self.missing[v] + size / self.where.nodes)
        if (job := self.nodes[number].job) is None:
            return
        self.hits += 1
        pipe = int(self.flow.pipe_of[job])
        mine = set(self.jobs_of[pipe])
        for job in self.jobs_of[pipe]:
            for n, node in enumerate(self.nodes):
                if node.job == job:
                    self.nodes[n] = Node()
                    self.idle.append(n)
                    self.crossings = [c for c in self.crossings if c.what != ("input", n)]
        self.crossings = [
            c for c in self.crossings if c.what[0] != "result" or c.what[1] not in mine
        ]
        self.ready -= mine
        self.done -= mine
        self.open.discard(pipe)
        self.group.discard(pipe)
        self.held[pipe], self.home_later[pipe] = set(), set()
        self.queue.append(pipe)
        self.tidy(pipe)
