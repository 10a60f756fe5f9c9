"""How far work is that takes long: campaigns, counted trials, compilation. Live on a terminal, else a line every ten
seconds: a campaign can run for hours into a file, so the rule that only terminals see progress is relaxed here.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from windrow.cli import terminal
from windrow.model import format_duration

if TYPE_CHECKING:
    from rich.console import RenderableType

    from windrow.lab.campaign.workers import CampaignProgress

_PATIENCE_S = 2.0

# What people would call a kernel, and seconds on a usual machine; what compiles within two seconds is not mentioned.
COMPILED = {
    "advance.advance": ("the simulator", 8),
    "trial.go_on": ("the simulation of whole runs", 8),
    "estimate.estimate": ("the forecaster", 3),
    "estimate.run_times": ("the estimate of run times", 3),
    "play.rollout": ("the look-ahead", 8),
    "streams.simulate": ("the simulation of streams", 4),
    "placing.place": ("the schedulers of grids", 4),
    "placing.place_level": ("the scheduling of levels", 4),
    "duplicates.place_with_copies": ("the scheduling of copies", 4),
}


def say_compiling(kernel: str) -> None:
    """Say what is about to be compiled, and about how long that takes: at its first use, once for each version."""
    if kernel in COMPILED:
        what, seconds = COMPILED[kernel]
        terminal.say(f"compiling {what} (once per version, about {seconds} s) ...")


@contextmanager
def watching() -> Iterator[Callable[[CampaignProgress], None]]:
    """Yields what is to be told of a campaign's progress while the body runs."""
    if not sys.stderr.isatty():
        yield _sparse(lambda progress: _words(progress, progress.gone_s))
        return
    from rich.console import Console
    from rich.live import Live

    news: list[CampaignProgress] = []
    began = time.monotonic()

    def line() -> RenderableType:
        return terminal.text(_words(news[-1], time.monotonic() - began) if news else "")

    with Live(get_renderable=line, console=Console(stderr=True), refresh_per_second=2, transient=True):
        yield news.append


def _words(progress: CampaignProgress, gone_s: float) -> str:
    """One line: trials done, time gone, time left, what was found and what failed."""
    line = f"{progress.done:,} of {progress.trials:,} trials, {format_duration(gone_s)} elapsed"
    if progress.left_s is not None:
        left_s = max(0.0, progress.left_s - (gone_s - progress.gone_s))
        line += f", about {format_duration(left_s)} left"
    if progress.found:
        line += f" ({progress.found:,} already done)"
    return line + (f", {progress.failed:,} FAILED" if progress.failed else "")


@contextmanager
def counting(what: str) -> Iterator[Callable[[int, int], None]]:
    """Yields what is to be told how far the body is: trials done, and all of them."""
    if not sys.stderr.isatty():
        yield _sparse(lambda done, total: f"{what} ... {done:,} of {total:,} trials")
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    bar = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("left"))
    progress = Progress(*bar, console=Console(stderr=True), transient=True)
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


def _sparse(words: Callable[..., str]) -> Callable[..., None]:
    """What says the words about the latest news, every ten seconds."""
    said_s = time.monotonic()

    def tell(*news: object) -> None:
        nonlocal said_s
        if time.monotonic() - said_s >= terminal.LINE_S:
            said_s = time.monotonic()
            terminal.say(words(*news))

    return tell
