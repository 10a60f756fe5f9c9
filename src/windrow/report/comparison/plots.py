"""Pictures of a comparison: spread of makespans, where time and nodes go, and makespans over the submission times."""

from html import escape

import numpy as np

from windrow.lab.compare import Comparison
from windrow.report.svg import plot
from windrow.report.svg.axis import Axis, count_axis, time_axis
from windrow.report.svg.plot import Frame

_WIDTH = 960
_LEFT = 122
_ROW = 44
_MOST_MARKS = 60


def spread(comparison: Comparison, unit_s: float, unit: str) -> tuple[str, str]:
    """One row per strategy: a dot for each run, the middle eight tenths as a bar, the mean as a mark."""
    names = comparison.strategies
    longest = max(float(comparison.column(name, "makespan_s").max()) for name in names) / unit_s
    frame = _frame(_LEFT, _WIDTH - _LEFT - 30, len(names), count_axis(longest, f"makespan in {unit}"))
    parts = [plot.axes(frame)]
    for i, name in enumerate(names):
        makespans = comparison.column(name, "makespan_s") / unit_s
        y = frame.top + (i + 0.5) * _ROW
        low, middle, high = frame.across(np.percentile(makespans, [10, 50, 90])).tolist()
        parts.append(plot.text(_LEFT - 10, y + 4, name, "end strong"))
        parts.append(_rect(low, y - 11, high - low, 22, f"area c{i % plot.COLOURS}"))
        parts.append(f'<path class="line c{i % plot.COLOURS}" d="M{middle:.1f} {y - 11:.1f}v22"/>')
        dots = "".join(f"M{x:.1f} {y:.1f}h0" for x in frame.across(makespans).tolist())
        style = "stroke-width: 6; stroke-linecap: round; stroke-opacity: .55"
        parts.append(f'<path class="line c{i % plot.COLOURS}" style="{style}" d="{dots}"/>')
        at = frame.y.high - i - 0.5
        hint = f"{name}: mean {makespans.mean():,.1f} {unit}"
        parts.append(plot.markers(frame, [makespans.mean()], [at], i % plot.COLOURS, [hint]))
    caption = (
        "Each dot is a run: the further left, the sooner the workflow was done. The bar holds the middle eight tenths, "
        "the stroke in it is the median, the large mark the mean."
    )
    return plot.picture(_WIDTH, frame.bottom + 50, "Makespan by strategy", parts), caption


def shares(comparison: Comparison, unit_s: float, unit: str) -> tuple[str, str]:
    """Two bars per strategy: the makespan with the part in which nothing ran, the node-hours with those wasted."""
    summaries = comparison.summaries()
    width = (_WIDTH - _LEFT - 60) / 2
    longest = max(s["makespan_s_mean"] for s in summaries) / unit_s
    most = max(s["used_node_h_mean"] for s in summaries)
    time = _frame(_LEFT, width, len(summaries), count_axis(longest, f"mean makespan in {unit}", most_ticks=5))
    nodes = _frame(_LEFT + width + 30, width, len(summaries), count_axis(most, "mean node-hours", most_ticks=5))
    parts = [plot.axes(time), plot.axes(nodes)]
    for i, s in enumerate(summaries):
        y = time.top + i * _ROW + 10
        parts.append(plot.text(_LEFT - 10, y + 16, s["strategy"], "end strong"))
        idle = s["visible_wait_s_mean"] / unit_s, s["makespan_s_mean"] / unit_s
        parts += _split(time, y, i, *idle, f"{s['strategy']}: {idle[0]:,.1f} of {idle[1]:,.1f} {unit} no task ran")
        waste = s["wasted_node_h_mean"], s["used_node_h_mean"]
        parts += _split(nodes, y, i, *waste, f"{s['strategy']}: {waste[0]:,.1f} of {waste[1]:,.1f} node-hours wasted")
    caption = (
        "Left: the mean makespan; pale is the time in which no task ran, because jobs waited. Right: the node-hours "
        "that jobs held; pale is what did no work: nodes idle while others worked, or work that was lost."
    )
    return plot.picture(_WIDTH, time.bottom + 50, "Waits and node-hours by strategy", parts), caption


def over_time(comparison: Comparison) -> tuple[str, str, str]:
    """A line per strategy through the makespans at the submission times."""
    times = np.array(comparison.times_s, dtype=np.float64)
    longest = max(float(comparison.column(name, "makespan_s").max()) for name in comparison.strategies) / 3600
    x = time_axis(float(times[0]), float(times[-1]), "from the log's first submission to the workflow's")
    frame = Frame(74, 14, _WIDTH - 74 - 30, 320, x, count_axis(longest, "makespan in hours"))
    parts = [plot.axes(frame)]
    for i, name in enumerate(comparison.strategies):
        hours = comparison.column(name, "makespan_s") / 3600
        colour = i % plot.COLOURS
        parts.append(plot.line(frame, times, hours, colour, thin=True))
        if len(times) <= _MOST_MARKS:
            hints = [f"{name}: {value:,.1f} h" for value in hours]
            parts.append(plot.markers(frame, times, hours, colour, hints))
    caption = (
        "Each mark is a run, submitted when the axis below says; the lower, the better. Where lines cross, the state "
        "of the queue decides which strategy is best."
    )
    return plot.picture(_WIDTH, 390, "Makespan by submission time", parts), caption, plot.legend(comparison.strategies)


def _frame(left: float, width: float, rows: int, x: Axis) -> Frame:
    return Frame(left, 8, width, rows * _ROW, x, Axis(0, rows, ()))


def _split(frame: Frame, y: float, colour: int, pale: float, whole: float, hint: str) -> list[str]:
    left, middle, right = frame.across([0, whole - pale, whole]).tolist()
    css, title = f"c{colour % plot.COLOURS}", f"<title>{escape(hint)}</title>"
    return [
        _rect(left, y, middle - left, 24, f"bar {css}", title),
        _rect(middle, y, right - middle, 24, f"area {css}", title),
    ]


def _rect(x: float, y: float, width: float, height: float, css: str, inside: str = "") -> str:
    return (
        f'<rect class="{css}" x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{height:g}">{inside}</rect>'
    )
