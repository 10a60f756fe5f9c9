"""A run that this process manages to its end, or that a process of its own manages."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from windrow.cli import terminal

if TYPE_CHECKING:
    from windrow.app.execute import Prepared
    from windrow.app.runs import RunPaths, RunView
    from windrow.story.lost_files import LostFile


_SHOWN_LOST = 5
# a killed manager leaves its last command to the queue behind, which holds the lock
PATIENCE_S = 15.0


def stay(
    paths: RunPaths,
    *,
    as_json: bool,
    again: Sequence[int] = (),
    retry: bool = True,
    prepared: Prepared | None = None,
) -> int:
    """Manage the run to its end in this process.

    `again`: tasks to run although they have finished. `retry`: those that failed run again, too.
    `prepared`: what this process has just made the run of.
    """
    from windrow.app.execute import drive, managed
    from windrow.app.runs import RunView
    from windrow.cli import progress_lines
    from windrow.records.lock import holder_of

    if (holder := holder_of(paths.lock)) is not None:
        terminal.say(
            f"{paths.name} is managed by {holder}; waiting up to {PATIENCE_S:.0f} s for that to "
            "end ..."
        )
    try:
        with ExitStack() as planning:
            if not sys.stdout.isatty():  # on a terminal there is the picture
                planning.enter_context(terminal.waiting("planning"))
            told = RunView(paths, runnable=prepared.runnable if prepared else None)
            # The picture is the outer one: what it shows last is the run as it is when it has no
            # manager any more.
            with (
                progress_lines.showing(
                    told, quiet=as_json or terminal.is_quiet(), outlives_reader=True
                ) as show,
                managed(paths, wait_s=PATIENCE_S, prepared=prepared) as manager,
                told.kept_open(),
            ):
                lost = manager.begin(again, retry=retry)
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
        terminal.hint("for an HTML report: windrow report")
    if told.story.is_complete:
        return 0
    return 1


def _say_what_runs_again(told: RunView, lost: Sequence[LostFile]) -> None:
    if not lost:
        return
    from windrow.report.run.explanation import runs_again

    for one in lost[:_SHOWN_LOST]:
        terminal.say(runs_again(told.runnable.workflow, one))
    if len(lost) > _SHOWN_LOST:
        terminal.say(
            f"and {len(lost) - _SHOWN_LOST:,} more tasks run again, because their outputs are gone"
        )


def detach(paths: RunPaths, *, as_json: bool, retry: bool = True) -> int:
    """Let a process of its own manage the run."""
    from windrow.app.background import Stillborn, start_manager

    try:
        start_manager(paths, retry=retry)
    except Stillborn as end:
        terminal.say(f"{paths.name} does not run in the background: its manager ended at once")
        for line in end.said[-_SHOWN_LOST:] or [f"see {paths.log}"]:
            terminal.say(line)
        return end.code
    if as_json:
        terminal.print_json(
            {"run": paths.name, "folder": str(paths.folder.path), "state": "detached"}
        )
    else:
        terminal.say(
            f"{paths.name} runs in the background; windrow status -f shows it, "
            "windrow cancel stops it"
        )
    return 0
