"""`windrow tasks`: every task of a run, one line each."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from windrow.cli import options, terminal
from windrow.cli.run_screen import clock, span
from windrow.errors import UserError, printable
from windrow.manager.states import TaskState

if TYPE_CHECKING:
    from windrow.app.runs import RunView
    from windrow.model import Workflow
    from windrow.report.run.view import TaskView


_OLD_NAMES: dict[str | None, str] = {"in-a-job": TaskState.SUBMITTED, "left": TaskState.PENDING}
"""What `--state` was called with before states had the names that people know."""
STATES = (*TaskState, *_OLD_NAMES)
_HEADS = ("task", "state", "job", "attempts", "started", "ran", "exit", "why")
_NUMBERS = ("job", "attempts", "ran", "exit")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    for state in ("failed", "running"):
        which.add_argument(f"--{state}", dest="state", action="store_const", const=state, help=f"only the {state} ones")
    which.add_argument("--state", choices=STATES, metavar="S", help="only those in this state, see below")
    options.add_of_run(parser)
    options.add_json(parser)


def run(args: argparse.Namespace) -> None:
    """Read and show."""
    from windrow.report.run.view import task_views

    told = options.run_of(args)
    wanted = _OLD_NAMES.get(args.state, args.state)
    rows = [row for row in task_views(told) if wanted in (None, row.state)]
    if args.json:
        terminal.print_json({"run": told.paths.name, "state": told.state, "tasks": rows})
    elif rows:
        print(printable("\n".join(aligned([_cells(row) for row in rows], _HEADS, _NUMBERS))))
    else:
        terminal.say(f"{told.paths.name} has no task that is {wanted}; it has {len(told.story.tasks):,} tasks")


def task_number(told: RunView, task_id: str) -> int:
    """The number of the task with this id. UserError, with what was likely meant, where there is none."""
    workflow = told.runnable.workflow
    if task_id not in workflow.ids:
        raise no_task(workflow, task_id, told.paths.name)
    return workflow.number(task_id)


def no_task(workflow: Workflow, name: str, run: str) -> UserError:
    """The error for a task that a run does not have, with what was likely meant."""
    near = difflib.get_close_matches(name[:200], workflow.ids[:10_000], n=1)
    hint = f"did you mean {near[0]}?" if near else "windrow tasks lists them"
    return UserError(f"{run} has no task {name[:80]!r}; {hint}")


def _cells(row: TaskView) -> tuple[str, ...]:
    job, ran_s, how = row.job, row.ran_s, row.exit
    return (
        row.task,
        row.state,
        "" if job is None else str(job),
        str(row.attempts or ""),
        clock(row.started_s),
        "" if ran_s is None else span(ran_s),
        str(how) if how is not None else f"signal {row.signal}" if row.signal else "",
        row.why,
    )


def aligned(rows: Sequence[tuple[str, ...]], heads: tuple[str, ...], numbers: Collection[str]) -> Iterator[str]:
    """The rows under their heads. By hand: a library's table takes seconds for tens of thousands of rows."""
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
    for row in (heads, *rows):
        cells = (
            cell.rjust(width) if head in numbers else cell.ljust(width)
            for head, cell, width in zip(heads, row, widths, strict=True)
        )
        yield "  ".join(cells).rstrip()
