"""The kinds of task of a run: how long each ran (box plots, sums), what waited for what (a graph of
kinds, at any size), and the chain of tasks that determined how long the run took."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from html import escape
from itertools import pairwise

from windrow.model import Workflow
from windrow.model.size import format_size
from windrow.model.wording import count, node_span, percent, shortened, span
from windrow.report import plot
from windrow.report.page import Time, figure, note, table
from windrow.report.plot import Axis, Frame, legend, log_duration_axis, time_axis
from windrow.report.workflow import can_be_drawn, drawing, kind_colours
from windrow.shape import shape
from windrow.story import figures
from windrow.story.figures import KindTimes, RecordedRun

_MOST_KINDS = 30
_LEFT = 150
_STEP = 24
_LONG_S = 120
_BOX = (168, 46)
_SIZE = f'width="{_BOX[0]}" height="{_BOX[1]}"'
_GAP = (26, 34)
_MOST_PER_ROW = 5
_ASIDE = 60
"""Room beside the boxes, for arrows that go past them."""


def kinds(told: RecordedRun) -> str:
    """Box plots and a table of all kinds that have finished tasks."""
    found = figures.kind_times(told.story, told.cores)
    if not found:
        return note("No task has finished.")
    shown = found[:_MOST_KINDS]
    return _boxes(told, shown) + _table(told, shown, len(found) - len(shown))


def _table(told: RecordedRun, shown: Sequence[KindTimes], hidden: int) -> str:
    heads = ["kind", "finished", "failed", "median", "mean", "longest", "expected", "node time"]
    if not told.is_simulated:
        heads += ["CPU", "peak memory"]
    rows = [_row(kind, is_measured=not told.is_simulated) for kind in shown]
    words = (
        "Of finished tasks; failed: attempts that failed or were lost. Node time: the sum over all "
        "of them, of the part of its node that each took."
    )
    if not told.is_simulated:
        words += " CPU: CPU time by the core time that they took."
    return table(heads, rows, hidden, " kinds") + note(words)


def _row(kind: KindTimes, *, is_measured: bool) -> list[str]:
    spans = map(Time, (kind.quartiles[2], kind.mean_s, kind.longest_s, kind.expected_s))
    row = [kind.name or "(no name)", f"{kind.tasks:,}", f"{kind.failed:,}", *spans]
    row.append(node_span(kind.node_s))
    if is_measured:
        cpu = percent(kind.cpu_s / kind.core_s) if kind.core_s else "–"
        row += [cpu, format_size(kind.peak_bytes) if kind.peak_bytes else "–"]
    return row


def _boxes(told: RecordedRun, shown: Sequence[KindTimes]) -> str:
    """A row with a box for each kind."""
    axis = _axis_of_run_times(shown)
    frame = Frame(_LEFT, 8, 780, _STEP * len(shown), axis, Axis(0, 1, ()))
    colours = kind_colours(told.story.workflow)[0]
    parts = [plot.axes(frame)]
    for i, kind in enumerate(shown):
        middle = frame.top + (i + 0.5) * _STEP
        parts += _box(frame, middle, kind, f"c{colours[kind.name]}")
    caption = (
        "Box: the middle half of the run times, with the median. Lines: from the shortest to the "
        "longest. Triangle: the mean that was expected."
    )
    picture = plot.picture(960, frame.bottom + 48, "Run times by kind", parts)
    return figure(picture, caption)


def _axis_of_run_times(shown: Sequence[KindTimes]) -> Axis:
    longest = max(kind.longest_s for kind in shown)
    if longest <= _LONG_S:
        return time_axis(0, longest, "of run time")
    least = min(max(kind.quartiles[0], 0.01) for kind in shown)
    return log_duration_axis(max(1.0, least), longest, "run time")


def _box(frame: Frame, middle: float, kind: KindTimes, css: str) -> list[str]:
    """From the first to the third quarter, with the median; lines to the least and the most; a
    triangle at what was expected."""
    low, first, median, third, high = frame.across(kind.quartiles).tolist()
    hint = _times_of(kind)
    parts = [
        plot.text(_LEFT - 10, middle + 4, shortened(kind.name or "task", 20), "end"),
        f'<path class="line thin {css}" d="M{low:.1f} {middle:.1f}H{high:.1f}"/>',
        plot.box(f"bar {css}", first, middle - 6, max(2.0, third - first), 12, hint),
        f'<path class="median" d="M{median:.1f} {middle - 7:.1f}v14"/>',
    ]
    parts.append(_expected(frame, middle, kind.expected_s))
    return parts


def _expected(frame: Frame, middle: float, expected_s: float) -> str:
    """A triangle, if that is known."""
    if expected_s > 0:
        at = float(frame.across(expected_s))
        return f'<path class="expected" d="M{at:.1f} {middle + 6:.1f}l4 6h-8z"/>'
    return ""


def _times_of(kind: KindTimes) -> str:
    return (
        f"{kind.name or 'task'}: {span(kind.quartiles[0])} to {span(kind.longest_s)}, "
        f"half of them from {span(kind.quartiles[1])} to {span(kind.quartiles[3])}"
    )


def longest_chain(told: RecordedRun) -> tuple[list[int], float]:
    """The chain of tasks, each waiting for the one before, that takes longest as measured, or as
    expected of those that have not finished."""
    workflow = told.story.workflow
    took = workflow.runtime_s.tolist()
    for number, task in enumerate(told.story.tasks):
        if task.last is not None:
            took[number] = figures.attempt_s(task.last, told.until_s)
    end, before = _earliest_ends(workflow, took)
    if not end:
        return [], 0.0
    at = max(range(len(end)), key=end.__getitem__)
    length_s = end[at]
    chain = []
    while at >= 0:
        chain.append(at)
        at = before[at]
    return chain[::-1], length_s


def _earliest_ends(workflow: Workflow, took: Sequence[float]) -> tuple[list[float], list[int]]:
    """When each task could end, and which of its parents ends last; -1 if it has none."""
    end = [0.0] * len(took)
    before = [-1] * len(took)
    for number in workflow.order.tolist():
        for parent in workflow.parents.of(number).tolist():
            if end[parent] > end[number]:
                end[number] = end[parent]
                before[number] = parent
        end[number] += took[number]
    return end, before


def graph(told: RecordedRun, link: Callable[[str], str]) -> str:
    """The graph of kinds with the longest chain; of tasks as well if they can be told apart."""
    workflow = told.story.workflow
    chain, length_s = longest_chain(told)
    parts = [_of_kinds(told, chain)]
    if chain:
        share = percent(length_s / max(1e-9, told.makespan_s))
        words = f"Longest chain: {count(len(chain), 'task')}, {span(length_s)}, {share} of the run"
        shown = _linked([workflow.ids[task] for task in chain], link)
        parts.append(f'<p class="note">{escape(words)}: {shown}.</p>')
    return "\n".join([*parts, *_task_by_task(workflow)])


def _task_by_task(workflow: Workflow) -> Iterator[str]:
    """The graph of tasks, folded, if they can be told apart."""
    measures = shape(workflow)
    if can_be_drawn(measures) and len(workflow) > 1:
        colours, keys = kind_colours(workflow)
        caption = "Every dot is a task, each row a level; larger dots were expected to run longer."
        picture = figure(drawing(workflow, measures, colours), caption, legend(keys, marks=False))
        yield f"<details><summary>Task by task</summary>{picture}</details>"


def _linked(ids: Sequence[str], link: Callable[[str], str]) -> str:
    """The first dozen as links, and how many more there are."""
    words = " → ".join(map(link, ids[:12]))
    if len(ids) > 12:
        words += f" and {len(ids) - 12:,} more"
    return words


def _of_kinds(told: RecordedRun, chain: Sequence[int]) -> str:
    workflow = told.story.workflow
    names = workflow.kinds
    rows = _layers(workflow)
    edges = kind_edges(workflow)
    width = max(map(len, rows)) * (_BOX[0] + _GAP[0]) + 2 * _ASIDE
    places = _places(rows, width)
    strong = {(names[a], names[b]) for a, b in pairwise(chain)}
    parts = [
        *_arrows(edges, places, strong),
        *_nodes(told, places, {names[task] for task in chain}),
    ]
    caption = _caption_of_kinds(names, edges)
    height = len(rows) * (_BOX[1] + _GAP[1])
    words = "Kinds of task and what they wait for"
    return figure(plot.picture(width, height, words, parts, is_small=True), caption)


def _caption_of_kinds(names: Sequence[str], edges: Mapping[tuple[str, str], int]) -> str:
    loops = [name or "task" for name in dict.fromkeys(names) if edges.get((name, name))]
    caption = (
        "Each box is a kind of task, below those that it waits for. Strong: the longest chain."
    )
    if loops:
        caption += f" Tasks of {', '.join(loops[:6])} also wait for others of their own kind."
    return caption


def kind_edges(workflow: Workflow) -> Mapping[tuple[str, str], int]:
    """How many dependencies lead from one kind to another."""
    found: Counter[tuple[str, str]] = Counter()
    for task in range(len(workflow)):
        for parent in workflow.parents.of(task).tolist():
            found[workflow.kinds[parent], workflow.kinds[task]] += 1
    return found


def _layers(workflow: Workflow) -> list[list[str]]:
    """Kinds by the first level on which each is, at most a few in a row."""
    first: dict[str, int] = {}
    for kind, level in zip(workflow.kinds, workflow.levels.tolist(), strict=True):
        first[kind] = min(level, first.get(kind, level))
    by_level: dict[int, list[str]] = defaultdict(list)
    for kind, level in first.items():
        by_level[level].append(kind)
    rows = []
    for level in sorted(by_level):
        row = by_level[level]
        rows += [row[i : i + _MOST_PER_ROW] for i in range(0, len(row), _MOST_PER_ROW)]
    return rows or [[]]


def _places(rows: Sequence[Sequence[str]], width: float) -> dict[str, tuple[float, float]]:
    """The middle of the top of each box."""
    each = _BOX[0] + _GAP[0]
    return {
        name: (width / 2 + (i - (len(row) - 1) / 2) * each, 6.0 + at * (_BOX[1] + _GAP[1]))
        for at, row in enumerate(rows)
        for i, name in enumerate(row)
    }


def _arrows(
    edges: Mapping[tuple[str, str], int],
    places: Mapping[str, tuple[float, float]],
    strong: Set[tuple[str, str]],
) -> list[str]:
    """Between different kinds."""
    return [
        _arrow(places, a, b, number, is_strong=(a, b) in strong)
        for (a, b), number in sorted(edges.items())
        if a != b
    ]


def _arrow(
    places: Mapping[str, tuple[float, float]], a: str, b: str, number: int, *, is_strong: bool
) -> str:
    if places[b][1] <= places[a][1]:
        path = _around(places[a], places[b])
        return f'<path class="edge" d="{path}"><title>{number:,} dependencies</title></path>'
    css = "edge critical" if is_strong else "edge"
    hint = f"{a or 'task'} to {b or 'task'}: {number:,} dependencies"
    path = _down(places[a], places[b])
    return f'<path class="{css}" d="{path}"><title>{escape(hint)}</title></path>'


def _down(start: tuple[float, float], end: tuple[float, float]) -> str:
    """From the bottom of a box to the top of one in a later row, past the boxes between them."""
    x, y = start
    u, v = end
    y += _BOX[1]
    bend = (v - y) / 2
    aside = _BOX[0] * 0.75 if v - y > 2 * _GAP[1] else 0.0
    return (
        f"M{x:.0f} {y:.0f}C{x + aside:.0f} {y + bend:.0f} {u + aside:.0f} {v - bend:.0f} "
        f"{u:.0f} {v:.0f}"
    )


def _around(start: tuple[float, float], end: tuple[float, float]) -> str:
    """Back to an earlier row, from side to side."""
    x = start[0] + _BOX[0] / 2
    y = start[1] + _BOX[1] / 2
    u = end[0] + _BOX[0] / 2
    v = end[1] + _BOX[1] / 2
    return f"M{x:.0f} {y:.0f}C{x + 50:.0f} {y:.0f} {u + 50:.0f} {v:.0f} {u:.0f} {v:.0f}"


def _nodes(
    told: RecordedRun, places: Mapping[str, tuple[float, float]], strong: Set[str]
) -> list[str]:
    """A box for each kind, in the order of rows."""
    names = told.story.workflow.kinds
    done = Counter(names[i] for i, task in enumerate(told.story.tasks) if task.state == "finished")
    total = Counter(names)
    colours = kind_colours(told.story.workflow)[0]
    return [
        _node(name, place, colours[name], done[name], total[name], name in strong)
        for name, place in places.items()
    ]


def _node(
    name: str, place: tuple[float, float], colour: int, done: int, total: int, is_strong: bool
) -> str:
    middle, y = place
    x = middle - _BOX[0] / 2
    css = "kind strong" if is_strong else "kind"
    part = f"{done:,} of {total:,}"
    return (
        f'<g><rect class="{css}" x="{x:.0f}" y="{y:.0f}" {_SIZE} rx="6"/>'
        + _done_bar(x, y, colour, done / max(1, total))
        + plot.text(middle, y + 19, shortened(name or "task", 21), "middle name")
        + plot.text(middle, y + 35, f"{total:,}" if done == total else part, "middle")
        + f"<title>{escape(name or 'task')}: {part} finished</title></g>"
    )


def _done_bar(x: float, y: float, colour: int, share: float) -> str:
    """At the bottom of a box."""
    return (
        f'<rect class="bar c{colour}" x="{x + 1:.0f}" y="{y + _BOX[1] - 6:.0f}" '
        f'width="{(_BOX[0] - 2) * share:.1f}" height="5"/>'
    )
