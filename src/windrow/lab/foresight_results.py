"""What the campaigns of `foresight` say: means by cell, beside the best fixed strategy, with wins and costs.

A cell is a log, its requests, a policy and a length of workflows, as in table 7.1 of the GLUME thesis. Means are over
all workflows and submission times of the cell that every strategy finished, so that all are compared on the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

import pyarrow as pa

from windrow.lab.foresight import RIVALS, Plan
from windrow.lab.glume import LENGTHS

Key = tuple[str, str, str, str]
"""Log, requests, policy, length."""

WIN = 0.05
"""A strategy wins a workflow where its mean makespan is shorter by this part."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Means of one cell by strategy. `wins` counts the workflows on which foresight beats glume, and the reverse."""

    log: str
    requests: str
    policy: str
    length: str
    runs: int
    makespan_s: Mapping[str, float]
    node_h: Mapping[str, float]
    wins: tuple[int, int]

    @property
    def best(self) -> str:
        """The best fixed strategy."""
        return min((name for name in RIVALS if name in self.makespan_s), key=lambda name: self.makespan_s[name])

    def against(self, name: str, rival: str) -> float:
        """By which part one strategy's mean makespan is above the other's."""
        return self.makespan_s[name] / self.makespan_s[rival] - 1

    def cost(self, name: str, rival: str = "glume") -> float:
        """Node-hours of one strategy over the other's."""
        return self.node_h[name] / self.node_h[rival]


class Results:
    """Tables of all campaigns, in the plan's order."""

    def __init__(self, plan: Plan, tables: Sequence[pa.Table]) -> None:
        self.plan = plan
        self._tables = dict(zip((c.name for c in plan.campaigns), tables, strict=True))

    @property
    def trials(self) -> int:
        """Rows of all tables."""
        return sum(len(table) for table in self._tables.values())

    @property
    def failed(self) -> int:
        """Trials that failed."""
        return sum(len(t) - t.column("error").null_count for t in self._tables.values())

    @cached_property
    def cells(self) -> dict[str, list[Cell]]:
        """The cells of each campaign."""
        return {name: _cells(table) for name, table in self._tables.items()}

    def total(self, campaign: str) -> dict[str, tuple[float, float]]:
        """For each strategy of a campaign: makespan and node-hours over glume's, each the mean over cells."""
        cells = self.cells[campaign]
        names = list(cells[0].makespan_s) if cells else []
        return {
            name: (1 + fmean(c.against(name, "glume") for c in cells), fmean(c.cost(name) for c in cells))
            for name in names
        }


def _cells(table: pa.Table) -> list[Cell]:
    by_cell: dict[Key, dict[str, dict[tuple[str, int, int], tuple[int, int]]]] = {}
    for row in table.to_pylist():
        key = (row["log"], row["requests"], row["policy"], row["workflow"].rsplit("-", 1)[-1])
        runs = by_cell.setdefault(key, {}).setdefault(row["strategy"], {})
        if row["error"] is None:
            runs[row["workflow"], row["submit_s"], row["seed"]] = row["makespan_s"], row["used_node_s"]
    order = list(LENGTHS)
    return [_cell(key, by_cell[key]) for key in sorted(by_cell, key=lambda k: (*k[:3], order.index(k[3])))]


def _cell(key: Key, runs: Mapping[str, Mapping[tuple[str, int, int], tuple[int, int]]]) -> Cell:
    common = sorted(set.intersection(*(set(of) for of in runs.values())))
    names = [*(n for n in RIVALS if n in runs), *(n for n in runs if n not in RIVALS)]
    makespan = {name: fmean(runs[name][run][0] for run in common) for name in names}
    node_h = {name: sum(runs[name][run][1] for run in common) / 3600 for name in names}
    return Cell(*key, len(common), makespan, node_h, _wins(runs, common))


def _wins(
    runs: Mapping[str, Mapping[tuple[str, int, int], tuple[int, int]]], common: Sequence[tuple[str, int, int]]
) -> tuple[int, int]:
    if not {"foresight", "glume"} <= set(runs):
        return 0, 0
    ours = theirs = 0
    for workflow in sorted({run[0] for run in common}):
        mine = [run for run in common if run[0] == workflow]
        a, b = (fmean(runs[name][run][0] for run in mine) for name in ("foresight", "glume"))
        ours += a < b * (1 - WIN)
        theirs += b < a * (1 - WIN)
    return ours, theirs
