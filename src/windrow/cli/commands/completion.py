"""`windrow completion`: what a shell needs to complete command lines of windrow."""

import argparse

from windrow.cli.completion import SCRIPTS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=tuple(SCRIPTS), metavar="SHELL", help=", ".join(SCRIPTS))


def run(args: argparse.Namespace) -> None:
    """Print it."""
    print(SCRIPTS[args.shell], end="")
