"""`windrow priority`: let tasks of a run go before others, or after them, while it runs."""

from __future__ import annotations

import argparse

from windrow.cli import options, terminal
from windrow.cli.arguments import whole
from windrow.errors import UserError
from windrow.model.rules import PRIORITY_MAX
from windrow.model.wording import listed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = "the highest goes first; tasks that say nothing have 0"
    priority = whole(-PRIORITY_MAX, PRIORITY_MAX)
    parser.add_argument("priority", type=priority, metavar="N", help=words)
    words = "a task's id, or a kind of tasks; * stands for any characters"
    parser.add_argument("tasks", nargs="+", metavar="TASK", help=words)
    options.add_run_option(parser)
    options.add_json(parser)


def run(args: argparse.Namespace) -> None:
    """Ask the run's manager."""
    from windrow.app.continuing import run_to_change
    from windrow.app.new_tasks import Steering
    from windrow.app.task_names import tasks_or_kinds

    told = run_to_change(args.run)
    name = told.paths.name
    workflow = told.runnable.workflow
    chosen = tasks_or_kinds(workflow, args.tasks, name)
    names = [workflow.ids[n] for n in chosen if not told.story.tasks[n].state.is_out]
    if not names:
        raise UserError(f"{listed([workflow.ids[n] for n in chosen])}: over; nothing to change")
    if told.holder is None:
        raise UserError(f"{name} is not managed now; windrow resume {name} first")
    Steering(told.paths, told.facts).rank(names, args.priority)
    terminal.say(f"priority {args.priority}: {listed(names)}")
    if args.json:
        terminal.print_json({"run": name, "priority": args.priority, "tasks": names})
