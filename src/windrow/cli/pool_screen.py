"""A pool on the terminal: what `windrow status --pool` shows."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from windrow.cli import terminal
from windrow.cli.run_screen import span

if TYPE_CHECKING:
    from rich.table import Table

    from windrow.pool.story import WorkflowStory
    from windrow.pool.view import PoolView


_SHOWN = 20


def show_status(name: str, *, everything: bool, as_json: bool) -> None:
    """What `windrow status --pool` shows."""
    from windrow.pool import view as tell
    from windrow.pool.folder import find_pool

    told = tell.PoolView(find_pool(name))
    if as_json:
        terminal.print_json(tell.as_json(told))
    else:
        terminal.show(terminal.text(*_summary(told)), _table(told, None if everything else _SHOWN))


def _summary(told: PoolView) -> list[str]:
    story = told.story
    settings = told.settings
    if told.holder:
        by = f"running ({told.holder})"
    else:
        by = "not running"
    lines = [f"pool {told.folder.name}: {by}"]
    if settings is not None:
        if told.reserved:
            idle = f", {told.reserved} idle but reserved"
        else:
            idle = ""
        lines.append(f"{settings.policy}: {story.busy} of {settings.slots} slots busy{idle}")
    states = ("running", "waiting", "leaving", "complete", "failed", "cancelled", "refused")
    parts = [f"{story.count(state)} {state}" for state in states if story.count(state)]
    parts += [f"{told.submitted} just submitted"] if told.submitted else []
    lines.append("workflows: " + (", ".join(parts) or "none yet"))
    if figures := story.figures():
        slowdown = figures.pop("slowdown")
        means = [f"slowdown {slowdown.mean:.2f} (max {slowdown.max:.2f})"]
        means += [
            f"{name.removesuffix('_s')} {span(f.mean)} (max {span(f.max)})"
            for name, f in figures.items()
        ]
        lines.append(f"mean of completed workflows: {', '.join(means)}")
    return lines + [f"lost node: {host}" for host in story.lost_hosts]


_HEADS = ("workflow", "name", "state", "tasks", "waited", "ran", "slowdown", "")


def _table(told: PoolView, most: int | None) -> Table:
    """The workflows that have not ended, and the latest others."""
    workflows = told.story.workflows.values()
    latest_first = sorted(workflows, key=lambda w: (bool(w.outcome), -w.number))
    kept = sorted(latest_first[:most], key=lambda w: w.number)
    shown = terminal.table(_HEADS, [_row(workflow, time.time()) for workflow in kept], "><<>>>>l")
    if len(kept) < len(workflows):
        shown.caption = (
            f"{len(workflows) - len(kept)} more: windrow status --pool {told.folder.address} --all"
        )
    return shown


def _row(workflow: WorkflowStory, now_s: float) -> list[str]:
    begun_s = workflow.begun_s
    end_s = workflow.ended_s or now_s
    return [
        str(workflow.number),
        workflow.name,
        workflow.state,
        f"{len(workflow.took_s)}/{workflow.tasks}",
        span((begun_s or end_s) - workflow.submitted_s),
        "" if begun_s is None else span(end_s - begun_s),
        "" if workflow.slowdown is None else f"{workflow.slowdown:.2f}",
        workflow.why,
    ]
