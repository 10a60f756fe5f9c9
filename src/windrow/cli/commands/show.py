"""`windrow show`: the shape of a workflow, in the terminal, as JSON or as a page."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from windrow.cli import terminal

if TYPE_CHECKING:
    from rich.table import Table

    from windrow.model import Workflow
    from windrow.shape import Shape

SUMMARY = "Show a workflow's shape: levels, widths, work, critical path and parallelism."

_EXACT_UP_TO = 100_000
_MOST_ROWS = 32
_BAR = 40

_EPILOG = """\
Work is the sum of all run times. The critical path is the chain of dependent tasks that takes longest. The level of
parallelism is the most tasks that can ever run at once; tokens estimate it from below.

example:
  windrow show montage.json --html montage.html
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EPILOG
    parser.add_argument(
        "workflow",
        metavar="WORKFLOW",
        help="a workflow: native (.yaml), WfFormat (.json) or Pegasus DAX (.dax, .xml), plain or .gz",
    )
    parser.add_argument(
        "--html", metavar="FILE", help="also write a page with pictures; it needs nothing but a browser"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument(
        "--exact",
        action="store_true",
        help=f"compute the level of parallelism also above {_EXACT_UP_TO:,} dependencies, where it may take minutes",
    )


def run(args: argparse.Namespace) -> int:
    """Read, measure, print."""
    from windrow.formats import read_workflow
    from windrow.shape import level_of_parallelism, shape, token_parallelism

    with terminal.waiting(f"reading {args.workflow}"):
        workflow = read_workflow(args.workflow)
    with terminal.waiting("measuring"):
        figures, token = shape(workflow), token_parallelism(workflow)
        exact = level_of_parallelism(workflow) if args.exact or figures.edges <= _EXACT_UP_TO else None
    if args.html:
        _write_page(args.html, workflow, figures, token, exact)
    if args.json:
        terminal.print_json(_as_json(workflow, figures, token, exact))
    else:
        blocks = (_facts(workflow, figures, token, exact), _levels(figures), _kinds(workflow))
        terminal.show(
            terminal.heading(workflow.name), *workflow.repairs(), *blocks, *terminal.files_written(page=args.html)
        )
    return 0


def _write_page(path: str, workflow: Workflow, figures: Shape, token: int, exact: int | None) -> None:
    from windrow.formats.disk import replace_bytes
    from windrow.report.workflow.page import workflow_page

    with replace_bytes(path) as stream:
        stream.write(workflow_page(workflow, figures, token=token, exact=exact).encode())


def _as_json(workflow: Workflow, figures: Shape, token: int, exact: int | None) -> dict[str, object]:
    from dataclasses import asdict

    from windrow.shape import kinds

    return {
        "name": workflow.name,
        **asdict(figures),
        "guessed_run_times": workflow.guessed_run_times,
        "mended_run_times": workflow.mended_run_times,
        "token_parallelism": token,
        "level_of_parallelism": exact,
        "kinds": [asdict(kind) for kind in kinds(workflow)],
    }


def _facts(workflow: Workflow, figures: Shape, token: int, exact: int | None) -> Table:
    from rich.table import Table

    from windrow.model import format_duration
    from windrow.model.size import format_size

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_row("tasks", f"{figures.tasks:,}")
    table.add_row("dependencies", f"{figures.edges:,}")
    table.add_row("files", f"{figures.files:,}, {format_size(figures.size_bytes)} in all")
    table.add_row("levels", f"{figures.levels:,}")
    table.add_row("width", f"{figures.width:,} tasks on the widest level")
    table.add_row("work", f"{format_duration(figures.work_s)}{terminal.guesses(workflow)}")
    path = f"{format_duration(figures.critical_path_s)} along {len(figures.critical_tasks):,} tasks"
    table.add_row("critical path", path)
    unknown = f"not computed above {_EXACT_UP_TO:,} dependencies; ask with --exact"
    table.add_row("level of parallelism", unknown if exact is None else f"{exact:,}")
    table.add_row("  by tokens", f"{token:,}")
    return table


def _levels(figures: Shape) -> Table:
    """One row per level, or per range of levels where there are many: then the widest of them counts."""
    from rich.table import Table

    from windrow.model import format_duration

    step = -(-figures.levels // _MOST_ROWS)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("level" if step == 1 else "levels")
    table.add_column("tasks" if step == 1 else "at most", justify="right")
    table.add_column("")
    table.add_column("work", justify="right")
    for first in range(0, figures.levels, step):
        last = min(first + step, figures.levels) - 1
        width = max(figures.widths[first : last + 1])
        bar = _bar(width / figures.width)
        work = format_duration(sum(figures.level_work_s[first : last + 1]))
        table.add_row(f"{first}" if first == last else f"{first}–{last}", f"{width:,}", f"[cyan]{bar}[/]", work)
    return table


def _bar(share: float) -> str:
    """A bar of blocks, an eighth of a column fine; what is there at all is seen."""
    eighths = max(1, round(share * _BAR * 8))
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def _kinds(workflow: Workflow) -> Table:
    from rich.table import Table
    from rich.text import Text

    from windrow.model import format_duration
    from windrow.shape import kinds

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("kind")
    for name in ("tasks", "mean run", "work"):
        table.add_column(name, justify="right")
    found = kinds(workflow)
    for kind in found[:_MOST_ROWS]:
        mean = format_duration(kind.work_s / kind.tasks)
        table.add_row(Text(kind.name or "(no name)"), f"{kind.tasks:,}", mean, format_duration(kind.work_s))
    if len(found) > _MOST_ROWS:
        table.add_row(f"and {len(found) - _MOST_ROWS:,} more", "", "", "")
    return table
