"""A slow, obvious batch cluster: the definition of each policy written down as it is said, with no
state kept that could be derived. The compiled cluster must agree with it on every start of every
job.

Time is a set of instants; a plan is a list of intervals (begin, end, nodes); every question is
answered by looking at all of them. Nothing is shared with the kernels but the rules in the docs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

FOREVER = 10**15
DOWN = FOREVER  # the number of jobs that hold a node which is out


@dataclass
class Job:
    number: int
    nodes: int
    requested: int
    run: int
    user: int
    order: int = 0
    queued: int = 0
    start: int | None = None
    started_as: int = 0
    expected: int = 0
    end: int = 0
    held_nodes: frozenset[int] = frozenset()


@dataclass
class Interval:
    begin: int
    end: int
    nodes: int
    held: frozenset[int]


@dataclass
class Reference:
    nodes: int
    policy: str = "conservative"
    depth: int = 0
    events: str = "batched"
    placement: str = "count"
    cap: int = 0
    weights: dict[str, int] | None = None
    half_life_s: float = 86400.0
    strict: bool = False
    now: int = 0
    arriving: list[tuple[int, Job]] = field(default_factory=list)
    failing: list[tuple[int, int, int, int]] = field(default_factory=list)
    hits: list[tuple[int, int, int, int]] = field(default_factory=list)
    queue: list[Job] = field(default_factory=list)
    held: list[Job] = field(default_factory=list)
    running: list[Job] = field(default_factory=list)
    plan: dict[int, Interval] = field(default_factory=dict)
    happened: list[tuple[int, str, int]] = field(default_factory=list)
    promises: dict[int, int] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)
    usage: dict[int, int] = field(default_factory=dict)
    measured: int = 0
    freed: bool = False
    pending: bool = False
    counter: int = 0

    # -- what clients do ---------------------------------------------------------------------------

    def submit(self, number: int, nodes: int, requested: int, run: int, user: int) -> None:
        self.arrive(Job(number, nodes, requested, run, user))
        self.changed()

    def stop(self, number: int, kind: str) -> bool:
        for job in self.running:
            if job.number == number:
                self.finish(job, kind)
                break
        else:
            job = next(
                (j for j in [*self.queue, *self.held] if j.number == number), Job(0, 0, 0, 0, 0)
            )
            if job in self.queue:
                self.queue.remove(job)
                self.plan.pop(number, None)
                self.freed = True
            elif job in self.held:
                self.held.remove(job)
            else:
                return False
            self.tell(kind, number)
        self.admit()
        self.changed()
        return True

    def changed(self) -> None:
        self.pending = True
        if self.events != "batched":
            self.schedule()

    # -- time --------------------------------------------------------------------------------------

    def advance(self, until: int = FOREVER) -> list[tuple[int, str, int]]:
        if self.pending:
            self.schedule()
            self.pending = False
        while not self.happened:
            at = self.next_instant()
            if at > until or at == FOREVER:
                self.now = until if until < FOREVER else self.now
                return []
            self.now = at
            self.instant()
        happened, self.happened = self.happened, []
        return happened

    def next_instant(self) -> int:
        times = [at for at, _ in self.arriving[:1]] + [job.end for job in self.running]
        times += [row[0] for row in self.failing[:1]]
        # The kernels never look at planned starts: they claim that each falls on the end of a job.
        # Here they count.
        times += [interval.begin for interval in self.plan.values() if interval.begin > self.now]
        return min(times, default=FOREVER)

    def instant(self) -> None:
        if self.events == "one-by-one":
            self.arrive_all()
        for job in sorted(self.running, key=lambda j: (j.end, j.started_as)):
            if job.end <= self.now:
                self.finish(job, "killed" if job.run > job.requested else "ended")
                if self.events != "batched":
                    self.admit()
                    self.schedule()
        if self.failing and self.failing[0][0] <= self.now:
            self.fail_all()
        self.admit()
        if self.events != "one-by-one":
            self.arrive_all()
        if self.events == "batched":
            self.schedule()
        self.start_planned()

    def arrive_all(self) -> None:
        while self.arriving and self.arriving[0][0] <= self.now:
            self.arrive(self.arriving.pop(0)[1])
            if self.events != "batched":
                self.schedule()

    # -- nodes that fail ---------------------------------------------------------------------------

    def fail_all(self) -> None:
        while self.failing and self.failing[0][0] <= self.now:
            self.fail(*self.failing.pop(0)[1:])
        if self.events != "batched":
            self.admit()
            self.schedule()

    def fail(self, node: int, until: int, loses: int) -> None:
        out = {job.order for job in self.running if job.number == DOWN}
        if node in out:
            return
        jobs = sorted(
            (job for job in self.running if job.number != DOWN), key=lambda j: j.started_as
        )
        if (
            self.placement == "count"
        ):  # nodes that are up, by number, belong to the jobs in the order of their starts
            up = [n for n in range(self.nodes) if n not in out]
            holders = dict(zip(up, [job for job in jobs for _ in range(job.nodes)], strict=False))
        else:
            holders = {n: job for job in jobs for n in job.held_nodes}
        if (lost := holders.get(node)) is not None:
            self.finish(lost, "failed")
            if lost.number >= 0:
                self.hits.append((self.now, lost.number, self.starts[lost.number], int(loses)))
            if lost.number >= 0 and not loses:
                del self.starts[lost.number]
                self.arrive(Job(lost.number, lost.nodes, lost.requested, lost.run, lost.user))
        self.plan.clear()
        self.promises.clear()
        held = frozenset() if self.placement == "count" else frozenset([node])
        self.running.append(
            Job(DOWN, 1, 0, 0, -1, node, 0, self.now, self.count(), until, until, held)
        )
        self.freed = True

    # -- jobs --------------------------------------------------------------------------------------

    def arrive(self, job: Job) -> None:
        job.order = self.count()
        if self.cap and self.in_system(job.user) >= self.cap:
            self.held.append(job)
        else:
            self.enqueue(job)

    def enqueue(self, job: Job) -> None:
        job.queued = self.now
        self.queue.append(job)

    def in_system(self, user: int) -> int:
        return sum(j.user == user for j in [*self.queue, *self.running])

    def admit(self) -> None:
        for job in list(self.held):
            if self.in_system(job.user) < self.cap:
                self.held.remove(job)
                self.enqueue(job)

    def start(self, job: Job, held: frozenset[int]) -> None:
        self.queue.remove(job)
        self.plan.pop(job.number, None)
        job.start, job.expected, job.end = (
            self.now,
            self.now + job.requested,
            self.now + min(job.run, job.requested),
        )
        job.held_nodes, job.started_as = held, self.count()
        self.running.append(job)
        self.starts[job.number] = self.now
        self.tell("started", job.number)

    def finish(self, job: Job, kind: str) -> None:
        self.running.remove(job)
        self.freed = True
        self.tell(kind, job.number)

    def tell(self, kind: str, number: int) -> None:
        if number < 0:
            self.happened.append((self.now, kind, number))

    def count(self) -> int:
        self.counter += 1
        return self.counter

    # -- the plan ----------------------------------------------------------------------------------

    def intervals(self) -> list[Interval]:
        return [Interval(self.now, j.expected, j.nodes, j.held_nodes) for j in self.running] + list(
            self.plan.values()
        )

    def fit(self, job: Job, begin: int) -> Interval | None:
        end = begin + job.requested
        others = [i for i in self.intervals() if i.begin < end and i.end > begin]
        if self.placement == "count":
            points = {begin} | {i.begin for i in others if i.begin > begin}
            free = min(
                self.nodes - sum(i.nodes for i in others if i.begin <= p < i.end) for p in points
            )
            return Interval(begin, end, job.nodes, frozenset()) if free >= job.nodes else None
        free_nodes = set(range(self.nodes)) - {n for i in others for n in i.held}
        held = self.choose(sorted(free_nodes), job.nodes)
        return Interval(begin, end, job.nodes, held) if held else None

    def choose(self, free: list[int], nodes: int) -> frozenset[int]:
        if self.placement == "leftmost":
            return frozenset(free[:nodes]) if len(free) >= nodes else frozenset()
        for k in range(len(free) - nodes + 1):
            if free[k + nodes - 1] == free[k] + nodes - 1:
                return frozenset(free[k : k + nodes])
        return frozenset()

    def first_fit(self, job: Job) -> Interval:
        times = {self.now} | {i.end for i in self.intervals() if i.end > self.now}
        return next(fit for t in sorted(times) if (fit := self.fit(job, t)))

    def really_free(self) -> int:
        return self.nodes - sum(j.nodes for j in self.running)

    # -- the order of the queue --------------------------------------------------------------------

    def sort_queue(self) -> None:
        if self.weights is None:
            self.queue.sort(
                key=lambda j: j.queued
            )  # stable: arrival, and admission for those held back
            return
        if self.weights.get("share"):
            self.measure_usage()
        self.queue.sort(key=lambda j: (-self.priority(j), j.order))

    def priority(self, job: Job) -> int:
        w = {"wait": 0, "nodes": 0, "xfactor": 0, "area": 0, "share": 0} | (self.weights or {})
        wait = self.now - job.queued
        total = max(1, sum(self.usage.values()))
        share = 100.0 * self.usage.get(job.user, 0) / total
        value = 1000 * w["wait"] * min(wait, 60 * w.get("wait_cap", FOREVER))
        value += 60000 * w["nodes"] * min(job.nodes, w.get("nodes_cap", FOREVER))
        hours_asked = min(job.requested, 3600 * w.get("requested_cap", FOREVER))
        value += 60000 * w.get("requested", 0) * hours_asked // 3600
        value += 60000 * w.get(f"user:{job.user + 1}", 0)
        value += int(60.0 * (1000 * w["xfactor"]) * ((wait + job.requested) / job.requested) // 1)
        value += int(60.0 * (1000 * w["area"]) * (job.nodes * (job.requested / 3600.0)) // 1)
        return value - int(60.0 * (1000 * w["share"]) * share // 1)

    def measure_usage(self) -> None:
        fade = 0.5 ** ((self.now - self.measured) / self.half_life_s)
        gain = 1000.0 * (1.0 - fade) * self.half_life_s / 0.6931471805599453
        users = {j.user for j in self.running if j.user >= 0} | set(self.usage)
        for user in users:
            nodes = sum(j.nodes for j in self.running if j.user == user)
            self.usage[user] = int(self.usage.get(user, 0) * fade + nodes * gain)
        self.measured = self.now

    # -- the policies ------------------------------------------------------------------------------

    def schedule(self) -> None:
        if not self.queue:
            return
        self.sort_queue()
        if self.policy == "fcfs":
            self.pass_by_depth(0)
        elif self.policy == "conservative":
            self.pass_conservative()
        else:
            self.pass_by_depth(self.depth)
        self.freed = False

    def pass_by_depth(self, depth: int) -> None:
        """Rebuild the plan from nothing. Depth 0 is FCFS: nothing passes the first job that does
        not fit."""
        self.plan.clear()
        for job in list(self.queue):
            fit = self.fit(job, self.now)
            late = self.strict and any(
                self.now + job.requested > i.begin for i in self.plan.values()
            )
            may = self.events != "ends-first" or job.nodes <= self.really_free()
            if fit and may and not late:
                self.start(job, fit.held)
            elif depth == 0:
                return
            elif len(self.plan) < depth:
                self.plan[job.number] = self.first_fit(job)
        self.start_planned()

    def pass_conservative(self) -> None:
        for job in list(self.queue):
            if job.number in self.plan and not self.freed:
                continue
            promised = self.promises.get(job.number, FOREVER)
            self.plan.pop(job.number, None)
            self.plan[job.number] = self.first_fit(job)
            assert self.plan[job.number].begin <= promised, "a promised start got later"
            self.promises[job.number] = self.plan[job.number].begin
        self.start_planned()

    def start_planned(self) -> None:
        for job in [
            j for j in self.queue if j.number in self.plan and self.plan[j.number].begin == self.now
        ]:
            if self.events != "ends-first" or job.nodes <= self.really_free():
                self.start(job, self.plan[job.number].held)
