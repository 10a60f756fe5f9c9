"""How well a run could have gone, had the future been known: true run times of all jobs, and all
arrivals.

The oracle plays the courses of `foresight` on the real future instead of likely ones, at each
decision, and looks further: it keeps the best few beginnings (a beam), lets each take its best few
next courses, and finishes every one of them by looking ahead again at each decision. What comes out
is the best run that was found. No lower one may exist among the courses that were looked at, but
not all of them were searched; so the distance to it is a lower bound of what better forecasts could
gain.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Generic, TypeVar

import pyarrow as pa

from windrow.foresight.course import Sampling
from windrow.foresight.strategy import Foresight
from windrow.strategies import Decision, View
from windrow_lab.campaign.campaign import Chunk
from windrow_lab.campaign.rows import SCHEMA, Row, chunk_table

Ranks = tuple[int, ...]
T = TypeVar("T")


HINDSIGHT = Foresight(slack=0.0, futures=1, sampling=Sampling("truth"), name="hindsight")
"""Foresight that knows the future: at each decision, the best course on what really comes."""


@dataclass(frozen=True, slots=True)
class Oracle:
    """The oracle in a campaign. Asked as a strategy, alone, it does as hindsight does."""

    width: int = 2
    depth: int = 2
    name: str = "oracle"

    def decide(self, view: View) -> Decision:
        """The best course on what really comes."""
        return HINDSIGHT.decide(view)

    def rows_of(self, chunk: Chunk) -> pa.Table:
        """The rows of a chunk that is its own: at each time and seed, the best run that the beam
        finds."""
        assert chunk.strategies == (self,), "a chunk of the oracle holds no other strategy"
        places = product(chunk.seeds, chunk.submit_s)
        rows = [
            _best_row(replace(chunk, submit_s=(at,), seeds=(seed,)), self) for seed, at in places
        ]
        return pa.Table.from_pylist([row | {"strategy": self.name} for row in rows], schema=SCHEMA)


@dataclass
class _Scripted:
    """Takes the given ranks at the first decisions, 0 for the best course, and the best one from
    then on.

    `open` is how many courses there were at each decision, up to `width`.
    """

    inner: Foresight
    ranks: Ranks
    width: int
    name: str = "oracle"
    open: list[int] = field(default_factory=list)

    def decide(self, view: View) -> Decision:
        """The course of that rank; if no choice is due, what foresight does."""
        if not view.can_submit or view.jobs_waiting or view.futures is None:
            return self.inner.decide(view)
        courses = self.inner.ranked(view, view.futures(self.inner.sampling))
        turn = len(self.open)
        self.open.append(min(len(courses), self.width))
        chosen = min(self.ranks[turn] if turn < len(self.ranks) else 0, len(courses) - 1)
        return self.inner.decision(
            view, [courses[chosen], *courses[:chosen], *courses[chosen + 1 :]], is_exact=True
        )

    def courses(self, turn: int) -> int:
        """How many there were to take at that decision; none if the run never came to it."""
        if turn < len(self.open):
            return self.open[turn]
        return 0


@dataclass
class _Beam(Generic[T]):
    """Searches scripts; `play` runs one, `length_s` says how long that took. No run is made
    twice."""

    play: Callable[[_Scripted], T]
    length_s: Callable[[T], float]
    width: int
    found: dict[Ranks, tuple[_Scripted, T]] = field(default_factory=dict)

    def search(self, depth: int) -> list[T]:
        """Every run that was made on the way."""
        beam: list[Ranks] = [()]
        self._run(())
        for turn in range(depth):
            ends: list[tuple[float, Ranks]] = []
            for begun in beam:
                script, _ = self._run(begun)
                for ranks in [(*begun, rank) for rank in range(script.courses(turn))]:
                    ends.append((self.length_s(self._run(ranks)[1]), ranks))
            beam = [ranks for _, ranks in sorted(ends)[: self.width]]
        return [run for _, run in self.found.values()]

    def _run(self, ranks: Ranks) -> tuple[_Scripted, T]:
        last = max((k for k, rank in enumerate(ranks) if rank), default=-1)
        key = ranks[
            : last + 1
        ]  # after the last choice that is not the best, all scripts continue alike
        if key not in self.found:
            script = _Scripted(HINDSIGHT, key, self.width)
            self.found[key] = script, self.play(script)
        return self.found[key]


def _best_row(one: Chunk, oracle: Oracle) -> Row:
    """The best of all scripts. A run that failed is never the best, unless all did."""

    def play(script: _Scripted) -> dict[str, int | None]:
        row: dict[str, int | None] = chunk_table(replace(one, strategies=(script,))).to_pylist()[0]
        return row

    def length_s(row: dict[str, int | None]) -> float:
        makespan_s = row["makespan_s"]
        if makespan_s is None:
            return math.inf
        return makespan_s

    best = min(_Beam(play, length_s, oracle.width).search(oracle.depth), key=length_s)
    return {**best}
