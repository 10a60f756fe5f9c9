"""How far a campaign's trials are: a live line on a terminal, else a plain one every ten seconds.

A campaign can run for hours into a file, so the rule that only terminals see progress is relaxed here.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from windrow.cli import terminal

if TYPE_CHECKING:
    from rich.console import RenderableType

    from windrow.lab.campaign.workers import CampaignProgress


@contextmanager
def watching() -> Iterator[Callable[[CampaignProgress], None]]:
    """Yields what is to be told of progress while the body runs."""
    if not sys.stderr.isatty():
        yield _sparse()
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    news: list[CampaignProgress] = []
    began = time.monotonic()

    def line() -> RenderableType:
        return Text(words(news[-1], time.monotonic() - began) if news else "")

    with Live(get_renderable=line, console=Console(stderr=True), refresh_per_second=2, transient=True):
        yield news.append


def words(progress: CampaignProgress, gone_s: float) -> str:
    """One line: trials done, time gone, time left, what was found and what failed."""
    from windrow.model import format_duration

    line = f"{progress.done:,} of {progress.trials:,} trials, {format_duration(gone_s)} elapsed"
    if progress.left_s is not None:
        left_s = max(0.0, progress.left_s - (gone_s - progress.gone_s))
        line += f", about {format_duration(left_s)} left"
    if progress.found:
        line += f" ({progress.found:,} already done)"
    return line + (f", {progress.failed:,} FAILED" if progress.failed else "")


def _sparse() -> Callable[[CampaignProgress], None]:
    said_s = time.monotonic()

    def watch(progress: CampaignProgress) -> None:
        nonlocal said_s
        if time.monotonic() - said_s >= terminal.LINE_S:
            said_s = time.monotonic()
            terminal.say(words(progress, progress.gone_s))

    return watch
