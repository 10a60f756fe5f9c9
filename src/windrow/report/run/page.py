"""The page of one run: what was done, what waited, what failed and why, on one page that needs
nothing else.

It is told from the records, so a run that is running, was stopped, or failed has a page as well as
a finished one, and a simulated one as well as a real one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from windrow.model import format_duration
from windrow.model.size import format_size
from windrow.model.wording import count, node_span, percent, span
from windrow.report.page import cell, facts, figure, note, notes, page, section, table
from windrow.report.plot import legend
from windrow.report.run.details import decisions, failures
from windrow.report.run.gantt import run_gantt
from windrow.report.run.space import space, space_of_nodes
from windrow.report.run.starts import starts
from windrow.report.workflow import kind_colours
from windrow.story import figures
from windrow.story.node_files import RoleData, data_by_role
from windrow.story.states import ACTIVE, AttemptState, RunState, TaskState

if TYPE_CHECKING:
    from windrow.story.story import JobStory
    from windrow.trials.background import Background

_MOST_JOBS = 60
_MOST_KINDS = 30
_SLOWEST = 10
_TILES = (
    "display: grid; grid-template-columns: repeat(auto-fit, minmax(12rem, 1fr)); gap: "
    ".7rem; margin: 1.2rem 0"
)
_TILE = "border: 1px solid var(--rule); border-radius: .4rem; padding: .6rem .8rem"
_BIG = "display: block; font-size: 1.35rem; font-weight: 650; font-variant-numeric: tabular-nums"
_SMALL = "color: var(--soft); font-size: .88rem"


def run_page(
    told: figures.RecordedRun, background: Background | None = None, what: Sequence[str] = ()
) -> str:
    """HTML about one run. `background` is what its cluster did meanwhile, `what` says in lines what
    was run where."""
    in_vain = section("Failed and lost attempts", failures(told))
    sections = [_tiles(told)]
    if told.state == RunState.FAILED:  # then it is what the reader came for
        sections.append(in_vain)
    sections.append(_over_time(told, background, what))
    if not told.is_simulated:
        sections.append(section("Predicted and actual starts", starts(told)))
    if told.space is not None:
        sections.append(section("Space", space(told)))
    moved = data_by_role(told.story)
    if moved:
        sections.append(section("Data on nodes", _data(moved), space_of_nodes(told)))
    sections.append(section("Node-hours", facts(_node_hours(told)), note(_NODE_HOURS)))
    if told.state != RunState.FAILED:
        sections.append(in_vain)
    sections += [
        section("Jobs", _jobs(told)),
        section("Decisions", decisions(told)),
        section("Kinds of task", _kinds(told)),
        section("Slowest tasks", _slowest(told)),
    ]
    title = f"Run {told.name}"
    if told.is_simulated:
        title = f"{told.story.workflow.name} by {told.strategy}"
    return page(title, _lead(told), sections)


def _over_time(
    told: figures.RecordedRun, background: Background | None, what: Sequence[str]
) -> str:
    colours, keys = kind_colours(told.story.workflow)
    picture, caption = run_gantt(told, colours, background)
    words = ""
    if what:
        words = notes(what)
    drawn = figure(picture, caption, legend(keys, marks=False))
    return section("The run over time", drawn, words)


_NODE_HOURS = (
    "A task uses its share of its node's cores, or its whole nodes. Used: by attempts that "
    "succeeded or are "
    "still running. Lost: by attempts that failed or were lost. Idle: allocated to a job while "
    "no task used it. "
    "Allocated = used + idle + lost."
)


def _lead(told: figures.RecordedRun) -> str:
    story = told.story
    done = story.count(TaskState.FINISHED)
    total = len(story.tasks)
    if told.is_simulated:
        waited = f"no task ran for {format_duration(figures.visible_wait_s(told))} of it"
        return (
            f"Done in {format_duration(told.makespan_s)}, with "
            f"{count(len(story.jobs), 'job')}; {waited}."
        )
    began = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(told.begun_s))
    words = (
        f"{told.state.capitalize()}: {done:,} of {count(total, 'task')} finished, by "
        f"{told.strategy} on {told.queue}"
    )
    words += f". Started {began}."
    if story.trouble:
        words += f" It gave up: {story.trouble}"
    return words


def _tiles(told: figures.RecordedRun) -> str:
    tiles = (
        f'<div style="{_TILE}"><span style="{_BIG}">{escape(value)}</span>'
        f'<span style="{_SMALL}">{escape(name)}</span></div>'
        for name, value in _figures(told)
    )
    return f'<div style="{_TILES}">{"".join(tiles)}</div>'


def _figures(told: figures.RecordedRun) -> Iterator[tuple[str, str]]:
    story = told.story
    used = figures.node_time(told)
    yield "tasks finished", f"{story.count(TaskState.FINISHED):,} / {len(story.tasks):,}"
    if told.state in ACTIVE:
        yield "so far", span(told.makespan_s)
    else:
        yield "from start to end", span(told.makespan_s)
    yield "with no task running", span(figures.visible_wait_s(told))
    yield "jobs", f"{len(story.jobs):,}"
    waits = [figures.wait_s(job, told.until_s) for job in story.jobs.values()]
    yield "longest wait of a job", span(max(waits, default=0.0))
    waited_s, hidden_s = figures.queue_waits_s(told)
    if waited_s >= 1:
        yield f"of {span(waited_s)} in the queue, hidden behind running tasks", span(hidden_s)
    yield "node time allocated", node_span(used.allocated_s)
    yield "of it used by tasks", _or_dash(used.share, percent)
    if used.cpu_efficiency is not None:
        yield "CPU efficiency", percent(used.cpu_efficiency)
    yield "lost attempts", f"{sum(a.outcome.is_in_vain for _, a in figures.attempts(story)):,}"


def _or_dash(value: float | None, write: Callable[[float], str]) -> str:
    if value is None:
        return "–"
    return write(value)


def _node_hours(told: figures.RecordedRun) -> Iterator[tuple[str, str]]:
    used = figures.node_time(told)

    def part(seconds: float) -> str:
        words = node_span(seconds)
        if used.allocated_s:
            words += f" ({percent(seconds / used.allocated_s)})"
        return words

    yield "allocated", node_span(used.allocated_s)
    yield "used", part(used.used_s)
    yield "lost", part(used.lost_s)
    if used.copies_s:
        yield "of it copies that another attempt beat", part(used.copies_s)
    yield "idle", part(used.idle_s)
    if waited_s := figures.data_node_s(told):
        yield "of it waiting for data from elsewhere", part(waited_s)
    if used.cpu_s is not None:
        yield "CPU time of tasks", span(used.cpu_s)
    if used.cpu_efficiency is not None:
        yield "CPU efficiency", f"{percent(used.cpu_efficiency)} of the core time allocated"


_JOB_HEADS = (
    "",
    "levels",
    "tasks",
    "nodes",
    "submitted",
    "waited",
    "requested",
    "ran",
    "used",
    "state",
)


def _jobs(told: figures.RecordedRun) -> str:
    jobs = list(told.story.jobs.items())[:_MOST_JOBS]
    if not jobs:
        return note("No job was planned.")
    rows = [_job(told, number, job) for number, job in jobs]
    more = f" jobs: windrow status {told.name} --all"
    if told.is_simulated:
        more = " jobs"
    return table(_JOB_HEADS, rows, len(told.story.jobs) - len(rows), more)


def _job(told: figures.RecordedRun, number: int, job: JobStory) -> tuple[str, ...]:
    """What is told of a job under these heads."""
    name = f"job {number}"
    if job.plan.site:
        name += f", {job.plan.site}"
    hint = ""
    if job.id and not told.is_simulated:
        hint = f"id {job.id}"
    mine = told.story.workflow.levels[list(job.plan.all_tasks)]
    levels = "–".join(map(str, dict.fromkeys((int(mine.min()), int(mine.max())))))
    submitted = waited = "–"
    if job.submitted_s is not None:
        submitted = f"+{span(job.submitted_s - told.begun_s)}"
        waited = span(figures.wait_s(job, told.until_s))
    requested = "no limit"
    if job.limit_s is not None:
        requested = span(job.limit_s)
    state: str = job.state
    if job.cause:
        state = f"{job.state} ({job.cause})"
    return (
        cell(name, hint),
        levels,
        f"{len(job.plan.all_tasks):,}",
        f"{job.plan.nodes:,}",
        submitted,
        waited,
        requested,
        _or_dash(figures.ran_s(job, told.until_s), span),
        _or_dash(figures.node_time(told, number).share, percent),
        cell(state, job.note),
    )


def _data(roles: Sequence[RoleData]) -> str:
    """What came to nodes, was found there, stayed and left, by the role of files."""
    heads = [
        "role",
        "from the shared files",
        "from other nodes",
        "found on the node",
        "stayed there",
        "committed",
    ]
    rows = []
    for one in roles:
        links = (
            one.home_bytes,
            one.nodes_bytes,
            one.hit_bytes,
            one.stayed_bytes,
            one.committed_bytes,
        )
        sizes = [_or_dash(size or None, format_size) for size in links]
        hits = ""
        if one.hits:
            hits = f"{count(one.hits, 'hit')} of {one.hits + one.brought:,}"
        found = cell(sizes[2], hits)
        rows.append((one.role, *sizes[:2], found, *sizes[3:]))
    return table(heads, rows)


def _kinds(told: figures.RecordedRun) -> str:
    found = figures.kind_times(told.story)
    if not found:
        return note("No task has finished.")
    rows = []
    for kind in found[:_MOST_KINDS]:
        spans = map(span, (kind.mean_s, kind.longest_s, kind.expected_s))
        measured = _measured(told, kind.cpu_s, kind.peak_bytes)
        rows.append((kind.name or "(no name)", f"{kind.tasks:,}", *spans, *measured))
    heads = ["kind", "finished", "mean run", "longest", "expected"]
    if not told.is_simulated:
        heads += ["mean CPU time", "peak memory"]
    return table(heads, rows, len(found) - len(rows), " kinds")


def _measured(told: figures.RecordedRun, cpu_s: float, peak_bytes: int) -> tuple[str, ...]:
    """What only tasks that really ran have: CPU time and peak memory."""
    if told.is_simulated:
        return ()
    return span(cpu_s), _or_dash(peak_bytes or None, format_size)


def _slowest(told: figures.RecordedRun) -> str:
    workflow = told.story.workflow
    done = [
        (figures.attempt_s(a, told.until_s), task, a)
        for task, a in figures.attempts(told.story)
        if a.outcome is AttemptState.FINISHED
    ]
    done.sort(key=lambda item: (-item[0], item[1]))
    rows = []
    for ran, task, attempt in done[:_SLOWEST]:
        spans = map(span, (ran, float(workflow.runtime_s[task])))
        measured = _measured(told, attempt.cpu_s, attempt.peak_bytes)
        rows.append((workflow.ids[task], *spans, *measured, f"job {attempt.job}"))
    if not rows:
        return note("None yet.")
    heads = ["task", "ran", "expected"]
    if not told.is_simulated:
        heads += ["CPU time", "peak memory"]
    return table([*heads, "in"], rows)
