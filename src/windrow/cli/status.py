"""`windrow status`: how a run stands."""

from __future__ import annotations

import argparse
import time

from windrow.cli import terminal

SUMMARY = "Show how a run stands: its jobs, its tasks, the time left."

_EPILOG = """
examples:
  windrow status
  windrow status montage-3 --all
  windrow status --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EPILOG
    parser.add_argument("run", nargs="?", metavar="RUN", help="which run (default: the latest)")
    parser.add_argument("--all", action="store_true", help="every job, however many")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Read and show."""
    from rich.text import Text

    from windrow.app.runs import Told, find_run
    from windrow.cli import live

    told = Told(find_run(args.run))
    if args.json:
        terminal.print_json(live.as_json(told))
        return 0
    now = time.time()
    terminal.show(Text("\n".join(live.summary(told, now))), live.table(told, now, None if args.all else 12))
    return 0
