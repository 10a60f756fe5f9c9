"""`windrow runs`: the runs of this folder."""

from __future__ import annotations

import argparse
import time

from windrow.cli import terminal
from windrow.errors import WindrowError

SUMMARY = "List the runs of this folder."

_EPILOG = """
examples:
  windrow runs
  windrow runs --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EPILOG
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Read and show."""
    from rich.table import Table

    from windrow.app.runs import RunPaths, Told, all_runs
    from windrow.cli.run_screen import as_json, clock, span

    told: list[Told] = []
    unreadable: list[tuple[RunPaths, str]] = []
    for paths in all_runs():
        try:
            told.append(Told(paths))
        except WindrowError as error:
            unreadable.append((paths, str(error)))
    if args.json:
        lost = [{"run": paths.name, "state": "unreadable", "why": why} for paths, why in unreadable]
        terminal.print_json({"runs": [*(as_json(t) for t in told), *lost]})
        return 0
    for paths, why in unreadable:
        terminal.say(f"{paths.name} cannot be read: {why}")
    if not told and not unreadable:
        terminal.say("no runs here yet; windrow run WORKFLOW starts one")
        return 0
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for head in ("run", "state", "tasks", "jobs", "strategy", "on", "started", "took"):
        table.add_column(head, justify="right" if head in ("tasks", "jobs", "took") else "left")
    for t in told:
        done = f"{t.story.count('finished')}/{len(t.story.tasks)}"
        end_s = time.time() if t.state in ("running", "stopping") else t.story.last_s
        took = span(end_s - t.story.begun_s) if t.story.begun_s is not None else ""
        row = (t.paths.name, t.state, done, str(len(t.story.jobs)), t.facts["strategy"], t.facts["queue"])
        table.add_row(*map(str, row), clock(t.story.begun_s), took)
    for paths, _ in unreadable:
        table.add_row(paths.name, "unreadable")
    terminal.show(table)
    return 0
