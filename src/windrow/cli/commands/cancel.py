"""`windrow cancel`: stop a run and take its jobs out of the queue."""

import argparse

from windrow.cli import options, terminal
from windrow.story.states import TaskState


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_run(parser)


def run(args: argparse.Namespace) -> None:
    """Ask the manager to stop the run, or stop it here if it has no manager."""
    from windrow.app.runs import RunView, find_own_run
    from windrow.app.stopping import stop_run

    paths = find_own_run(args.run)
    told = RunView(paths)
    if not stop_run(told):
        terminal.say(f"{paths.name} is {told.state}; nothing to stop")
        return
    done = f"{told.story.count(TaskState.FINISHED)} of {len(told.story.tasks)} tasks are done"
    if told.story.is_stopped and not told.story.is_complete:
        terminal.say(f"{paths.name} is stopped: {done}; windrow resume {paths.name} continues it")
    else:
        terminal.say(f"{paths.name} ended before it could be stopped: it is {told.state}, {done}")
