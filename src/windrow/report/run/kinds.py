"""The kinds of task of a run: how long each ran (box plots, sums), what waited for what (a graph of
kinds, at any size), and the chain of tasks that determined how long the run took."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from html import escape
from itertools import pairwise

from windrow.model import Workflow
from windrow.model.size import format_size
from windrow.model.wording import count, node_span, percent, span
from windrow.report import plot
from windrow.report.page import figure, note, table
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
_GAP = (26, 34)
_MOST_PER_ROW = 5


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
    rows = []
    for kind in shown:
        spans = map(span, (kind.quartiles[2], kind.mean_s, kind.longest_s, kind.expected_s))
        row = [kind.name or "(no name)", f"{kind.tasks:,}", f"{kind.failed:,}", *spans]
        row.append(node_span(kind.node_s))
        if not told.is_simulated:
            cpu = percent(kind.cpu_s / kind.core_s) if kind.core_s else "–"
            row += [cpu, format_size(kind.peak_bytes) if kind.peak_bytes else "–"]
        rows.append(row)
    words = (
        "Of finished tasks; failed: attempts that failed or were lost. Node time: the sum over all "
        "of them, of the part of its node that each took."
    )
    if not told.is_simulated:
        words += " CPU: CPU time by the core time that they took."
    return table(heads, rows, hidden, " kinds") + note(words)


def _boxes(told: RecordedRun, shown: Sequence[KindTimes]) -> str:
    """A box for each kind: from the first to the third quarter, with the median; lines to the
    least and the most; a triangle at what was expected."""
    longest = max(kind.longest_s for kind in shown)
    least = min(max(kind.quartiles[0], 0.01) for kind in shown)
    if longest > _LONG_S:
        axis = log_duration_axis(max(1.0, least), longest, "run time")
    else:
        axis = time_axis(0, longest, "of run time")
    frame = Frame(_LEFT, 8, 780, _STEP * len(shown), axis, Axis(0, 1, ()))
    colours = kind_colours(told.story.workflow)[0]
    parts = [plot.axes(frame)]
    for i, kind in enumerate(shown):
        middle = frame.top + (i + 0.5) * _STEP
        low, first, median, third, high = frame.across(kind.quartiles).tolist()
        css = f"c{colours[kind.name]}"
        hint = (
            f"{kind.name or 'task'}: {span(kind.quartiles[0])} to {span(kind.longest_s)}, "
            f"half of them from {span(kind.quartiles[1])} to {span(kind.quartiles[3])}"
        )
        parts += [
            plot.text(_LEFT - 10, middle + 4, _short(kind.name or "task", 20), "end"),
            f'<path class="line thin {css}" d="M{low:.1f} {middle:.1f}H{high:.1f}"/>',
            plot.box(f"bar {css}", first, middle - 6, max(2.0, third - first), 12, hint),
            f'<path class="median" d="M{median:.1f} {middle - 7:.1f}v14"/>',
        ]
        if kind.expected_s > 0:
            at = float(frame.across(kind.expected_s))
            parts.append(f'<path class="expected" d="M{at:.1f} {middle + 6:.1f}l4 6h-8z"/>')
    caption = (
        "Box: the middle half of the run times, with the median. Lines: from the shortest to the "
        "longest. Triangle: the mean that was expected."
    )
    picture = plot.picture(960, frame.bottom + 48, "Run times by kind", parts)
    return figure(picture, caption)


def longest_chain(told: RecordedRun) -> tuple[list[int], float]:
    """The chain of tasks, each waiting for the one before, that takes longest as measured, or as
    expected of those that have not finished."""
    workflow = told.story.workflow
    took = workflow.runtime_s.tolist()
    for number, task in enumerate(told.story.tasks):
        if task.last is not None:
            took[number] = figures.attempt_s(task.last, told.until_s)
    end = [0.0] * len(took)
    before = [-1] * len(took)
    for number in workflow.order.tolist():
        for parent in workflow.parents.of(number).tolist():
            if end[parent] > end[number]:
                end[number] = end[parent]
                before[number] = parent
        end[number] += took[number]
    if not end:
        return [], 0.0
    at = max(range(len(end)), key=end.__getitem__)
    length_s = end[at]
    chain = []
    while at >= 0:
        chain.append(at)
        at = before[at]
    return chain[::-1], length_s


def graph(told: RecordedRun, link: Callable[[str], str]) -> str:
    """The graph of kinds with the longest chain; of tasks as well if they can be told apart."""
    workflow = told.story.workflow
    chain, length_s = longest_chain(told)
    parts = [_of_kinds(told, chain)]
    if chain:
        share = percent(length_s / max(1e-9, told.makespan_s))
        shown = " → ".join(link(workflow.ids[task]) for task in chain[:12])
        if len(chain) > 12:
            shown += f" and {len(chain) - 12:,} more"
        words = (
            f"Longest chain: {count(len(chain), 'task')}, {span(length_s)}, {share} of the run: "
        )
        parts.append(f'<p class="note">{escape(words)}{shown}.</p>')
    measures = shape(workflow)
    if can_be_drawn(measures) and len(workflow) > 1:
        colours, keys = kind_colours(workflow)
        caption = "Every dot is a task, each row a level; larger dots were expected to run longer."
        picture = figure(drawing(workflow, measures, colours), caption, legend(keys, marks=False))
        parts.append(f"<details><summary>Task by task</summary>{picture}</details>")
    return "\n".join(parts)


def _of_kinds(told: RecordedRun, chain: Sequence[int]) -> str:
    workflow = told.story.workflow
    names = workflow.kinds
    rows = _layers(workflow)
    edges = kind_edges(workflow)
    steps = pairwise(chain)
    strong = {(names[a], names[b]) for a, b in steps}
    on_chain = {names[task] for task in chain}
    places = _places(rows)
    width = 2 * _LEFT + max(len(row) for row in rows) * (_BOX[0] + _GAP[0])
    height = len(rows) * (_BOX[1] + _GAP[1])
    width = min(960, max(420, width))
    parts = [
        _arrow(places, a, b, number, is_strong=(a, b) in strong)
        for (a, b), number in sorted(edges.items())
        if a != b
    ]
    done = Counter(names[i] for i, task in enumerate(told.story.tasks) if task.state == "finished")
    total = Counter(names)
    colours = kind_colours(workflow)[0]
    parts += [
        _node(name, places[name], colours[name], done[name], total[name], name in on_chain)
        for row in rows
        for name in row
    ]
    loops = [name or "task" for name in dict.fromkeys(names) if edges.get((name, name))]
    caption = (
        "Each box is a kind of task, below those that it waits for. Strong: the longest chain."
    )
    if loops:
        caption += f" Tasks of {', '.join(loops[:6])} also wait for others of their own kind."
    return figure(plot.picture(960, height, "Kinds of task and what they wait for", parts), caption)


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


def _places(rows: Sequence[Sequence[str]]) -> dict[str, tuple[float, float]]:
    """The middle of the top of each box."""
    each = _BOX[0] + _GAP[0]
    return {
        name: (480 + (i - (len(row) - 1) / 2) * each, 6.0 + at * (_BOX[1] + _GAP[1]))
        for at, row in enumerate(rows)
        for i, name in enumerate(row)
    }


def _arrow(
    places: Mapping[str, tuple[float, float]], a: str, b: str, number: int, *, is_strong: bool
) -> str:
    (x, y), (u, v) = places[a], places[b]
    if v > y:
        y += _BOX[1]
        bend = (v - y) / 2
    else:  # back to an earlier row: around the side
        x += _BOX[0] / 2
        u += _BOX[0] / 2
        y += _BOX[1] / 2
        v += _BOX[1] / 2
        path = f"M{x:.0f} {y:.0f}C{x + 50:.0f} {y:.0f} {u + 50:.0f} {v:.0f} {u:.0f} {v:.0f}"
        return f'<path class="edge" d="{path}"><title>{number:,} dependencies</title></path>'
    css = "edge critical" if is_strong else "edge"
    aside = _BOX[0] * 0.75 if v - y > 2 * _GAP[1] else 0.0  # past the boxes between the two
    path = (
        f"M{x:.0f} {y:.0f}C{x + aside:.0f} {y + bend:.0f} {u + aside:.0f} {v - bend:.0f} "
        f"{u:.0f} {v:.0f}"
    )
    hint = f"{a or 'task'} to {b or 'task'}: {number:,} dependencies"
    return f'<path class="{css}" d="{path}"><title>{escape(hint)}</title></path>'


def _node(
    name: str, place: tuple[float, float], colour: int, done: int, total: int, is_strong: bool
) -> str:
    x = place[0] - _BOX[0] / 2
    y = place[1]
    share = done / max(1, total)
    css = "kind strong" if is_strong else "kind"
    said = f"{total:,}" if done == total else f"{done:,} of {total:,}"
    return (
        f'<g><rect class="{css}" x="{x:.0f}" y="{y:.0f}" width="{_BOX[0]}" '
        f'height="{_BOX[1]}" rx="6"/>'
        f'<rect class="bar c{colour}" x="{x + 1:.0f}" y="{y + _BOX[1] - 6:.0f}" '
        f'width="{(_BOX[0] - 2) * share:.1f}" height="5"/>'
        + plot.text(x + _BOX[0] / 2, y + 19, _short(name or "task", 21), "middle name")
        + plot.text(x + _BOX[0] / 2, y + 35, said, "middle")
        + f"<title>{escape(name or 'task')}: {done:,} of {total:,} finished</title></g>"
    )


def _short(words: str, most: int) -> str:
    return words if len(words) <= most else f"{words[: most - 1]}…"
