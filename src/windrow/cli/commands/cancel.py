"""`windrow cancel`: stop a run and take its jobs out of the queue."""

import argparse
import time

from windrow.cli import options, terminal
from windrow.manager.states import ACTIVE, RunState, TaskState


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_run(parser)


def run(args: argparse.Namespace) -> None:
    """Ask the manager to stop the run, or stop it here if it has no manager."""
    from windrow.app.execute import drive, managed
    from windrow.app.requests import ask_to_stop
    from windrow.app.runs import RunView, find_own_run

    paths = find_own_run(args.run)
    told = RunView(paths)
    if told.state not in (*ACTIVE, RunState.INTERRUPTED):
        terminal.say(f"{paths.name} is {told.state}; nothing to stop")
        return
    ask_to_stop(paths)
    while told.holder is not None:
        time.sleep(0.2)
        told.refresh()
    if told.state == RunState.INTERRUPTED:
        with managed(paths, wait_s=15.0, writes=False) as manager:
            manager.stop()
            drive(manager)
        told.refresh()
    done = f"{told.story.count(TaskState.FINISHED)} of {len(told.story.tasks)} tasks are done"
    if told.story.is_stopped and not told.story.is_complete:
        terminal.say(f"{paths.name} is stopped: {done}; windrow resume {paths.name} continues it")
    else:
        terminal.say(f"{paths.name} ended before it could be stopped: it is {told.state}, {done}")
