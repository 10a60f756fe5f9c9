"""`windrow explain`: why a task or a job is where it is."""

import argparse
import time

from windrow.cli import options, terminal
from windrow.errors import printable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what", metavar="TASK|JOB", help="a task's id, a job's number, or its id in the queue"
    )
    options.add_of_run(parser)
    parser.add_argument(
        "--all", action="store_true", help="show everything, such as the alternatives considered"
    )
    options.add_json(parser, "instead of text")


def run(args: argparse.Namespace) -> None:
    """Find it and explain it."""
    from windrow.report.run.answers import answer

    told = options.run_of(args).recorded(time.time())
    found = answer(told, args.what)
    if args.json:
        terminal.print_json(
            {"run": told.name, "what": args.what, "answer": found.short, "lines": found.whole}
        )
        return
    print(printable("\n".join(found.whole if args.all else found.short)))
    if not args.all and len(found.whole) > len(found.short):
        terminal.hint("for details: --all")
