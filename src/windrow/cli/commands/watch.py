"""`windrow watch`: a run on the whole terminal, with keys."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from windrow.cli import options, terminal

if TYPE_CHECKING:
    from windrow.app.runs import RunView

_LOOK_S = 0.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_run(parser)
    options.add_json(parser, "on a line whenever something has changed")


def run(args: argparse.Namespace) -> int:
    """Show it; without a terminal, tell what happens line by line."""
    told = options.run_of(args)
    if args.json:
        return _tell(told)
    if sys.stdin.isatty() and sys.stdout.isatty():
        from windrow.cli.watching import watch

        return watch(told)
    from windrow.cli.progress_lines import follow

    return follow(told)


def _tell(told: RunView) -> int:
    """For programs: as `status` tells it, again and again until the run ends."""
    from windrow.report.run.view import status_view
    from windrow.story.states import ACTIVE, RunState

    before = None
    while True:
        is_over = told.state not in ACTIVE
        seen = told.state, told.story.counts.copy(), len(told.story.jobs)
        if seen != before or is_over:
            terminal.print_json_line(status_view(told))
        if is_over:
            return 0 if told.state == RunState.COMPLETE else 1
        before = seen
        time.sleep(_LOOK_S)
        told.refresh()
