"""A small workflow drawn task by task: levels as rows from the top down, tasks as dots, dependencies as curves.

Within its row each task goes near the middle of its parents and children (the barycentre heuristic of Sugiyama,
Tagawa and Toda), which untangles most of what can be untangled; it is not a search for the fewest crossings.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from windrow.model import Adjacency, Workflow, format_duration
from windrow.report.svg import plot
from windrow.shape import Shape, kinds

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
    """A colour for each kind of task, and the names for the legend; the grey is for all kinds beyond the sixth."""
    found = kinds(workflow)
    most = sorted(found, key=lambda kind: -kind.tasks)[: plot.COLOURS - 1] if len(found) >= plot.COLOURS else found
    shown = [kind.name for kind in found if kind in most]
    colours = {kind.name: shown.index(kind.name) if kind.name in shown else plot.COLOURS - 1 for kind in found}
    return colours, [name or "tasks" for name in shown] + (["others"] if len(found) > len(shown) else [])


def can_be_drawn(figures: Shape) -> bool:
    """Whether a drawing of every task would still be readable."""
    small = figures.tasks <= MOST_TASKS and figures.edges <= MOST_EDGES
    return small and figures.levels <= _MOST_LEVELS and figures.width <= _MOST_WIDTH


def drawing(workflow: Workflow, figures: Shape, colours: Mapping[str, int]) -> str:
    """The picture; `colours` has a colour for each kind of task."""
    rows = untangled(workflow)
    gap = 74.0 if figures.levels <= 12 else 52.0
    places: Places = [(0.0, 0.0)] * len(workflow)
    for level, row in enumerate(rows):
        for i, v in enumerate(row):
            places[v] = (_MIDDLE + (i - (len(row) - 1) / 2) * _spacing(row), 24 + level * gap)
    critical = {workflow.number(task_id) for task_id in figures.critical_tasks}
    parts = [*_edges(workflow, places, critical), *_labels(workflow, rows, gap)]
    for row in rows:
        parts.extend(_dots(workflow, row, places, colours))
    return plot.picture(_WIDTH, 48 + (figures.levels - 1) * gap, f"Tasks of {workflow.name} by level", parts)


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
    means = {v: float(place[of].mean()) if len(of := neighbours.of(v)) else float(place[v]) for v in row}
    row.sort(key=means.__getitem__)
    _settle(row, place)


def _settle(row: Sequence[int], place: plot.Floats) -> None:
    """Places around zero, one apart, so that rows of any width share their middle."""
    place[row] = np.arange(len(row)) - (len(row) - 1) / 2


def _edges(workflow: Workflow, places: Places, critical: set[int]) -> list[str]:
    plain: list[str] = []
    strong: list[str] = []
    for v in range(len(workflow)):
        for p in workflow.parents.of(v).tolist():
            (a, b), (c, d) = places[p], places[v]
            bend = (d - b) * 0.5
            curve = f"M{a:.1f} {b:.1f}C{a:.1f} {b + bend:.1f} {c:.1f} {d - bend:.1f} {c:.1f} {d:.1f}"
            (strong if p in critical and v in critical else plain).append(curve)
    return [f'<path class="edge" d="{"".join(plain)}"/>', f'<path class="edge critical" d="{"".join(strong)}"/>']


def _labels(workflow: Workflow, rows: Sequence[Sequence[int]], gap: float) -> list[str]:
    parts = []
    for level, row in enumerate(rows):
        y = 28 + level * gap
        (kind, count), *others = Counter(workflow.kinds[v] or "task" for v in row).most_common()
        words = f"{count} {kind}"
        more = f" + {len(row) - count}" if others else ""
        parts.append(plot.text(8, y, f"{level}", "strong"))
        most = 22 - len(more)
        words = words if len(words) <= most else words[: most - 1] + "…"
        parts.append(plot.text(_WIDTH - _RIGHT + 24, y, words + more))
    return parts


def _dots(workflow: Workflow, row: Sequence[int], places: Places, colours: Mapping[str, int]) -> list[str]:
    """Dots whose area grows with the run time, the longest task having the largest; none too small to be seen."""
    longest = float(workflow.runtime_s.max()) or 1.0
    smallest, largest = min(2.5, _spacing(row) / 2), min(8.0, _spacing(row) / 2 + 1)
    radius = np.maximum(smallest, largest * np.sqrt(workflow.runtime_s / longest))
    return [
        f'<circle class="task c{colours[workflow.kinds[v]]}" '
        f'cx="{places[v][0]:.1f}" cy="{places[v][1]:.1f}" r="{radius[v]:.1f}">'
        f"<title>{escape(_hint(workflow, v))}</title></circle>"
        for v in row
    ]


def _hint(workflow: Workflow, v: int) -> str:
    kind = f" ({workflow.kinds[v]})" if workflow.kinds[v] else ""
    return f"{workflow.ids[v]}{kind}: {format_duration(float(workflow.runtime_s[v]))}"
