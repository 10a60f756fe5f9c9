"""`windrow resume`: continue a run that was interrupted, stopped, or failed, or whose workflow file has changed."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from windrow.cli import options, terminal
from windrow.cli.arguments import size_bytes
from windrow.model.wording import count, listed

if TYPE_CHECKING:
    from windrow.app.runs import RunView


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_run(parser)
    add = options.adder(parser)
    add("--detach", action="store_true", help="return at once; the run continues in the background")
    add("--space SIZE", size_bytes, help="a new limit, for a run that was started with --space and has no jobs")
    options.add_json(parser, "at the end instead of progress")


def run(args: argparse.Namespace) -> int:
    """Find it and stay with it."""
    from windrow.app.runs import RunView, find_own_run

    told = RunView(find_own_run(args.run))
    if args.space is not None:
        from windrow.app.space import change_space

        change_space(told, args.space)
    return go_on(told, detached=args.detach, as_json=args.json)


def go_on(told: RunView, *, detached: bool, as_json: bool) -> int:
    """Continue the run, as it is or, where its file has changed, by a new one."""
    from windrow.app.continuing import continued_run, refuse_continued, refuse_moved, standing
    from windrow.cli.commands.run import PATIENCE_S, detach, stay
    from windrow.report.run.explanation import change_lines
    from windrow.report.run.view import status_view

    refuse_continued(told)
    refuse_moved(told)
    paths = told.paths
    if told.holder is None:
        now = standing(told)
        if now.unread:
            terminal.say(f"{now.unread}; {paths.name} continues with the workflow as it was started")
        if now.is_up_to_date:
            terminal.say(f"{paths.name} is complete and up to date; nothing to do")
            if as_json:
                terminal.print_json(status_view(told))
            return 0
        if not now.is_same:
            assert now.changes is not None
            for line in change_lines(now.changes):
                terminal.say(line)
            kept = len(now.changes.kept)
            stays = f"{count(kept, 'task')} {'stays' if kept == 1 else 'stay'} finished"
            terminal.say(f"{stays}, {now.changes.to_run:,} to run")
            paths = continued_run(told, wait_s=PATIENCE_S)
            terminal.say(f"{paths.name} continues {told.paths.name}")
    told.close()
    return detach(paths, as_json=as_json) if detached else stay(paths, as_json=as_json)


def choose(told: RunView, *, as_json: bool) -> int:
    """There is a run of this workflow already: say what each choice would do, and do nothing."""
    from windrow.app.continuing import standing
    from windrow.report.run.explanation import change_lines, unfinished_line

    now, name = standing(told), told.paths.name
    workflow = told.runnable.workflow if now.changes is None else now.changes.runnable.workflow
    total, afresh = len(workflow), len(workflow) - told.story.added
    if as_json:
        about = {"run": name, "state": told.state, "is_up_to_date": now.is_up_to_date}
        terminal.print_json({**about, "tasks_to_run": {"resume": now.to_run, "again": afresh}})
    if now.is_up_to_date:
        again = f"--again runs all {afresh:,} tasks again"
        terminal.say(f"{name} of this workflow is complete and up to date; nothing to do ({again})")
        return 0
    if not as_json:
        reasons = change_lines(now.changes) if now.changes is not None and not now.is_same else []
        if now.is_same and (unfinished := unfinished_line(told.story)):
            reasons.append(unfinished)
        if now.lost:
            reasons.append(f"{listed([workflow.ids[one.maker] for one in now.lost])} (output gone)")
        terminal.say(f"windrow: error: there is already a run of this workflow: {name}, {told.state}; choose one:")
        of_all = f"{now.to_run:,} of {count(total, 'task')}"
        terminal.say(f"  --resume   continues it and runs {of_all}: {'; '.join(reasons) or 'its settings changed'}")
        terminal.say(f"  --again    starts from the beginning and runs all {afresh:,}")
    return 2
