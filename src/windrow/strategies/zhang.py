"""Peel and group: Y. Zhang, C. Koelbel and K. Cooper, 2009, figures 4 and 5, with the corrections
of the GLUME thesis.

Levels are added to the next job while the ratio of its wait to its run improves. If no grouping
is better than the whole, all goes out as one job, or, if that would wait more than twice as long as
it runs, task by task from then on.

Corrected against print: the branches at the end of `peelLevel` follow the prose; the search for the
leeway ends; only the wait that shows (what the predecessors' run does not hide) keeps the search
adding levels before a first viable group; the width asked for is that of the group; a level wider
than the cluster runs on fewer nodes.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from windrow.strategies.base import Candidate, Decision, Habits, JobPlan, View, best_nodes
from windrow.strategies.individual import single_jobs
from windrow.strategies.leeway import ROUNDS, TOLERANCE_S, binary_leeway, halving_leeway
from windrow.strategies.levels import levels_text

_NO_GROUP = "no group is better than the whole"


@dataclass(frozen=True, slots=True)
class Zhang:
    """Parameters, for research.

    global_search, sizing, binary: the thesis's enhancements 1, 2 and 3 (section 5.3).
    whole_is_baseline: a group must beat the whole's ratio of wait to run (as both texts say, unlike
    the thesis's code). hidden_waits_count: waits that the predecessors' run hides count in full (as
    in the thesis's code). by_number: tasks that go out one by one do so in the workflow's order,
    not the longest first (as there). long_wait: if no group is viable and the whole would wait more
    than this many times its run, tasks go out one by one. tolerance_s, rounds: of the search for
    the leeway, unless it is binary.
    """

    global_search: bool = False
    sizing: bool = True
    binary: bool = False
    whole_is_baseline: bool = True
    hidden_waits_count: bool = False
    by_number: bool = False
    long_wait: float = 2.0
    tolerance_s: int = TOLERANCE_S
    rounds: int = ROUNDS
    name: str = "zhang"

    @property
    def habits(self) -> Habits:
        """When it need not be asked."""
        if self.by_number:
            return Habits()
        return Habits("while jobs wait", "once individually")

    def decide(self, view: View) -> Decision:
        """The next group of levels, when no own job waits."""
        if not view.can_submit:
            return Decision()
        if view.individually:
            why = "task by task since the whole would have waited too long"
            return Decision(single_jobs(view, by_number=self.by_number), why=why)
        if view.jobs_waiting:
            return Decision()
        whole = self._group(view, view.levels.last)
        seen, picked = self._search(view, whole)
        if picked is None and whole.wait_s > self.long_wait * whole.run_s:
            times = "twice" if self.long_wait == 2 else f"{self.long_wait:g} times"
            why = f"{_NO_GROUP}, and that waits more than {times} as long as it runs: task by task"
            jobs = single_jobs(view, by_number=self.by_number)
            return Decision(jobs, tuple(seen), why, individually=True)
        last, why = picked or (view.levels.last, _NO_GROUP)
        return Decision((self._plan(view, last),), tuple(seen), why)

    def _plan(self, view: View, last: int) -> JobPlan:
        """The levels up to the last as one job."""
        if self.sizing:
            nodes = best_nodes(view, 0, last, view.busy_s)[0]
        else:
            nodes = view.levels.usable(0, last)
        leeway_s = self._leeway(view, nodes, view.levels.run_on_s(0, last, nodes))[0]
        return view.plan(0, last, nodes, leeway_s)

    def _group(self, view: View, last: int) -> Candidate:
        nodes = view.levels.usable(0, last)
        run = view.levels.run_on_s(0, last, nodes)
        leeway, wait = self._leeway(view, nodes, run)
        return Candidate(levels_text(0, last), nodes, wait, run, leeway, None)

    def _leeway(self, view: View, nodes: int, run: int) -> tuple[int, int]:
        if self.binary:
            return binary_leeway(view, nodes, run, view.busy_s)
        bounds = {"tolerance_s": self.tolerance_s, "rounds": self.rounds}
        return halving_leeway(view, nodes, run, view.busy_s, **bounds)

    def _groups(self, view: View, whole: Candidate) -> Iterator[tuple[Candidate, int]]:
        """The first levels, ever more of them, each with the last; at the end all."""
        for last in range(view.levels.last):
            yield self._group(view, last), last
        yield whole, view.levels.last

    def _search(
        self, view: View, whole: Candidate
    ) -> tuple[list[Candidate], tuple[int, str] | None]:
        """The groups looked at, and the last level of the one picked with the reason."""
        seen: list[Candidate] = []
        picked: tuple[int, str] | None = None
        least = whole.wait_s / max(1, whole.run_s) if self.whole_is_baseline else math.inf
        hidden = 0 if self.hidden_waits_count else view.busy_s
        for group, last in self._groups(view, whole):
            is_whole = group is whole
            seen.append(group)
            if picked is None and max(0, group.wait_s - hidden) > group.run_s and not is_whole:
                continue  # nothing viable yet, and this one's wait shows for longer than it runs
            ratio = group.wait_s / max(1, group.run_s)
            if group.wait_s > hidden and ratio > least:
                if self.global_search:
                    continue
                break
            if is_whole:
                picked = None
            else:
                picked = (last, _ratio_text(ratio))
            least = ratio
        return seen, picked


def _ratio_text(ratio: float) -> str:
    """Why a group was picked. A ratio that would round to nothing is written as what it is."""
    if ratio == 0:
        return "starts at once; with one level more it would wait"
    return f"waits {ratio:.2g} times as long as it runs, the least so far"
