"""How far work is that takes long. Live on a terminal, else a line every ten seconds: trials can
run for hours into a file, so the rule that only terminals see progress is relaxed here.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from windrow.cli import terminal

_PATIENCE_S = 2.0


@contextmanager
def counting(what: str) -> Iterator[Callable[[int, int], None]]:
    """Yields what to call with how far the body is: trials done, and trials in all."""
    if not sys.stderr.isatty():
        yield sparse(lambda done, total: f"{what} ... {done:,} of {total:,} trials")
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    bar = (
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    progress = Progress(*bar, console=terminal.console(stderr=True), transient=True)
    task = progress.add_task(what, total=None)
    began = time.monotonic()

    def tell(done: int, total: int) -> None:
        progress.update(task, completed=done, total=total)
        if not progress.live.is_started and time.monotonic() - began > _PATIENCE_S:
            progress.start()

    try:
        yield tell
    finally:
        progress.stop()


def sparse(words: Callable[..., str]) -> Callable[..., None]:
    """What says the words about the latest news, every ten seconds."""
    said_s = time.monotonic()

    def tell(*news: object) -> None:
        nonlocal said_s
        if time.monotonic() - said_s >= terminal.LINE_S:
            said_s = time.monotonic()
            terminal.say(words(*news))

    return tell
