"""What `windrow plan --environment` prints: the five storage allocations side by side, the choice,
and why."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from windrow.cli import terminal
from windrow.errors import UserError
from windrow.model import format_duration

if TYPE_CHECKING:
    from rich.console import RenderableType

    from windrow_lab.storage.flows import Played
    from windrow_lab.storage.plan import DataPlan

_BARS = " ▁▂▃▄▅▆▇█"
_WIDTH = 60


def show_data_plan(args: argparse.Namespace) -> None:
    """Read, play, print. UserError if nothing is possible."""
    plan = _played(args)
    if args.html:
        from windrow_lab.storage.page import data_plan_page

        terminal.write_page(args.html, data_plan_page(plan))
    if args.json:
        terminal.print_json(_as_json(plan))
    else:
        terminal.show(*_blocks(plan), *terminal.files_written(page=args.html))
    if plan.chosen is None:
        raise UserError(plan.why)


def _played(args: argparse.Namespace) -> DataPlan:
    from windrow.formats.open import read_workflow
    from windrow_lab.storage.environment_file import read_environment
    from windrow_lab.storage.plan import plan_data

    where = read_environment(args.environment, args.space)
    workflow = read_workflow(args.workflow)
    if not any(file.size_bytes for file in workflow.files):
        raise UserError(
            f"{args.workflow}: no file has a size, so there is nothing to plan; give sizes "
            "(`size:`)"
        )
    with terminal.waiting(f"playing {workflow.name}"):
        return plan_data(workflow, where, args.seed)


def _as_json(plan: DataPlan) -> dict[str, object]:
    return {
        "chosen": plan.chosen and plan.chosen.allocation,
        "why": plan.why,
        "space_bytes": plan.where.storage,
        "tasks": len(plan.flow.level),
        "pipelines": len(plan.flow.pipes) - 1,
        "allocations": [option.facts() for option in plan.options],
    }


def _blocks(plan: DataPlan) -> Iterator[RenderableType]:
    from windrow_lab.storage.plan import HEADS

    rows = [(">" if option is plan.chosen else "", *option.row()) for option in plan.options]
    yield terminal.text(f"{plan.name}: {plan.lead}")
    yield terminal.table(("", *HEADS), rows, "llrrrrrrr")
    yield terminal.text(f"why: {plan.why}")
    if plan.chosen:
        yield terminal.heading("nodes at work over time")
        yield terminal.text(*_bars(plan))


def _bars(plan: DataPlan) -> list[str]:
    """A line for each allocation that ends, all on one scale of time; full height is all nodes."""
    span = max(option.runs[0].time_s for option in plan.ending)
    lines = [
        f"{option.allocation:<11} {_bar(option.runs[0], span, plan.where.nodes)}"
        for option in plan.ending
    ]
    return [*lines, f"{'':<11} 0{format_duration(span):>{_WIDTH - 1}}"]


def _bar(run: Played, span_s: float, nodes: int) -> str:
    """How much of the nodes is at work over time."""
    import numpy as np

    from windrow.report.plot import averages
    from windrow_lab.storage.plan import busy_nodes

    shares = averages(*busy_nodes(run), np.linspace(0, span_s, _WIDTH + 1)) / nodes
    heights = np.ceil(np.clip(shares, 0, 1) * (len(_BARS) - 1) - 1e-9).astype(int)
    return "".join(_BARS[height] for height in heights)
