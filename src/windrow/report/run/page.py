"""The page of one run: what was done, what waited, what failed and why, on one page that needs nothing else.

It is told from the records, so a run that is running, was stopped, or failed has a page as well as a finished one, and
a simulated one as well as a real one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from windrow.manager import figures
from windrow.manager.node_files import RoleData, data_by_role
from windrow.manager.states import ACTIVE, AttemptState, RunState, TaskState
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

if TYPE_CHECKING:
    from windrow.lab.background import Background

_MOST_JOBS = 60
_MOST_KINDS = 30
_SLOWEST = 10
_TILES = "display: grid; grid-template-columns: repeat(auto-fit, minmax(12rem, 1fr)); gap: .7rem; margin: 1.2rem 0"
_TILE = "border: 1px solid var(--rule); border-radius: .4rem; padding: .6rem .8rem"
_BIG = "display: block; font-size: 1.35rem; font-weight: 650; font-variant-numeric: tabular-nums"
_SMALL = "color: var(--soft); font-size: .88rem"


def run_page(told: figures.RecordedRun, background: Background | None = None, what: Sequence[str] = ()) -> str:
    """HTML about one run. `background` is what its cluster did meanwhile, `what` says in lines what was run where."""
    colours, keys = kind_colours(told.story.workflow)
    picture, caption = run_gantt(told, colours, background)
    moved = data_by_role(told.story)
    in_vain = section("Failed and lost attempts", failures(told))
    went_wrong = told.state == RunState.FAILED  # then it is what the reader came for
    sections = [
        _tiles(told),
        *([in_vain] if went_wrong else []),
        section("The run over time", figure(picture, caption, legend(keys, marks=False)), notes(what) if what else ""),
        *([] if told.is_simulated else [section("Predicted and actual starts", starts(told))]),
        *([] if told.space is None else [section("Space", space(told))]),
        *([section("Data on nodes", _data(moved), space_of_nodes(told))] if moved else []),
        section("Node-hours", facts(_node_hours(told)), note(_NODE_HOURS)),
        *([] if went_wrong else [in_vain]),
        section("Jobs", _jobs(told)),
        section("Decisions", decisions(told)),
        section("Kinds of task", _kinds(told)),
        section("Slowest tasks", _slowest(told)),
    ]
    workflow = told.story.workflow.name
    return page(f"{workflow} by {told.strategy}" if told.is_simulated else f"Run {told.name}", _lead(told), sections)


_NODE_HOURS = (
    "A task uses its share of its node's cores, or its whole nodes. Used: by attempts that succeeded or are "
    "still running. Wasted: by attempts that failed or were lost. Idle: allocated to a job while no task used it."
)


def _lead(told: figures.RecordedRun) -> str:
    story = told.story
    done, total = story.count(TaskState.FINISHED), len(story.tasks)
    if told.is_simulated:
        waited = f"no task ran for {format_duration(figures.visible_wait_s(told))} of it"
        return f"Done in {format_duration(told.makespan_s)}, with {count(len(story.jobs), 'job')}; {waited}."
    began = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(told.begun_s))
    words = (
        f"{told.state.capitalize()}: {done:,} of {count(total, 'task')} finished, by {told.strategy} on {told.queue}"
    )
    return f"{words}. Started {began}." + (f" It gave up: {story.trouble}" if story.trouble else "")


def _tiles(told: figures.RecordedRun) -> str:
    tiles = (
        f'<div style="{_TILE}"><span style="{_BIG}">{escape(value)}</span>'
        f'<span style="{_SMALL}">{escape(name)}</span></div>'
        for name, value in _figures(told)
    )
    return f'<div style="{_TILES}">{"".join(tiles)}</div>'


def _figures(told: figures.RecordedRun) -> Iterator[tuple[str, str]]:
    story, used = told.story, figures.node_time(told)
    yield "tasks finished", f"{story.count(TaskState.FINISHED):,} / {len(story.tasks):,}"
    yield "so far" if told.state in ACTIVE else "from start to end", span(told.makespan_s)
    yield "with no task running", span(figures.visible_wait_s(told))
    yield "jobs", f"{len(story.jobs):,}"
    waits = [figures.wait_s(job, told.until_s) for job in story.jobs.values()]
    yield "longest wait of a job", span(max(waits, default=0.0))
    waited_s, hidden_s = figures.queue_waits_s(told)
    if waited_s >= 1:
        yield f"of {span(waited_s)} in the queue, hidden behind running tasks", span(hidden_s)
    yield "node time allocated", node_span(used.held_s)
    yield "of it used by tasks", "–" if used.share is None else percent(used.share)
    yield "wasted attempts", f"{sum(a.outcome.is_in_vain for _, a in figures.attempts(story)):,}"


def _node_hours(told: figures.RecordedRun) -> Iterator[tuple[str, str]]:
    used = figures.node_time(told)

    def part(seconds: float) -> str:
        return node_span(seconds) + (f" ({percent(seconds / used.held_s)})" if used.held_s else "")

    yield "held", node_span(used.held_s)
    yield "used", part(used.used_s)
    yield "wasted", part(used.lost_s)
    if used.copies_s:
        yield "of it copies that another attempt beat", part(used.copies_s)
    yield "idle", part(used.idle_s)
    if waited_s := figures.data_node_s(told):
        yield "of it waiting for data from elsewhere", part(waited_s)
    if not told.is_simulated:
        yield "CPU time of tasks", span(sum(a.cpu_s for _, a in figures.attempts(told.story)))


def _jobs(told: figures.RecordedRun) -> str:
    rows, levels = [], told.story.workflow.levels
    for number, job in list(told.story.jobs.items())[:_MOST_JOBS]:
        share, ran = figures.node_time(told, number).share, figures.ran_s(job, told.until_s)
        name = cell(f"job {number}{f', {job.plan.site}' if job.plan.site else ''}", f"id {job.id}" if job.id else "")
        mine = levels[list(job.plan.all_tasks)]
        at = "–".join(map(str, dict.fromkeys((int(mine.min()), int(mine.max())))))
        spans = ["–", "–"]
        if job.submitted_s is not None:
            spans = [f"+{span(job.submitted_s - told.begun_s)}", span(figures.wait_s(job, told.until_s))]
        spans += ["no limit" if job.limit_s is None else span(job.limit_s), "–" if ran is None else span(ran)]
        state = cell(f"{job.state} ({job.cause})" if job.cause else job.state, job.note)
        size = f"{len(job.plan.all_tasks):,}", f"{job.plan.nodes:,}"
        rows.append((name, at, *size, *spans, "–" if share is None else percent(share), state))
    if not rows:
        return note("No job was planned.")
    heads = ["", "levels", "tasks", "nodes", "submitted", "waited", "requested", "ran", "used", "state"]
    return table(heads, rows, len(told.story.jobs) - len(rows), ": windrow status --all")


def _data(roles: Sequence[RoleData]) -> str:
    """What came to nodes, was found there, stayed and left, by the role of files."""
    heads = ["role", "from the shared files", "from other nodes", "found on the node", "stayed there", "committed"]
    rows = []
    for one in roles:
        links = one.home_bytes, one.nodes_bytes, one.hit_bytes, one.stayed_bytes, one.committed_bytes
        sizes: list[str] = [format_size(size) if size else "–" for size in links]
        found = cell(sizes[2], f"{count(one.hits, 'hit')} of {one.hits + one.brought:,}" if one.hits else "")
        rows.append((one.role, *sizes[:2], found, *sizes[3:]))
    return table(heads, rows)


def _kinds(told: figures.RecordedRun) -> str:
    found = figures.kind_times(told.story)
    if not found:
        return note("No task has finished.")
    rows = []
    for kind in found[:_MOST_KINDS]:
        spans = map(span, (kind.mean_s, kind.longest_s, kind.expected_s, kind.cpu_s))
        rows.append((kind.name or "(no name)", f"{kind.tasks:,}", *spans, _peak(kind.peak_bytes)))
    heads = ["kind", "finished", "mean run", "longest", "expected", "mean CPU time", "peak memory"]
    return table(heads, rows, len(found) - len(rows), " kinds")


def _peak(peak_bytes: int) -> str:
    return format_size(peak_bytes) if peak_bytes else "–"


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
        spans = map(span, (ran, float(workflow.runtime_s[task]), attempt.cpu_s))
        rows.append((workflow.ids[task], *spans, _peak(attempt.peak_bytes), f"job {attempt.job}"))
    return table(["task", "ran", "expected", "CPU time", "peak memory", "in"], rows) if rows else note("None yet.")
