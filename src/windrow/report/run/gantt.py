"""The picture of a run, real or simulated: each job's wait and its nodes over time, with the tasks
on them.

Jobs have a row each while they are few; when there are many, jobs that are never in the system
together share rows. A row is as high as its job has nodes. Within a node, tasks that run at once
lie above each other. Below a simulated run are curves of what its cluster did meanwhile, on the
same time axis.

What could not be told apart is drawn as one: if there are many tasks, neighbours on the same
place whose gap is below half a pixel become one bar. So a page of ten thousand tasks stays one that
a browser can open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace
from typing import TYPE_CHECKING

from windrow.model.size import format_size
from windrow.model.wording import count, span
from windrow.report import plot
from windrow.report.plot import COLOURS, Axis, Frame, count_axis, thinned, time_axis
from windrow.story.events import FilesMoved
from windrow.story.figures import RecordedRun, attempt_s, attempts, ran_s, wait_s
from windrow.story.states import AttemptState
from windrow.story.story import JobStory, TaskAttempt

if TYPE_CHECKING:
    from windrow.trials.background import Background, Ints


_CURVE = 96
_GAP = 34
HEIGHT = 30 + 2 * (_CURVE + _GAP) - _GAP
"""Pixels that the curves take below the picture, their labels aside."""
CAPTION = (
    "Below, on the same time axis: the nodes busy with other jobs (blue), with this run's on top "
    "(orange), and how "
    "many other jobs wait."
)


def _most_waiting(background: Background) -> int:
    return int(background.jobs_waiting[1].max(initial=0))


def curves(background: Background, above: Frame) -> list[str]:
    """Two curves below a picture: busy nodes, of others and of this run on top of them, and the
    queue of others."""
    high = _most_waiting(background)
    nodes = _below(above, 30, background.machine_nodes)
    queue = _below(nodes, _GAP, max(1, high))
    return [
        plot.axes(nodes, x_labels=False),
        plot.step_line(nodes, *background.busy_nodes, 1),
        _cleared(nodes, *thinned(*background.others_nodes)),
        plot.step_line(nodes, *background.others_nodes, 0),
        _title(nodes, f"busy nodes, of {background.machine_nodes:,}"),
        plot.axes(queue),
        plot.step_line(queue, *background.jobs_waiting, COLOURS - 1),
        _title(queue, f"other jobs waiting, at most {high:,}"),
    ]


def _below(above: Frame, gap: float, most: int) -> Frame:
    """A frame for a curve of up to that many, over the same time."""
    axis = count_axis(most, most_ticks=3)
    return Frame(above.left, above.bottom + gap, above.width, _CURVE, above.x, axis)


def _title(frame: Frame, words: str) -> str:
    return plot.text(frame.left, frame.top - 8, words, "name")


def _cleared(frame: Frame, times: Ints, values: Ints) -> str:
    """The area under a step function in the colour of the page, so that what is drawn next is not
    tinted twice."""
    across = frame.across(times).tolist()
    down = frame.down(values).tolist()
    outline = "".join(f"H{x:.1f}V{y:.1f}" for x, y in zip(across, down, strict=True))
    return (
        f'<path style="fill: var(--ground)" d="M{across[0]:.1f} '
        f'{frame.bottom:.1f}{outline}V{frame.bottom:.1f}Z"/>'
    )


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
_WAY_HIGH = 9.0
_HOME = "home"  # what the place without a name is called


@dataclass(frozen=True, slots=True)
class _Row:
    """Where a job is drawn, or files that move."""

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


def run_gantt(
    told: RecordedRun, colours: Mapping[str, int], background: Background | None = None
) -> tuple[str, str]:
    """The picture and its caption; `background` is what the cluster did meanwhile, if that is
    known."""
    jobs = dict(list(told.story.jobs.items())[:MOST_JOBS])
    rows = _rows(told, jobs)
    moves = [event for event in told.story.transfers if isinstance(event, FilesMoved)]
    ways = _ways(moves, max((row.top + row.height for row in rows.values()), default=_TOP + 20.0))
    frame = _frame(told, [*rows.values(), *ways.values()], background)
    bars, slots = _bars(told, jobs)
    are_merged = len(bars) > _MERGE_ABOVE
    drawn = _merged(bars, told, frame) if are_merged else bars
    below = 0 if background is None else HEIGHT
    parts = [
        _grid(frame, below),
        *_Jobs(told, jobs, rows, frame).drawn(drawn, slots, colours),
        *_moves(frame, moves, ways),
        *(_resumed(frame, x) for x in map(float, frame.across(told.story.resumed_s))),
        *(_time_labels(frame) if background is None else curves(background, frame)),
    ]
    picture = plot.picture(_WIDTH, frame.bottom + below + 48, f"Run {told.name}", parts)
    words = _caption(told, len(jobs), are_merged=are_merged)
    if background is not None:
        words.append(CAPTION)
    return picture, " ".join([*words, "Point at anything for its figures."])


def _ways(moves: Sequence[FilesMoved], bottom: float) -> dict[tuple[str, str], _Row]:
    """A row for each way that files moved, below the jobs."""
    ways = sorted({(move.origin, move.to) for move in moves})
    return {way: _Row(bottom + 9 + 16 * i, _WAY_HIGH) for i, way in enumerate(ways)}


def _frame(told: RecordedRun, rows: Sequence[_Row], background: Background | None) -> Frame:
    """Around these rows."""
    bottom = max((row.top + row.height for row in rows), default=_TOP + 20.0)
    height = bottom - _TOP + 8
    x = _axis(told, background)
    return Frame(_LEFT, _TOP, _WIDTH - _LEFT - _RIGHT, height, x, Axis(0, 1, ()))


def _ticks(frame: Frame) -> list[tuple[float, str]]:
    return [(float(frame.across(value)), label) for value, label in frame.x.ticks]


def _grid(frame: Frame, below: float) -> str:
    """A line down from each tick, through what is below the picture, too."""
    bottom = frame.bottom + below
    lines = "".join(f"M{x:.1f} {frame.top:.1f}V{bottom:.1f}" for x, _ in _ticks(frame))
    return f'<path class="grid" d="{lines}"/>'


def _way_name(way: tuple[str, str], row: _Row) -> str:
    origin, to = way
    name = f"from {origin[:8]}"
    if to:
        name = f"to {to[:8]}"
    return plot.text(_LEFT - 8, row.top + 8, name, "end")


def _resumed(frame: Frame, x: float) -> str:
    line = f"M{x:.1f} {frame.top:.1f}V{frame.bottom:.1f}"
    return f'<path class="axis" stroke-dasharray="4 4" d="{line}"/>'


def _time_labels(frame: Frame) -> list[str]:
    """The axis below the picture."""
    line = f"M{frame.left:.1f} {frame.bottom:.1f}H{frame.right:.1f}"
    middle = frame.left + frame.width / 2
    return [
        f'<path class="axis" d="{line}"/>',
        *(plot.text(x, frame.bottom + 18, label, "middle") for x, label in _ticks(frame)),
        plot.text(middle, frame.bottom + 38, frame.x.title, "middle title"),
    ]


@dataclass(frozen=True, slots=True)
class _Jobs:
    """Jobs in their rows."""

    told: RecordedRun
    jobs: Mapping[int, JobStory]
    rows: Mapping[int, _Row]
    frame: Frame

    def drawn(
        self,
        bars: Sequence[_Bar],
        slots: Mapping[tuple[int, int], int],
        colours: Mapping[str, int],
    ) -> list[str]:
        """Their waits, their tasks, and frames around these."""
        return [
            *(self._wait(number, job) for number, job in self.jobs.items()),
            *(self._bar(bar, slots[bar.job, bar.node], colours) for bar in bars),
            *(self._outline(number, job) for number, job in self.jobs.items()),
        ]

    def _wait(self, number: int, job: JobStory) -> str:
        row = self.rows[number]
        if job.submitted_s is None:
            return ""
        waited = wait_s(job, self.told.until_s)
        a, b = self.frame.across([job.submitted_s, job.submitted_s + waited]).tolist()
        words = f"job {number} waits {span(waited)}"
        if job.plan.site:
            words += f" at {job.plan.site}"
        if job.started_s is None:
            if job.outcome:
                words += f", {job.outcome} before it started"
            else:
                words += " so far"
        return plot.box("veil", a, row.top, max(b - a, 0.5), row.height, words)

    def _outline(self, number: int, job: JobStory) -> str:
        row = self.rows[number]
        drawn = ""
        ran = ran_s(job, self.told.until_s)
        if job.started_s is not None and ran is not None:
            a, b = self.frame.across([job.started_s, job.started_s + ran]).tolist()
            drawn = plot.box("axis", a, row.top, max(b - a, 0.8), row.height)
        if len(self.told.story.jobs) <= _ALONE:
            name = f"{job.plan.site[:8] or 'job'} {number}"
            drawn += plot.text(_LEFT - 8, row.top + row.height / 2 + 4, name, "end")
        return drawn

    def _bar(self, bar: _Bar, slots: int, colours: Mapping[str, int]) -> str:
        a, b = self.frame.across([bar.begin_s, bar.end_s]).tolist()
        top, high = self._place(bar, slots)
        seam = min(0.8, high / 5)
        colour = f"c{colours[self.told.story.workflow.kinds[bar.task]]}"
        is_gone = bar.attempt.outcome.is_in_vain
        css = f"area {colour}" if is_gone else f"bar {colour}"
        rect = plot.box(css, a, top + seam / 2, max(b - a, 0.5), high - seam, _hint(self.told, bar))
        if is_gone:
            line = f"M{a:.1f} {top:.1f}L{max(b, a + 1):.1f} {top + high:.1f}"
            rect += f'<path class="lost line thin {colour}" d="{line}"/>'
        return rect

    def _place(self, bar: _Bar, slots: int) -> tuple[float, float]:
        """The top and the height of a bar: all its nodes, or a slot of one."""
        row = self.rows[bar.job]
        node = row.height / self.told.story.jobs[bar.job].plan.nodes
        top = row.top + bar.node * node
        if len(bar.attempt.nodes) > 1:
            return top, node * len(bar.attempt.nodes)
        high = node / slots
        return top + bar.slot * high, high


def _caption(told: RecordedRun, jobs: int, *, are_merged: bool) -> list[str]:
    if jobs <= _ALONE:
        rows = "Each job has a row"
    else:
        rows = "Jobs one after the other share a row"
    words = [
        f"Time goes from left to right. {rows}: a job is grey while it waits in the queue, then "
        "a frame as high as its "
        "number of nodes, for as long as it has them. In it are its tasks, each on its node, "
        "coloured by kind. Blank "
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
    """Labels count from the run's beginning; places are on the clock, which is the log's for a
    simulated run."""
    zero = told.begun_s
    if background is None:
        axis = time_axis(0, max(1.0, told.makespan_s), "since the run started")
        low = zero
        high = zero + axis.high
    else:
        low = background.begin_s
        high = background.end_s
        axis = time_axis(low - zero, high - zero, "since the workflow was submitted")
    return Axis(low, high, tuple((value + zero, label) for value, label in axis.ticks), axis.title)


def _rows(told: RecordedRun, jobs: Mapping[int, JobStory]) -> dict[int, _Row]:
    if not jobs:
        return {}
    lane = _lanes(told, jobs)
    widest = [0] * (max(lane.values()) + 1)
    for number, job in jobs.items():
        widest[lane[number]] = max(widest[lane[number]], job.plan.nodes)
    node, gap = _scale(widest)
    tops = [float(_TOP)]
    for nodes in widest:
        tops.append(tops[-1] + max(nodes * node, 4.0) + gap)
    return {n: _Row(tops[lane[n]], max(job.plan.nodes * node, 4.0)) for n, job in jobs.items()}


def _moves(
    frame: Frame, moves: Sequence[FilesMoved], ways: Mapping[tuple[str, str], _Row]
) -> Iterator[str]:
    """Files on their way between places, each in the row of its way."""
    for move in moves:
        yield _moved(frame, move, ways[move.origin, move.to])
    for way, row in ways.items():
        yield _way_name(way, row)


def _scale(widest: Sequence[int]) -> tuple[float, float]:
    """How high a node is, and the gap between lanes; `widest` has the most nodes in each."""
    gap = 9.0 if len(widest) <= 2 * _ALONE else 1.0
    least, most = _NODE
    return min(most, max(least, (_HEIGHT - gap * len(widest)) / sum(widest))), gap


def _lanes(told: RecordedRun, jobs: Mapping[int, JobStory]) -> dict[int, int]:
    """Each of a few jobs has a row of its own. Of many, jobs in one row are never in the system
    together: each takes the first that is free.

    If there are several sites, each has rows of its own.
    """
    if len(jobs) <= _ALONE:
        return {n: i for i, n in enumerate(sorted(jobs, key=lambda n: jobs[n].plan.site))}
    free_s: dict[str, list[float]] = {job.plan.site: [] for job in jobs.values()}
    lanes: dict[int, tuple[str, int]] = {}
    for number, job in jobs.items():
        begin = job.planned_s if job.submitted_s is None else job.submitted_s
        end = told.until_s if job.ended_s is None else job.ended_s
        free = free_s[job.plan.site]
        at = next((i for i, free_at in enumerate(free) if free_at <= begin), len(free))
        free[at:] = [max(begin, end), *free[at + 1 :]]
        lanes[number] = job.plan.site, at
    return _numbered(lanes)


def _numbered(lanes: Mapping[int, tuple[str, int]]) -> dict[int, int]:
    """Lanes of all sites counted from the top."""
    order = {lane: i for i, lane in enumerate(sorted(set(lanes.values())))}
    return {number: order[lane] for number, lane in lanes.items()}


def _bars(
    told: RecordedRun, jobs: Mapping[int, JobStory]
) -> tuple[list[_Bar], dict[tuple[int, int], int]]:
    """The attempts in the order of their starts, each on a place of its node, and how many places
    each node needs."""
    bars = [
        _Bar(a.job, task, a, 0, a.started_s, a.started_s + attempt_s(a, told.until_s))
        for task, a in attempts(told.story)
        if a.job in jobs
    ]
    bars.sort(key=lambda bar: (bar.begin_s, bar.task))
    return bars, _give_slots(bars)


def _give_slots(bars: Sequence[_Bar]) -> dict[tuple[int, int], int]:
    """To each bar the first place of its node that is free; how many places each node needs."""
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
    return {place: len(node) for place, node in free.items()}


def _merged(bars: Sequence[_Bar], told: RecordedRun, frame: Frame) -> list[_Bar]:
    gap_s = _MERGE_GAP / frame.width * (frame.x.high - frame.x.low)
    open_bars: dict[tuple[int, int, int, str, AttemptState], _Bar] = {}
    kept = []
    for bar in bars:
        key = bar.job, bar.node, bar.slot, told.story.workflow.kinds[bar.task], bar.attempt.outcome
        last = open_bars.get(key)
        if (
            last is not None
            and bar.begin_s - last.end_s < gap_s
            and not bar.attempt.outcome.is_in_vain
        ):
            last.end_s = max(last.end_s, bar.end_s)
            last.count = last.count + 1
        else:
            open_bars[key] = bar
            kept.append(bar)
    return kept


def _moved(frame: Frame, move: FilesMoved, row: _Row) -> str:
    a, b = frame.across([move.at_s - move.took_s, move.at_s]).tolist()
    way = f"from {move.origin or _HOME} to {move.to or _HOME}"
    words = (
        f"{count(len(move.files), 'file')} {way}: {format_size(move.size_bytes)} in "
        f"{span(move.took_s)}"
    )
    return plot.box("bar c7", a, row.top, max(b - a, 1.5), row.height, words)


_FATES = {AttemptState.FINISHED: "ran", AttemptState.RUNNING: "runs since"}


def _nodes(attempt: TaskAttempt) -> str:
    word = "nodes" if len(attempt.nodes) > 1 else "node"
    return f"{word} {', '.join(map(str, attempt.nodes[:8]))}"


def _hint(told: RecordedRun, bar: _Bar) -> str:
    workflow = told.story.workflow
    attempt = bar.attempt
    where = f"job {bar.job}, {_nodes(attempt)}"
    name = workflow.ids[bar.task]
    if bar.count > 1:
        name = f"{bar.count:,} tasks"
    if workflow.kinds[bar.task]:
        name += f" ({workflow.kinds[bar.task]})"
    lasted = span(bar.end_s - bar.begin_s)
    if bar.count > 1:
        return f"{name}: {where}, {lasted}"
    fate = _FATES.get(attempt.outcome, f"{attempt.outcome} after")
    return f"{name}: {where}, {fate} {lasted}"
