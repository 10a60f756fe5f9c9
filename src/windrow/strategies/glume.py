"""Group Levels Using Makespan Estimates: the GLUME thesis, Algorithms 1 to 3.

Every way to cut the levels that are left into two jobs is tried, each job on its best number of
nodes; the cut with the least estimated makespan wins, its first job is submitted, and when that
starts the rest is cut again.

The estimate of the second job is made now, although it will be submitted when the first starts; no
better time is known. If print adds up waits and leeways, the makespan here is what they stand
for: the second job's tasks begin when it has started and the first has ended, whichever is later.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from windrow.model import format_duration
from windrow.strategies.base import Candidate, Decision, Habits, View, best_nodes_each
from windrow.strategies.leeway import binary_leeways
from windrow.strategies.levels import levels_text


@dataclass(frozen=True, slots=True)
class Glume:
    """`beat`: by which share two jobs must beat one. `leeway_bound`: the most leeway, as a share of
    the run."""

    beat: float = 0.0
    leeway_bound: float = 0.1
    name: str = "glume"
    habits: ClassVar = Habits("while jobs wait")

    def decide(self, view: View) -> Decision:
        """The first job of the best cut in two, when no own job waits."""
        if view.jobs_waiting or not view.can_submit:
            return Decision()
        last_level = view.levels.last
        busy = view.busy_s
        whole, firsts, seconds = _pieces(view)
        one = max(busy, whole.wait_s) + whole.run_s
        best = whole
        best_makespan = one
        chosen = last_level
        seen = [replace(whole, what="all levels", makespan_s=one)]
        for last, (first, second) in enumerate(zip(firsts, seconds, strict=True)):
            begin = max(busy, first.wait_s)
            makespan = max(begin + first.run_s, first.wait_s + second.wait_s) + second.run_s
            note = self._objection(first, second, makespan, one)
            seen.append(replace(first, what=_cut_text(last), makespan_s=makespan, note=note))
            if not note and makespan < best_makespan:
                best = first
                best_makespan = makespan
                chosen = last
        why = _why(chosen, last_level, best_makespan, one)
        return Decision((view.plan(0, chosen, best.nodes, best.leeway_s),), tuple(seen), why)

    def _objection(self, first: Candidate, second: Candidate, makespan: int, one: int) -> str:
        if first.leeway_s > self.leeway_bound * first.run_s:
            return "its leeway would idle too much"
        if second.leeway_s > self.leeway_bound * second.run_s:
            return "the leeway of the rest would idle too much"
        if makespan < one * (1 - self.beat):
            return ""
        return "not enough better than one job"


def _pieces(view: View) -> tuple[Candidate, list[Candidate], list[Candidate]]:
    """All levels in one job; and for each cut, by its last level, the first job and the second."""
    last = view.levels.last
    cuts = range(last)
    busy = [view.busy_s] * (last + 1)
    whole, *firsts = _allocations(view, [(0, last), *((0, cut) for cut in cuts)], busy)
    spans = [(cut + 1, last) for cut in cuts]
    seconds = _allocations(view, spans, [first.leeway_s + first.run_s for first in firsts])
    return whole, firsts, seconds


def _allocations(
    view: View, spans: Sequence[tuple[int, int]], busy_s: Sequence[int]
) -> list[Candidate]:
    """Algorithm 2, for several spans of levels at once: the best number of nodes, and the leeway
    that it needs."""
    if not spans:
        return []
    sized = best_nodes_each(view, spans, busy_s)
    nodes = np.array([nodes for nodes, _, _ in sized])
    runs = np.array([run for _, _, run in sized])
    leeways, waits = (
        found.tolist() for found in binary_leeways(view, nodes, runs, np.array(busy_s))
    )
    return [
        Candidate(levels_text(*span), nodes, wait, run, leeway, None)
        for span, (nodes, _, run), wait, leeway in zip(spans, sized, waits, leeways, strict=True)
    ]


def _cut_text(last: int) -> str:
    return f"{levels_text(0, last)}, then the rest"


def _why(chosen: int, last: int, makespan_s: int, one_s: int) -> str:
    """The winner and what it was measured against; the notes of the candidates say which cuts were
    not allowed."""
    if chosen < last:
        ends = f"all done in {format_duration(makespan_s)}, the earliest of the allowed cuts"
        return f"{_cut_text(chosen)}: {ends}; in one job: {format_duration(one_s)}"
    if last:
        others = "; no allowed cut ends earlier"
    else:
        others = ""
    return f"one job for all that is left: all done in {format_duration(one_s)}{others}"
