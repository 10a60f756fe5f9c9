"""Plays of schedules on failing clusters once more: lists, and a look at everything at each moment.

Nothing of the kernels is used; the rules are those that `kernels.grid.play` opens with.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from windrow_lab.grid.costs import Costs
from windrow_lab.grid.faults import Restarts
from windrow_lab.grid.schedule import Schedule
from windrow_lab.kernels.grid.play import Failing


@dataclass
class Row:
    task: int
    cluster: int
    begin: float
    state: str = "waits"
    data: dict[int, float] = field(default_factory=dict)  # of parents, when theirs are here
    start: float = 0.0
    end: float = math.inf
    node: int = -1


@dataclass
class Slow:
    """One draw. `risk(cluster, begin, end)`: what is believed."""

    costs: Costs
    risk: object
    restarting: Restarts
    allowed: set[int]
    is_losing: bool
    is_final: bool

    def __post_init__(self) -> None:
        workflow, grid = self.costs.workflow, self.costs.grid
        self.parents: dict[int, dict[int, float]] = {i: {} for i in range(len(workflow))}
        edges = zip(
            workflow.parents.sources().tolist(), workflow.parents.index.tolist(), strict=True
        )
        for (child, parent), size in zip(edges, workflow.edge_bytes.tolist(), strict=True):
            self.parents[child][parent] = float(size)
        self.nodes = [
            range(a, b)
            for a, b in zip(grid.first[:-1].tolist(), grid.first[1:].tolist(), strict=True)
        ]
        self.up, self.since = (
            {p: True for own in self.nodes for p in own},
            {p: 0.0 for own in self.nodes for p in own},
        )
        self.rows: list[Row] = []
        self.limit = self.restarting.limit
        self.now, self.has_failed, self.failed_s, self.restarts = (
            -1.0,
            False,
            0.0,
            [0] * len(workflow),
        )

    def counted(self, task: int) -> int:
        return 0 if self.restarting.is_total else task

    def run_s(self, row: Row) -> float:
        return float(self.costs.run_s[row.task, row.cluster])

    def is_up(self, cluster: int) -> bool:
        return any(self.up[p] for p in self.nodes[cluster])

    def of(self, task: int, *states: str) -> list[Row]:
        return [row for row in self.rows if row.task == task and row.state in states]

    def send(self, source: Row, to: Row, since: float) -> None:
        grid, c, d = self.costs.grid, source.cluster, to.cluster
        size = self.parents[to.task][source.task]
        way = 0.0 if c == d else grid.latency_s[c, d] + size * (1 / grid.bandwidth_bytes_s[c, d])
        then = max(source.end, since) + way
        to.data[source.task] = min(then, to.data.get(source.task, math.inf))

    def ready(self, row: Row) -> float:
        if len(row.data) < len(self.parents[row.task]):
            return math.inf
        return max([row.begin, *row.data.values()])

    def lost(self, row: Row) -> None:
        row.state = "lost"
        task = row.task
        if self.of(task, "waits", "runs"):
            return
        if not self.of(task, "ended", "gone"):
            self.restart([task])
        if self.limit and not self.of(task, "waits", "runs"):
            for below in (i for i, parents in self.parents.items() if task in parents):
                for child in self.of(below, "waits")[::-1]:
                    if task not in child.data:
                        self.restart(self.fetch(child))

    def restart(self, tasks: list[int]) -> None:
        while tasks and not self.has_failed:
            task = tasks.pop()
            if self.of(task, "waits", "runs"):
                continue
            if self.restarts[self.counted(task)] == self.limit:
                self.has_failed = True
                return
            self.restarts[self.counted(task)] += 1
            row = Row(task, self.safest(task), self.now)
            self.rows.append(row)
            tasks += self.fetch(row)

    def safest(self, task: int) -> int:
        def order(c: int) -> tuple[bool, float, float, int]:
            first = next((p for p in self.nodes[c] if self.up[p]), self.nodes[c][0])
            age, run_s = self.now - self.since[first], float(self.costs.run_s[task, c])
            return not self.is_up(c), self.risk(c, age, age + run_s), run_s, c  # type: ignore[operator]

        return min(self.allowed, key=order)

    def fetch(self, row: Row) -> list[int]:
        wanted = []
        for parent in self.parents[row.task]:
            for source in self.of(parent, "ended"):
                if source.cluster == row.cluster or self.is_up(source.cluster):
                    self.send(source, row, self.now)
            if parent not in row.data and not self.of(parent, "waits", "runs"):
                wanted.append(parent)
        return wanted

    def fail(self, nodes: range) -> None:
        for p in nodes:
            self.up[p] = False
        cluster = next(c for c, own in enumerate(self.nodes) if nodes[0] in own)
        if self.is_losing:
            for row in self.rows:
                if row.cluster == cluster and row.state == "ended":
                    row.state = "gone"
                elif row.cluster == cluster and row.state == "waits":
                    row.data = {}
        hit = sorted(
            (row for row in self.rows if row.state == "runs" and row.node in nodes),
            key=lambda r: r.node,
        )
        for row in hit:
            self.failed_s += self.now - row.start
            self.lost(row)
        if self.is_final and not self.is_up(cluster):
            for row in [
                one for one in self.rows if one.cluster == cluster and one.state == "waits"
            ]:
                if not self.has_failed:
                    self.lost(row)

    def repair(self, nodes: range) -> None:
        for p in nodes:
            self.up[p], self.since[p] = True, self.now
        cluster = next(c for c, own in enumerate(self.nodes) if nodes[0] in own)
        for row in list(self.rows) if self.is_losing else []:
            if (
                row.cluster == cluster
                and row.state == "waits"
                and len(row.data) < len(self.parents[row.task])
            ):
                wanted = self.fetch(row)
                if wanted and not self.limit:
                    self.lost(row)
                elif not self.has_failed:
                    self.restart(wanted)

    def start(self) -> bool:
        """The next row that can start now, if any."""
        waiting = [row for row in self.rows if row.state == "waits" and self.ready(row) <= self.now]
        for row in sorted(waiting, key=lambda row: (row.begin, self.rows.index(row))):
            busy = {one.node for one in self.rows if one.state == "runs"}
            free = [
                p
                for p in self.nodes[row.cluster]
                if self.up[p] and (p not in busy or self.run_s(row) == 0)
            ]
            ahead = [one for one in waiting if one.cluster == row.cluster and one.state == "waits"]
            first = min(ahead, key=lambda one: (one.begin, self.rows.index(one)))
            if free and first is row:
                row.state, row.start, row.end = "runs", self.now, self.now + self.run_s(row)
                row.node = free[0] if self.run_s(row) else -1
                return True
        return False

    def left(self) -> list[int]:
        return [i for i in range(len(self.costs.workflow)) if not self.of(i, "ended", "gone")]

    def play(
        self, plan: Schedule, events: list[tuple[float, range, bool]], until: float
    ) -> list[float]:
        columns = plan.task.tolist(), plan.cluster.tolist(), plan.start_s.tolist()
        self.rows = [Row(*one) for one in zip(*columns, strict=True)]
        planned = sum(self.run_s(row) for row in self.rows)
        while self.left() and not self.has_failed:
            times = [row.end for row in self.rows if row.state == "runs"] + [
                at for at, _, _ in events
            ]
            waits = [self.ready(row) for row in self.rows if row.state == "waits"]
            then = min([*times, *(at for at in waits if at > self.now)], default=math.inf)
            if then == math.inf or then >= until:
                self.now = min(then, until)
                break
            self.now = then
            for row in self.rows:
                if row.state == "runs" and row.end == then:
                    row.state = "ended"
                    for child in [one for one in self.rows if row.task in self.parents[one.task]]:
                        if child.state == "waits":
                            self.send(row, child, 0.0)
            while events and events[0][0] == then and self.left():
                _, nodes, is_repair = events.pop(0)
                (self.repair if is_repair else self.fail)(nodes)
            while not self.has_failed and self.start():
                pass
        ended = sum(self.run_s(row) for row in self.rows if row.state in ("ended", "gone"))
        ended += sum(self.now - row.start for row in self.rows if row.state == "runs")
        is_over = not self.left()
        return [
            float(is_over),
            self.now,
            ended,
            self.failed_s,
            0.0 if is_over else max(0.0, planned - ended),
        ]


def events_of(failing: Failing, draw: int) -> list[tuple[float, range, bool]]:
    """When which nodes fail or are repaired."""
    columns = (
        column[draw].tolist() for column in (failing.time_s, failing.which, failing.is_repair)
    )
    unit = failing.unit.tolist()
    return [
        (at, range(unit[u], unit[u + 1]), bool(r))
        for at, u, r in zip(*columns, strict=True)
        if np.isfinite(at)
    ]
