"""`windrow cancel`: stop a run and take its jobs out of the queue; or end some of its tasks."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from windrow.cli import options, terminal
from windrow.errors import UserError
from windrow.model.wording import count, listed
from windrow.story.states import TaskState

if TYPE_CHECKING:
    from windrow.app.runs import RunView


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_run(parser)
    words = "end only these tasks; * stands for any characters"
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=words)
    options.add_json(parser, "at the end")


def _cancel_tasks(args: argparse.Namespace) -> None:
    from windrow.app.continuing import run_to_change
    from windrow.app.new_tasks import Steering
    from windrow.app.task_names import chosen_tasks

    told = run_to_change(args.run)
    workflow = told.runnable.workflow
    chosen = chosen_tasks(workflow, args.tasks, told.paths.name)
    open_tasks = [n for n in chosen if told.story.tasks[n].state is not TaskState.FINISHED]
    names = [workflow.ids[number] for number in open_tasks]
    if not names:
        terminal.say(f"{listed([workflow.ids[n] for n in chosen])} finished; nothing to cancel")
        _tell(args, told, names)
        return
    below = [n for n in workflow.children.below(open_tasks) if n not in open_tasks]
    if told.holder is None and told.story.has_open:
        fix = f"windrow resume {told.paths.name} first, or cancel all of it"
        raise UserError(f"{told.paths.name} is not managed now; {fix}")
    Steering(told.paths, told.facts).cancel(names)
    more = f"; {count(len(below), 'task')} that need them will not run" if below else ""
    terminal.say(f"cancelled: {listed(names)}{more}")
    _tell(args, told, names)


def _tell(args: argparse.Namespace, told: RunView, names: Sequence[str] = ()) -> None:
    if args.json:
        found = {"run": told.paths.name, "state": told.state}
        terminal.print_json({**found, "cancelled": list(names)})


def run(args: argparse.Namespace) -> None:
    """Ask the manager to stop the run, or stop it here if it has no manager."""
    from windrow.app.runs import RunView, find_own_run
    from windrow.app.stopping import stop_run

    if args.tasks:
        _cancel_tasks(args)
        return
    paths = find_own_run(args.run)
    told = RunView(paths)
    if not stop_run(told):
        terminal.say(f"{paths.name} is {told.state}; nothing to stop")
        _tell(args, told)
        return
    done = f"{told.story.count(TaskState.FINISHED)} of {len(told.story.tasks)} tasks are done"
    if told.story.is_stopped and not told.story.is_complete:
        terminal.say(f"{paths.name} is stopped: {done}; windrow resume {paths.name} continues it")
    else:
        terminal.say(f"{paths.name} ended before it could be stopped: it is {told.state}, {done}")
    _tell(args, told)
