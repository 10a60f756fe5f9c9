"""The smallest run that still fails: fewer tasks, faults, jobs and sites.

Law: the same failing run gives the same small one, after at most `MOST_PLAYS` runs. Rule 1: what
is tried is smaller than the best so far, and taken if any invariant is broken in it. Rule 2: with
other sizes a seed draws another run, so of each size a few seeds are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from windrow.trials.virtual.drawn import FEATURES, USUAL, Ending, VirtualScenario, play

MOST_PLAYS = 150
_SEEDS = 5
_SIZES = ((1, 1), (1, 2), (2, 1), (2, 2), (1, 3), (3, 2), (2, 3), (3, 3), (3, 4), (4, 4), (6, 5))


@dataclass
class Shrinking:
    """Looks for smaller runs that fail, from this one on."""

    best: Ending
    play: Callable[[VirtualScenario], Ending] = play
    left: int = MOST_PLAYS

    def smallest(self) -> Ending:
        """What is found."""
        self._take_first(self._with_fewer_features)
        self._take_first(self._of_smaller_size)
        self._drop_faults()
        while self._take_first(self._with_fewer_features):
            pass
        return self.best

    def _fails(self, scenario: VirtualScenario) -> bool:
        if self.left <= 0:
            return False
        self.left -= 1
        played = self.play(scenario)
        if played.violation:
            self.best = played
        return bool(played.violation)

    def _take_first(self, candidates: Callable[[], Iterator[VirtualScenario]]) -> bool:
        return any(self._fails(scenario) for scenario in candidates())

    def _with_fewer_features(self) -> Iterator[VirtualScenario]:
        """Without one of the things that make its world special."""
        scenario = self.best.scenario
        usual: dict[str, Any] = dict.fromkeys((one.field for one in FEATURES.values()), 0)
        usual |= USUAL
        for name in ("lanes", "levels", "faults"):
            del usual[name]
        for name, value in usual.items():
            if getattr(scenario, name) != value:
                yield replace(scenario, **{name: value})

    def _of_smaller_size(self) -> Iterator[VirtualScenario]:
        """Fewer tasks, the fewest first; all their faults."""
        scenario = self.best.scenario
        tasks = scenario.lanes * scenario.levels
        for lanes, levels in _SIZES:
            if lanes * levels < tasks:
                for seed in range(scenario.seed, scenario.seed + _SEEDS):
                    yield replace(scenario, seed=seed, lanes=lanes, levels=levels, only=None)

    def _drop_faults(self) -> None:
        """None, then one, then all but what is not needed."""
        scenario = self.best.scenario
        if scenario.kind:
            return
        drawn = range(self.best.drawn) if scenario.only is None else scenario.only
        few: list[tuple[int, ...]] = [()]
        if len(drawn) > 1:
            few += [(n,) for n in drawn]
        if any(self._fails(replace(scenario, only=only)) for only in few):
            return
        kept = tuple(drawn)
        for number in drawn:
            fewer = tuple(n for n in kept if n != number)
            if self._fails(replace(scenario, only=fewer)):
                kept = fewer
