"""`windrow runs`: the runs of this folder."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from windrow.cli import options, terminal
from windrow.cli.run_screen import clock, span
from windrow.errors import WindrowError
from windrow.story.states import ACTIVE, TaskState

if TYPE_CHECKING:
    from windrow.app.runs import RunPaths, RunView


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_json(parser)


def _read(every: Iterable[RunPaths]) -> tuple[list[RunView], list[tuple[RunPaths, str]]]:
    """The runs, and those that cannot be read, with why."""
    from windrow.app import runs

    told: list[RunView] = []
    unreadable: list[tuple[RunPaths, str]] = []
    for paths in every:
        try:
            told.append(runs.RunView(paths, asks_agents=True))
        except WindrowError as error:
            unreadable.append((paths, str(error)))
    return told, unreadable


def run(args: argparse.Namespace) -> None:
    """Read and show."""
    from windrow.app import runs

    told, unreadable = _read(runs.all_runs())
    if args.json:
        lost = [{"run": paths.name, "state": "unreadable", "why": why} for paths, why in unreadable]
        terminal.print_json({"runs": [*map(_as_json, told), *lost]})
        return
    for paths, why in unreadable:
        terminal.say(f"{paths.name} cannot be read: {why}")
    if not told and not unreadable:
        terminal.say("no runs here yet; windrow run WORKFLOW starts one")
        return
    rows = [*map(_row, told), *([paths.name, "unreadable"] for paths, _ in unreadable)]
    terminal.show(terminal.table(_HEADS, rows, "llrrlllrr"))


_HEADS = ("run", "state", "tasks", "jobs", "strategy", "on", "started", "took", "size")


def _as_json(told: RunView) -> dict[str, object]:
    from windrow.agent.outputs import size_of
    from windrow.report.run.view import status_view

    return status_view(told) | {"size_bytes": size_of(str(told.paths.folder.path))}


def _row(told: RunView) -> list[str]:
    from windrow.agent.outputs import size_of
    from windrow.model.size import format_size

    story = told.story
    took = ""
    if story.begun_s is not None:
        end_s = time.time() if told.state in ACTIVE else story.last_s
        took = span(end_s - story.begun_s)
    return [
        told.paths.name,
        str(told.state),
        f"{story.count(TaskState.FINISHED)}/{len(story.tasks)}",
        str(len(story.jobs)),
        told.facts.request.strategy,
        told.facts.on,
        clock(story.begun_s),
        took,
        format_size(size_of(str(told.paths.folder.path))),
    ]
