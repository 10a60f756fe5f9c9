"""The page of one run: what was done, what waited, what failed and why, on one page that needs
nothing else.

It is told from the records, so a run that is running, was stopped, or failed has a page as well as
a finished one, and a simulated one as well as a real one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from windrow.model.size import format_size
from windrow.model.wording import count, node_span, percent, span
from windrow.report.page import Lively, Time, cell, facts, figure, note, notes, page, section, table
from windrow.report.plot import legend
from windrow.report.run.about import NOTHING, About, about
from windrow.report.run.candidates import why
from windrow.report.run.columns import columns_of, packed
from windrow.report.run.details import decisions, failures
from windrow.report.run.files import files
from windrow.report.run.gantt import run_gantt
from windrow.report.run.head import head, task_link, tiles
from windrow.report.run.kinds import graph, kinds
from windrow.report.run.planned import planned, planned_jobs
from windrow.report.run.space import space, space_of_nodes
from windrow.report.run.starts import starts
from windrow.report.run.view import run_figures
from windrow.report.run.what_if import what_if
from windrow.report.workflow import kind_colours
from windrow.story import figures
from windrow.story.node_files import RoleData, data_by_role
from windrow.story.states import AttemptState, RunState

if TYPE_CHECKING:
    from windrow.app.runs import RunView
    from windrow.story.story import JobStory, TaskAttempt
    from windrow.trials.background import Background

_MOST_JOBS = 60
_SLOWEST = 10


def run_page(
    told: figures.RecordedRun,
    background: Background | None = None,
    what: Sequence[str] = (),
    known: About = NOTHING,
) -> str:
    """HTML about one run. `background` is what its cluster did meanwhile, `what` says in lines what
    was run where, `known` what was executed by whom."""
    sections = [*_sections(told, background, what, known)]
    title = f"Run {told.name}"
    if told.is_simulated:
        title = f"{told.story.workflow.name} by {told.strategy}"
    data = packed(columns_of(told, known, background, run_figures(told)))
    return page(title, "", sections, Lively(data, known.reports_every_s))


def _sections(
    told: figures.RecordedRun, background: Background | None, what: Sequence[str], known: About
) -> Iterator[str]:
    """In the order in which a reader needs them: failures first, if the run failed."""
    in_vain = section("Failed and lost attempts", failures(told), plain=not told.is_simulated)
    yield head(told, known)
    yield tiles(told)
    if told.state == RunState.FAILED:  # then it is what the reader came for
        yield in_vain
    yield _over_time(told, background, what)
    yield from (section(title, body) for title, body in _plans(told, known) if body)
    yield from _measured_sections(told, known)
    if told.state != RunState.FAILED and any(
        attempt.outcome.is_in_vain for _, attempt in figures.attempts(told.story)
    ):
        yield in_vain
    yield section("Decisions", decisions(told))
    if known.provenance:
        yield section("Provenance", facts(known.provenance))


def _measured_sections(told: figures.RecordedRun, known: About) -> Iterator[str]:
    yield _tasks(told)
    yield section("Kinds of task", kinds(told), graph(told, task_link))
    yield section("Jobs", _jobs(told))
    yield from (section(title, *body) for title, body in _space_and_data(told, known))
    yield section("Node time", facts(_node_hours(told)), note(_NODE_HOURS))


def page_now(told: RunView, now_s: float, every_s: float = 0.0) -> str:
    """The page of a real run as it is now. `every_s`: after how long it is written again."""
    known = about(told, now_s, every_s)
    return run_page(told.recorded(now_s), known.around, known=known)


def _plans(told: figures.RecordedRun, known: About) -> Iterator[tuple[str, str]]:
    """What was expected and why, beside what came."""
    yield "Planned and actual", planned(told)
    yield "Why this cut", why(told)
    yield "What if", what_if(told, known)
    if told.predictions:
        yield "Predicted and actual starts", starts(told)


def _space_and_data(told: figures.RecordedRun, known: About) -> Iterator[tuple[str, Sequence[str]]]:
    """Files, and the space that they took."""
    if made := files(told, known):
        yield "Files", [made]
    if told.space is not None:
        yield "Space", [space(told)]
    if moved := data_by_role(told.story):
        yield "Data on nodes", [_data(moved), space_of_nodes(told)]


def _tasks(told: figures.RecordedRun) -> str:
    """All of them in a table that the script makes; without it, those that took longest."""
    return section(
        "Tasks",
        '<div id="place-tasks"></div>',
        f'<div class="plain"><h3>Slowest</h3>{_slowest(told)}</div>',
    )


def _over_time(
    told: figures.RecordedRun, background: Background | None, what: Sequence[str]
) -> str:
    colours, keys = kind_colours(told.story.workflow)
    picture, caption = run_gantt(told, colours, background)
    words = ""
    if what:
        words = notes(what)
    drawn = figure(picture, caption, legend(keys, marks=False))
    return section(
        "The run over time",
        f'<div id="place-timeline"></div><div class="plain">{drawn}</div>',
        words,
    )


_NODE_HOURS = (
    "A task uses its share of its node's cores, or its whole nodes. Used: by attempts that "
    "succeeded or are "
    "still running. Lost: by attempts that failed or were lost. Idle: allocated to a job while "
    "no task used it. "
    "Allocated = used + idle + lost."
)


def _or_dash(value: float | None, write: Callable[[float], str]) -> str:
    if value is None:
        return "–"
    return write(value)


def _node_hours(told: figures.RecordedRun) -> Iterator[tuple[str, str]]:
    used = figures.node_time(told)
    part = partial(_part, used.allocated_s)
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
    "predicted wait",
    "waited",
    "requested",
    "planned",
    "ran",
    "used",
    "state",
)


def _part(allocated_s: float, seconds: float) -> str:
    words = node_span(seconds)
    if allocated_s:
        words += f" ({percent(seconds / allocated_s)})"
    return words


def _jobs(told: figures.RecordedRun) -> str:
    jobs = list(told.story.jobs.items())[:_MOST_JOBS]
    if not jobs:
        return note("No job was planned.")
    said = {one.job: one.wait_s for one in planned_jobs(told)}
    rows = [_job(told, number, job, said.get(number)) for number, job in jobs]
    heads = list(_JOB_HEADS)
    if not any(wait_s is not None for wait_s in said.values()):
        _leave_out("predicted wait", heads, rows)
    more = f" jobs: windrow status {told.name} --all"
    if told.is_simulated:
        more = " jobs"
    return table(heads, rows, len(told.story.jobs) - len(rows), more)


def _leave_out(head: str, heads: list[str], rows: Sequence[list[str]]) -> None:
    """This column of a table."""
    place = heads.index(head)
    for row in (heads, *rows):
        del row[place]


def _job(told: figures.RecordedRun, number: int, job: JobStory, said_s: float | None) -> list[str]:
    """What is told of a job under these heads; `said_s` is the wait that was predicted."""
    submitted = waited = "–"
    if job.submitted_s is not None:
        submitted = Time(job.submitted_s - told.begun_s, "+")
        waited = Time(figures.wait_s(job, told.until_s))
    requested = "no limit"
    if job.limit_s is not None:
        requested = Time(job.limit_s)
    return [
        _name_of_job(told, number, job),
        _levels(told, job),
        f"{len(job.plan.all_tasks):,}",
        f"{job.plan.nodes:,}",
        submitted,
        _or_dash(said_s, Time),
        waited,
        requested,
        Time(job.plan.run_s),
        _or_dash(figures.ran_s(job, told.until_s), Time),
        _or_dash(figures.node_time(told, number).share, percent),
        _state_of_job(told, number, job),
    ]


def _levels(told: figures.RecordedRun, job: JobStory) -> str:
    mine = told.story.workflow.levels[list(job.plan.all_tasks)]
    return "–".join(map(str, dict.fromkeys((int(mine.min()), int(mine.max())))))


def _name_of_job(told: figures.RecordedRun, number: int, job: JobStory) -> str:
    name = f"job {number}"
    if job.plan.site:
        name += f", {job.plan.site}"
    hint = ""
    if job.id and not told.is_simulated:
        hint = f"id {job.id}"
    return cell(name, hint)


def _state_of_job(told: figures.RecordedRun, number: int, job: JobStory) -> str:
    state: str = job.state
    if job.cause:
        state = f"{job.state} ({job.cause})"
    if failed := _failed_in(told, number, job):
        state += f", {failed:,} failed"
    return cell(state, job.note)


def _failed_in(told: figures.RecordedRun, number: int, job: JobStory) -> int:
    """How many attempts at its tasks failed in the job."""
    tries = (a for task in job.plan.all_tasks for a in told.story.tasks[task].attempts)
    return sum(a.job == number and a.outcome is AttemptState.FAILED for a in tries)


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


def _measured(told: figures.RecordedRun, cpu_s: float, peak_bytes: int) -> tuple[str, ...]:
    """What only tasks that really ran have: CPU time and peak memory."""
    if told.is_simulated:
        return ()
    return Time(cpu_s), _or_dash(peak_bytes or None, format_size)


def _slowest(told: figures.RecordedRun) -> str:
    workflow = told.story.workflow
    done = _finished(told)
    rows = []
    for ran, task, attempt in done[:_SLOWEST]:
        spans = map(Time, (ran, float(workflow.runtime_s[task])))
        measured = _measured(told, attempt.cpu_s, attempt.peak_bytes)
        rows.append((workflow.ids[task], *spans, *measured, f"job {attempt.job}"))
    if not rows:
        return note("None yet.")
    heads = ["task", "ran", "expected"]
    if not told.is_simulated:
        heads += ["CPU time", "peak memory"]
    return table([*heads, "in"], rows)


def _finished(told: figures.RecordedRun) -> list[tuple[float, int, TaskAttempt]]:
    """Attempts that finished, with how long each ran; the longest first."""
    done = [
        (figures.attempt_s(a, told.until_s), task, a)
        for task, a in figures.attempts(told.story)
        if a.outcome is AttemptState.FINISHED
    ]
    done.sort(key=lambda item: (-item[0], item[1]))
    return done
