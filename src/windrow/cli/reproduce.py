"""`windrow reproduce`: redo the experiments of a paper and set our numbers beside the printed ones."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from windrow.cli import terminal
from windrow.cli.arguments import positive
from windrow.errors import UserError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from windrow.lab.glume_results import Results
    from windrow.lab.workers import Progress

SUMMARY = "Redo the experiments of a paper and set our numbers beside the printed ones."

_EPILOG = """\
papers:
  glume  grouping levels of a workflow by estimated makespan: figures 5.2, 5.3, 7.1-7.4, A.1, B.1-B.4, table 7.1

It may be stopped at any time: the same command continues where it was. Logs are looked for in the --data folder and in
swf/ there, workflows in dax/glume/; generated ones stand in for those that are missing, and the page says so.

examples:
  windrow traces fetch KTH-SP2 SDSC-SP2
  windrow reproduce glume --quick
  windrow reproduce glume --full --data logs --out glume
  windrow reproduce glume --as-thesis --out as-thesis
"""
_QUIET_S = 60.0  # how often a run that is not watched on a terminal says how far it is


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EPILOG
    parser.add_argument("paper", choices=("glume",), metavar="PAPER", help="see below")
    scale = parser.add_mutually_exclusive_group()
    scale.add_argument("--quick", action="store_true", help="a sample, in a minute or two (default)")
    scale.add_argument("--full", action="store_true", help="everything, in up to half an hour on two cores")
    parser.add_argument("--out", metavar="FOLDER", help="where results go (default: windrow-PAPER-SCALE)")
    parser.add_argument("--workers", type=positive, metavar="N", help="processes at work (default: one per core)")
    parser.add_argument("--policy", default="conservative", metavar="P", help="as of simulate (default: conservative)")
    parser.add_argument("--placement", default="count", metavar="L", help="as of simulate (default: count)")
    parser.add_argument(
        "--as-thesis",
        action="store_true",
        help="cluster, margins and zhang as in the thesis's own simulator: contiguous jobs, padded requests, ...",
    )
    parser.add_argument(
        "--data", metavar="FOLDER", help="where logs and workflows are (default: $WINDROW_DATA, else here)"
    )


def run(args: argparse.Namespace) -> int:
    """Run what is missing, then write the page."""
    from windrow.lab.campaign import Rules
    from windrow.lab.glume import plan_as_thesis, plan_glume
    from windrow.lab.glume_results import Results
    from windrow.lab.workers import run_campaigns

    data = Path(args.data or os.environ.get("WINDROW_DATA") or ".")
    if not data.is_dir():
        raise UserError(f"{data}: there is no such folder; give the one that holds the logs with --data")
    if args.as_thesis:
        plan = plan_as_thesis(data, full=args.full)
    else:
        plan = plan_glume(data, full=args.full, rules=Rules(args.policy, placement=args.placement))
    out = Path(args.out or f"windrow-glume-{plan.scale}" + ("-as-thesis" if args.as_thesis else ""))
    for line in plan.stand_ins:
        terminal.say(line)
    try:
        with _progress() as watch:
            tables = run_campaigns(plan.campaigns, out, workers=args.workers, watch=watch)
    except KeyboardInterrupt:
        terminal.say(f"what is finished is kept in {out}; the same command continues from there")
        raise
    results = Results(plan, tables)
    files = _write(results, out)
    terminal.show(*_blocks(results), *terminal.files_written(**files))
    if results.failed:
        terminal.say(f"WARNING: {results.failed:,} of {results.trials:,} trials FAILED; see column error in {out}")
    return 1 if results.failed else 0


def _write(results: Results, out: Path) -> dict[str, str]:
    from windrow.formats.disk import replace_bytes
    from windrow.report.reproduction import reproduction_json, reproduction_markdown, reproduction_page

    texts = {
        "html": reproduction_page(results),
        "md": reproduction_markdown(results),
        "json": json.dumps(reproduction_json(results), indent=2, allow_nan=False) + "\n",
    }
    for suffix, text in texts.items():
        with replace_bytes(out / f"glume.{suffix}") as stream:
            stream.write(text.encode())
    return {"page": str(out / "glume.html"), "text": str(out / "glume.md"), "numbers": str(out / "glume.json")}


def _blocks(results: Results) -> Iterator[RenderableType]:
    from rich.table import Table
    from rich.text import Text

    from windrow.report.reproduction import TITLE, blocks, summary

    yield terminal.heading(TITLE)
    wins = blocks(results)[0]
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="bold")
    for k, name in enumerate(wins.head):
        table.add_column(name, justify="right" if 0 < k < 4 else "left")
    for row in wins.rows:
        table.add_row(*row)
    yield table
    yield Text("\n".join(summary(results)))


@contextmanager
def _progress() -> Iterator[Callable[[Progress], None]]:
    """Shows how far the trials are: a live line on a terminal, else a plain one every minute.

    A campaign can run for half an hour into a file, so the rule that only terminals see progress is relaxed here.
    """
    news: list[Progress] = []
    if not sys.stderr.isatty():
        yield _sparse()
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    began = time.monotonic()

    def line() -> RenderableType:
        return Text(_words(news[-1], time.monotonic() - began) if news else "")

    with Live(get_renderable=line, console=Console(stderr=True), refresh_per_second=2, transient=True):
        yield news.append


def _sparse() -> Callable[[Progress], None]:
    said_s = time.monotonic()

    def watch(progress: Progress) -> None:
        nonlocal said_s
        if time.monotonic() - said_s >= _QUIET_S:
            said_s = time.monotonic()
            terminal.say(_words(progress, progress.gone_s))

    return watch


def _words(progress: Progress, gone_s: float) -> str:
    from windrow.model import format_duration

    words = f"{progress.done:,} of {progress.trials:,} trials, {format_duration(gone_s)} gone"
    if progress.left_s is not None:
        left_s = max(0.0, progress.left_s - (gone_s - progress.gone_s))
        words += f", about {format_duration(left_s)} left"
    if progress.found:
        words += f" ({progress.found:,} were there)"
    return words + (f", {progress.failed:,} FAILED" if progress.failed else "")
