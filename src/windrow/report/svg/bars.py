"""Bar charts as the GLUME thesis draws them: groups of bars that rise or fall from a line at zero."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from windrow.report.svg import plot
from windrow.report.svg.axis import Axis, round_step
from windrow.report.svg.plot import Frame

_WIDTH = 960
_HEIGHT = 330
_LEFT = 74
_GROUP = 0.8
"""The part of a group's place that its bars fill."""

FLOOR = -100.0
"""Bars that fall deeper are cut there, with their value written at their end."""


def improvement_bars(names: Sequence[str], series: Mapping[str, Sequence[float]], label: str) -> str:
    """A picture with one group per name and one bar per series; values are percent, NaN leaves a gap."""
    known = [v for values in series.values() for v in values if not math.isnan(v)]
    y = percent_axis(min(known, default=0.0), max(known, default=0.0), "better than zhang, %")
    x = Axis(-0.5, len(names) - 0.5, tuple((float(i), name) for i, name in enumerate(names)))
    frame = Frame(_LEFT, 14, _WIDTH - _LEFT - 12, _HEIGHT - 48, x, y)
    zero = float(frame.down(0))
    parts = [plot.axes(frame)]
    width = _GROUP / len(series)
    for k, (strategy, values) in enumerate(series.items()):
        for i, value in enumerate(values):
            if not math.isnan(value):
                at = i - _GROUP / 2 + k * width
                parts.append(_bar(frame, at, width, value, k, f"{names[i]}, {strategy}: {value:+.1f} %"))
    parts.append(f'<path class="axis" d="M{frame.left:.1f} {zero:.1f}H{frame.right:.1f}"/>')
    return plot.picture(_WIDTH, _HEIGHT, label, parts)


def percent_axis(lowest: float, highest: float, title: str) -> Axis:
    """Round numbers around zero and all values, but not below `FLOOR`."""
    low, high = min(0.0, max(lowest, FLOOR)), max(0.0, highest)
    step = max(5.0, round_step(max(high - low, 1), 7))
    first, last = math.floor(low / step), max(1, math.ceil(high / step))
    ticks = tuple((i * step, f"{i * step:+g}" if i else "0") for i in range(first, last + 1))
    return Axis(first * step, last * step, ticks, title)


def _bar(frame: Frame, at: float, width: float, value: float, colour: int, hint: str) -> str:
    left, right = frame.across([at, at + width])
    ends = sorted((float(frame.down(0)), float(frame.down(value))))
    place = (
        f'x="{left:.1f}" y="{ends[0]:.1f}" width="{right - left - 1:.1f}" height="{max(0.5, ends[1] - ends[0]):.1f}"'
    )
    bar = f'<rect class="bar c{colour}" {place}><title>{escape(hint)}</title></rect>'
    if value >= frame.y.low:
        return bar
    return bar + plot.text(float(left + right) / 2 + 4, frame.bottom - 4, f"{value:.0f}", "strong", turned=True)
