"""What the campaigns of `foresight` say: means by cell, beside the best fixed strategy, with wins
and costs.

A cell is a log, its requests, a policy and a length of workflows, as in table 7.1 of the GLUME
thesis. Means are over all workflows and submission times of the cell that every strategy finished,
so that all are compared on the same. One strategy beats another on a workflow (a configuration) as
in the thesis: if its makespan is 5 % or more below the other's, as the mean over submission
times. GLUME loses a cell if Zhang beats it on more workflows than the reverse.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import NamedTuple, cast

import pyarrow as pa

from windrow_lab.reproductions.cases import BEATS, LENGTHS, PRINTED_WINS
from windrow_lab.reproductions.foresight.decision_times import DecisionTimes
from windrow_lab.reproductions.foresight.plan import BESIDE, RIVALS
from windrow_lab.reproductions.paper import PaperPlan, TableResults

OURS = "foresight"
BEST_KNOWN = "best known"
"""Of each run the shortest that any strategy reached: what could be reached at least."""

WITHIN = 0.01
"""The part by which its mean makespan may be above that of the best fixed strategy."""
BETTER = 0.05
"""The part by which it must be below that of glume if glume loses."""
COST = 1.1
"""How many times glume's node-hours it may use."""

Key = tuple[str, str, str, str]
"""Log, requests, policy, length."""
Run = tuple[str, int, int]
"""Workflow, submission time, seed."""


class RunFigures(NamedTuple):
    """Of one run."""

    makespan_s: int
    node_s: int
    jobs: int
    killed_jobs: int


@dataclass(frozen=True, slots=True)
class RunsCell:
    """The runs of one cell that every strategy finished. `length` is "all" if lengths are taken
    together."""

    log: str
    requests: str
    policy: str
    length: str
    of: Mapping[str, Mapping[Run, RunFigures]]

    @property
    def names(self) -> tuple[str, ...]:
        """Its strategies, the fixed ones first."""
        return (*(n for n in RIVALS if n in self.of), *(n for n in self.of if n not in RIVALS))

    @property
    def runs(self) -> tuple[Run, ...]:
        """What every strategy ran, in order."""
        return tuple(sorted(self.of[self.names[0]]))

    @property
    def workflows(self) -> tuple[str, ...]:
        """The configurations."""
        return tuple(dict.fromkeys(run[0] for run in self.runs))

    @property
    def best(self) -> str:
        """The best fixed strategy."""
        return min((name for name in RIVALS if name in self.of), key=self.makespan_s)

    @property
    def glume_loses(self) -> bool:
        """Whether it does here."""
        won, lost = self.wins("glume", "zhang")
        return won < lost

    @property
    def glume_loses_in_print(self) -> bool:
        """Whether it does in table 7.1."""
        won, lost = PRINTED_WINS.get((self.log, self.requests, self.length), (0, 0))
        return won < lost

    def makespan_s(self, name: str) -> float:
        """The mean of a strategy."""
        return fmean(run.makespan_s for run in self.of[name].values())

    def node_h(self, name: str) -> float:
        """The mean of a strategy."""
        return fmean(run.node_s for run in self.of[name].values()) / 3600

    def jobs(self, name: str) -> tuple[float, float]:
        """The means of a strategy: jobs, and how many of them were killed with tasks left in
        them."""
        runs = self.of[name].values()
        return fmean(run.jobs for run in runs), fmean(run.killed_jobs for run in runs)

    def against(self, name: str, rival: str) -> float:
        """By which part one strategy's mean makespan is above the other's."""
        return self.makespan_s(name) / self.makespan_s(rival) - 1

    def cost(self, name: str, rival: str = "glume") -> float:
        """Node-hours of one strategy over the other's."""
        return self.node_h(name) / self.node_h(rival)

    def improvement(self, workflow: str, name: str, rival: str) -> float:
        """By which percentage one strategy's makespan is below the other's on a workflow, as the
        mean over runs."""
        mine = [run for run in self.runs if run[0] == workflow]
        ours = self.of[name]
        theirs = self.of[rival]
        return fmean(100 * (1 - ours[run].makespan_s / theirs[run].makespan_s) for run in mine)

    def wins(self, name: str, rival: str) -> tuple[int, int]:
        """On how many workflows one strategy beats the other, and the reverse."""
        gains = [self.improvement(workflow, name, rival) for workflow in self.workflows]
        return sum(gain >= BEATS for gain in gains), sum(gain <= -BEATS for gain in gains)

    def is_within(self, name: str = OURS) -> bool:
        """Whether the mean makespan is at most 1 % above that of the best fixed strategy."""
        return self.against(name, self.best) <= WITHIN

    def is_better(self, name: str = OURS) -> bool:
        """Whether the mean makespan is at least 5 % below that of glume."""
        return self.against(name, "glume") <= -BETTER

    def is_cheap(self, name: str = OURS) -> bool:
        """Whether it uses at most 1.1 times the node-hours of glume."""
        return self.cost(name) <= COST


@dataclass(frozen=True, slots=True)
class Change:
    """A strategy beside another, over the cells of a campaign: means of the parts, and the worst
    cell."""

    name: str
    makespan: float
    """By which part it is above, as the mean over cells."""
    worst: float
    node_hours: float
    """Times the other's, as the mean over cells."""


class ForesightResults(TableResults):
    """Tables of all campaigns, in the plan's order, and how long decisions took."""

    def __init__(
        self, plan: PaperPlan, tables: Sequence[pa.Table], decisions: Sequence[DecisionTimes] = ()
    ) -> None:
        super().__init__(tables)
        self.plan = plan
        self.decisions = decisions
        self._rows: dict[str, list[dict[str, object]]] = {
            c.name: table.to_pylist() for c, table in zip(plan.campaigns, tables, strict=True)
        }

    @cached_property
    def cells(self) -> dict[str, list[RunsCell]]:
        """The cells of each campaign, those without a run that all finished left out."""
        return {
            name: _cells(self._compared(name), lambda workflow: workflow.rsplit("-", 1)[-1])
            for name in self._rows
        }

    def by_log(self, campaign: str) -> list[RunsCell]:
        """The same with all lengths together."""
        return _cells(self._compared(campaign), lambda _: "all")

    def changes(self, campaign: str, base: str = OURS) -> list[Change]:
        """Every strategy of a campaign, in the plan's order, and `glume`, beside `base`."""
        cells = self.cells[campaign]
        names = [s.name for c in self.plan.campaigns if c.name == campaign for s in c.strategies]
        found = []
        for name in (*names, "glume") if cells else ():
            parts = [cell.against(name, base) for cell in cells]
            found.append(
                Change(
                    name, fmean(parts), max(parts), fmean(cell.cost(name, base) for cell in cells)
                )
            )
        return found

    def _compared(self, campaign: str) -> list[dict[str, object]]:
        """The rows of a campaign, and those of `grid` for the same runs if it wants them."""
        own = self._rows[campaign]
        if campaign not in BESIDE:
            return own
        wanted = {_place(row) for row in own}
        both = [*own, *(row for row in self._rows["grid"] if _place(row) in wanted)]
        if campaign == "oracle":
            return [*both, *_best_known(both)]
        return both


def _place(row: Mapping[str, object]) -> tuple[object, ...]:
    return tuple(
        row[name] for name in ("log", "requests", "policy", "workflow", "submit_s", "seed")
    )


def _best_known(rows: Iterable[dict[str, object]]) -> list[dict[str, object]]:
    best: dict[tuple[object, ...], dict[str, object]] = {}
    for row in rows:
        if row["error"] is None:
            there = best.setdefault(_place(row), row)
            if _figures(row).makespan_s < _figures(there).makespan_s:
                best[_place(row)] = row
    return [row | {"strategy": BEST_KNOWN} for row in best.values()]


def _figures(row: Mapping[str, object]) -> RunFigures:
    return RunFigures(
        *(
            cast(int, row[name])
            for name in ("makespan_s", "allocated_node_s", "jobs", "killed_jobs")
        )
    )


def _cells(rows: Iterable[Mapping[str, object]], length: Callable[[str], str]) -> list[RunsCell]:
    by_cell = _by_cell(rows, length)
    order = [*LENGTHS, "all"]
    cells = []
    for key in sorted(by_cell, key=lambda key: (*key[:3], order.index(key[3]))):
        shared = _shared_runs(by_cell[key])
        if any(shared.values()):
            cells.append(RunsCell(*key, shared))
    return cells


def _by_cell(
    rows: Iterable[Mapping[str, object]], length: Callable[[str], str]
) -> dict[Key, dict[str, dict[Run, RunFigures]]]:
    """The runs that did not fail, by cell and strategy."""
    found: dict[Key, dict[str, dict[Run, RunFigures]]] = {}
    for row in rows:
        workflow = str(row["workflow"])
        key = (str(row["log"]), str(row["requests"]), str(row["policy"]), length(workflow))
        runs = found.setdefault(key, {}).setdefault(str(row["strategy"]), {})
        if row["error"] is None:
            at = cast(int, row["submit_s"])
            runs[workflow, at, cast(int, row["seed"])] = _figures(row)
    return found


def _shared_runs(
    by_strategy: Mapping[str, Mapping[Run, RunFigures]],
) -> dict[str, dict[Run, RunFigures]]:
    """Of each strategy, the runs that no strategy failed in."""
    shared = sorted(set.intersection(*map(set, by_strategy.values())))
    return {name: {run: of[run] for run in shared} for name, of in by_strategy.items()}
