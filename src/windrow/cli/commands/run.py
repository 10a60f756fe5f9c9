"""`windrow run`: execute a workflow on a queue."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from windrow.cli import options, terminal
from windrow.cli.arguments import margin, node_count, number, positive, some_time_s, whole
from windrow.errors import OutsideError, UserError
from windrow.model import format_duration
from windrow.model.wording import count, listed

if TYPE_CHECKING:
    from windrow.app.execute import RunRequest
    from windrow.app.runs import RunPaths, RunView
    from windrow.manager.lost_files import LostFile


MARGIN = 1.2
"""How much longer than its tasks should need a real job asks for: estimates err."""
_BIRTH_S = 30.0
_SHOWN_LOST = 5
PATIENCE_S = 15.0  # a killed manager leaves its last command to the queue behind, which holds the lock


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _add_order(parser)
    add = options.adder(parser)
    words = "add the tasks of FILE to a run, live or finished; WORKFLOW is then the run (default: the latest)"
    add("-n --dry-run", action="store_true", help="show what would be submitted now; start and write nothing")
    add("--detach", action="store_true", help="return at once; the run continues in the background")
    how = options.adder(parser.add_mutually_exclusive_group())
    how("--add FILE", help=words)
    words = "continue the latest run of this workflow, with the settings of that run"
    how("--resume", action="store_true", help=words)
    how("--again", action="store_true", help="run every task again, even if there is a run of this workflow")
    options.add_json(parser, "at the end instead of progress")


def _add_order(parser: argparse.ArgumentParser) -> None:
    """The options that say what to run, where and how."""
    options.add_runnable(parser, nargs="?")
    add = options.adder(parser)
    add("--on SITE[,SITE...]", default="local", help=f"{options.ON}; {options.SEVERAL}")
    add("--strategy S", default="auto", help="how to cut (default: auto, that is foresight)")
    aims = ("makespan", "node-hours", "balanced", "cost")
    add("--objective", default="makespan", choices=aims, help="what foresight aims at; cost: see price in windrow.toml")
    add("--deadline T", some_time_s, help="foresight: finish within this time of the start, e.g. 4h")
    add("--think N", whole(1, 1000), 1, help="foresight: spend N times the planning effort on each decision")
    add("--cap N", positive, 16, help="maximum number of jobs queued or running")
    add("--margin F", margin, MARGIN, help="requested time as a multiple of the expected run")
    add("--max-nodes N", node_count, help="maximum number of nodes per job (default: the queue's)")
    words = "submit each job N times; the first attempt at a task to finish counts (takes up to N times the node time)"
    add("--copies N", whole(1, 10), 1, help=words)
    options.add_copies(parser)
    words = "delete files that tasks write and read once their last reader is done, unless they say keep: true"
    add("--delete-intermediate", action="store_true", help=words)
    options.add_space(parser)
    chance = number(0.001, 0.999, what="a probability")
    add("--risk P", chance, 0.1, help="accepted chance that a learned run time is too short")
    add("--guess T", some_time_s, "1m", help="run time of tasks about which nothing is known")


def _order_of(args: argparse.Namespace) -> RunRequest:
    """What the user wants."""
    from windrow.app.execute import RunRequest

    names = ["strategy", "objective", "think", "cap", "margin", "max_nodes", "copies", "risk", "delete_intermediate"]
    deadline_s = None if args.deadline is None else int(args.deadline)
    wishes = options.on_of(args.on) | {name: getattr(args, name) for name in (*names, *options.COPIES, *options.SPACE)}
    return RunRequest(Path(args.workflow), deadline_s=deadline_s, guess_s=args.guess, **wishes)


def run(args: argparse.Namespace) -> int:
    """Start it and stay with it."""
    from windrow.app.execute import prepare, start_run
    from windrow.app.runs import ROOT, latest_of

    if args.add is not None:
        return _add_tasks(args)
    if args.workflow is None:
        raise UserError("the following arguments are required: WORKFLOW; see windrow run --help")
    if args.dry_run:
        from windrow.cli.commands.plan import show_order

        show_order(_order_of(args), as_json=args.json)
        return 0
    earlier = latest_of(Path(args.workflow), ROOT)
    if earlier is None and args.resume:
        raise UserError(f"there is no run of {args.workflow} here to resume; leave --resume out")
    if earlier is not None and not args.again:
        from windrow.cli.commands.resume import choose, go_on

        if not args.resume:
            return choose(earlier, as_json=args.json)
        return go_on(earlier, detached=args.detach, as_json=args.json)
    with terminal.waiting(f"reading {args.workflow}"):
        prepared = prepare(_order_of(args))
    for note in (*prepared.runnable.workflow.repairs(), *prepared.notes):
        terminal.say(note)
    if prepared.guesses and not args.json:
        who = "1 task has" if prepared.guesses == 1 else f"{prepared.guesses:,} tasks have"
        guess = f"{format_duration(prepared.order.guess_s)} is guessed for each (--guess)"
        terminal.say(f"{who} no run time, and none is known from earlier runs: {guess}")
    with terminal.waiting("writing the run"):
        paths = start_run(prepared)
    return detach(paths, as_json=args.json) if args.detach else stay(paths, as_json=args.json)


def _add_tasks(args: argparse.Namespace) -> int:
    """Add tasks to a run; its manager continues it, or this process if it has none."""
    from windrow.app.adding import add_tasks, prepare_addition
    from windrow.app.continuing import run_to_change

    told = run_to_change(args.workflow)
    added, name = prepare_addition(told, Path(args.add), guess_s=args.guess, risk=args.risk), told.paths.name
    ids, is_there = [task.id for task in added.added.tasks], told.story.addition(added.id) is not None
    has_manager = not args.dry_run and add_tasks(told, added, wait_s=PATIENCE_S)
    how = "was already added to" if is_there else "would be added to" if args.dry_run else "was added to"
    terminal.say(f"{args.add} {how} {name}: {count(len(ids), 'task')} ({listed(ids)})")
    if has_manager:
        terminal.say(f"{told.holder} manages it and has been notified; windrow watch {name} shows it")
    if args.json and (has_manager or args.dry_run):
        terminal.print_json({"run": name, "state": told.state, "is_added": not args.dry_run or is_there, "tasks": ids})
    told.close()
    if has_manager or args.dry_run:
        return 0
    return detach(told.paths, as_json=args.json) if args.detach else stay(told.paths, as_json=args.json)


def stay(paths: RunPaths, *, as_json: bool, again: Sequence[int] = ()) -> int:
    """Manage the run to its end in this process. `again`: tasks that are to run though they have finished."""
    from windrow.app.execute import drive, managed
    from windrow.app.runs import RunView
    from windrow.cli import progress_lines
    from windrow.records.lock import holder_of

    if (holder := holder_of(paths.lock)) is not None:
        terminal.say(f"{paths.name} is managed by {holder}; waiting up to {PATIENCE_S:.0f} s for that to end ...")
    try:
        with ExitStack() as planning:
            if not sys.stdout.isatty():  # on a terminal there is the picture
                planning.enter_context(terminal.waiting("planning"))
            told = RunView(paths)
            # The picture is the outer one: what it shows last is the run as it is when it has no manager any more.
            with (
                progress_lines.showing(told, quiet=as_json, outlives_reader=True) as show,
                managed(paths, wait_s=PATIENCE_S) as manager,
            ):
                lost = manager.begin(again)
                planning.close()
                _say_what_runs_again(told, lost)
                drive(manager, show, paths.stop)
    except KeyboardInterrupt:
        ways = f"windrow resume {paths.name} continues, windrow cancel {paths.name} stops them"
        terminal.say(f"jobs in the queue keep running; {ways}")
        raise
    told.refresh()
    if as_json:
        from windrow.report.run.view import status_view

        terminal.print_json(status_view(told))
    elif told.story.is_complete:
        terminal.say("for an HTML report: windrow report")
    return 0 if told.story.is_complete else 1


def _say_what_runs_again(told: RunView, lost: Sequence[LostFile]) -> None:
    if not lost:
        return
    from windrow.report.run.explanation import runs_again

    for one in lost[:_SHOWN_LOST]:
        terminal.say(runs_again(told.runnable.workflow, one))
    if len(lost) > _SHOWN_LOST:
        terminal.say(f"and {len(lost) - _SHOWN_LOST:,} more tasks run again, because their outputs are gone")


def detach(paths: RunPaths, *, as_json: bool) -> int:
    """Let a process of its own manage the run."""
    with paths.log.open("ab") as log, Path(os.devnull).open("rb") as nothing:
        if os.fork() == 0:
            os.setsid()
            os.dup2(nothing.fileno(), 0)
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
            command = [sys.executable, "-P", "-m", "windrow.cli.main", "resume", str(paths.folder.path)]
            os.execv(sys.executable, command)
    _wait_for_manager(paths)
    if as_json:
        terminal.print_json({"run": paths.name, "folder": str(paths.folder.path), "state": "detached"})
    else:
        terminal.say(f"{paths.name} runs in the background; windrow watch shows it, windrow cancel stops it")
    return 0


def _wait_for_manager(paths: RunPaths) -> None:
    """Return when the new process manages the run, so that what the user types next finds it running."""
    from windrow.app.runs import RunView
    from windrow.records.lock import holder_of

    until = time.monotonic() + _BIRTH_S
    while holder_of(paths.lock) is None and not RunView(paths).story.is_complete:
        if time.monotonic() > until:
            raise OutsideError(f"the run's manager did not start; see {paths.log}")
        time.sleep(0.05)
