"""The page of one run: each job's wait and its nodes, the tasks on them, and what the cluster did meanwhile.

Jobs have a row each while they are few; when there are many, jobs that are never in the system together share rows.
A row is as high as its widest job. Within a node, tasks that run at once lie above each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from windrow.lab.background import Background, Ints
from windrow.lab.trial import JobRecord, TaskRecord, Trial
from windrow.model import Workflow, format_duration
from windrow.model.wording import count
from windrow.report.page import cell, facts, figure, note, notes, page, section, table
from windrow.report.svg import plot
from windrow.report.svg.axis import Axis, count_axis, time_axis
from windrow.report.svg.plot import COLOURS, Frame, legend
from windrow.report.svg.steps import thinned
from windrow.shape import kinds

_WIDTH = 960
_LEFT = 74
_RIGHT = 20
_TOP = 10
_ALONE = 24  # so many jobs have a row each
_HEIGHT = 620  # pixels that all rows may take, unless nodes would get too thin
_NODE = (1.6, 14.0)  # the least and the most pixels of a node
_GAP = 9.0
_CURVE = 96
_MOST_HINTS = 4000
_MOST_ROWS = 40


@dataclass(frozen=True, slots=True)
class _Row:
    """Where a job is drawn."""

    top: float
    height: float


def gantt_page(trial: Trial, background: Background, what: Sequence[str]) -> str:
    """HTML about one run; `what` says in lines what was run where."""
    colours, keys = _colours(trial.workflow)
    legend_html = legend(keys, marks=False)
    title = f"{trial.workflow.name} by {trial.strategy}"
    lead = (
        f"Done in {format_duration(trial.makespan_s)}, with {count(len(trial.jobs), 'job')}; "
        f"for {format_duration(trial.visible_wait_s)} of it no task ran."
    )
    sections = [
        section("The run", figure(_drawn(trial, background, colours), _caption(trial), legend_html)),
        section("In figures", facts(_figures(trial)), notes([*what])),
        section("Jobs", _jobs(trial)),
    ]
    return page(title, lead, sections)


def _caption(trial: Trial) -> str:
    rows = "Each job has a row" if len(trial.jobs) <= _ALONE else "Jobs one after the other share a row"
    lost = any(attempt.ended_s is None for attempt in trial.attempts)
    crossed = " A task that is crossed out was lost when its job ran out of time, and ran again later." if lost else ""
    return (
        f"Time goes from left to right. {rows}: a job is pale while it waits in the queue, then a frame as high as its "
        "nodes are many, for as long as it holds them; in it are its tasks, each on its node, coloured by kind. Blank "
        "in a frame is a node that idles. Below, on the same time axis: the nodes that others keep busy (blue) with "
        f"this run's on top (orange), and how many jobs of others wait.{crossed} Rest the pointer on anything for its "
        "figures."
    )


def _colours(workflow: Workflow) -> tuple[dict[str, int], list[str]]:
    """A colour for each kind of task, and the names for the legend; the grey is for all kinds beyond the sixth."""
    found = kinds(workflow)
    most = sorted(found, key=lambda kind: -kind.tasks)[: COLOURS - 1] if len(found) >= COLOURS else found
    shown = [kind.name for kind in found if kind in most]
    colours = {kind.name: shown.index(kind.name) if kind.name in shown else COLOURS - 1 for kind in found}
    return colours, [name or "tasks" for name in shown] + (["others"] if len(found) > len(shown) else [])


def _drawn(trial: Trial, background: Background, colours: Mapping[str, int]) -> str:
    x = _axis(trial, background)
    rows = _rows(trial.jobs)
    bottom = max(row.top + row.height for row in rows)
    frame = Frame(_LEFT, _TOP, _WIDTH - _LEFT - _RIGHT, bottom - _TOP + 8, x, Axis(0, 1, ()))
    parts = [_grid(frame, frame.bottom + 30 + 2 * (_CURVE + 34) - 34)]
    slots = _slots(trial)
    hints = len(trial.attempts) <= _MOST_HINTS
    mine: dict[int, list[int]] = {}
    for i, attempt in enumerate(trial.attempts):
        mine.setdefault(attempt.job, []).append(i)
    for number, (job, row) in enumerate(zip(trial.jobs, rows, strict=True)):
        parts.append(_wait(frame, trial, number, job, row))
        for i in mine.get(number, []):
            parts.append(_task(frame, trial, trial.attempts[i], row, slots[i], colours, hint=hints))
        parts.append(_outline(frame, trial, number, job, row))
    parts += _load(background, x, frame.bottom + 30)
    return plot.picture(_WIDTH, frame.bottom + 30 + 2 * (_CURVE + 34) + 14, f"Run of {trial.workflow.name}", parts)


def _axis(trial: Trial, background: Background) -> Axis:
    """Labels count from the run's submission; places are on the log's clock."""
    zero = trial.begun_s
    axis = time_axis(background.begin_s - zero, background.end_s - zero, "since the workflow was submitted")
    ticks = tuple((value + zero, label) for value, label in axis.ticks)
    return Axis(background.begin_s, background.end_s, ticks, axis.title)


def _rows(jobs: Sequence[JobRecord]) -> list[_Row]:
    lane = list(range(len(jobs))) if len(jobs) <= _ALONE else _lanes(jobs)
    widest = [0] * (max(lane) + 1)
    for job, at in zip(jobs, lane, strict=True):
        widest[at] = max(widest[at], job.plan.nodes)
    least, most = _NODE
    node = min(most, max(least, (_HEIGHT - _GAP * len(widest)) / sum(widest)))
    tops = [float(_TOP)]
    for nodes in widest:
        tops.append(tops[-1] + max(nodes * node, 4.0) + _GAP)
    return [_Row(tops[at], max(job.plan.nodes * node, 4.0)) for job, at in zip(jobs, lane, strict=True)]


def _lanes(jobs: Sequence[JobRecord]) -> list[int]:
    """Rows such that jobs in one row are never in the system together: each takes the first that is free."""
    free_s: list[int] = []
    lanes = []
    for job in jobs:
        at = next((i for i, free in enumerate(free_s) if free <= job.submitted_s), len(free_s))
        free_s[at:] = [job.ended_s or job.submitted_s, *free_s[at + 1 :]]
        lanes.append(at)
    return lanes


def _slots(trial: Trial) -> list[tuple[int, int]]:
    """For each attempt its place among those on the same node, and how many places that node needs."""
    free: dict[tuple[int, int], list[int]] = {}
    places = []
    for attempt in trial.attempts:  # in the order of their starts
        node = free.setdefault((attempt.job, attempt.nodes[0]), [])
        at = next((i for i, until in enumerate(node) if until <= attempt.started_s), len(node))
        node[at:] = [_end(trial, attempt), *node[at + 1 :]]
        places.append(at)
    return [(at, len(free[a.job, a.nodes[0]])) for at, a in zip(places, trial.attempts, strict=True)]


def _end(trial: Trial, attempt: TaskRecord) -> int:
    """When the attempt ended, or was lost with its job."""
    return attempt.ended_s if attempt.ended_s is not None else trial.jobs[attempt.job].ended_s or trial.ended_s


def _grid(frame: Frame, bottom: float) -> str:
    """Lines from each tick down through all pictures."""
    lines = (f"M{float(frame.across(value)):.1f} {frame.top:.1f}V{bottom:.1f}" for value, _ in frame.x.ticks)
    return f'<path class="grid" d="{"".join(lines)}"/>'


def _wait(frame: Frame, trial: Trial, number: int, job: JobRecord, row: _Row) -> str:
    until = job.ended_s if job.started_s is None else job.started_s
    a, b = frame.across([job.submitted_s, until if until is not None else trial.ended_s]).tolist()
    words = f"job {number} waits {format_duration((until or trial.ended_s) - job.submitted_s)}"
    if job.started_s is None:
        words += ", then is taken back"
    box = _box(a, row.top, b - a, row.height)
    return f'<rect class="veil" {box}><title>{escape(words)}</title></rect>' if b > a else ""


def _outline(frame: Frame, trial: Trial, number: int, job: JobRecord, row: _Row) -> str:
    middle = row.top + row.height / 2 + 4
    label = plot.text(_LEFT - 8, middle, f"job {number}", "end") if len(trial.jobs) <= _ALONE else ""
    if job.started_s is None:
        return label
    end = job.ended_s if job.ended_s is not None else trial.ended_s
    a, b = frame.across([job.started_s, end]).tolist()
    box = _box(a, row.top, max(b - a, 0.8), row.height)
    return f'<rect fill="none" class="axis" {box}></rect>{label}'


def _task(
    frame: Frame,
    trial: Trial,
    attempt: TaskRecord,
    row: _Row,
    slot: tuple[int, int],
    colours: Mapping[str, int],
    *,
    hint: bool,
) -> str:
    workflow, end = trial.workflow, _end(trial, attempt)
    a, b = frame.across([attempt.started_s, end]).tolist()
    node = row.height / trial.jobs[attempt.job].plan.nodes
    high = node * len(attempt.nodes) if len(attempt.nodes) > 1 else node / slot[1]
    top = row.top + min(attempt.nodes) * node + (slot[0] * high if len(attempt.nodes) == 1 else 0)
    seam = min(0.8, high / 5)
    box = _box(a, top + seam / 2, max(b - a, 0.5), high - seam)
    colour = f"c{colours[workflow.kinds[attempt.task]]}"
    is_lost = attempt.ended_s is None
    words = f"<title>{escape(_hint(trial, attempt, end))}</title>" if hint else ""
    rect = f'<rect class="{"area" if is_lost else "bar"} {colour}" {box}>{words}</rect>'
    if is_lost:
        rect += f'<path class="lost line thin {colour}" d="M{a:.1f} {top:.1f}L{b:.1f} {top + high:.1f}"/>'
    return rect


def _hint(trial: Trial, attempt: TaskRecord, end_s: int) -> str:
    workflow = trial.workflow
    kind = f" ({workflow.kinds[attempt.task]})" if workflow.kinds[attempt.task] else ""
    node = "nodes" if len(attempt.nodes) > 1 else "node"
    where = f"job {attempt.job}, {node} {', '.join(map(str, attempt.nodes[:8]))}"
    fate = "lost after" if attempt.ended_s is None else "ran"
    return f"{workflow.ids[attempt.task]}{kind}: {where}, {fate} {format_duration(end_s - attempt.started_s)}"


def _box(x: float, y: float, width: float, height: float) -> str:
    return f'x="{x:.1f}" y="{y:.2f}" width="{max(width, 0):.1f}" height="{max(height, 0.1):.2f}"'


def _load(background: Background, x: Axis, top: float) -> list[str]:
    """Two curves: busy nodes, of others and of this run on top of them, and the queue of others."""
    width = _WIDTH - _LEFT - _RIGHT
    nodes = Frame(_LEFT, top, width, _CURVE, x, count_axis(background.machine_nodes, most_ticks=3))
    high = int(background.jobs_waiting[1].max(initial=0))
    queue = Frame(_LEFT, nodes.bottom + 34, width, _CURVE, x, count_axis(max(1, high), most_ticks=3))
    return [
        plot.axes(nodes, x_labels=False),
        plot.step_line(nodes, *thinned(*background.busy_nodes), 1),
        _cleared(nodes, *thinned(*background.others_nodes)),
        plot.step_line(nodes, *thinned(*background.others_nodes), 0),
        plot.text(_LEFT, nodes.top - 8, f"busy nodes, of {background.machine_nodes:,}", "name"),
        plot.axes(queue),
        plot.step_line(queue, *thinned(*background.jobs_waiting), COLOURS - 1),
        plot.text(_LEFT, queue.top - 8, f"jobs of others that wait, at most {high:,}", "name"),
    ]


def _cleared(frame: Frame, times: Ints, values: Ints) -> str:
    """The area under a step function in the colour of the page, so that what is drawn next is not tinted twice."""
    across, down = frame.across(times).tolist(), frame.down(values).tolist()
    outline = "".join(f"H{x:.1f}V{y:.1f}" for x, y in zip(across, down, strict=True))
    return f'<path style="fill: var(--ground)" d="M{across[0]:.1f} {frame.bottom:.1f}{outline}V{frame.bottom:.1f}Z"/>'


def _figures(trial: Trial) -> Iterator[tuple[str, str]]:
    lost = sum(attempt.ended_s is None for attempt in trial.attempts)
    yield "makespan", format_duration(trial.makespan_s)
    yield "visible wait", f"{format_duration(trial.visible_wait_s)}: no task ran"
    yield "waits in the queue", f"{format_duration(trial.queue_wait_s)}, summed over jobs"
    yield "node-hours", f"{trial.used_node_s / 3600:,.1f} held by jobs"
    yield "tasks lost", f"{lost:,}" if lost else "none"


def _jobs(trial: Trial) -> str:
    zero, levels = trial.begun_s, trial.workflow.levels
    rows = []
    for number, job in enumerate(trial.jobs[:_MOST_ROWS]):
        mine = levels[list(job.plan.tasks)]
        low, high = int(mine.min()), int(mine.max())
        started = job.started_s is not None
        end = job.ended_s or trial.ended_s
        rows.append(
            [
                cell(f"job {number}"),
                cell(f"{low}" if low == high else f"{low}–{high}"),
                cell(f"{len(job.plan.tasks):,}"),
                cell(f"{job.plan.nodes:,}"),
                cell(f"+{format_duration(job.submitted_s - zero)}"),
                cell(format_duration((job.started_s if job.started_s is not None else end) - job.submitted_s)),
                cell(format_duration(job.plan.requested_s)),
                cell(format_duration(end - (job.started_s or end)) if started else "–"),
                cell(job.outcome),
            ]
        )
    heads = ["", "levels", "tasks", "nodes", "submitted", "waited", "requested", "ran", "outcome"]
    more = note(f"And {len(trial.jobs) - _MOST_ROWS:,} more jobs.") if len(trial.jobs) > _MOST_ROWS else ""
    return table(heads, rows) + more
