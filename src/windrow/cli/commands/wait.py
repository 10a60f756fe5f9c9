"""`windrow wait`: until a run is over."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from windrow.cli import options, terminal
from windrow.story.states import ACTIVE, RunState, TaskState

if TYPE_CHECKING:
    from windrow.app.runs import RunView


_LOOK_S = 0.2
_LOOK_MOST_S = 5.0
_SLOWER = 1.2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_run(parser)
    options.add_json(parser, "at the end, as windrow status does")


def run(args: argparse.Namespace) -> int:
    """Wait until no process manages it; 0 if every task has finished."""
    from windrow.cli.run_screen import span

    told = options.run_of(args)
    name = told.paths.name
    if told.state in ACTIVE:
        left_s = told.left_s(time.time())
        left = "" if left_s is None else f", about {span(left_s)} left"
        terminal.say(f"waiting for {name}{left}; windrow status -f {name} shows it")
    _wait(told)
    done = told.story.count(TaskState.FINISHED)
    terminal.say(f"{name}: {told.state}, {done} of {len(told.story.tasks)} tasks are done")
    if args.json:
        from windrow.report.run.view import status_view

        terminal.print_json(status_view(told))
    if told.state == RunState.COMPLETE:
        return 0
    return 1


def _wait(told: RunView) -> None:
    """Look ever more seldom."""
    pause_s = _LOOK_S
    while told.state in ACTIVE or told.holder is not None:
        time.sleep(pause_s)
        pause_s = min(_SLOWER * pause_s, _LOOK_MOST_S)
        told.refresh()
