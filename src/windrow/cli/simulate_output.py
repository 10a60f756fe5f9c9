"""What `windrow simulate` hands out: figures as a table and as JSON, and with `--jobs-out` every
job as a row."""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from windrow.cli import terminal
from windrow.errors import UserError
from windrow.formats.disk import replace_bytes
from windrow.formats.parquet import need_parquet
from windrow.model import Repairs, format_duration
from windrow.model.wording import count
from windrow.report.simulation import FIGURES, SummaryFigure
from windrow.sim.replay import QueueAt
from windrow.sim.simulation import FAILED, Simulation, Summary

_SUFFIXES = (".csv", ".csv.gz", ".parquet")


@dataclass(frozen=True, slots=True)
class Simulated:
    """Simulations of one log, of which the jobs submitted in [from_s, to_s) count."""

    simulations: tuple[Simulation, ...]
    repairs: Repairs
    cap: int | None
    from_s: float
    to_s: float
    failures: tuple[str, ...] = ()
    """How often nodes fail, in words."""

    def as_json(self) -> dict[str, object]:
        """One object; with several simulations a list of such objects under `simulations`."""
        objects = [self._object(simulation) for simulation in self.simulations]
        if len(objects) == 1:
            return objects[0]
        return {"simulations": objects}

    def _object(self, simulation: Simulation) -> dict[str, object]:
        counts = asdict(self.repairs).items()
        summary = simulation.summary(self.from_s, self.to_s)
        left_out = FAILED if simulation.failures is None else ()
        return {
            "log": simulation.log.name,
            "nodes": simulation.machine_nodes,
            **simulation.settings,
            "cap": self.cap,
            **{name: value for name, value in asdict(summary).items() if name not in left_out},
            "from_s": self.from_s,
            "to_s": None if math.isinf(self.to_s) else self.to_s,
            "simulated_jobs": len(simulation.log),
            "repaired": {
                name.removeprefix("mended_"): n for name, n in counts if name.startswith("mended_")
            },
            "dropped": {
                name.removeprefix("dropped_"): n
                for name, n in counts
                if name.startswith("dropped_")
            },
        }

    def as_blocks(self) -> tuple[RenderableType, RenderableType]:
        """For a terminal: what was simulated and repaired, then a table with one column per
        policy."""
        first = self.simulations[0]
        title = (
            f"[bold]{escape(first.log.name)}[/]: {len(first.log):,} jobs on "
            f"{first.machine_nodes:,} nodes"
        )
        return Group(title, *self.repairs.lines(), *self.failures), self._table()

    def _table(self) -> Table:
        summaries = [simulation.summary(self.from_s, self.to_s) for simulation in self.simulations]
        figures = [f for f in FIGURES if f.best or any(f.values(summaries))]
        rows: list[list[str | Text]] = [
            ["jobs counted", *(f"{summary.jobs:,}" for summary in summaries)],
            *(_cells(figure, summaries) for figure in figures),
        ]
        return terminal.table(
            ["", *(simulation.label for simulation in self.simulations)], rows, "l>", gap=3
        )


_SHOWN = 30  # jobs that wait; --json has them all


def queue_blocks(queue: QueueAt) -> tuple[RenderableType, ...]:
    """A moment of a log on a terminal: how busy the machine is, and the jobs that wait."""
    head = terminal.heading(
        f"{queue.policy}: {count(queue.running_jobs, 'job')} on {queue.busy_nodes:,} of "
        f"{queue.nodes:,} nodes, {len(queue.waiting):,} waiting"
    )
    if not queue.waiting:
        return (head,)
    rows = [
        (
            str(job.job),
            f"{job.nodes:,}",
            format_duration(job.requested_s),
            format_duration(job.waited_s),
            format_duration(job.start_s - queue.at_s),
        )
        for job in queue.waiting[:_SHOWN]
    ]
    if len(queue.waiting) > _SHOWN:
        rows.append((f"and {len(queue.waiting) - _SHOWN:,} more", "", "", "", ""))
    names = ("job", "nodes", "requested", "waited", "should start in")
    return head, terminal.table(names, rows, "l>")


def _cells(figure: SummaryFigure, summaries: list[Summary]) -> list[str | Text]:
    cells: list[str | Text] = [figure.title]
    values = figure.values(summaries)
    for value, best in zip(values, figure.best_of(values), strict=True):
        words = figure.write(value)
        if figure.field.endswith("_s"):  # seconds to compute with, and a unit to think in
            if figure.field.startswith("mean"):
                seconds = f"{value:,.1f}"
            else:
                seconds = f"{value:,.0f}"
            words = f"{seconds} s" + (
                f" [dim]({format_duration(value)})[/]" if value >= 120 else ""
            )
        cells.append(Text.from_markup(words, style="green" if best else ""))
    return cells


def check_suffix(path: str) -> None:
    """UserError if the name says no format that can be written: better before a simulation than
    after."""
    if not path.lower().endswith(_SUFFIXES):
        raise UserError(
            f"{path}: jobs are written to a file whose name ends in {', '.join(_SUFFIXES)}; "
            "rename it"
        )
    if path.lower().endswith(".parquet"):
        need_parquet(f"writing {path}")


def write_jobs(path: str, simulations: Sequence[Simulation], from_s: float, to_s: float) -> None:
    """The jobs submitted in [from_s, to_s); with several simulations one after the other, `policy`
    in front."""
    blocks = [
        _columns(simulation, from_s, to_s, named=len(simulations) > 1) for simulation in simulations
    ]
    with replace_bytes(path) as stream:
        if path.lower().endswith(".parquet"):
            import pyarrow as pa
            from pyarrow import parquet

            parquet.write_table(pa.concat_tables([pa.table(block) for block in blocks]), stream)
            return
        _write_csv(stream, blocks)


def _columns(
    simulation: Simulation, from_s: float, to_s: float, *, named: bool
) -> dict[str, NDArray[np.int64] | list[str]]:
    log = simulation.log
    counted = (log.submit_s >= from_s) & (log.submit_s < to_s)
    columns = {
        "job": log.job,
        "submit_s": log.submit_s,
        "start_s": simulation.start_s,
        "end_s": simulation.end_s,
        "wait_s": simulation.wait_s,
        "nodes": log.nodes,
        "requested_s": log.requested_s,
        "run_s": simulation.ran_s,
    }
    if simulation.failures is not None:
        columns |= {
            "runs_hit": np.bincount(simulation.hits[:, 1], minlength=len(log)),
            "lost": simulation.is_lost * 1,
        }
    if named:
        policy = {"policy": [simulation.label] * int(counted.sum())}
    else:
        policy = {}
    return {**policy, **{name: column[counted] for name, column in columns.items()}}


def _write_csv(stream: BinaryIO, blocks: Sequence[Mapping[str, Any]]) -> None:
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(blocks[0])
    for block in blocks:
        lists = (
            column if isinstance(column, list) else column.tolist() for column in block.values()
        )
        writer.writerows(zip(*lists, strict=True))
    text.detach()  # the stream is closed by its owner
