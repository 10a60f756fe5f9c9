"""The profile of a workflow: how many tasks, and how much work, each level has."""

from collections.abc import Mapping
from html import escape

import numpy as np

from windrow.model import Workflow, format_duration
from windrow.report.svg import plot
from windrow.report.svg.axis import Axis, count_axis, round_step
from windrow.report.svg.plot import Frame
from windrow.shape import Shape

_WIDTH = 960
_LEFT = 74
_MOST_BARS = 40
_BAR = 24


def profile(workflow: Workflow, figures: Shape, colours: Mapping[str, int]) -> tuple[str, str]:
    """The picture and its caption: one bar per level, or two lines where there are many levels."""
    if figures.levels <= _MOST_BARS:
        caption = (
            "One bar per level, from the entry tasks down; its length is the number of tasks, its colours are their "
            "kinds. Beside it: tasks, and their run times in sum. Each task needs some task of the level above to end."
        )
        return _bars(workflow, figures, colours), caption
    caption = (
        "The levels from left to right, entry tasks first. Above: how many tasks each has; below: their work in sum."
    )
    return _lines(figures), caption


def _bars(workflow: Workflow, figures: Shape, colours: Mapping[str, int]) -> str:
    counts: list[dict[str, int]] = [{} for _ in range(figures.levels)]
    for kind, level in zip(workflow.kinds, workflow.levels.tolist(), strict=True):
        counts[level][kind] = counts[level].get(kind, 0) + 1
    length = (_WIDTH - _LEFT - 170) / figures.width
    parts = []
    for level, found in enumerate(counts):
        y = 6 + level * _BAR
        parts.append(plot.text(_LEFT - 12, y + 14, f"level {level}", "end"))
        x = float(_LEFT)
        for kind, count in found.items():
            hint = escape(f"level {level}: {count:,} {kind or 'tasks'}")
            box = f'x="{x:.1f}" y="{y}" width="{max(count * length, 0.5):.1f}" height="{_BAR - 6}"'
            parts.append(f'<rect class="bar c{colours[kind]}" {box}><title>{hint}</title></rect>')
            x += count * length
        words = f"{figures.widths[level]:,} · {format_duration(figures.level_work_s[level])}"
        parts.append(plot.text(x + 8, y + 14, words))
    return plot.picture(_WIDTH, 12 + figures.levels * _BAR, "Tasks on each level", parts)


def _lines(figures: Shape) -> str:
    step = round_step(figures.levels, 8)
    ticks = tuple((i * step, f"{i * step:,.0f}") for i in range(int((figures.levels - 1) // step) + 1))
    x = Axis(0, figures.levels, ticks, "level")
    hours = np.array(figures.level_work_s) / 3600
    rows = [("tasks", np.array(figures.widths)), ("work in hours", hours)]
    levels = np.arange(figures.levels + 1)
    parts = []
    for i, (name, values) in enumerate(rows):
        frame = Frame(_LEFT, 26 + i * 180, _WIDTH - _LEFT - 16, 130, x, count_axis(float(values.max()), most_ticks=4))
        parts.append(plot.axes(frame, x_labels=i + 1 == len(rows)))
        parts.append(plot.step_line(frame, levels, np.append(values, values[-1]), i))
        parts.append(plot.text(frame.left, frame.top - 9, f"{name}: at most {values.max():,.4g} on a level", "name"))
    return plot.picture(_WIDTH, 26 + 180 * len(rows) + 16, "Tasks and work by level", parts)
