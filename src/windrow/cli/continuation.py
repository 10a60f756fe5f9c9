"""What becomes of a run that there is already: it continues, or the user chooses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.cli import managing, terminal
from windrow.errors import UserError
from windrow.model.wording import count, listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windrow.app.continuing import Standing
    from windrow.app.runs import RunView
    from windrow.model import Workflow


def go_on(told: RunView, *, detached: bool, as_json: bool, accept: Sequence[str] = ()) -> int:
    """Continue the run, as it is or, if its file has changed, by a new one."""
    from windrow.app.continuing import continued_run, refuse_continued, refuse_moved, standing
    from windrow.report.run.explanation import change_lines
    from windrow.report.run.view import status_view

    refuse_continued(told)
    paths = told.paths
    if told.holder is None:
        now = standing(told, accept)
        if now.unread:
            refuse_moved(told)
            terminal.say(
                f"{now.unread}; {paths.name} continues with the workflow as it was started"
            )
        if now.is_up_to_date:
            terminal.say(f"{paths.name} is complete and up to date; nothing to do")
            if as_json:
                terminal.print_json(status_view(told))
            return 0
        if not now.is_same:
            assert now.changes is not None
            for line in change_lines(now.changes):
                terminal.say(line)
            if now.is_moved:
                terminal.say(f"{paths.name} ran in another folder; its results count here")
            terminal.say(_what_stays(len(now.changes.kept), now.changes.to_run))
            paths = continued_run(told, wait_s=managing.PATIENCE_S, accept=accept)
            terminal.say(f"{paths.name} continues {told.paths.name}")
    told.close()
    if detached:
        return managing.detach(paths, as_json=as_json)
    return managing.stay(paths, as_json=as_json)


def _what_stays(kept: int, to_run: int) -> str:
    return f"{count(kept, 'task')} {'stays' if kept == 1 else 'stay'} finished, {to_run:,} to run"


def show_continuation(told: RunView, *, as_json: bool, accept: Sequence[str] = ()) -> None:
    """What `go_on` would do, and submit now. Nothing is written or submitted."""
    from windrow.app.continuing import plan_to_continue, standing
    from windrow.cli.queue_plan import show_prepared
    from windrow.report.run.explanation import change_lines
    from windrow.report.run.view import status_view

    now = standing(told, accept)
    name = told.paths.name
    if now.unread:
        terminal.say(f"{now.unread}; {name} would continue with the workflow as it was started")
    if now.is_up_to_date:
        terminal.say(f"{name} is complete and up to date; nothing to do")
        if as_json:
            terminal.print_json(status_view(told))
        return
    if now.changes is not None and not now.is_same:
        for line in change_lines(now.changes):
            terminal.say(line)
    with terminal.waiting("reading the run"):
        prepared, before = plan_to_continue(told, now)
    kept = len(prepared.runnable.workflow) - now.to_run
    terminal.say(_what_stays(kept, now.to_run))
    show_prepared(
        prepared,
        before,
        as_json=as_json,
        more={"run": name, "finished": kept, "to_run": now.to_run},
    )


def choose(told: RunView, *, as_json: bool) -> int:
    """There is a run of this workflow already: say what each choice would do, and do nothing."""
    from windrow.app.continuing import standing

    now = standing(told)
    name = told.paths.name
    if now.unread:
        raise UserError(f"{now.unread}; nothing was started")
    workflow = now.changes.runnable.workflow if now.changes else told.runnable.workflow
    afresh = len(workflow) - sum(one.count for one in now.added)
    if as_json:
        about = {"run": name, "state": told.state, "is_up_to_date": now.is_up_to_date}
        terminal.print_json({**about, "tasks_to_run": {"resume": now.to_run, "again": afresh}})
    if now.is_up_to_date:
        again = f"--again runs all {afresh:,} tasks again"
        terminal.say(f"{name} of this workflow is complete and up to date; nothing to do ({again})")
        return 0
    if not as_json:
        otherwise = "the project was moved" if now.is_moved else "its settings changed"
        reasons = "; ".join(_why_again(told, now, workflow)) or otherwise
        of_all = f"{now.to_run:,} of {count(len(workflow), 'task')}"
        terminal.say(
            f"windrow: error: there is already a run of this workflow: {name}, {told.state}; "
            "choose one:"
        )
        terminal.say(f"  --resume   continues it and runs {of_all}: {reasons}")
        terminal.say(f"  --again    starts from the beginning and runs all {afresh:,}")
    return 2


def _why_again(told: RunView, now: Standing, workflow: Workflow) -> list[str]:
    """Why tasks run if the run is continued."""
    from windrow.report.run.explanation import change_lines, unfinished_line

    reasons = []
    if now.changes is not None and not now.is_same:
        reasons = change_lines(now.changes)
    if now.is_same and (unfinished := unfinished_line(told.story)):
        reasons.append(unfinished)
    if now.lost:
        reasons.append(f"{listed([workflow.ids[one.maker] for one in now.lost])} (output gone)")
    return reasons
