"""Every scheduler once more, as its text has it: loops over all processors, lists of what is on
them, no shortcuts.

Nothing of the room `grid` is used but the values it is given. A task is placed at the least (end,
processor).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from hypothesis import strategies as st
from tests.lab.grid.test_clusters import grids

from windrow.model import File, Task, Workflow
from windrow.strategies.top import top
from windrow_lab.grid.clusters import Grid
from windrow_lab.grid.costs import Costs
from windrow_lab.kernels.grid.overprovision import Aims

Placed = tuple[int, float, float]  # processor, begin, end


@dataclass
class Twin:
    """A schedule under construction."""

    costs: Costs
    on: dict[int, list[tuple[float, float]]] = field(
        default_factory=dict
    )  # of each processor, what runs when
    runs: dict[int, list[Placed]] = field(default_factory=dict)  # of each task, its executions

    def __post_init__(self) -> None:
        workflow, grid = self.costs.workflow, self.costs.grid
        self.home = [c for c, cluster in enumerate(grid.clusters) for _ in range(cluster.nodes)]
        self.parents: dict[int, dict[int, float]] = {i: {} for i in range(len(workflow))}
        edges = zip(
            workflow.parents.sources().tolist(), workflow.parents.index.tolist(), strict=True
        )
        for (child, parent), size in zip(edges, workflow.edge_bytes.tolist(), strict=True):
            self.parents[child][parent] = float(size)

    def copy(self) -> Twin:
        """One that can be changed apart."""
        return replace(
            self,
            on={p: [*x] for p, x in self.on.items()},
            runs={t: [*x] for t, x in self.runs.items()},
        )

    def run_s(self, task: int, p: int) -> float:
        return float(self.costs.run_s[task, self.home[p]])

    def arrival(self, parent: int, size: float, p: int) -> float:
        """When data of the parent are on p, from the execution whence they come first."""
        grid, to = self.costs.grid, self.home[p]
        return min(
            end
            if q == p
            else end
            + (
                grid.latency_s[self.home[q], to]
                + size * (1 / grid.bandwidth_bytes_s[self.home[q], to])
            )
            for q, _, end in self.runs[parent]
        )

    def ready(self, task: int, p: int) -> float:
        return max(
            (self.arrival(a, size, p) for a, size in self.parents[task].items()), default=0.0
        )

    def start(self, task: int, p: int, insertion: bool, ready: float | None = None) -> float:
        """The first idle gap long enough, or behind all that is there."""
        ready, there = self.ready(task, p) if ready is None else ready, sorted(self.on.get(p, []))
        if not insertion:
            return max([ready, *(end for _, end in there)])
        if self.run_s(task, p) == 0:
            return ready
        idle = 0.0
        for begin, end in there:
            if begin < end:
                if idle < begin and max(ready, idle) + self.run_s(task, p) <= begin:
                    return max(ready, idle)
                idle = max(idle, end)
        return max(ready, idle)

    def ends(self, task: int, insertion: bool) -> list[tuple[float, int]]:
        return sorted(
            (self.start(task, p, insertion) + self.run_s(task, p), p) for p in range(len(self.home))
        )

    def put(self, task: int, p: int, begin: float) -> None:
        end = begin + self.run_s(task, p)
        self.on.setdefault(p, []).append((begin, end))
        self.runs.setdefault(task, []).append((p, begin, end))

    def best(self, tasks: Iterable[int], insertion: bool) -> Twin:
        """Each of these tasks, in this order, where it ends first."""
        for task in tasks:
            p = self.ends(task, insertion)[0][1]
            self.put(task, p, self.start(task, p, insertion))
        return self


def ranks(twin: Twin, with_data: bool = True) -> list[float]:
    """The longest way to an exit, in the mean over processors and pairs of different processors."""
    workflow, grid, home = twin.costs.workflow, twin.costs.grid, twin.home
    pairs = [(c, d) for p, c in enumerate(home) for q, d in enumerate(home) if p != q]
    run_s = [
        sum(twin.run_s(i, p) for p in range(len(home))) / len(home) for i in range(len(workflow))
    ]
    latency = sum(grid.latency_s[x] for x in pairs) / max(1, len(pairs))
    per_byte = sum(1 / grid.bandwidth_bytes_s[x] for x in pairs) / max(1, len(pairs))

    def rank(i: int) -> float:
        below = [j for j in range(len(workflow)) if i in twin.parents[j]]
        ways = [
            rank(j) + ((latency + twin.parents[j][i] * per_byte) if with_data else 0) for j in below
        ]
        return run_s[i] + max(ways, default=0.0)

    return [rank(i) for i in range(len(workflow))]


def by_level(twin: Twin) -> list[list[int]]:
    levels = twin.costs.workflow.levels.tolist()
    return [[i for i, level in enumerate(levels) if level == k] for k in range(max(levels) + 1)]


def in_turn(score: Callable[[Twin, int], float]) -> Callable[[Twin, list[int]], Twin]:
    """Of a level, always the task with the highest score next."""

    def placed(twin: Twin, level: list[int]) -> Twin:
        twin, left = twin.copy(), [*level]
        while left:
            twin.best(
                [left.pop(max(range(len(left)), key=lambda k: (score(twin, left[k]), -k)))],
                insertion=False,
            )
        return twin

    return placed


def _second(twin: Twin, task: int) -> float:
    ends = [end for end, _ in twin.ends(task, False)]
    return (ends[1] if len(ends) > 1 else math.inf) - ends[0]


def _second_cluster(twin: Twin, task: int) -> float:
    ends = twin.ends(task, False)
    others = [end for end, p in ends if twin.home[p] != twin.home[ends[0][1]]]
    return min(others, default=math.inf) - ends[0][0]


HEURISTICS = {
    "min-min": in_turn(lambda twin, task: -twin.ends(task, False)[0][0]),
    "max-min": in_turn(lambda twin, task: twin.ends(task, False)[0][0]),
    "sufferage": in_turn(_second),
    "cluster-sufferage": in_turn(_second_cluster),
}


def lhbs(costs: Costs, heuristics: Iterable[str]) -> Twin:
    twin = Twin(costs)
    for level in by_level(twin):
        tried = [HEURISTICS[name](twin, level) for name in heuristics]
        twin = min(tried, key=lambda one: max(one.runs[i][0][2] for i in level))
    return twin


def dsh(costs: Costs, order: Iterable[int], *, by_start: bool = False, depth: int = 0) -> Twin:
    """With copies: each is tried on a copy of the whole schedule."""
    twin = Twin(costs)
    for task in order:
        twin = _dsh_one(twin, task, by_start, depth or len(costs.workflow))
    return twin


def _dsh_one(twin: Twin, task: int, by_start: bool, depth: int) -> Twin:
    tried = []
    for p in range(len(twin.home)):
        trial, begin = _with_copies(twin.copy(), task, p, depth)
        tried.append((begin + (0 if by_start else twin.run_s(task, p)), p, trial, begin))
    _, p, twin, begin = min(tried, key=lambda one: one[:2])
    twin.put(task, p, begin)
    return twin


def reliably(
    costs: Costs,
    order: list[int],
    risk: Callable[[int, float, float], float],
    aims: Aims,
    is_dsh: bool,
) -> Twin:
    """HEFT or DSH, with copies of each task, by TOP, when its last child is placed; exits at
    last."""
    twin, left = Twin(costs), list(order)
    own: dict[int, Placed] = {}
    copied: set[int] = set()
    for task in order:
        twin = (
            _dsh_one(twin, task, False, len(order)) if is_dsh else twin.best([task], insertion=True)
        )
        own[task] = twin.runs[task][-1]
        left.remove(task)
        for a in twin.parents[task]:
            if not any(a in twin.parents[other] for other in left):
                _copied(twin, a, own[a], risk, aims)
                copied.add(a)
    for a in range(len(order)):
        if a not in copied:
            _copied(twin, a, own[a], risk, aims)
    return twin


def _copied(
    twin: Twin, task: int, own: Placed, risk: Callable[[int, float, float], float], aims: Aims
) -> None:
    clusters, held = range(max(twin.home) + 1), dict[int, Placed]()
    for placed in reversed(twin.runs[task]):
        held.setdefault(twin.home[placed[0]], placed)
    if len(held) >= aims.limit:
        return
    at = dict(held)
    for c in set(clusters) - set(held):
        nodes, grid = [p for p, home in enumerate(twin.home) if home == c], twin.costs.grid
        ready = 0.0
        for a, size in twin.parents[task].items():
            ways = (
                end
                + (
                    grid.latency_s[twin.home[q], c]
                    + size * (1 / grid.bandwidth_bytes_s[twin.home[q], c])
                )
                for q, _, end in twin.runs[a]
            )
            ready = max(ready, min(ways))
        begin, p = min((twin.start(task, p, True, ready), p) for p in nodes)
        at[c] = p, begin, begin + twin.run_s(task, p)
    ends, risks = [at[c][2] for c in clusters], [risk(c, *at[c][1:]) for c in clusters]
    deadline = own[1] + aims.late * (own[2] - own[1]) if aims.is_relative else aims.late * own[2]
    chosen = top(
        ends, risks, wanted=aims.wanted, deadline_s=deadline, limit=aims.limit, held=list(held)
    )
    for c in chosen[len(held) :]:
        twin.put(task, at[c][0], at[c][1])


def _with_copies(twin: Twin, task: int, p: int, depth: int) -> tuple[Twin, float]:
    begin = twin.start(task, p, True)
    while depth:
        last = min(
            ((-twin.arrival(a, size, p), a) for a, size in twin.parents[task].items()), default=None
        )
        if last is None or begin != -last[0] or any(q == p for q, _, _ in twin.runs[last[1]]):
            break
        trial, its = _with_copies(twin.copy(), last[1], p, depth - 1)
        trial.put(last[1], p, its)
        if (again := trial.start(task, p, True)) >= begin:
            break
        twin, begin = trial, again
    return twin, begin


def matchmaking(costs: Costs) -> Twin:
    """Always the task that is ready first, on the fastest processor that is idle then."""
    twin, free, now = Twin(costs), [0.0] * costs.grid.processors, 0.0
    left = set(range(len(costs.workflow)))
    while left:
        known = [i for i in left if not left & set(twin.parents[i])]
        then, task = min(
            (max((twin.runs[a][0][2] for a in twin.parents[i]), default=0.0), i) for i in known
        )
        now = max(now, then, min(free))
        idle = [p for p, until in enumerate(free) if until <= now]
        p = min(idle, key=lambda q: (costs.grid.slowness[twin.home[q]], q))
        twin.put(task, p, max(now, twin.ready(task, p)))
        free[p] = twin.runs[task][0][2]
        left.remove(task)
    return twin


@st.composite
def costs(draw: st.DrawFn, tasks: int = 8, grid: st.SearchStrategy[Grid] | None = None) -> Costs:
    """Small workflows on small grids, with many ties, tasks that take no time, and files of no
    size."""
    n = draw(st.integers(1, tasks))
    parents = [
        sorted(draw(st.sets(st.integers(0, i - 1), max_size=3))) if i else [] for i in range(n)
    ]
    numbers = draw(st.permutations(range(n)))  # so that parents need not come first
    made: list[Task] = []
    for i in range(n):
        after, files = [f"t{numbers[a]}" for a in parents[i]], [f"f{a}-{i}" for a in parents[i]]
        out = tuple(f"f{i}-{j}" for j in range(n) if i in parents[j])
        run_s = float(draw(st.sampled_from([0, 1, 2, 2, 3, 7])))
        made.append(
            Task(f"t{numbers[i]}", run_s, parents=tuple(after), inputs=tuple(files), outputs=out)
        )
    made.sort(key=lambda task: task.id)
    sizes = [
        File(f"f{a}-{i}", draw(st.sampled_from([0, 1, 5, 30])))
        for i in range(n)
        for a in parents[i]
    ]
    return Costs(Workflow.from_tasks("w", made, sizes), draw(grids() if grid is None else grid))


def of(twin: Twin) -> tuple[list[int], list[float]]:
    """Processors and starts of the tasks themselves."""
    first = [twin.runs[i][0] for i in range(len(twin.costs.workflow))]
    return [p for p, _, _ in first], [begin for _, begin, _ in first]


def best_makespan(costs: Costs) -> float:
    """The optimum without copies: every order that goes, every processor, each task behind all."""
    least = math.inf

    def extend(twin: Twin, left: set[int], end: float) -> None:
        nonlocal least
        if end >= least:
            return
        if not left:
            least = end
        for task in left:
            if not left & set(twin.parents[task]):
                for p in range(len(twin.home)):
                    more = twin.copy()
                    more.put(task, p, twin.start(task, p, False))
                    extend(more, left - {task}, max(end, more.runs[task][0][2]))

    extend(Twin(costs), set(range(len(costs.workflow))), 0.0)
    return least


def exact(costs: Costs) -> Costs:
    """The same with run times that floats add exactly, so that means do not blur ties."""
    speeds = np.round(costs.grid.slowness * 8) / 8
    return Costs(costs.workflow, costs.grid, np.multiply.outer(costs.workflow.runtime_s, speeds))
