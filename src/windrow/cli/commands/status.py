"""`windrow status`: how a run stands."""

import argparse
import time

from windrow.cli import options, terminal
from windrow.cli.arguments import place


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_run(parser)
    parser.add_argument("--pool", type=place, metavar="NAME", help="show a pool instead of a run")
    parser.add_argument("--all", action="store_true", help="show all jobs")
    options.add_json(parser)


def run(args: argparse.Namespace) -> None:
    """Read and show."""
    if args.pool is not None:
        from windrow.cli.commands.pool import show_status

        show_status(args.pool, everything=args.all, as_json=args.json)
        return

    from windrow.cli import run_screen
    from windrow.report.run.view import status_view

    told = options.run_of(args)
    if args.json:
        terminal.print_json(status_view(told))
        return
    now = time.time()
    terminal.show(terminal.text(*run_screen.summary(told, now)), run_screen.table(told, now, None if args.all else 12))
