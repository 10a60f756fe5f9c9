"""How far a campaign is, on one line: live on a terminal, else every ten seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from windrow.cli import terminal
from windrow.cli.progress import sparse
from windrow.model import format_duration

if TYPE_CHECKING:
    from rich.console import RenderableType

    from windrow_lab.campaign.workers import CampaignProgress


@contextmanager
def watching() -> Iterator[Callable[[CampaignProgress], None]]:
    """Yields what is to be told of a campaign's progress while the body runs."""
    if not sys.stderr.isatty():
        yield sparse(lambda progress: _words(progress, progress.gone_s))
        return
    from rich.console import Console  # noqa: PLC0415  (help comes without it)
    from rich.live import Live  # noqa: PLC0415

    news: list[CampaignProgress] = []
    began = time.monotonic()

    def line() -> RenderableType:
        return terminal.text(_words(news[-1], time.monotonic() - began) if news else "")

    with Live(
        get_renderable=line, console=Console(stderr=True), refresh_per_second=2, transient=True
    ):
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
