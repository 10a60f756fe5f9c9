"""A run on the terminal: what `run`, `watch` and `status` show."""

from __future__ import annotations

import os
import shlex
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from windrow.cli import terminal
from windrow.errors import printable

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from windrow.app.runs import RunView
    from windrow.manager.story import JobStory, RunStory

_SHOWN_JOBS = 12
_SHOWN_FAILURES = 3
_BAR = 40
_LAST_BYTES = 4096
_SHORT_S = 1.0


def clock(at_s: float | None) -> str:
    """A time of day, with the date where it is not today."""
    if at_s is None:
        return ""
    then, today = time.localtime(at_s), time.localtime()
    return time.strftime("%H:%M:%S" if then[:3] == today[:3] else "%Y-%m-%d %H:%M", then)


def span(seconds: float) -> str:
    """A duration, in whole seconds where it is short."""
    from windrow.model import format_duration

    return format_duration(round(max(0.0, seconds)))


def left_s(told: RunView, now_s: float) -> float | None:
    """How long the run will need yet. None where nobody knows: nothing is done, and all run times are guesses."""
    from windrow.report.run.time_left import time_left_s

    facts = told.facts
    if facts.get("guesses", 0) >= len(told.story.tasks) and not told.story.count("finished"):
        return None
    return time_left_s(told.story, told.predictions(), int(facts.get("node_cores") or 1), now_s)


def summary(told: RunView, now_s: float) -> list[str]:
    """The run in a few lines."""
    story, facts = told.story, told.facts
    total, done = len(story.tasks), story.count("finished")
    parts = [f"{story.count(state)} {state}" for state in ("running", "in a job", "left", "failed", "blocked")]
    counts = ", ".join(part for part in parts if not part.startswith("0 "))
    end = now_s if told.state in ("running", "stopping") else story.last_s
    lines = [
        f"{told.paths.name}: {told.state}   {facts['strategy']} on {facts['queue']}",
        f"tasks {_bar(done, total)} {done}/{total}" + (f"   ({counts})" if counts else ""),
    ]
    if story.begun_s is not None:
        ahead = left_s(told, now_s) if told.state == "running" else None
        time_left = f", about {span(ahead)} left" if ahead is not None else ""
        lines.append(f"started {clock(story.begun_s)}, {_gone(told.state, end - story.begun_s)}{time_left}")
    lines += _waits(story, end) if told.state not in ("running", "stopping") else []
    lines += failures(told)
    lines += _deadline(told, end)
    for node in story.avoidance.at(now_s) if told.state == "running" else ():
        lines.append(f"avoiding {node.node} until {clock(node.until_s)}: {node.why}")
    lines += warnings(told)
    if story.trouble:
        lines.append(f"gave up: {story.trouble}")
    if told.state == "failed":
        lines.append(f"correct the cause, in the workflow file or elsewhere, then windrow resume {told.paths.name}")
    elif told.state in ("interrupted", "stopped"):
        lines += _last_words(told)
        lines.append(f"windrow resume {told.paths.name} continues it")
    return [printable(line) for line in lines]


def _waits(story: RunStory, end_s: float) -> list[str]:
    """What the queue cost, and what of it nobody had to wait for."""
    if sum(job.started_s is not None for job in story.jobs.values()) < 2:
        return []
    from windrow.report.run.figures import queue_waits_s

    waited_s, hidden_s = queue_waits_s(story, end_s)
    if waited_s < _SHORT_S:
        return []
    return [f"jobs waited {span(waited_s)} in the queue, {span(hidden_s)} of that while other tasks of the run ran"]


def _last_words(told: RunView) -> list[str]:
    """What a manager in the background died of, where it could say so: a full disk, say."""
    try:
        with told.paths.log.open("rb") as log:
            is_later = os.fstat(log.fileno()).st_mtime >= told.story.last_s - 1  # nobody managed the run since
            log.seek(max(0, log.seek(0, 2) - _LAST_BYTES))
            said = log.read().decode(errors="replace").rstrip().splitlines()[-1:] if is_later else []
    except OSError:
        return []
    mark = "windrow: error: "
    return [f"its manager ended: {words.removeprefix(mark)}" for words in said if words.startswith(mark)]


def warnings(told: RunView) -> list[str]:
    """What keeps the run from going on while it is meant to."""
    if told.state not in ("running", "interrupted"):
        return []
    found = [told.trouble_with_queue] if told.state == "running" else []
    if any(job.reason for job in told.story.jobs.values()):
        from windrow.report.run.waiting import nothing_can_start

        found.append(nothing_can_start(told.story))
    return [f"warning: {words}" for words in found if words]


def missed_by_s(told: RunView, end_s: float) -> float | None:
    """By how much the run is, or was, late; None where it has no deadline or is in time."""
    deadline_s, begun_s = told.facts.get("deadline_s"), told.story.begun_s
    late_s = 0.0 if deadline_s is None or begun_s is None else end_s - begun_s - deadline_s
    return late_s if late_s > 0 else None


def _deadline(told: RunView, end_s: float) -> list[str]:
    late_s = missed_by_s(told, end_s)
    return [] if late_s is None else [f"missed its deadline of {span(told.facts['deadline_s'])} by {span(late_s)}"]


def _gone(state: str, seconds: float) -> str:
    if state in ("running", "stopping"):
        return f"{span(seconds)} so far"
    return f"last heard of after {span(seconds)}" if state == "interrupted" else f"took {span(seconds)}"


def failures(told: RunView) -> list[str]:
    """Which tasks failed and with what last words, the first few of them, and how to learn more."""
    story, ids = told.story, told.runnable.workflow.ids
    failed = [number for number, task in enumerate(story.tasks) if task.state == "failed" and task.attempts]
    lines = []
    for number in failed[:_SHOWN_FAILURES]:
        last = story.tasks[number].attempts[-1]
        said = last.tail.strip().splitlines()[-1:]
        lines.append(
            f"task {ids[number]} failed: {last.why}" + "".join(f"; last line: {words[:100]}" for words in said)
        )
    if failed:
        more = f"{len(failed) - _SHOWN_FAILURES} more failed; " if len(failed) > _SHOWN_FAILURES else ""
        lines.append(f"{more}for details: windrow explain {shlex.quote(ids[failed[0]])}")
    return lines


def _bar(done: int, total: int) -> str:
    full = _BAR * done // max(1, total)
    return "█" * full + "░" * (_BAR - full)


def job_rows(told: RunView, now_s: float, most: int | None = _SHOWN_JOBS) -> tuple[list[list[str]], int]:
    """The jobs as rows of text, those in the system and the latest others, and how many were left out."""
    jobs = sorted(told.story.jobs.items())
    if most is not None and len(jobs) > most:
        alive = [item for item in jobs if not item[1].outcome][:most]
        others = [item for item in jobs if item[1].outcome][len(alive) - most :] if len(alive) < most else []
        kept = sorted([*alive, *others])
    else:
        kept = jobs
    return [_row(number, job, told.story, now_s) for number, job in kept], len(jobs) - len(kept)


def _row(number: int, job: JobStory, story: RunStory, now_s: float) -> list[str]:
    from windrow.report.run.waiting import waits_because

    done = sum(
        any(a.job == number and a.outcome == "finished" for a in story.tasks[t].attempts) for t in job.plan.tasks
    )
    begun = job.submitted_s if job.submitted_s is not None else job.planned_s
    waited = (job.started_s or job.ended_s or now_s) - begun
    ran = "" if job.started_s is None else span((job.ended_s or now_s) - job.started_s)
    return [
        str(number),
        job.id or "",
        job.state,
        str(job.plan.nodes),
        "no limit" if job.limit_s is None else span(job.limit_s),
        f"{done}/{len(job.plan.tasks)}",
        span(waited),
        ran,
        job.note or waits_because(job),
    ]


HEADS = ("job", "id", "state", "nodes", "requested", "tasks", "waited", "ran", "")


def table(told: RunView, now_s: float, most: int | None = _SHOWN_JOBS) -> Table:
    """The jobs as a table."""
    from rich.text import Text

    rows, hidden = job_rows(told, now_s, most)
    colours = {"running": "green", "waiting": "yellow", "killed": "red", "rejected": "red"}
    cells = [[Text(printable(c), colours.get(row[2], "") if i == 2 else "") for i, c in enumerate(row)] for row in rows]
    shown = terminal.table(HEADS, cells, "<<<>>>>>l")
    if hidden:
        shown.caption = f"{hidden} more jobs: windrow status --all"
    return shown


def screen(told: RunView) -> RenderableType:
    """Everything, as it is redrawn while a run goes on."""
    from rich.console import Group
    from rich.text import Text

    now = time.time()
    lines = Text("\n".join(summary(told, now)))
    return Group(lines, Text(""), table(told, now))


def as_json(told: RunView) -> dict[str, Any]:
    """The run for programs."""
    story, workflow = told.story, told.runnable.workflow
    states = ("finished", "running", "in a job", "left", "failed", "blocked")
    return {
        "run": told.paths.name,
        "folder": str(told.paths.folder.path),
        "state": told.state,
        "continues": told.facts.get("continues"),
        "continued_by": told.facts.get("continued_by"),
        "strategy": told.facts["strategy"],
        "queue": told.facts["queue"],
        "tasks": {
            "total": len(story.tasks),
            **{s.replace(" ", "_"): story.count(s) for s in states},
            "kept": story.kept,
        },
        "begun_s": story.begun_s,
        "left_s": left_s(told, time.time()) if told.state == "running" else None,
        "last_s": story.last_s,
        "deadline_s": told.facts.get("deadline_s"),
        "missed_deadline_by_s": missed_by_s(told, time.time() if told.state == "running" else story.last_s),
        "trouble": story.trouble,
        "avoided_nodes": [asdict(node) for node in story.avoidance.at(time.time())],
        "warnings": warnings(told),
        "failed_tasks": [workflow.ids[i] for i, task in enumerate(story.tasks) if task.state == "failed"],
        "jobs": [
            {
                "job": number,
                "id": job.id,
                "state": job.state,
                "nodes": job.plan.nodes,
                "requested_s": job.limit_s,
                "tasks": [workflow.ids[t] for t in job.plan.tasks],
                "submitted_s": job.submitted_s,
                "started_s": job.started_s,
                "ended_s": job.ended_s,
                "why": job.why,
                "cause": job.cause or None,
                "reason": job.reason,
                "taken_by": job.taken_by,
            }
            for number, job in sorted(story.jobs.items())
        ],
    }
