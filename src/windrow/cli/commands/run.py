"""`windrow run`: execute a workflow on a queue."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from windrow.cli import managing, options, terminal
from windrow.cli.arguments import margin, node_count, number, positive, some_time_s, whole
from windrow.cli.usual import USUAL
from windrow.errors import UserError
from windrow.model import format_duration
from windrow.model.wording import count, listed

if TYPE_CHECKING:
    from windrow.app.facts import RunRequest
    from windrow.app.runs import RunView


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _add_order(parser)
    parser.set_defaults(takes_usual=USUAL)
    add = options.adder(parser)
    add("--profile NAME", help="take the options of [profiles.NAME] in windrow.toml")
    words = (
        "add the tasks of FILE to a run, live or finished; WORKFLOW is then the run "
        "(default: the latest)"
    )
    add(
        "-n --dry-run",
        action="store_true",
        help="show what would be submitted now; start and write nothing",
    )
    add("--detach", action="store_true", help="return at once; the run continues in the background")
    how = options.adder(parser.add_mutually_exclusive_group())
    how("--add FILE", help=words)
    words = "continue the latest run of this workflow, with the settings of that run"
    how("--resume", action="store_true", help=words)
    how(
        "--again",
        action="store_true",
        help="run every task again, even if there is a run of this workflow",
    )
    options.add_accept(parser)
    options.add_set(parser)
    add(
        "--notify HOW",
        default="",
        help="at the end: a command, with WINDROW_RUN and WINDROW_STATE set, or a mail address",
    )
    options.add_json(parser, "at the end instead of progress")


def _add_order(parser: argparse.ArgumentParser) -> None:
    """The options that say what to run, where and how."""
    options.add_runnable(parser, nargs="?")
    add = options.adder(parser)
    add(
        "--on SITE[,SITE...]",
        help=f"{options.ON}; {options.SEVERAL} (default: local)",
    )
    add("--strategy S", default="auto", help="how to cut (default: auto, that is foresight)")
    aims = ("makespan", "node-hours", "balanced", "cost")
    add(
        "--objective",
        default="makespan",
        choices=aims,
        help="what foresight aims at; cost: see price in windrow.toml",
    )
    add(
        "--deadline T", some_time_s, help="foresight: finish within this time of the start, e.g. 4h"
    )
    add(
        "--think N",
        whole(1, 1000),
        1,
        help="foresight: spend N times the planning effort on each decision",
    )
    add("--cap N", positive, 16, help="maximum number of jobs queued or running")
    add(
        "--margin F",
        margin,
        options.MARGIN,
        help="requested time as a multiple of the expected run",
    )
    add("--max-nodes N", node_count, help="maximum number of nodes per job (default: the queue's)")
    words = (
        "submit each job N times; the first attempt at a task to finish counts (takes up to "
        "N times the node time)"
    )
    add("--copies N", whole(1, 10), 1, help=words)
    options.add_copies(parser)
    words = (
        "delete files that tasks write and read once their last reader is done, unless they "
        "say keep: true"
    )
    add("--delete-intermediate", action="store_true", help=words)
    options.add_space(parser)
    chance = number(0.001, 0.999, what="a probability")
    add("--risk P", chance, 0.1, help="accepted chance that a learned run time is too short")
    add("--guess T", some_time_s, "1m", help="run time of tasks about which nothing is known")


def _order_of(args: argparse.Namespace) -> RunRequest:
    """What the user wants."""
    from windrow.app.facts import RunRequest

    names = [
        "strategy",
        "objective",
        "think",
        "cap",
        "margin",
        "max_nodes",
        "copies",
        "risk",
        "delete_intermediate",
    ]
    if args.deadline is None:
        deadline_s = None
    else:
        deadline_s = int(args.deadline)
    wishes = options.on_of("local" if args.on is None else args.on) | {
        name: getattr(args, name) for name in (*names, *options.COPIES, *options.SPACE)
    }
    return RunRequest(
        Path(args.workflow),
        deadline_s=deadline_s,
        guess_s=args.guess,
        values=dict(args.set or ()),
        notify=args.notify,
        **wishes,
    )


def run(args: argparse.Namespace) -> int:
    """Start it and stay with it."""
    from windrow.app.settings import read_once

    with read_once():
        return _run(args)


def _run(args: argparse.Namespace) -> int:
    from windrow.app.execute import prepare, start_run
    from windrow.app.runs import latest_of, none_to_resume, own_root, refuse_foreign_root
    from windrow.app.standing import notes_on_standing

    if args.add is not None:
        return _add_tasks(args)
    if args.accept and not args.resume:
        raise UserError("--accept says which results a run keeps that is continued; add --resume")
    if args.once is not None:
        _take_once(args)
    if args.workflow is None:
        raise UserError("the following arguments are required: WORKFLOW; see windrow run --help")
    refuse_foreign_root(own_root())
    earlier = latest_of(Path(args.workflow), own_root())
    if earlier is None and args.resume:
        raise none_to_resume(Path(args.workflow), own_root())
    if earlier is not None and args.set:
        earlier.values = dict(args.set)
        earlier.refresh()
    if args.dry_run:
        return _show_plan(args, earlier)
    if earlier is not None and not args.again:
        from windrow.cli import continuation

        _check_options(_order_of(args))
        _say_where(earlier, args.on)
        if not args.resume:
            return continuation.choose(earlier, as_json=args.json)
        return continuation.go_on(
            earlier, detached=args.detach, as_json=args.json, accept=args.accept or ()
        )
    with terminal.waiting(f"reading {args.workflow}"):
        prepared = prepare(_order_of(args))
    standing = notes_on_standing(prepared.runnable, own_root(), prepared.order.space)
    for note in (*prepared.runnable.workflow.repairs(), *prepared.notes, *standing):
        terminal.say(note)
    if prepared.guesses and not args.json:
        if prepared.guesses == 1:
            who = "1 task has"
        else:
            who = f"{prepared.guesses:,} tasks have"
        guess = f"{format_duration(prepared.order.guess_s)} is guessed for each (--guess)"
        terminal.say(f"{who} no run time, and none is known from earlier runs: {guess}")
    with terminal.waiting("writing the run"):
        paths = start_run(prepared)
    if args.detach:
        return managing.detach(paths, as_json=args.json)
    return managing.stay(paths, as_json=args.json, prepared=prepared)


def _take_once(args: argparse.Namespace) -> None:
    """A command, or one for each of some values: they run again each time that they are typed."""
    from windrow.app.once import write_workflow_of

    if args.workflow is not None:
        raise UserError(f"a workflow ({args.workflow}) and a command after --; give one of them")
    args.workflow = str(write_workflow_of(args.once))
    args.again = not args.resume


def _check_options(order: RunRequest) -> None:
    """UserError if a run could not be started so, even if there is nothing to do."""
    from windrow.app.execute import strategy_of
    from windrow.app.queues import open_queue

    strategy_of(order)
    for name in (order.on, *order.also):
        open_queue(name)


def _say_where(earlier: RunView, asked: str | None) -> None:
    """Say so if the user asks for other sites than those of the run that there is."""

    ran_on = earlier.facts.on
    if asked is not None and asked.replace(" ", "") != ran_on:
        terminal.say(
            f"{earlier.paths.name} is a run on {ran_on}; --on {asked} counts for a new run only "
            "(--again)"
        )


def _show_plan(args: argparse.Namespace, earlier: RunView | None) -> int:
    """What would be submitted now."""
    from windrow.cli import continuation, queue_plan

    if earlier is not None and args.resume:
        continuation.show_continuation(earlier, as_json=args.json, accept=args.accept or ())
        return 0
    if earlier is not None and not args.again:
        terminal.say(
            f"{earlier.paths.name} is a run of this workflow; this is the plan with --again, not "
            "with --resume"
        )
    queue_plan.show_order(_order_of(args), as_json=args.json)
    return 0


def _add_tasks(args: argparse.Namespace) -> int:
    """Add tasks to a run; its manager continues it, or this process if it has none."""
    from windrow.app.adding import add_tasks, prepare_addition
    from windrow.app.continuing import run_to_change

    told = run_to_change(args.workflow)
    added = prepare_addition(told, Path(args.add), guess_s=args.guess, risk=args.risk)
    name = told.paths.name
    ids = [task.id for task in added.added.tasks]
    is_there = told.story.addition(added.id) is not None
    has_manager = not args.dry_run and add_tasks(told, added, wait_s=managing.PATIENCE_S)
    if is_there:
        how = "was already added to"
    elif args.dry_run:
        how = "would be added to"
    else:
        how = "was added to"
    terminal.say(f"{args.add} {how} {name}: {count(len(ids), 'task')} ({listed(ids)})")
    if has_manager:
        terminal.say(
            f"{told.holder} manages it and has been notified; windrow status -f {name} shows it"
        )
    if args.json and (has_manager or args.dry_run):
        terminal.print_json(
            {
                "run": name,
                "state": told.state,
                "is_added": not args.dry_run or is_there,
                "tasks": ids,
            }
        )
    told.close()
    if has_manager or args.dry_run:
        return 0
    if args.detach:
        return managing.detach(told.paths, as_json=args.json, retry=False)
    return managing.stay(told.paths, as_json=args.json, retry=False)
