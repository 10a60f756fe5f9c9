"""How well a run could have gone, had the future been known: true run times of all jobs, and all arrivals.

The oracle plays the courses of `foresight` on the real future instead of likely ones, at each decision, and looks
further: it keeps the best few beginnings (a beam), lets each take its best few next courses, and finishes every one of
them by looking ahead anew at each decision. What comes out is the best run that was found. No lower one may exist
among the courses that were looked at, but nobody has searched all of them; so the distance to it is a lower bound of
what better forecasts could gain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from windrow.lab.trial import Trial, run_trial
from windrow.manager.terms import Terms
from windrow.model import Workflow
from windrow.sim.cluster import Cluster
from windrow.strategies import Decision, Foresight, Sampling, Strategy, View, Work

Ints = NDArray[np.int64]


HINDSIGHT = Foresight(slack=0.0, doubt=0.0, futures=1, sampling=Sampling("truth"), name="hindsight")
"""Foresight that knows the future: at each decision, the best course on what really comes."""


@dataclass
class _Scripted:
    """Takes the given ranks at the first decisions, 0 for the best course, and the best one from then on.

    `open` is how many courses there were at each decision, up to `width`.
    """

    inner: Foresight
    ranks: Sequence[int]
    width: int
    name: str = "oracle"
    open: list[int] = field(default_factory=list)

    def decide(self, view: View) -> Decision:
        """The course of that rank; where no choice is due, what foresight does."""
        if not view.can_submit or view.jobs_waiting or view.futures is None:
            return self.inner.decide(view)
        courses = self.inner.ranked(view, view.futures(self.inner.sampling))
        turn = len(self.open)
        self.open.append(min(len(courses), self.width))
        chosen = min(self.ranks[turn] if turn < len(self.ranks) else 0, len(courses) - 1)
        return self.inner.decision(view, [courses[chosen], *courses[:chosen], *courses[chosen + 1 :]])


def oracle_trial(
    cluster: Cluster,
    workflow: Workflow,
    *,
    terms: Terms | None = None,
    work: Work | None = None,
    actual_s: Ints | None = None,
    width: int = 3,
    depth: int = 3,
    rivals: Sequence[Strategy] = (),
) -> Trial:
    """The best run that a beam of that width, over the first `depth` decisions, finds on clones of this cluster.

    `rivals` are strategies whose runs count as well: what they reach could be reached. Cost: up to
    width * width * depth trials.
    """

    def played(strategy: Strategy) -> Trial:
        return run_trial(cluster.clone(), workflow, strategy, terms=terms, work=work, actual_s=actual_s)

    found = [played(rival) for rival in rivals]
    beam: list[tuple[int, ...]] = [()]
    for turn in range(depth):
        ends: list[tuple[int, tuple[int, ...]]] = []
        for ranks in [(*script, rank) for script in beam for rank in range(width)]:
            scripted = _Scripted(HINDSIGHT, ranks, width)
            found.append(played(scripted))
            if turn < len(scripted.open) and ranks[turn] < scripted.open[turn]:
                ends.append((found[-1].makespan_s, ranks))
        beam = [ranks for _, ranks in sorted(ends)[:width]]
    return min(found, key=lambda trial: trial.makespan_s)
