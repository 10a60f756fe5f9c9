"""`windrow retry`: run chosen tasks of a run again, even if they have finished."""

from __future__ import annotations

import argparse
import fnmatch
from collections.abc import Sequence
from typing import TYPE_CHECKING

from windrow.cli import options, terminal
from windrow.cli.commands.tasks import no_task
from windrow.errors import UserError
from windrow.manager.states import TaskState
from windrow.model.wording import count, listed

if TYPE_CHECKING:
    from windrow.app.runs import RunView
    from windrow.model import Workflow


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tasks", nargs="+", metavar="TASK", help="a task's id; * stands for any characters")
    parser.add_argument("--with-descendants", action="store_true", help="also run all tasks that depend on them")
    options.add_of_run(parser)
    options.add_json(parser, "at the end instead of progress")


def run(args: argparse.Namespace) -> int:
    """Find the tasks; ask the run's manager, or manage it."""
    from windrow.app.continuing import run_to_change, standing
    from windrow.cli.commands.run import stay

    told = run_to_change(args.run)
    workflow, paths = told.runnable.workflow, told.paths
    tasks = _chosen(workflow, args.tasks, paths.name)
    if args.with_descendants:
        tasks = sorted({*tasks, *workflow.children.below(tasks)})
    if not standing(told).is_same:
        they_were = "runs tasks as they were (windrow resume applies changes)"
        terminal.say(f"the workflow file has changed; {paths.name} {they_were}")
    terminal.say(f"{paths.name} runs {count(len(tasks), 'task')} again: {listed([workflow.ids[t] for t in tasks])}")
    if told.holder is not None and _was_taken(told, tasks):
        terminal.say(f"{told.holder} manages it and has been notified; windrow watch {paths.name} shows it")
        if args.json:
            terminal.print_json({"run": paths.name, "again": [workflow.ids[task] for task in tasks]})
        return 0
    told.close()
    return stay(paths, as_json=args.json, again=tasks)


def _chosen(workflow: Workflow, names: Sequence[str], run: str) -> list[int]:
    """The tasks of these names and patterns, by number. UserError where there is no such task."""
    found: set[int] = set()
    for name in names:
        if name in workflow.ids:
            found.add(workflow.number(name))
            continue
        matching = [workflow.number(task) for task in workflow.ids if "*" in name and fnmatch.fnmatchcase(task, name)]
        if not matching:
            raise no_task(workflow, name, run)
        found.update(matching)
    return sorted(found)


def _was_taken(told: RunView, tasks: Sequence[int]) -> bool:
    """Ask the manager of the run. Returns whether the request was taken before the manager left."""
    from windrow.app.requests import ask_to_retry

    workflow, states = told.runnable.workflow, [task.state for task in told.story.tasks]
    in_a_job = (TaskState.SUBMITTED, TaskState.RUNNING)
    if busy := [task for task in workflow.children.below(tasks) if states[task] in in_a_job]:
        raise UserError(
            f"task {workflow.ids[min(busy)]} depends on what is to run again, and is already in a job; "
            f"wait for it, or stop the run first (windrow cancel {told.paths.name})"
        )
    return ask_to_retry(told, [workflow.ids[task] for task in tasks])
