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
    """Takes the given choices at the first decisions that have any, then the best; notes what could be chosen."""

    inner: Foresight
    choices: Sequence[int]
    width: int
    name: str = "oracle"
    ranked: list[int] = field(default_factory=list)

    def decide(self, view: View) -> Decision:
        """The choice of the script, as a rank among the courses; 0 is the best one."""
        turn = len(self.ranked)
        if not view.can_submit or view.jobs_waiting or view.futures is None:
            return self.inner.decide(view)
        courses = self.inner.ranked(view, view.futures(self.inner.sampling))
        chosen = min(self.choices[turn] if turn < len(self.choices) else 0, len(courses) - 1)
        self.ranked.append(min(len(courses), self.width))
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
    """The best run that a beam of that width, over the first `depth` decisions, finds on a clone of this cluster.

    `rivals` are strategies whose runs count as well: what they reach could be reached.
    """

    def played(strategy: Strategy) -> Trial:
        return run_trial(cluster.clone(), workflow, strategy, terms=terms, work=work, actual_s=actual_s)

    inner = HINDSIGHT
    best = min((played(rival) for rival in rivals), key=lambda t: t.makespan_s, default=None)
    beam: list[tuple[int, ...]] = [()]
    for turn in range(depth):
        ends: list[tuple[int, tuple[int, ...]]] = []
        for script in beam:
            choices = [script] if turn == 0 and not ends else []
            choices += [(*script, rank) for rank in range(width)]
            for one in dict.fromkeys(choices):
                scripted = _Scripted(inner, one, width)
                trial = played(scripted)
                if best is None or trial.makespan_s < best.makespan_s:
                    best = trial
                if len(scripted.ranked) > turn and (not one or one[-1] < scripted.ranked[len(one) - 1]):
                    ends.append((trial.makespan_s, one))
        beam = [one for _, one in sorted(ends) if len(one) == turn + 1][:width]
        if not beam:
            break
    assert best is not None
    return best
