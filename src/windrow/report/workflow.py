"""The page of one workflow: figures, profile (tasks and work of each level), kinds, and a drawing
if it is small.

The drawing has levels as rows from the top down, tasks as dots, dependencies as curves. Within its
row each task goes near the middle of its parents and children (the barycentre heuristic of
Sugiyama, Tagawa and Toda), which untangles most of what can be untangled; it is not a search for
the fewest crossings.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape

import numpy as np

from windrow.model import Adjacency, Workflow, format_duration
from windrow.model.size import format_size
from windrow.model.wording import shortened
from windrow.model.workflow import Floats
from windrow.report import plot
from windrow.report.page import Time, facts, figure, note, page, section, table
from windrow.report.plot import Axis, Frame, count_axis, legend, round_step
from windrow.shape import KindShape, Shape, kinds

MOST_TASKS = 600
MOST_EDGES = 4000
_MOST_LEVELS = 60
_MOST_WIDTH = 240

_WIDTH = 960
_LEFT = 58
_RIGHT = 190
_MIDDLE = _LEFT + (_WIDTH - _LEFT - _RIGHT) / 2
_SWEEPS = 6

Places = list[tuple[float, float]]


def kind_colours(workflow: Workflow) -> tuple[dict[str, int], list[str]]:
    """A colour for each kind of task, and the names for the legend; the grey is for all kinds
    beyond the sixth."""
    found = kinds(workflow)
    most = list(found)
    if len(found) >= plot.COLOURS:
        most = sorted(found, key=lambda kind: -kind.tasks)[: plot.COLOURS - 1]
    shown = [kind.name for kind in found if kind in most]
    colours = dict.fromkeys((kind.name for kind in found), plot.COLOURS - 1)
    colours |= {name: number for number, name in enumerate(shown)}
    names = [name or "tasks" for name in shown]
    if len(found) > len(shown):
        names.append("others")
    return colours, names


def can_be_drawn(figures: Shape) -> bool:
    """Whether a drawing of every task would still be readable."""
    small = figures.tasks <= MOST_TASKS and figures.edges <= MOST_EDGES
    return small and figures.levels <= _MOST_LEVELS and figures.width <= _MOST_WIDTH


def drawing(workflow: Workflow, figures: Shape, colours: Mapping[str, int]) -> str:
    """The picture; `colours` has a colour for each kind of task."""
    rows = untangled(workflow)
    gap = 74.0 if figures.levels <= 12 else 52.0
    places = _places(rows, gap)
    critical = {workflow.number(task_id) for task_id in figures.critical_tasks}
    parts = [*_edges(workflow, places, critical), *_labels(workflow, rows, gap)]
    for row in rows:
        parts.extend(_dots(workflow, row, places, colours))
    return plot.picture(
        _WIDTH, 48 + (figures.levels - 1) * gap, f"Tasks of {workflow.name} by level", parts
    )


def _spacing(row: Sequence[int]) -> float:
    return min(44.0, (_WIDTH - _LEFT - _RIGHT) / max(1, len(row) - 1))


def untangled(workflow: Workflow) -> list[list[int]]:
    """Task numbers of each level, in the order from left to right."""
    rows: list[list[int]] = [[] for _ in range(workflow.depth)]
    for v, level in enumerate(workflow.levels.tolist()):
        rows[level].append(v)
    place = np.zeros(len(workflow))
    for row in rows:
        _settle(row, place)
    for _ in range(_SWEEPS):
        for row in rows[1:]:
            _sort_by_neighbours(row, workflow.parents, place)
        for row in rows[-2::-1]:
            _sort_by_neighbours(row, workflow.children, place)
    return rows


def _sort_by_neighbours(row: list[int], neighbours: Adjacency, place: plot.Floats) -> None:
    means = {
        v: float(place[of].mean()) if len(of := neighbours.of(v)) else float(place[v]) for v in row
    }
    row.sort(key=means.__getitem__)
    _settle(row, place)


def _settle(row: Sequence[int], place: plot.Floats) -> None:
    """Places around zero, one apart, so that rows of any width share their middle."""
    place[row] = np.arange(len(row)) - (len(row) - 1) / 2


def _places(rows: Sequence[Sequence[int]], gap: float) -> Places:
    """Of each task: each row in the middle."""
    places: Places = [(0.0, 0.0)] * sum(map(len, rows))
    for level, row in enumerate(rows):
        for i, v in enumerate(row):
            places[v] = (_MIDDLE + (i - (len(row) - 1) / 2) * _spacing(row), 24 + level * gap)
    return places


def _edges(workflow: Workflow, places: Places, critical: set[int]) -> list[str]:
    plain: list[str] = []
    strong: list[str] = []
    for v, p in workflow.parents.pairs():
        is_critical = p in critical and v in critical
        (strong if is_critical else plain).append(_curve(places[p], places[v]))
    return [
        f'<path class="edge" d="{"".join(plain)}"/>',
        f'<path class="edge critical" d="{"".join(strong)}"/>',
    ]


def _curve(start: tuple[float, float], end: tuple[float, float]) -> str:
    a, b = start
    c, d = end
    bend = (d - b) * 0.5
    return f"M{a:.1f} {b:.1f}C{a:.1f} {b + bend:.1f} {c:.1f} {d - bend:.1f} {c:.1f} {d:.1f}"


def _labels(workflow: Workflow, rows: Sequence[Sequence[int]], gap: float) -> list[str]:
    parts = []
    for level, row in enumerate(rows):
        y = 28 + level * gap
        parts.append(plot.text(8, y, f"{level}", "strong"))
        kinds = Counter(workflow.kinds[v] or "task" for v in row)
        parts.append(plot.text(_WIDTH - _RIGHT + 24, y, _kinds_of_row(kinds)))
    return parts


def _kinds_of_row(kinds: Counter[str]) -> str:
    """The most frequent one, and how many others there are."""
    [(kind, count)] = kinds.most_common(1)
    others = kinds.total() - count
    more = f" + {others}" if others else ""
    return shortened(f"{count} {kind}", 22 - len(more)) + more


def _dots(
    workflow: Workflow, row: Sequence[int], places: Places, colours: Mapping[str, int]
) -> list[str]:
    """Dots whose area grows with the run time, the longest task having the largest; none too small
    to be seen."""
    radius = _radii(workflow.runtime_s, _spacing(row))
    kinds = [f" ({kind})" if kind else "" for kind in workflow.kinds]
    hints = {
        v: f"{workflow.ids[v]}{kinds[v]}: {format_duration(float(workflow.runtime_s[v]))}"
        for v in row
    }
    return [
        f'<circle class="task c{colours[workflow.kinds[v]]}" '
        f'cx="{places[v][0]:.1f}" cy="{places[v][1]:.1f}" r="{radius[v]:.1f}">'
        f"<title>{escape(hints[v])}</title></circle>"
        for v in row
    ]


_BARS_LEFT = 74
_MOST_BARS = 40
_BAR = 24


def profile(workflow: Workflow, figures: Shape, colours: Mapping[str, int]) -> tuple[str, str]:
    """The picture and its caption: one bar per level, or two lines if there are many levels."""
    if figures.levels <= _MOST_BARS:
        caption = (
            "One bar per level, from the entry tasks down; its length is the number of tasks, "
            "its colours are their "
            "kinds. Beside it: tasks, and their total run time. Each task waits for some task on "
            "the level above."
        )
        return _bars(workflow, figures, colours), caption
    caption = (
        "The levels from left to right, entry tasks first. Above: how many tasks each has; "
        "below: their total work."
    )
    return _lines(figures), caption


def _radii(runtime_s: Floats, spacing: float) -> Floats:
    longest = float(runtime_s.max()) or 1.0
    largest = min(8.0, spacing / 2 + 1)
    return np.maximum(min(2.5, spacing / 2), largest * np.sqrt(runtime_s / longest))


def _bars(workflow: Workflow, figures: Shape, colours: Mapping[str, int]) -> str:
    counts: list[dict[str, int]] = [{} for _ in range(figures.levels)]
    for kind, level in zip(workflow.kinds, workflow.levels.tolist(), strict=True):
        counts[level][kind] = counts[level].get(kind, 0) + 1
    length = (_WIDTH - _BARS_LEFT - 170) / figures.width
    parts = []
    for level, found in enumerate(counts):
        y = 6 + level * _BAR
        parts.append(plot.text(_BARS_LEFT - 12, y + 14, f"level {level}", "end"))
        parts += _bar(y, level, found, length, colours)
        x = _BARS_LEFT + figures.widths[level] * length
        words = f"{figures.widths[level]:,} · {format_duration(figures.level_work_s[level])}"
        parts.append(plot.text(x + 8, y + 14, words))
    return plot.picture(_WIDTH, 12 + figures.levels * _BAR, "Tasks on each level", parts)


def _bar(
    y: float, level: int, counts: Mapping[str, int], length: float, colours: Mapping[str, int]
) -> Iterator[str]:
    """The kinds of one level side by side; each task has this length."""
    x = float(_BARS_LEFT)
    for kind, count in counts.items():
        hint = f"level {level}: {count:,} {kind or 'tasks'}"
        yield plot.box(f"bar c{colours[kind]}", x, y, max(count * length, 0.5), _BAR - 6, hint)
        x += count * length


def _axis_of_levels(levels: int) -> Axis:
    step = round_step(levels, 8)
    inside = range(int((levels - 1) // step) + 1)
    return Axis(0, levels, tuple((i * step, f"{i * step:,.0f}") for i in inside), "level")


def _lines(figures: Shape) -> str:
    x = _axis_of_levels(figures.levels)
    hours = np.array(figures.level_work_s) / 3600
    rows = [("tasks", np.array(figures.widths)), ("work in hours", hours)]
    levels = np.arange(figures.levels + 1)
    parts = []
    for i, (name, values) in enumerate(rows):
        y = count_axis(float(values.max()), most_ticks=4)
        frame = Frame(_BARS_LEFT, 26 + i * 180, _WIDTH - _BARS_LEFT - 16, 130, x, y)
        most = f"{name}: at most {values.max():,.4g} on a level"
        parts.append(plot.axes(frame, x_labels=i + 1 == len(rows)))
        parts.append(plot.step_line(frame, levels, np.append(values, values[-1]), i))
        parts.append(plot.text(frame.left, frame.top - 9, most, "name"))
    return plot.picture(_WIDTH, 26 + 180 * len(rows) + 16, "Tasks and work by level", parts)


_MOST_KINDS = 30


def workflow_page(workflow: Workflow, figures: Shape, *, token: int, exact: int | None) -> str:
    """HTML about a workflow. `exact` is its level of parallelism, or None if it was not
    computed."""
    colours, keys = kind_colours(workflow)
    picture, caption = profile(workflow, figures, colours)
    sections = [
        section("In figures", facts(_facts(figures, token, exact))),
        section("Level by level", figure(picture, caption, legend(keys, marks=False))),
        section("Kinds of task", _kinds(kinds(workflow))),
        section("Task by task", _drawing(workflow, figures, colours, keys)),
    ]
    lead = (
        f"{figures.tasks:,} tasks on {figures.levels:,} levels, "
        f"{format_duration(figures.work_s)} of work."
    )
    return page(f"Workflow {workflow.name}", lead, sections)


def _facts(figures: Shape, token: int, exact: int | None) -> Iterator[tuple[str, str]]:
    yield "tasks", f"{figures.tasks:,}, with {figures.edges:,} dependencies"
    moved = f"tasks read {format_size(figures.moved_bytes)} from each other"
    yield "files", f"{figures.files:,}, {format_size(figures.size_bytes)} in all; {moved}"
    yield "levels", f"{figures.levels:,}, the widest with {figures.width:,} tasks"
    yield "work", f"{format_duration(figures.work_s)}, the sum of all run times"
    yield from _limits(figures)
    words = "not computed" if exact is None else f"{exact:,} tasks can run at once at most"
    yield "level of parallelism", f"{words} (by tokens, a lower bound: {token:,})"


def _kinds(found: Sequence[KindShape]) -> str:
    rows = []
    for kind in found[:_MOST_KINDS]:
        times = map(Time, (kind.work_s / kind.tasks, kind.work_s))
        levels = "–".join(map(str, dict.fromkeys((kind.first_level, kind.last_level))))
        rows.append((kind.name or "(no name)", f"{kind.tasks:,}", *times, levels))
    return table(
        ["kind", "tasks", "mean run", "work", "levels"], rows, len(found) - len(rows), " kinds"
    )


def _drawing(
    workflow: Workflow, figures: Shape, colours: dict[str, int], keys: Sequence[str]
) -> str:
    if not can_be_drawn(figures):
        return note("The workflow has too many tasks to draw each of them legibly.")
    caption = (
        "Every dot is a task: its row is its level (numbers at the left), its colour its kind; "
        "larger dots run "
        "longer than others on their level. Curves are dependencies, downwards, the strong ones "
        "the critical path. "
        "Point at a dot for its name."
    )
    return figure(drawing(workflow, figures, colours), caption, legend(keys, marks=False))


def _limits(figures: Shape) -> Iterator[tuple[str, str]]:
    """What more nodes cannot change."""
    path = f"{format_duration(figures.critical_path_s)} along {len(figures.critical_tasks):,} tasks"
    yield (
        "critical path",
        f"{path}: with any number of nodes, the workflow takes at least this long",
    )
    speedup = figures.work_s / figures.critical_path_s if figures.critical_path_s else 1.0
    yield (
        "mean parallelism",
        f"{speedup:,.1f}, work divided by critical path: more nodes cannot be busy all the time",
    )
