"""`windrow rm`: delete the records of runs."""

from __future__ import annotations

import argparse

from windrow.cli import options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="a run that is over")
    options.add_json(parser, "at the end")


def run(args: argparse.Namespace) -> None:
    """All of them or none."""
    from windrow.app.removing import named
    from windrow.cli.removal import remove

    remove(named(args.runs), as_json=args.json)
