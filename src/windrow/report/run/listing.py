"""The page of all runs of a folder, as `windrow serve` shows it: how each stands, the latest
first."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from urllib.parse import quote

from windrow.model.wording import count, span
from windrow.report.page import Lively, note, page
from windrow.report.run.head import tone_of


@dataclass(frozen=True, slots=True)
class Listed:
    """A run in one line. `trouble`: why it cannot be read, if it cannot."""

    name: str
    state: str
    finished: int = 0
    failed: int = 0
    tasks: int = 0
    jobs: int = 0
    on: str = ""
    begun_s: float | None = None
    took_s: float = 0.0
    trouble: str = ""


def listing_page(folder: str, runs: Sequence[Listed], every_s: float) -> str:
    """HTML; each run links to its own page on the server."""
    rows = "\n".join(_row(run) for run in reversed(runs))
    heads = "".join(
        f"<th>{head}</th>" for head in ("run", "state", "tasks", "jobs", "on", "started", "took")
    )
    body = note("No runs here yet: windrow run WORKFLOW starts one.")
    if runs:
        body = (
            f'<section id="runs"><div class="scroll"><table class="runs"><thead><tr>{heads}</tr>'
            f"</thead><tbody>{rows}</tbody></table></div></section>"
        )
    lead = f"{count(len(runs), 'run')} in {folder}"
    return page("Runs", lead, [body], Lively("", every_s))


def _bar(run: Listed) -> str:
    """What is done, and what failed."""
    parts = ""
    for tone, tasks in (("good", run.finished), ("bad", run.failed)):
        if tone == "good" or tasks:
            share = 100 * tasks / max(1, run.tasks)
            parts += f'<i class="t-{tone}" style="width:{share:.2f}%"></i>'
    return f'<div class="progress">{parts}</div>'


def _moment(at_s: float | None) -> str:
    if at_s is None:
        return "–"
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at_s))


def _row(run: Listed) -> str:
    if run.trouble:
        return (
            f"<tr><td>{escape(run.name)}</td><td>unreadable</td>"
            f'<td colspan="5">{escape(run.trouble)}</td></tr>'
        )
    cells = (
        f'<a href="/runs/{quote(run.name, safe="")}">{escape(run.name)}</a>',
        f'<span class="state t-{tone_of(run.state)} tone">{escape(run.state)}</span>',
        f"{run.finished:,} of {run.tasks:,}{_bar(run)}",
        f"{run.jobs:,}",
        escape(run.on),
        _moment(run.begun_s),
        span(run.took_s),
    )
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
