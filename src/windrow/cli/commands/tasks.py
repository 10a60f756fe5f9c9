"""`windrow tasks`: every task of a run, one line each."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from windrow.cli import options, terminal
from windrow.cli.columns import aligned
from windrow.cli.run_screen import clock, span
from windrow.errors import printable
from windrow.story.states import TaskState

if TYPE_CHECKING:
    from windrow.report.run.view import TaskView


_OLD_NAMES: dict[str, str] = {"in-a-job": TaskState.SUBMITTED, "left": TaskState.PENDING}
"""What `--state` was called with before states had the names that people know."""
_HEADS = ("task", "state", "job", "attempts", "started", "ran", "exit", "why")
_NUMBERS = ("job", "attempts", "ran", "exit")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    for state in ("failed", "running"):
        which.add_argument(
            f"--{state}",
            dest="state",
            action="store_const",
            const=state,
            help=f"only the {state} ones",
        )
    which.add_argument(
        "--state",
        type=_state,
        metavar="S",
        help=f"only those in this state: {', '.join(TaskState)}",
    )
    options.add_of_run(parser)
    options.add_json(parser)


def _state(text: str) -> str:
    """A state of tasks by its name."""
    name = _OLD_NAMES.get(text, text)
    if name not in list(TaskState):
        raise argparse.ArgumentTypeError(
            f"there is no state {text!r}; the states are {', '.join(TaskState)}"
        )
    return str(name)


def run(args: argparse.Namespace) -> None:
    """Read and show."""
    from windrow.report.run.view import task_views

    told = options.run_of(args)
    wanted = args.state
    rows = [row for row in task_views(told) if wanted in (None, row.state)]
    if args.json:
        terminal.print_json({"run": told.paths.name, "state": told.state, "tasks": rows})
    elif rows:
        print(printable("\n".join(aligned([_cells(row) for row in rows], _HEADS, _NUMBERS))))
    else:
        terminal.say(
            f"{told.paths.name} has no task that is {wanted}; it has {len(told.story.tasks):,} "
            "tasks"
        )


def _cells(row: TaskView) -> tuple[str, ...]:
    job = row.job
    ran_s = row.ran_s
    how = ""
    if row.exit is not None:
        how = str(row.exit)
    elif row.signal:
        how = f"signal {row.signal}"
    return (
        row.task,
        row.state,
        "" if job is None else str(job),
        str(row.attempts or ""),
        clock(row.started_s),
        "" if ran_s is None else span(ran_s),
        how,
        row.why,
    )
