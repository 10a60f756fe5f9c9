"""The courses of action that `foresight` looks at: jobs to submit now, and a simple way to continue
with the rest.

Kinds, which an ablation may leave out:

cuts     the first levels as one job, the rest as one when that starts, level by level, or task by task; or all at once
sizes    each of these jobs on several numbers of nodes, not just on the one that ends first by the queue's estimate
pairs    both jobs of a cut submitted now, the second with leeway
splits   the first levels as several jobs side by side: parts that do not depend on each other, dealt out by work
single   one job for each ready task, under the cap: seldom best, but always open if a cap is low
hold     nothing now, while a job runs

A size is left out if even a job that starts at once would end after the best one by estimate: no
future helps it.
"""  # noqa: E501

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heapreplace
from itertools import islice

import numpy as np

from windrow.foresight.course import Course, Later
from windrow.model import is_never
from windrow.model.graph import Ints
from windrow.strategies.base import JobPlan, View, best_nodes
from windrow.strategies.individual import single_jobs
from windrow.strategies.leeway import binary_leeway
from windrow.strategies.levels import levels_text

KINDS = ("cuts", "sizes", "pairs", "splits", "single", "hold")
_STEP = 1.5  # between numbers of nodes
_SIZES = 6  # numbers of nodes that are tried for one job, at most
# Of the nodes that a part of a split could use; of parts of nodes, a job may have a single one.
_SHARES = (1.0, 0.5, 0.25)
_SPARE = (0.25, 1.0)  # parts of the run for which a job may ask beside, where that costs no wait
_SPARE_WAITING = 0.25  # the most of them for a job that has to wait


@dataclass(frozen=True, slots=True)
class Courses:
    """Makes the courses that are open in a view.

    `late_s` says how much longer than expected a job may run: all jobs ask for that as well.
    """

    view: View
    kinds: tuple[str, ...] = KINDS
    max_nodes: int | None = None
    late_s: Callable[[JobPlan], int] | None = None

    def all(self, most: int) -> list[Course]:
        """The courses to look at, at most `most`, the plainest first: of equals, the first is
        taken."""
        nodes = min(self.max_nodes or self.view.work.cluster_nodes, self.view.work.cluster_nodes)
        ranked = sorted(self._all(), key=lambda pair: pair[0])
        fitting = (
            c
            for _, c in ranked
            if all(job.nodes <= nodes and not is_never(job.run_s) for job in c.jobs)
        )
        distinct: dict[object, Course] = {}
        for course in fitting:
            distinct.setdefault((course.jobs, course.then), course)
        return [
            replace(
                course, jobs=padded(self.view, course.jobs, self.late_s), max_nodes=self.max_nodes
            )
            for course in islice(distinct.values(), most)
        ]

    def _whole(self) -> Iterator[tuple[int, Course]]:
        last = self.view.levels.last
        busy_s = self.view.busy_s
        rank = 0
        for nodes in self._sizes(0, last, busy_s):
            yield rank, Course("all levels", (self._job(0, last, nodes, busy_s),))
            rank = 2

    def _all(self) -> Iterator[tuple[int, Course]]:
        """Each course with its rank: which to look at first, if there is no time for all."""
        view = self.view
        last = self.view.levels.last
        if "cuts" in self.kinds:
            yield from self._whole()
            for cut in range(last):
                yield from self._cut(cut)
        if "single" in self.kinds and view.ready:
            yield 0, Course("task by task", single_jobs(view), (Later(0, last, "by task"),))
        if "splits" in self.kinds and view.cap - view.jobs > 1:
            for cut in range(last + 1):
                yield from self._splits(cut)
        if "hold" in self.kinds and view.jobs_running:
            yield 0, Course("nothing now", (), (Later(0, last, "when done"),))

    def _cut(self, cut: int) -> Iterator[tuple[int, Course]]:
        """Levels up to `cut` as one job, and the ways to continue."""
        last = self.view.levels.last
        busy = self.view.busy_s
        done = levels_text(0, cut)
        at_once = (Later(cut + 1, last, "when started"),)
        by_task = (Later(cut + 1, last, "by task"),)
        by_level = tuple(Later(level, level, "when done") for level in range(cut + 1, last + 1))
        firsts = [self._job(0, cut, nodes, busy) for nodes in self._sizes(0, cut, busy)]
        rank = 0
        for job in firsts:
            yield rank, Course(f"{done}, then the rest", (job,), at_once)
            yield rank + 2, Course(f"{done}, then task by task", (job,), by_task)
            if cut + 1 < last:
                yield 3, Course(f"{done}, then level by level", (job,), by_level)
            rank = 2
        if "pairs" in self.kinds and self.view.cap - self.view.jobs > 1:
            yield from self._pairs(cut, firsts[0])

    def _pairs(self, cut: int, first: JobPlan) -> Iterator[tuple[int, Course]]:
        """This job and the rest, both submitted now."""
        view = self.view
        last = view.levels.last
        wait_s = view.wait_s(first.nodes, first.run_s + first.leeway_s)
        until = max(view.busy_s, wait_s) + first.run_s
        rank = 1
        for nodes in self._sizes(cut + 1, last, until)[:3]:
            second = self._job(cut + 1, last, nodes, until)
            yield rank, Course(f"{levels_text(0, cut)} and the rest", (first, second))
            rank = 3

    def _splits(self, cut: int) -> Iterator[tuple[int, Course]]:
        """Levels up to `cut` as several jobs side by side."""
        view = self.view
        last = self.view.levels.last
        parts = independent_parts(view, cut)
        most = min(view.cap - view.jobs, len(parts))
        if most < 2:
            return
        at_once = (Later(cut + 1, last, "when started"),)
        as_ready = (Later(cut + 1, last, "dealt"),)
        for count in sorted({2, min(4, most), most}):
            dealt = deal(parts, view.work.expected_s, count)
            name = f"{levels_text(0, cut)} in {count} jobs"
            for share in _SHARES if view.work.site.sharing is None else (*_SHARES, 0.0):
                rank = 3
                if count == most and share == 1.0:
                    rank = 1
                jobs = _side_by_side(view, dealt, share)
                if jobs and cut == last:
                    yield rank, Course(name, jobs)
                elif jobs:
                    yield rank, Course(f"{name}, then the rest", jobs, at_once)
                    yield rank, Course(f"{name}, then what is ready", jobs, as_ready)

    def _sizes(self, first: int, last: int, busy_s: int) -> list[int]:
        """Numbers of nodes for these levels: the one that ends first by estimate, then others that
        may do better."""
        run = self.view.levels.run_s(first, last)[: self.max_nodes]
        best, wait, _ = best_nodes(self.view, first, last, busy_s)
        best = min(best, len(run))
        found = [best]
        nodes = float(len(run))
        end = max(wait, busy_s) + int(run[best - 1])
        while nodes >= 1 and "sizes" in self.kinds and len(found) < _SIZES:
            if busy_s + run[round(nodes) - 1] < end and round(nodes) not in found:
                found.append(round(nodes))
            nodes /= _STEP
        return found

    def _job(self, first: int, last: int, nodes: int, busy_s: int) -> JobPlan:
        run = int(self.view.levels.run_s(first, last)[nodes - 1])
        return self.view.plan(first, last, nodes, binary_leeway(self.view, nodes, run, busy_s)[0])


def padded(
    view: View, jobs: tuple[JobPlan, ...], late_s: Callable[[JobPlan], int] | None
) -> tuple[JobPlan, ...]:
    """The same jobs, asking for as much more as they may be late."""
    if late_s is None:
        return jobs
    return _longer(view, jobs, map(late_s, jobs))


def unhurried(view: View, jobs: tuple[JobPlan, ...]) -> tuple[JobPlan, ...]:
    """The same jobs, asking for more time if the batch system says that it costs no wait.

    It is not known yet whether tasks keep their times, and a killed job costs far more. A job that
    starts at once may ask for much more; one that waits only for a little, since a short one may
    still be moved into a hole.
    """
    if not jobs:
        return jobs
    nodes = np.array([job.nodes for job in jobs])
    runs = np.array([job.run_s for job in jobs])
    least = runs + np.array([job.leeway_s for job in jobs])
    waits = view.waits_s(nodes, least)
    more = np.zeros(len(jobs), dtype=np.int64)
    for part in _SPARE:
        tried = np.where(
            (waits == 0) | (part <= _SPARE_WAITING), (part * runs).astype(np.int64), more
        )
        more = np.where(view.waits_s(nodes, least + tried) <= waits, tried, more)
    return _longer(view, jobs, more.tolist())


def _longer(view: View, jobs: Iterable[JobPlan], more_s: Iterable[int]) -> tuple[JobPlan, ...]:
    """The same jobs, each with this much more leeway."""
    leeways = ((job, job.leeway_s + more) for job, more in zip(jobs, more_s, strict=True))
    return tuple(
        replace(job, leeway_s=s, requested_s=view.request(job.run_s + s)) for job, s in leeways
    )


def independent_parts(view: View, last: int) -> list[list[int]]:
    """The tasks of levels 0 to `last`, in parts between which there is no path inside these
    levels."""
    tasks = view.levels.between(0, last)
    parents = view.work.workflow.parents
    inside = np.zeros(parents.vertices, dtype=bool)
    inside[tasks] = True
    child = parents.sources()
    parent = parents.index
    kept = inside[child] & inside[parent]
    joined = _Joined(parents.vertices)
    for a, b in zip(child[kept].tolist(), parent[kept].tolist(), strict=True):
        joined.join(a, b)
    parts: dict[int, list[int]] = {}
    for v in tasks.tolist():
        parts.setdefault(joined.root(v), []).append(v)
    return list(parts.values())


class _Joined:
    """Vertices in sets that can be joined; each set goes by its smallest vertex."""

    def __init__(self, vertices: int) -> None:
        self._above = list(range(vertices))

    def root(self, v: int) -> int:
        """The vertex by which the set of this one goes."""
        above = self._above
        while above[v] != v:
            above[v] = above[above[v]]
            v = above[v]
        return v

    def join(self, a: int, b: int) -> None:
        """From now on they are in one set."""
        one, other = sorted((self.root(a), self.root(b)))
        self._above[other] = one


def deal(parts: Sequence[Sequence[int]], work_s: Ints, count: int) -> list[list[int]]:
    """The parts on this number of heaps of about equal work: the heaviest first, each to the
    lightest heap."""
    weights = sorted((-int(work_s[list(part)].sum()), i) for i, part in enumerate(parts))
    loads = [(0, k) for k in range(count)]
    heapify(loads)
    heaps: list[list[int]] = [[] for _ in range(count)]
    for minus, i in weights:
        load, k = loads[0]
        heaps[k] += parts[i]
        heapreplace(loads, (load - minus, k))
    return [sorted(heap) for heap in heaps if heap]


def dealt_jobs(view: View) -> tuple[JobPlan, ...]:
    """All ready tasks, in as many jobs as the cap leaves room for, each on nodes for all of its
    tasks at once."""
    count = min(max(0, view.cap - view.jobs), len(view.ready))
    return _side_by_side(view, [sorted(view.ready[k::count]) for k in range(count)], 1.0)


def _side_by_side(view: View, dealt: Sequence[Sequence[int]], share: float) -> tuple[JobPlan, ...]:
    """A job for each heap of tasks, on that share of the nodes that it could use. None if a task
    does not fit."""
    jobs = []
    for heap in dealt:
        tasks = np.array(heap, dtype=np.int64)
        level = view.levels.level[np.searchsorted(view.levels.tasks, tasks)]
        usable = max(view.work.nodes_needed(tasks[level == k]) for k in np.unique(level).tolist())
        nodes = max(1, min(view.work.cluster_nodes, round(share * usable)))
        run = int(view.work.run_s(tasks, nodes, nodes)[0])
        if is_never(run):
            return ()
        # With leeway where its first tasks wait for a job that runs.
        is_first_ready = not view.busy_s or set(tasks[level == 0].tolist()) <= set(view.ready)
        if is_first_ready:
            leeway = 0
        else:
            leeway = binary_leeway(view, nodes, run, view.busy_s)[0]
        takes = view.work.site.sharing is not None
        requested_s = view.request(run + leeway)
        jobs.append(JobPlan(tuple(heap), nodes, run, requested_s, leeway, takes=takes))
    return tuple(jobs)
