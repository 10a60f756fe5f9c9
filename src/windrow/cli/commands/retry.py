"""`windrow retry`: run chosen tasks of a run again, even if they have finished."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from windrow.cli import managing, options, terminal
from windrow.errors import UserError
from windrow.model.wording import count, listed

if TYPE_CHECKING:
    from windrow.app.runs import RunView


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "tasks", nargs="+", metavar="TASK", help="a task's id; * stands for any characters"
    )
    parser.add_argument(
        "--with-descendants", action="store_true", help="also run all tasks that depend on them"
    )
    options.add_run_option(parser)
    options.add_json(parser, "at the end instead of progress")


def run(args: argparse.Namespace) -> int:
    """Find the tasks; ask the run's manager, or manage it."""
    from windrow.app.continuing import run_to_change, standing
    from windrow.app.requests import ask_to_retry
    from windrow.app.task_names import chosen_tasks

    told = run_to_change(args.run)
    workflow = told.runnable.workflow
    paths = told.paths
    tasks = chosen_tasks(workflow, args.tasks, paths.name)
    if args.with_descendants:
        tasks = sorted({*tasks, *workflow.children.below(tasks)})
    makers = [ids for n in tasks if told.story.belonging_to(ids := workflow.ids[n])]
    if makers:
        return _replace(told, tasks, makers, as_json=args.json)
    if not standing(told).is_same:
        they_were = "runs tasks as they were (windrow resume applies changes)"
        terminal.say(f"the workflow file has changed; {paths.name} {they_were}")
    terminal.say(
        f"{paths.name} runs {count(len(tasks), 'task')} again: "
        f"{listed([workflow.ids[t] for t in tasks])}"
    )
    if told.holder is not None and ask_to_retry(told, tasks):
        terminal.say(
            f"{told.holder} manages it and has been notified; windrow status -f {paths.name} "
            "shows it"
        )
        if args.json:
            terminal.print_json(
                {"run": paths.name, "again": [workflow.ids[task] for task in tasks]}
            )
        return 0
    told.close()
    return managing.stay(paths, as_json=args.json, again=tasks)


def _replace(told: RunView, tasks: Sequence[int], makers: Sequence[str], *, as_json: bool) -> int:
    """Tasks have come of some of these: a new run, in which others will take their place."""
    from windrow.app.continuing import continued_run, standing
    from windrow.report.run.explanation import change_lines

    name = told.paths.name
    if told.holder is not None:
        raise UserError(
            f"tasks have come of {listed(makers)}, and would be replaced in a new run: wait for "
            f"{name}, or stop it (windrow cancel {name})"
        )
    again = [told.runnable.workflow.ids[task] for task in tasks]
    now = standing(told, again=again)
    if now.changes is None:
        raise UserError(f"{now.unread}; correct the workflow file first")
    for line in change_lines(now.changes):
        terminal.say(line)
    paths = continued_run(told, wait_s=managing.PATIENCE_S, again=again)
    terminal.say(f"{paths.name} continues {name}: it runs {listed(again)} again")
    told.close()
    return managing.stay(paths, as_json=as_json)
