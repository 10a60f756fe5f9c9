"""`windrow resume`: continue a run that was interrupted, stopped, or failed, or whose workflow file
has changed."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from windrow.app.background import NO_RETRY
from windrow.cli import continuation, managing, options
from windrow.cli.arguments import size_bytes

if TYPE_CHECKING:
    pass


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_run(parser)
    add = options.adder(parser)
    add("--detach", action="store_true", help="return at once; the run continues in the background")
    add(
        "--space SIZE",
        size_bytes,
        help="a new limit, for a run that was started with --space and has no jobs",
    )
    options.add_accept(parser)
    options.add_json(parser, "at the end instead of progress")
    parser.add_argument(NO_RETRY, action="store_true", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Find it and stay with it."""
    from windrow.app.runs import RunView, find_own_run

    told = RunView(find_own_run(args.run))
    if args.no_retry:
        told.close()
        return managing.stay(told.paths, as_json=args.json, retry=False)
    if args.space is not None:
        from windrow.app.space import change_space

        change_space(told, args.space)
    return continuation.go_on(
        told, detached=args.detach, as_json=args.json, accept=args.accept or ()
    )
