"""`windrow runs`: the runs of this folder."""

import argparse
import time

from windrow.cli import options, terminal
from windrow.cli.run_screen import clock, span
from windrow.errors import WindrowError
from windrow.story.states import ACTIVE, TaskState


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_json(parser)


def run(args: argparse.Namespace) -> None:
    """Read and show."""
    from windrow.agent.outputs import size_of
    from windrow.app.runs import RunPaths, RunView, all_runs
    from windrow.model.size import format_size
    from windrow.report.run.view import status_view

    told: list[RunView] = []
    unreadable: list[tuple[RunPaths, str]] = []
    for paths in all_runs():
        try:
            told.append(RunView(paths, asks_agents=True))
        except WindrowError as error:
            unreadable.append((paths, str(error)))
    if args.json:
        lost = [{"run": paths.name, "state": "unreadable", "why": why} for paths, why in unreadable]
        known = [status_view(t) | {"size_bytes": size_of(str(t.paths.folder.path))} for t in told]
        terminal.print_json({"runs": [*known, *lost]})
        return
    for paths, why in unreadable:
        terminal.say(f"{paths.name} cannot be read: {why}")
    if not told and not unreadable:
        terminal.say("no runs here yet; windrow run WORKFLOW starts one")
        return
    rows: list[list[str]] = []
    for t in told:
        done = f"{t.story.count(TaskState.FINISHED)}/{len(t.story.tasks)}"
        if t.state in ACTIVE:
            end_s = time.time()
        else:
            end_s = t.story.last_s
        if t.story.begun_s is not None:
            took = span(end_s - t.story.begun_s)
        else:
            took = ""
        row = (
            t.paths.name,
            t.state,
            done,
            str(len(t.story.jobs)),
            t.facts.request.strategy,
            t.facts.on,
        )
        size = format_size(size_of(str(t.paths.folder.path)))
        rows.append([*map(str, row), clock(t.story.begun_s), took, size])
    rows += [[paths.name, "unreadable"] for paths, _ in unreadable]
    terminal.show(
        terminal.table(
            ("run", "state", "tasks", "jobs", "strategy", "on", "started", "took", "size"),
            rows,
            "llrrlllrr",
        )
    )
