"""`windrow submit`: put a workflow into a pool."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

from windrow.cli import options, terminal
from windrow.cli.arguments import place
from windrow.cli.run_screen import span

if TYPE_CHECKING:
    from windrow.pool.story import WorkflowStory
    from windrow.pool.view import PoolView


_LOOK_S = 0.2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_runnable(parser)
    add = options.adder(parser)
    add("--pool NAME", place, required=True, help="the pool: its name, or its folder (with a /)")
    add("--wait", action="store_true", help="return when the workflow has ended")
    options.add_json(parser, "")


def run(args: argparse.Namespace) -> int:
    """Check it, put it in, and wait if that is wished."""
    from windrow.app.live_runs import refuse_conflicts
    from windrow.app.runs import own_root
    from windrow.app.space import submitted
    from windrow.pool.admission import admit
    from windrow.pool.folder import find_pool
    from windrow.pool.view import PoolView

    folder = find_pool(args.pool)
    told = PoolView(folder)
    runnable = admit(Path(args.workflow), told.settings)
    refuse_conflicts(own_root(), Path(args.workflow), runnable)
    number = submitted(folder, runnable)
    if told.holder is None:
        terminal.say(f"pool {folder.name} is not running; windrow pool {folder.address} starts it")
    if args.wait:
        return _wait(told, number, as_json=args.json)
    known = {"workflow": number, "name": runnable.workflow.name, "tasks": len(runnable.workflow)}
    if args.json:
        terminal.print_json({"pool": folder.name, **known, "state": "submitted"})
    else:
        print("workflow {workflow}: {name}, {tasks} tasks".format(**known))
    return 0


def _wait(told: PoolView, number: int, *, as_json: bool) -> int:
    from windrow.pool.events import COMPLETE
    from windrow.pool.view import workflow_json

    with terminal.waiting(f"workflow {number}"):
        while number not in told.story.workflows or not told.story.workflows[number].outcome:
            time.sleep(_LOOK_S)
            told.refresh()
    workflow = told.story.workflows[number]
    if as_json:
        terminal.print_json(workflow_json(workflow))
    else:
        print(f"workflow {number}: {workflow.outcome}{_how(workflow)}")
    return 0 if workflow.outcome == COMPLETE else 1


def _how(workflow: WorkflowStory) -> str:
    if workflow.slowdown is not None:
        slower = f"{workflow.slowdown:.2f} times as long as alone"
        return f" after {span(workflow.response_s or 0)}, {slower}"
    return f": {workflow.why}" if workflow.why else ""
