"""`windrow resume`: go on with a run that was interrupted, stopped, or failed."""

from __future__ import annotations

import argparse

from windrow.cli import terminal
from windrow.cli.arguments import place

SUMMARY = "Go on with a run: finished tasks stay finished, failed ones are tried again."

_EPILOG = """
Where an output of a finished task is gone and a task that is left needs it, the finished one runs again; it is said.

examples:
  windrow resume
  windrow resume montage-3 --detach
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EPILOG
    parser.add_argument("run", nargs="?", type=place, metavar="RUN", help="which run (default: the latest)")
    parser.add_argument("--detach", action="store_true", help="return at once; the run goes on in the background")
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end instead of progress")


def run(args: argparse.Namespace) -> int:
    """Find it and stay with it."""
    from windrow.app.runs import Told, find_own_run
    from windrow.cli.run import detach, stay

    paths = find_own_run(args.run)
    told = Told(paths)
    if told.state == "complete":
        terminal.say(f"{paths.name} is complete; there is nothing to do")
        return 0
    told.close()
    return detach(paths, as_json=args.json) if args.detach else stay(paths, as_json=args.json)
