"""`windrow clean`: delete the records of old runs."""

from __future__ import annotations

import argparse

from windrow.cli import options
from windrow.cli.arguments import some_time_s


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = options.adder(parser)
    add(
        "--older T",
        some_time_s,
        "30d",
        help="runs in which nothing has happened for this long, e.g. 30d",
    )
    add("-n --dry-run", action="store_true", help="show which these are, and delete nothing")
    options.add_json(parser, "at the end")


def run(args: argparse.Namespace) -> None:
    """All old ones of this folder, but for the latest of each workflow."""
    from windrow.app.removing import older_than
    from windrow.cli.removal import remove

    remove(older_than(args.older), as_json=args.json, dry=args.dry_run)
