"""`windrow watch`: a run, followed until it ends."""

import argparse
import time

from windrow.cli import options
from windrow.manager.states import ACTIVE, RunState

_EVERY_S = 1.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_run(parser)


def run(args: argparse.Namespace) -> int:
    """Follow the journal; Ctrl-C stops watching only."""
    from windrow.cli import progress_lines

    told = options.run_of(args)
    with progress_lines.showing(told) as show:
        try:
            while told.state in ACTIVE:
                show(None)
                time.sleep(_EVERY_S)
        except KeyboardInterrupt:
            return 0
    return 0 if told.state == RunState.COMPLETE else 1
