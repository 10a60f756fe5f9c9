"""`windrow cancel`: stop a run and take its jobs out of the queue."""

from __future__ import annotations

import argparse
import time

from windrow.cli import terminal

SUMMARY = "Stop a run: its jobs leave the queue; what is done stays done, and resume goes on from there."

_EPILOG = """
examples:
  windrow cancel
  windrow cancel montage-3
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EPILOG
    parser.add_argument("run", nargs="?", metavar="RUN", help="which run (default: the latest)")


def run(args: argparse.Namespace) -> int:
    """Ask the manager to stop the run, or do it ourselves where nobody manages it."""
    from windrow.app.execute import ask_to_stop, drive, managed
    from windrow.app.runs import Told, find_run

    paths = find_run(args.run)
    told = Told(paths)
    if told.state in ("complete", "stopped"):
        terminal.say(f"{paths.name} is {told.state}; there is nothing to stop")
        return 0
    ask_to_stop(paths)
    while told.holder is not None:
        time.sleep(0.2)
        told.refresh()
    if told.state not in ("complete", "stopped"):
        with managed(paths, wait_s=15.0) as manager:
            manager.stop()
            drive(manager)
        told.refresh()
    done, total = told.story.count("finished"), len(told.story.tasks)
    terminal.say(f"{paths.name} is {told.state}: {done} of {total} tasks are done; windrow resume goes on from there")
    return 0
