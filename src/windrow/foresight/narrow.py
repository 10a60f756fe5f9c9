"""Many narrow jobs side by side, as a site whose users share nodes starts them: without futures, by
forecasts alone.

Rule 1: the k-th of several jobs starts when there is room for k of them. Where parts of nodes
become free one by one, that is long before there is room for all.
Rule 2: who is done takes the tasks of one that has not started (`JobPlan.takes`), so tasks follow
each other on what is free first. So there are as many jobs as may be: those that are too many never
start, and if others end earlier than they requested, there is someone to use it.
Rule 3: what is left behind the cut is one job more, submitted when these have started.
Rule 4: none asks for more time than it needs, although the first would not wait for it: the others
are moved into holes, and a shorter job fits more of them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace

import numpy as np

from windrow.foresight.courses import deal, independent_parts
from windrow.model import NEVER_S, format_duration, is_never
from windrow.strategies.base import Candidate, Decision, JobPlan, View
from windrow.strategies.levels import levels_text

_WIDTHS = (1, 2, 4)  # parts of a job
_CUTS = 12  # that are looked at
START_S = 2
"""What starting one more agent takes."""


@dataclass(frozen=True, slots=True)
class Narrow:
    """Jobs side by side for the first levels, when all should be done, and when the first
    starts."""

    name: str
    jobs: tuple[JobPlan, ...]
    end_s: int
    wait_s: int

    def instead_of(self, one: Decision) -> Decision:
        """To submit these, after that decision was looked at."""
        job = max(self.jobs, key=lambda job: job.run_s)
        row = Candidate(
            f"{self.name} ({len(self.jobs)} jobs)",
            job.nodes,
            self.wait_s,
            job.run_s,
            job.leeway_s,
            self.end_s,
        )
        why = f"{self.name}: all done in {format_duration(self.end_s)}; instead of {one.why}"
        return Decision(self.jobs, (row, *one.candidates), why)


def narrow(view: View) -> Narrow | None:
    """The best of them; None if there are none, as where nodes are whole."""
    if view.work.site.sharing is None or view.cap - view.jobs < 2:
        return None
    last = view.levels.last
    cuts = range(last, max(-1, last - _CUTS), -1)
    found = [one for cut in cuts for one in _of_cut(view, cut)]
    return min(found, key=lambda one: (one.end_s, len(one.jobs)), default=None)


def best_end_s(decision: Decision) -> int:
    """When all is done by what was chosen among the candidates of a decision."""
    ends = [c.makespan_s for c in decision.candidates if c.makespan_s is not None and not c.note]
    return min(ends, default=NEVER_S)


def _of_cut(view: View, cut: int) -> Iterator[Narrow]:
    parts = independent_parts(view, cut)
    most = min(view.cap - view.jobs, len(parts))
    name = f"{levels_text(0, cut)} in narrow jobs"
    if most < 2:
        return
    heaps = deal(parts, view.work.expected_s, most)
    for width in _WIDTHS:
        jobs = _jobs(view, heaps, width)
        if jobs:
            yield _ended(view, cut, name, jobs, width)


def _jobs(view: View, heaps: Sequence[Sequence[int]], width: int) -> tuple[JobPlan, ...]:
    """A job of that many parts for each heap; none if a task does not fit, or they are too wide."""
    jobs = []
    for heap in heaps:
        tasks = np.array(heap, dtype=np.int64)
        shared = min(width, view.work.nodes_needed(tasks))
        run_s = int(view.work.run_s(tasks, shared, shared)[0])
        if is_never(run_s) or shared > view.work.cluster_nodes:
            return ()
        jobs.append(JobPlan(tuple(heap), shared, run_s, view.request(run_s), takes=True))
    return tuple(jobs)


def _ended(view: View, cut: int, name: str, jobs: tuple[JobPlan, ...], width: int) -> Narrow:
    """When all is done if the first levels are these jobs."""
    longest = max(job.run_s + job.leeway_s for job in jobs)
    room = np.arange(1, len(jobs) + 1) * width
    starts = view.waits_s(np.minimum(room, view.work.cluster_nodes), np.full(len(jobs), longest))
    turns = np.maximum(0, room - view.work.cluster_nodes)
    free = [NEVER_S if turn else int(at) + START_S for at, turn in zip(starts, turns, strict=True)]
    first_s = min(free)
    heapify(free)
    end_s = 0
    for run_s in sorted((job.run_s for job in jobs), reverse=True):
        end_s = max(end_s, free[0] + run_s)
        heapreplace(free, free[0] + run_s)
    end_s = max(end_s, view.busy_s)
    last = view.levels.last
    if cut < last and not is_never(end_s):
        runs = view.levels.run_s(cut + 1, last)
        waits = view.waits_s(np.arange(1, len(runs) + 1), runs)
        end_s = int((np.maximum(end_s, first_s + waits) + runs).min()) + START_S
    return Narrow(name, jobs, min(end_s, NEVER_S), first_s)
