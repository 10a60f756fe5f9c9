"""`windrow status`: how a run stands, once or until it ends."""

import argparse
import time
from typing import TYPE_CHECKING

from windrow.cli import options, terminal
from windrow.cli.arguments import place
from windrow.errors import UserError

if TYPE_CHECKING:
    from windrow.app.runs import RunView


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_run(parser)
    parser.add_argument("--pool", type=place, metavar="NAME", help="show a pool instead of a run")
    parser.add_argument("--all", action="store_true", help="show all jobs")
    how = parser.add_mutually_exclusive_group()
    words = "follow the run until it ends; Ctrl-C only stops following"
    how.add_argument("-f", "--follow", action="store_true", help=words)
    options.add_json(how)


def run(args: argparse.Namespace) -> int:
    """Read and show."""
    if args.pool is not None:
        if args.follow:
            raise UserError("--follow is for runs, and a pool does not end; leave it out")
        from windrow.cli.pool_screen import show_status

        show_status(args.pool, everything=args.all, as_json=args.json)
        return 0
    told = options.run_of(args)
    if args.follow:
        from windrow.cli.progress_lines import follow

        return follow(told)
    _show(told, everything=args.all, as_json=args.json)
    return 0


def _show(told: "RunView", *, everything: bool, as_json: bool) -> None:
    from windrow.cli import run_screen
    from windrow.report.run.view import status_view

    if as_json:
        terminal.print_json(status_view(told))
        return
    now = time.time()
    terminal.show(
        terminal.text(*run_screen.summary(told, now)),
        run_screen.table(told, now, None if everything else 12),
    )
