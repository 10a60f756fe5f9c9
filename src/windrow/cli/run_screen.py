"""A run on the terminal: what `run` and `status` show."""

from __future__ import annotations

import os
import shlex
import time
from typing import TYPE_CHECKING

from windrow.cli import terminal
from windrow.errors import printable
from windrow.model import format_duration
from windrow.model.wording import count, node_span, percent
from windrow.story.states import ACTIVE, AttemptState, JobStage, RunState, TaskState

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from windrow.app.runs import RunView
    from windrow.story.story import JobStory, RunStory

_SHOWN_JOBS = 12
_SHOWN_FAILURES = 3
_BAR = 40
_LAST_BYTES = 4096
_SHORT_S = 1.0
_SOME_S = 60.0


def clock(at_s: float | None) -> str:
    """A time of day, with the date if it is not today."""
    if at_s is None:
        return ""
    then = time.localtime(at_s)
    today = time.localtime()
    return time.strftime("%H:%M:%S" if then[:3] == today[:3] else "%Y-%m-%d %H:%M", then)


def span(seconds: float) -> str:
    """A duration, in whole seconds if it is short."""
    return format_duration(round(max(0.0, seconds)))


def summary(told: RunView, now_s: float) -> list[str]:
    """The run in a few lines."""
    is_active = told.state in ACTIVE
    end_s = now_s if is_active else told.story.last_s
    lines = [*_head(told), *_times(told, now_s, end_s), *_kept_open(told)]
    if not is_active:
        lines += [*_waits(told, end_s), *_node_time(told, end_s)]
    lines += _by_site(told.story, end_s, told.facts.node_cores)
    lines += [*_failures(told), *_lateness(told, end_s)]
    if told.state == RunState.RUNNING:
        for node in told.story.avoidance.at(now_s):
            lines.append(f"avoiding {node.node} until {clock(node.until_s)}: {node.why}")
    lines += told.warnings()
    if told.story.trouble:
        lines.append(f"gave up: {told.story.trouble}")
    lines += [*_space(told, end_s), *_next_step(told)]
    return [printable(line) for line in lines]


def _bar(done: int, total: int) -> str:
    full = _BAR * done // max(1, total)
    return f"{'█' * full}{'░' * (_BAR - full)}"


def _head(told: RunView) -> list[str]:
    """Which run it is, and how many of its tasks are in which state."""
    story = told.story
    request = told.facts.request
    total = len(story.tasks)
    done = story.count(TaskState.FINISHED)
    others = [
        f"{number} {state}"
        for state in TaskState
        if state is not TaskState.FINISHED and (number := story.count(state))
    ]
    progress = f"tasks {_bar(done, total)} {done}/{total}"
    if others:
        progress += f"   ({', '.join(others)})"
    return [f"{told.paths.name}: {told.state}   {request.strategy} on {told.facts.on}", progress]


def _times(told: RunView, now_s: float, end_s: float) -> list[str]:
    """When it started, how long that is ago, and how long it will take yet."""
    begun_s = told.story.begun_s
    if begun_s is None:
        return []
    line = f"started {clock(begun_s)}, {_gone(told.state, end_s - begun_s)}"
    if told.state == RunState.RUNNING and (left_s := told.left_s(now_s)) is not None:
        line += f", about {span(left_s)} left"
    return [line]


def _kept_open(told: RunView) -> list[str]:
    """Who keeps the run open for tasks to come, and what nodes that takes or took."""
    story = told.story
    lines = []
    if story.held is not None and told.state == RunState.RUNNING:
        kept = sum(story.jobs[number].plan.nodes for number in story.kept_jobs())
        nodes = ""
        if kept:
            nodes = f"; {count(kept, 'node')} kept for them, at most {span(story.held.keep_s)}"
        lines.append(f"held open for tasks to come by {story.held.who}{nodes}")
    if story.kept_node_s >= 1:
        lines.append(f"kept for tasks to come: {node_span(story.kept_node_s)}")
    return lines


def _lateness(told: RunView, end_s: float) -> list[str]:
    if (late_s := told.missed_by_s(end_s)) is None:
        return []
    deadline = span(told.facts.request.deadline_s or 0)
    return [f"missed its deadline of {deadline} by {span(late_s)}"]


def _next_step(told: RunView) -> list[str]:
    """What the user may do about a run that has ended before its time."""
    resume = f"windrow resume {told.paths.name}"
    if told.state == RunState.FAILED:
        return [f"fix the cause, in the workflow file or elsewhere, then {resume}"]
    if told.state in (RunState.INTERRUPTED, RunState.STOPPED):
        return [*_last_words(told), f"{resume} continues it"]
    return []


def _by_site(story: RunStory, end_s: float, node_cores: int) -> list[str]:
    """What went where; nothing if there is one site."""
    sites = sorted({job.plan.site for job in story.jobs.values() if job.plan.site})
    if not sites:
        return []
    from windrow.story.figures import allocated_s

    lines = []
    for site in sites:
        jobs = [job for job in story.jobs.values() if job.plan.site == site]
        now = [
            f", {sum(job.state is stage for job in jobs)} {stage}"
            for stage in (JobStage.RUNNING, JobStage.WAITING)
        ]
        allocated = node_span(allocated_s(jobs, end_s, node_cores))
        lines.append(f"at {site}: {count(len(jobs), 'job')}{''.join(now)}, {allocated} allocated")
    return lines


def _waits(told: RunView, end_s: float) -> list[str]:
    """What the queue cost, and what of it hid behind running tasks."""
    if sum(job.started_s is not None for job in told.story.jobs.values()) < 2:
        return []
    from windrow.story.figures import queue_waits_s

    waited_s, hidden_s = queue_waits_s(told.recorded(end_s))
    if waited_s < _SHORT_S:
        return []
    return [
        f"jobs waited {span(waited_s)} in the queue, {span(hidden_s)} of that while other tasks "
        "of the run ran"
    ]


def _space(told: RunView, end_s: float) -> list[str]:
    """What the files took beyond the limit, and what they would need."""
    if told.facts.request.space is None:
        return []
    from windrow.story.space import words_on_space

    return words_on_space(told.recorded(end_s))


def _node_time(told: RunView, end_s: float) -> list[str]:
    """Where the nodes' time went, in a run of some length."""
    if told.story.begun_s is None or end_s - told.story.begun_s < _SOME_S:
        return []
    from windrow.story.figures import node_time

    spent = node_time(told.recorded(end_s))
    if not spent.allocated_s:
        return []
    shares = [(spent.used_s, "used"), (spent.idle_s, "idle"), (spent.lost_s, "lost")]
    parts = ", ".join(f"{percent(part_s / spent.allocated_s)} {name}" for part_s, name in shares)
    if spent.cpu_efficiency is None:
        efficiency = ""
    else:
        efficiency = f"; CPU efficiency {percent(spent.cpu_efficiency)}"
    return [f"{node_span(spent.allocated_s)} allocated: {parts}{efficiency}"]


def _last_words(told: RunView) -> list[str]:
    """What a manager in the background died of, if it could say so: a full disk, say."""
    try:
        with told.paths.log.open("rb") as log:
            is_later = (
                os.fstat(log.fileno()).st_mtime >= told.story.last_s - 1
            )  # it was not managed since
            log.seek(max(0, log.seek(0, 2) - _LAST_BYTES))
            if is_later:
                said = log.read().decode(errors="replace").rstrip().splitlines()[-1:]
            else:
                said = []
    except OSError:
        return []
    mark = "windrow: error: "
    return [
        f"its manager ended: {words.removeprefix(mark)}" for words in said if words.startswith(mark)
    ]


def _gone(state: str, seconds: float) -> str:
    if state in ACTIVE:
        return f"{span(seconds)} so far"
    if state == RunState.INTERRUPTED:
        return f"last heard of after {span(seconds)}"
    return f"took {span(seconds)}"


def _failures(told: RunView) -> list[str]:
    """Which tasks failed and with what last words, the first few of them, and how to learn more."""
    from windrow.app.runs import of_run

    story = told.story
    ids = told.runnable.workflow.ids
    failed = [
        number
        for number, task in enumerate(story.tasks)
        if task.state is TaskState.FAILED and task.attempts
    ]
    lines = []
    for number in failed[:_SHOWN_FAILURES]:
        last = story.tasks[number].attempts[-1]
        said = last.tail.strip().splitlines()[-1:]
        lines.append(
            f"task {ids[number]} failed: {last.why}"
            + "".join(f"; last line: {w[:100]}" for w in said)
        )
    if failed:
        if len(failed) > _SHOWN_FAILURES:
            more = f"{len(failed) - _SHOWN_FAILURES} more failed; "
        else:
            more = ""
        lines.append(
            f"{more}for details: windrow explain {shlex.quote(ids[failed[0]])}{of_run(told.paths)}"
        )
    return lines


def job_rows(
    told: RunView, now_s: float, most: int | None = _SHOWN_JOBS
) -> tuple[list[list[str]], int]:
    """The jobs as rows of text, those in the system and the latest others, and how many were left
    out."""
    jobs = told.story.jobs
    kept = sorted(jobs)
    if most is not None and len(jobs) > most:
        alive = [number for number in kept if jobs[number].outcome is None]
        others = [number for number in reversed(kept) if jobs[number].outcome is not None]
        kept = sorted([*alive, *others][:most])
    return [_row(number, jobs[number], told.story, now_s) for number in kept], len(jobs) - len(kept)


def _done_in(number: int, job: JobStory, story: RunStory) -> int:
    return sum(
        any(a.job == number and a.outcome is AttemptState.FINISHED for a in story.tasks[t].attempts)
        for t in job.plan.all_tasks
    )


def _row(number: int, job: JobStory, story: RunStory, now_s: float) -> list[str]:
    from windrow.story.waiting import waits_because

    begun = job.planned_s if job.submitted_s is None else job.submitted_s
    waited = (job.started_s or job.ended_s or now_s) - begun
    ran = "" if job.started_s is None else span((job.ended_s or now_s) - job.started_s)
    return [
        str(number),
        job.id or "",
        job.state,
        str(job.plan.nodes),
        "no limit" if job.limit_s is None else span(job.limit_s),
        f"{_done_in(number, job, story)}/{len(job.plan.all_tasks)}",
        span(waited),
        ran,
        job.note or waits_because(job),
    ]


HEADS = ("job", "id", "state", "nodes", "requested", "tasks", "waited", "ran", "")


def table(told: RunView, now_s: float, most: int | None = _SHOWN_JOBS) -> Table:
    """The jobs as a table."""
    rows, hidden = job_rows(told, now_s, most)
    bad = JobStage.KILLED, JobStage.REJECTED
    colours: dict[str, str] = {
        JobStage.RUNNING: "green",
        JobStage.WAITING: "yellow",
        **dict.fromkeys(bad, "red"),
    }
    cells = [
        [
            terminal.text(printable(c), style=colours.get(row[2], "") if i == 2 else "")
            for i, c in enumerate(row)
        ]
        for row in rows
    ]
    heads = list(HEADS)
    align = "<<<>>>>>l"
    if any(job.plan.site for job in told.story.jobs.values()):
        heads = [*heads[:2], "site", *heads[2:]]
        align = f"<{align}"
        for row, words in zip(rows, cells, strict=True):
            words.insert(2, terminal.text(printable(told.story.jobs[int(row[0])].plan.site)))
    shown = terminal.table(heads, cells, align)
    if hidden:
        from windrow.app.runs import of_run

        shown.caption = f"{hidden} more jobs: windrow status --all{of_run(told.paths)}"
    return shown


def screen(told: RunView) -> RenderableType:
    """Everything, as it is redrawn while a run is active."""
    from rich.console import Group

    now = time.time()
    return Group(terminal.text(*summary(told, now)), terminal.text(""), table(told, now))
