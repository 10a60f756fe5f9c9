"""The picture of a run, real or simulated: each job's wait and its nodes over time, with the tasks on them.

Jobs have a row each while they are few; when there are many, jobs that are never in the system together share rows.
A row is as high as its job has nodes. Within a node, tasks that run at once lie above each other. Below a simulated run
are curves of what its cluster did meanwhile, on the same time axis.

What could not be told apart is drawn as one: where there are many tasks, neighbours on the same place whose gap is
below half a pixel become one bar. So a page of ten thousand tasks stays one that a browser can open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace
from typing import TYPE_CHECKING

from windrow.manager.events import FilesMoved
from windrow.manager.figures import RecordedRun, attempt_s, attempts, ran_s, wait_s
from windrow.manager.states import AttemptState
from windrow.manager.story import JobStory, TaskAttempt
from windrow.model.size import format_size
from windrow.model.wording import count, span
from windrow.report import plot
from windrow.report.plot import COLOURS, Axis, Frame, count_axis, thinned, time_axis

if TYPE_CHECKING:
    from windrow.lab.background import Background, Ints


_CURVE = 96
_GAP = 34
HEIGHT = 30 + 2 * (_CURVE + _GAP) - _GAP
"""Pixels that the curves take below the picture, their labels aside."""
CAPTION = (
    "Below, on the same time axis: the nodes busy with other jobs (blue), with this run's on top (orange), and how "
    "many other jobs wait."
)


def curves(background: Background, above: Frame) -> list[str]:
    """Two curves below a picture: busy nodes, of others and of this run on top of them, and the queue of others."""
    x, left, width = above.x, above.left, above.width
    nodes = Frame(left, above.bottom + 30, width, _CURVE, x, count_axis(background.machine_nodes, most_ticks=3))
    high = int(background.jobs_waiting[1].max(initial=0))
    queue = Frame(left, nodes.bottom + _GAP, width, _CURVE, x, count_axis(max(1, high), most_ticks=3))
    return [
        plot.axes(nodes, x_labels=False),
        plot.step_line(nodes, *background.busy_nodes, 1),
        _cleared(nodes, *thinned(*background.others_nodes)),
        plot.step_line(nodes, *background.others_nodes, 0),
        plot.text(left, nodes.top - 8, f"busy nodes, of {background.machine_nodes:,}", "name"),
        plot.axes(queue),
        plot.step_line(queue, *background.jobs_waiting, COLOURS - 1),
        plot.text(left, queue.top - 8, f"other jobs waiting, at most {high:,}", "name"),
    ]


def _cleared(frame: Frame, times: Ints, values: Ints) -> str:
    """The area under a step function in the colour of the page, so that what is drawn next is not tinted twice."""
    across, down = frame.across(times).tolist(), frame.down(values).tolist()
    outline = "".join(f"H{x:.1f}V{y:.1f}" for x, y in zip(across, down, strict=True))
    return f'<path style="fill: var(--ground)" d="M{across[0]:.1f} {frame.bottom:.1f}{outline}V{frame.bottom:.1f}Z"/>'


MOST_JOBS = 2000
"""Jobs that are drawn; the rest is in the table's count."""
_MERGE_ABOVE = 1500  # attempts
_MERGE_GAP = 0.5  # pixels
_WIDTH = 960
_LEFT = 74
_RIGHT = 20
_TOP = 10
_ALONE = 24  # up to this number, jobs have a row each
_HEIGHT = 620
_NODE = (1.6, 14.0)  # the least and the most pixels of a node
_HOME = "home"  # what the place without a name is called


@dataclass(frozen=True, slots=True)
class _JobBox:
    """Where a job is drawn."""

    top: float
    height: float


@dataclass(slots=True)
class _Bar:
    """One attempt, or several that could not be told apart, on its place in a row."""

    job: int
    task: int
    attempt: TaskAttempt
    slot: int
    begin_s: float
    end_s: float
    count: int = 1

    @property
    def node(self) -> int:
        """The first of its nodes."""
        return min(self.attempt.nodes, default=0)


def run_gantt(told: RecordedRun, colours: Mapping[str, int], background: Background | None = None) -> tuple[str, str]:
    """The picture and its caption; `background` is what the cluster did meanwhile, where that is known."""
    jobs = dict(list(told.story.jobs.items())[:MOST_JOBS])
    rows = _rows(told, jobs)
    bottom = max((row.top + row.height for row in rows.values()), default=_TOP + 20.0)
    moves = [event for event in told.story.transfers if isinstance(event, FilesMoved)]
    links = {link: bottom + 9 + 16 * i for i, link in enumerate(sorted({(m.origin, m.to) for m in moves}))}
    bottom = max([bottom, *(top + 9 for top in links.values())])
    frame = Frame(_LEFT, _TOP, _WIDTH - _LEFT - _RIGHT, bottom - _TOP + 8, _axis(told, background), Axis(0, 1, ()))
    bars, slots = _bars(told, jobs)
    drawn = _merged(bars, told, frame) if len(bars) > _MERGE_ABOVE else bars
    below = 0 if background is None else HEIGHT
    ticks = [(float(frame.across(value)), label) for value, label in frame.x.ticks]
    lines = "".join(f"M{x:.1f} {frame.top:.1f}V{frame.bottom + below:.1f}" for x, _ in ticks)
    parts = [f'<path class="grid" d="{lines}"/>']
    parts += [_wait(frame, told, number, job, rows[number]) for number, job in jobs.items()]
    parts += [_drawn(frame, told, bar, rows[bar.job], slots[bar.job, bar.node], colours) for bar in drawn]
    parts += [_outline(frame, told, number, job, rows[number]) for number, job in jobs.items()]
    parts += [_moved(frame, move, links[move.origin, move.to]) for move in moves]
    for (origin, to), top in links.items():
        parts.append(plot.text(_LEFT - 8, top + 8, f"to {to[:8]}" if to else f"from {origin[:8]}", "end"))
    for x in map(float, frame.across(told.story.resumed_s)):
        parts.append(f'<path class="axis" stroke-dasharray="4 4" d="M{x:.1f} {frame.top:.1f}V{frame.bottom:.1f}"/>')
    if background is None:
        parts.append(f'<path class="axis" d="M{frame.left:.1f} {frame.bottom:.1f}H{frame.right:.1f}"/>')
        parts += [plot.text(x, frame.bottom + 18, label, "middle") for x, label in ticks]
        parts.append(plot.text(frame.left + frame.width / 2, frame.bottom + 38, frame.x.title, "middle title"))
    else:
        parts += curves(background, frame)
    picture = plot.picture(_WIDTH, frame.bottom + below + 48, f"Run {told.name}", parts)
    words = _caption(told, len(jobs), are_merged=len(drawn) < len(bars))
    words += [] if background is None else [CAPTION]
    return picture, " ".join([*words, "Point at anything for its figures."])


def _caption(told: RecordedRun, jobs: int, *, are_merged: bool) -> list[str]:
    rows = "Each job has a row" if jobs <= _ALONE else "Jobs one after the other share a row"
    words = [
        f"Time goes from left to right. {rows}: a job is grey while it waits in the queue, then a frame as high as its "
        "number of nodes, for as long as it has them. In it are its tasks, each on its node, coloured by kind. Blank "
        "in a frame is an idle node."
    ]
    if any(attempt.outcome.is_in_vain for _, attempt in attempts(told.story)):
        words.append("Crossed out: an attempt that failed or was lost with its job.")
    if told.story.transfers:
        words.append("Below, on a row for each way: files that move between sites.")
    if told.story.resumed_s:
        words.append("A dashed line: the run was resumed.")
    if are_merged:
        words.append("Tasks too short to distinguish are drawn as one bar.")
    if jobs < len(told.story.jobs):
        words.append(f"Only the first {jobs:,} of {len(told.story.jobs):,} jobs are drawn.")
    return words


def _axis(told: RecordedRun, background: Background | None) -> Axis:
    """Labels count from the run's beginning; places are on the clock, which is the log's for a simulated run."""
    zero = told.begun_s
    if background is None:
        axis = time_axis(0, max(1.0, told.makespan_s), "since the run started")
        low, high = zero, zero + axis.high
    else:
        low, high = background.begin_s, background.end_s
        axis = time_axis(low - zero, high - zero, "since the workflow was submitted")
    return Axis(low, high, tuple((value + zero, label) for value, label in axis.ticks), axis.title)


def _rows(told: RecordedRun, jobs: Mapping[int, JobStory]) -> dict[int, _JobBox]:
    if not jobs:
        return {}
    ordered = sorted(jobs, key=lambda n: jobs[n].plan.site)  # by site, where there are several
    lane = {n: i for i, n in enumerate(ordered)} if len(jobs) <= _ALONE else _lanes(told, jobs)
    widest = [0] * (max(lane.values()) + 1)
    for number, job in jobs.items():
        widest[lane[number]] = max(widest[lane[number]], job.plan.nodes)
    gap = 9.0 if len(widest) <= 2 * _ALONE else 1.0
    least, most = _NODE
    node = min(most, max(least, (_HEIGHT - gap * len(widest)) / sum(widest)))
    tops = [float(_TOP)]
    for nodes in widest:
        tops.append(tops[-1] + max(nodes * node, 4.0) + gap)
    return {n: _JobBox(tops[lane[n]], max(job.plan.nodes * node, 4.0)) for n, job in jobs.items()}


def _lanes(told: RecordedRun, jobs: Mapping[int, JobStory]) -> dict[int, int]:
    """Rows such that jobs in one row are never in the system together: each takes the first that is free.

    Where there are several sites, each has rows of its own.
    """
    free_s: dict[str, list[float]] = {job.plan.site: [] for job in jobs.values()}
    lanes: dict[int, tuple[str, int]] = {}
    for number, job in jobs.items():
        begin = job.planned_s if job.submitted_s is None else job.submitted_s
        end, free = told.until_s if job.ended_s is None else job.ended_s, free_s[job.plan.site]
        at = next((i for i, free_at in enumerate(free) if free_at <= begin), len(free))
        free[at:] = [max(begin, end), *free[at + 1 :]]
        lanes[number] = job.plan.site, at
    order = {lane: i for i, lane in enumerate(sorted(set(lanes.values())))}
    return {number: order[lane] for number, lane in lanes.items()}


def _bars(told: RecordedRun, jobs: Mapping[int, JobStory]) -> tuple[list[_Bar], dict[tuple[int, int], int]]:
    """The attempts in the order of their starts, each on a place of its node, and how many places each node needs."""
    bars = [
        _Bar(a.job, task, a, 0, a.started_s, a.started_s + attempt_s(a, told.until_s))
        for task, a in attempts(told.story)
        if a.job in jobs
    ]
    bars.sort(key=lambda bar: (bar.begin_s, bar.task))
    free: dict[tuple[int, int], list[tuple[float, int]]] = {}
    for bar in bars:
        node = free.setdefault((bar.job, bar.node), [])
        if node and node[0][0] <= bar.begin_s:
            bar.slot = node[0][1]
            heapreplace(node, (bar.end_s, bar.slot))
        else:
            bar.slot = len(node)
            node.append((bar.end_s, bar.slot))
            heapify(node)
    return bars, {place: len(node) for place, node in free.items()}


def _merged(bars: Sequence[_Bar], told: RecordedRun, frame: Frame) -> list[_Bar]:
    gap_s = _MERGE_GAP / frame.width * (frame.x.high - frame.x.low)
    open_bars: dict[tuple[int, int, int, str, AttemptState], _Bar] = {}
    kept = []
    for bar in bars:
        key = bar.job, bar.node, bar.slot, told.story.workflow.kinds[bar.task], bar.attempt.outcome
        last = open_bars.get(key)
        if last is not None and bar.begin_s - last.end_s < gap_s and not bar.attempt.outcome.is_in_vain:
            last.end_s, last.count = max(last.end_s, bar.end_s), last.count + 1
        else:
            open_bars[key] = bar
            kept.append(bar)
    return kept


def _wait(frame: Frame, told: RecordedRun, number: int, job: JobStory, row: _JobBox) -> str:
    if job.submitted_s is None:
        return ""
    waited = wait_s(job, told.until_s)
    a, b = frame.across([job.submitted_s, job.submitted_s + waited]).tolist()
    fate = "" if job.started_s is not None else f", {job.outcome} before it started" if job.outcome else " so far"
    words = f"job {number} waits {span(waited)}{f' at {job.plan.site}' if job.plan.site else ''}{fate}"
    return plot.box("veil", a, row.top, max(b - a, 0.5), row.height, words)


def _outline(frame: Frame, told: RecordedRun, number: int, job: JobStory, row: _JobBox) -> str:
    middle = row.top + row.height / 2 + 4
    is_alone = len(told.story.jobs) <= _ALONE
    site = f"{job.plan.site[:8]} " if job.plan.site else "job "
    label = plot.text(_LEFT - 8, middle, f"{site}{number}", "end") if is_alone else ""
    ran = ran_s(job, told.until_s)
    if job.started_s is None or ran is None:
        return label
    a, b = frame.across([job.started_s, job.started_s + ran]).tolist()
    return plot.box("axis", a, row.top, max(b - a, 0.8), row.height) + label


def _drawn(frame: Frame, told: RecordedRun, bar: _Bar, row: _JobBox, slots: int, colours: Mapping[str, int]) -> str:
    a, b = frame.across([bar.begin_s, bar.end_s]).tolist()
    node = row.height / told.story.jobs[bar.job].plan.nodes
    wide = len(bar.attempt.nodes) > 1
    high = node * len(bar.attempt.nodes) if wide else node / slots
    top = row.top + bar.node * node + (0 if wide else bar.slot * high)
    seam = min(0.8, high / 5)
    colour = f"c{colours[told.story.workflow.kinds[bar.task]]}"
    is_gone = bar.attempt.outcome.is_in_vain
    css = f"{'area' if is_gone else 'bar'} {colour}"
    rect = plot.box(css, a, top + seam / 2, max(b - a, 0.5), high - seam, _hint(told, bar))
    if is_gone:
        b = max(b, a + 1)
        rect += f'<path class="lost line thin {colour}" d="M{a:.1f} {top:.1f}L{b:.1f} {top + high:.1f}"/>'
    return rect


def _moved(frame: Frame, move: FilesMoved, top: float) -> str:
    a, b = frame.across([move.at_s - move.took_s, move.at_s]).tolist()
    way = f"from {move.origin or _HOME} to {move.to or _HOME}"
    words = f"{count(len(move.files), 'file')} {way}: {format_size(move.size_bytes)} in {span(move.took_s)}"
    return plot.box("bar c7", a, top, max(b - a, 1.5), 9, words)


def _hint(told: RecordedRun, bar: _Bar) -> str:
    workflow, attempt = told.story.workflow, bar.attempt
    kind = workflow.kinds[bar.task]
    node = "nodes" if len(attempt.nodes) > 1 else "node"
    where = f"job {bar.job}, {node} {', '.join(map(str, attempt.nodes[:8]))}"
    if bar.count > 1:
        return f"{bar.count:,} tasks{f' ({kind})' if kind else ''}: {where}, {span(bar.end_s - bar.begin_s)}"
    fates = {AttemptState.FINISHED: "ran", AttemptState.RUNNING: "runs since"}
    fate = fates.get(attempt.outcome, f"{attempt.outcome} after")
    name = workflow.ids[bar.task] + (f" ({kind})" if kind else "")
    return f"{name}: {where}, {fate} {span(bar.end_s - bar.begin_s)}"
