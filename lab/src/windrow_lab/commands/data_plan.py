"""What `windrow plan --environment` prints: the five storage allocations side by side, the choice,
and why."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from windrow.cli import terminal
from windrow.errors import UserError
from windrow.model import format_duration

if TYPE_CHECKING:
    from windrow_lab.storage.plan import DataPlan

_BARS = " ▁▂▃▄▅▆▇█"
_WIDTH = 60


def show_data_plan(args: argparse.Namespace) -> None:
    """Read, play, print. UserError if nothing is possible."""
    from windrow.formats.open import read_workflow
    from windrow_lab.storage.environment_file import read_environment
    from windrow_lab.storage.plan import HEADS, plan_data

    where = read_environment(args.environment, args.space)
    workflow = read_workflow(args.workflow)
    if not any(file.size_bytes for file in workflow.files):
        raise UserError(
            f"{args.workflow}: no file has a size, so there is nothing to plan; give sizes "
            "(`size:`)"
        )
    with terminal.waiting(f"playing {workflow.name}"):
        plan = plan_data(workflow, where, args.seed)
    if args.html:
        from windrow_lab.storage.page import data_plan_page

        terminal.write_page(args.html, data_plan_page(plan))
    chosen = plan.chosen
    if args.json:
        told = {
            "chosen": chosen and chosen.allocation,
            "why": plan.why,
            "space_bytes": where.storage,
        }
        told |= {"tasks": len(workflow), "pipelines": len(plan.flow.pipes) - 1}
        terminal.print_json(told | {"allocations": [option.facts() for option in plan.options]})
    else:
        rows = [(">" if option is chosen else "", *option.row()) for option in plan.options]
        terminal.show(
            terminal.text(f"{plan.name}: {plan.lead}"),
            terminal.table(("", *HEADS), rows, "llrrrrrrr"),
            terminal.text(f"why: {plan.why}"),
            *(
                [terminal.heading("nodes at work over time"), terminal.text(*_bars(plan))]
                if chosen
                else []
            ),
            *terminal.files_written(page=args.html),
        )
    if chosen is None:
        raise UserError(plan.why)


def _bars(plan: DataPlan) -> list[str]:
    """A line for each allocation that ends, all on one scale of time; full height is all nodes."""
    import numpy as np

    from windrow.report.plot import averages
    from windrow_lab.storage.plan import busy_nodes

    span = max(option.runs[0].time_s for option in plan.ending)
    lines = []
    for option in plan.ending:
        means = (
            averages(*busy_nodes(option.runs[0]), np.linspace(0, span, _WIDTH + 1))
            / plan.where.nodes
        )
        heights = np.ceil(np.clip(means, 0, 1) * (len(_BARS) - 1) - 1e-9).astype(int)
        lines.append(f"{option.allocation:<11} {''.join(_BARS[height] for height in heights)}")
    return [*lines, f"{'':<11} 0{format_duration(span):>{_WIDTH - 1}}"]
