"""`windrow watch`: a run on the whole terminal, with keys."""

import argparse
import sys

from windrow.cli import options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_run(parser)


def run(args: argparse.Namespace) -> int:
    """Show it; without a terminal, tell what happens line by line."""
    told = options.run_of(args)
    if sys.stdin.isatty() and sys.stdout.isatty():
        from windrow.cli.watching import watch

        return watch(told)
    from windrow.cli.progress_lines import follow

    return follow(told)
