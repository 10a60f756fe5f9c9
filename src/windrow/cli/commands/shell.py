"""`windrow shell`: where a task runs, with what environment, and by which command; a shell
there."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windrow.cli import options, terminal
from windrow.errors import UserError

if TYPE_CHECKING:
    from windrow.app.runs import RunView


_OWN = "\0"  # the value of -c if none is given


@dataclass(frozen=True)
class _Place:
    """Where a task runs, what is added to the environment, and what is run."""

    task: str
    folder: str
    env: Mapping[str, str]
    command: tuple[str, ...]

    @property
    def line(self) -> str:
        """The command, to be pasted."""
        return shlex.join(self.command)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", help="the task's id, as windrow tasks lists it")
    options.add_of_run(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "-c",
        nargs="?",
        const=_OWN,
        metavar="COMMAND",
        help="run this (default: the task's command)",
    )
    what.add_argument(
        "--print", action="store_true", help="only show folder, environment and command"
    )
    what.add_argument("--json", action="store_true", help="print them as one JSON object")


def run(args: argparse.Namespace) -> int:
    """Show the place; go there."""
    there = _place(options.run_of(args), args.task)
    if args.json:
        value = {
            "task": there.task,
            "folder": there.folder,
            "env": dict(there.env),
            "command": list(there.command),
        }
        terminal.print_json({**value, "line": there.line})
        return 0
    if args.print:
        print(f"cd {shlex.quote(there.folder)}")
        print(
            "".join(f"export {name}={shlex.quote(value)}\n" for name, value in there.env.items())
            + there.line
        )
        return 0
    if args.c is None:
        terminal.say(
            f"{there.task} runs in {there.folder} with {', '.join(there.env)}; its command:"
        )
        terminal.say(there.line)
    shell = os.environ.get("SHELL") or "/bin/sh"
    if args.c is None:
        command = [shell]
    elif args.c == _OWN:
        command = list(there.command)
    else:
        command = [shell, "-c", args.c]
    return _go(there, command)


def _place(told: RunView, task_id: str) -> _Place:
    from windrow.agent.order import task_env
    from windrow.app.task_names import task_number

    number = task_number(told.runnable.workflow, task_id, told.paths.name)
    workflow = told.runnable.workflow
    step = told.runnable.steps[number]
    attempts = told.story.tasks[number].attempts
    is_whole = bool(workflow.nodes[number])
    hosts = told.story.jobs[attempts[-1].job].hosts if attempts and is_whole else ()
    need = workflow.task(number).need
    if is_whole:
        need = need._replace(cores=told.facts.node_cores)
    env = task_env(
        dict(step.env),
        run=told.paths.name,
        task=task_id,
        attempt=max(1, len(attempts)),
        need=need,
        hosts=hosts,
    )
    return _Place(task_id, step.workdir, env, step.command)


def _go(there: _Place, command: list[str]) -> int:
    """Become that program; never returns if it can be started."""
    try:
        os.chdir(there.folder)
    except OSError as error:
        raise UserError(
            f"{there.folder}: {error.strerror}; the task's folder does not exist"
        ) from None
    sys.stdout.flush()
    try:
        os.execvpe(command[0], command, {**os.environ, **there.env})
    except OSError as error:
        raise UserError(
            f"cannot start {command[0]!r}: {error.strerror}; see windrow shell --print"
        ) from None
