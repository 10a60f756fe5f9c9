"""What `windrow simulate` hands out: the same figures as a table and as JSON."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from windrow.cli import terminal
from windrow.model import Repairs, format_duration
from windrow.report.simulation.figures import FIGURES, SummaryFigure
from windrow.sim.simulation import Simulation, Summary


@dataclass(frozen=True, slots=True)
class Simulated:
    """Simulations of one log, of which the jobs submitted in [from_s, to_s) count."""

    simulations: tuple[Simulation, ...]
    repairs: Repairs
    cap: int | None
    from_s: float
    to_s: float

    def as_json(self) -> dict[str, object]:
        """One object; with several simulations a list of such objects under `simulations`."""
        objects = [self._object(simulation) for simulation in self.simulations]
        return objects[0] if len(objects) == 1 else {"simulations": objects}

    def _object(self, simulation: Simulation) -> dict[str, object]:
        counts = asdict(self.repairs).items()
        return {
            "log": simulation.log.name,
            "nodes": simulation.machine_nodes,
            **simulation.settings,
            "cap": self.cap,
            **asdict(simulation.summary(self.from_s, self.to_s)),
            "from_s": self.from_s,
            "to_s": None if math.isinf(self.to_s) else self.to_s,
            "simulated_jobs": len(simulation.log),
            "wall_s": simulation.wall_s,
            "jobs_per_s": _speed(simulation),
            "repaired": {name.removeprefix("mended_"): n for name, n in counts if name.startswith("mended_")},
            "dropped": {name.removeprefix("dropped_"): n for name, n in counts if name.startswith("dropped_")},
        }

    def as_blocks(self) -> tuple[RenderableType, RenderableType]:
        """For a terminal: what was simulated and repaired, then a table with one column per policy."""
        first = self.simulations[0]
        title = f"[bold]{escape(first.log.name)}[/]: {len(first.log):,} jobs on {first.machine_nodes:,} nodes"
        return Group(title, *self.repairs.lines()), self._table()

    def _table(self) -> Table:
        summaries = [simulation.summary(self.from_s, self.to_s) for simulation in self.simulations]
        figures = [f for f in FIGURES if f.best or any(f.values(summaries))]
        rows: list[list[str | Text]] = [
            ["jobs counted", *(f"{summary.jobs:,}" for summary in summaries)],
            *(_cells(figure, summaries) for figure in figures),
            ["wall time", *(f"{simulation.wall_s:,.3f} s" for simulation in self.simulations)],
            ["jobs per second", *(f"{_speed(simulation):,.0f}" for simulation in self.simulations)],
        ]
        return terminal.table(["", *(simulation.label for simulation in self.simulations)], rows, "l>", gap=3)


def _cells(figure: SummaryFigure, summaries: list[Summary]) -> list[str | Text]:
    cells: list[str | Text] = [figure.title]
    values = figure.values(summaries)
    for value, best in zip(values, figure.best_of(values), strict=True):
        words = figure.write(value)
        if figure.field.endswith("_s"):  # seconds to compute with, and a unit to think in
            seconds = f"{value:,.1f}" if figure.field.startswith("mean") else f"{value:,.0f}"
            words = f"{seconds} s" + (f" [dim]({format_duration(value)})[/]" if value >= 120 else "")
        cells.append(Text.from_markup(words, style="green" if best else ""))
    return cells


def _speed(simulation: Simulation) -> float:
    """Jobs simulated in a second; 0 where it took no time that a clock could see."""
    return len(simulation.log) / simulation.wall_s if simulation.wall_s > 0 else 0.0
