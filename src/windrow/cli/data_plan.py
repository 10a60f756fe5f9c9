"""What `windrow plan --environment` prints: the five storage allocations side by side, the choice, and why."""

from __future__ import annotations

import argparse
from math import inf
from typing import TYPE_CHECKING

from windrow.cli import terminal
from windrow.errors import UserError
from windrow.model import format_duration
from windrow.model.size import format_size
from windrow.model.wording import count

if TYPE_CHECKING:
    from windrow.lab.data_plan import DataPlan, Option

_BARS = " ▁▂▃▄▅▆▇█"
_WIDTH = 60


def show_data_plan(args: argparse.Namespace) -> int:
    """Read, play, print. UserError where nothing is possible."""
    from windrow.formats.environment_file import read_environment
    from windrow.formats.open import read_workflow
    from windrow.lab.data_plan import plan_data

    where = read_environment(args.environment, args.space)
    workflow = read_workflow(args.workflow)
    if not any(file.size_bytes for file in workflow.files):
        raise UserError(f"{args.workflow}: no file has a size, so there is nothing to plan; give sizes (`size:`)")
    with terminal.waiting(f"playing {workflow.name}"):
        plan = plan_data(workflow, where, args.seed)
    if args.html:
        from windrow.report.data_plan import data_plan_page

        terminal.write_page(args.html, data_plan_page(workflow.name, plan))
    if args.json:
        terminal.print_json(as_json(plan))
    else:
        pipes, jobs = len(plan.flow.pipes) - 1, len(plan.flow.level)
        there = f"{count(where.nodes, 'node')}, {format_size(where.storage)} of space"
        head = f"{workflow.name}: {count(jobs, 'task')} in {count(pipes, 'pipeline')}, on {there}"
        rates = f"{format_size(where.remote)}/s to home, {format_size(where.local)}/s within"
        terminal.show(
            terminal.text(f"{head}, {rates}"),
            terminal.table(_HEADS, [_row(option, plan) for option in plan.options], "lrrrrrrr"),
            terminal.text(f"why: {plan.why}"),
            *([terminal.heading("nodes at work over time"), terminal.text(*_bars(plan))] if plan.chosen else []),
            *terminal.files_written(page=args.html),
        )
    if plan.chosen is None:
        raise UserError(plan.why)
    return 0


_HEADS = ("", "needs", "takes", "Bent's model", "from home", "to home", "fetches", "most space")


def _row(option: Option, plan: DataPlan) -> list[str]:
    name = f"> {option.allocation}" if option is plan.chosen else f"  {option.allocation}"
    if not option.runs:
        return [name, format_size(option.least_bytes), "not possible", *[""] * 5]
    run = option.runs[0]
    takes = "never ends" if option.time_s == inf else format_duration(option.time_s)
    model = format_duration(option.model_s) if option.model_s < inf else ""
    crossed = [format_size(run.of_batch + run.of_inputs), format_size(run.of_results), f"{run.fetches:,}"]
    return [name, format_size(option.least_bytes), takes, model, *crossed, format_size(run.most_used)]


def _bars(plan: DataPlan) -> list[str]:
    """A line for each allocation that ends, all on one scale of time; full height is all nodes."""
    import numpy as np

    from windrow.lab.data_plan import busy_nodes
    from windrow.report.plot import averages

    ending = [option for option in plan.options if option.time_s < inf]
    span = max(option.runs[0].time_s for option in ending)
    lines = []
    for option in ending:
        means = averages(*busy_nodes(option.runs[0]), np.linspace(0, span, _WIDTH + 1)) / plan.where.nodes
        heights = np.ceil(np.clip(means, 0, 1) * (len(_BARS) - 1) - 1e-9).astype(int)
        lines.append(f"{option.allocation:<11} {''.join(_BARS[height] for height in heights)}")
    return [*lines, f"{'':<11} 0{format_duration(span):>{_WIDTH - 1}}"]


def as_json(plan: DataPlan) -> dict[str, object]:
    """The same for programs; null where there is no number."""

    def finite(value: float) -> float | None:
        return value if value < inf else None

    return {
        "chosen": plan.chosen.allocation if plan.chosen else None,
        "why": plan.why,
        "space_bytes": plan.where.storage,
        "tasks": len(plan.flow.level),
        "pipelines": len(plan.flow.pipes) - 1,
        "allocations": [
            {
                "allocation": option.allocation,
                "least_bytes": int(option.least_bytes),
                "is_possible": bool(option.runs),
                "time_s": finite(option.time_s),
                "model_s": finite(option.model_s),
                **({} if not option.runs else _numbers(option)),
            }
            for option in plan.options
        ],
    }


def _numbers(option: Option) -> dict[str, float]:
    run = option.runs[0]
    names = ("of_batch", "of_inputs", "of_results", "fetches", "most_used")
    return {f"{name}_bytes" if name != "fetches" else name: int(getattr(run, name)) for name in names}
