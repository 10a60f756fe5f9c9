"""`windrow report`: one page about a run."""

from __future__ import annotations

import argparse

SUMMARY = "Write one self-contained page about a run: its jobs, waits and tasks over time."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("run", nargs="?", metavar="RUN", help="which run (default: the latest)")


def run(args: argparse.Namespace) -> int:
    """Write it."""
    raise NotImplementedError(args)
