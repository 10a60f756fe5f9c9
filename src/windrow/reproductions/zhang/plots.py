"""Bar charts as Zhang, Koelbel and Cooper draw them: groups of bars that rise from zero."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from windrow.report.svg import plot
from windrow.report.svg.axis import Axis, count_axis
from windrow.report.svg.plot import Frame

_WIDTH = 960
_HEIGHT = 330
_LEFT = 74
_GROUP = 0.78
"""The part of a group's place that its bars fill."""


def grouped_bars(names: Sequence[str], series: Mapping[str, Sequence[float]], unit: str, label: str) -> str:
    """A picture with one group per name and one bar per series, each under its value; NaN leaves a gap."""
    known = [v for values in series.values() for v in values if not math.isnan(v)]
    x = Axis(-0.5, len(names) - 0.5, tuple((float(i), name) for i, name in enumerate(names)))
    frame = Frame(_LEFT, 22, _WIDTH - _LEFT - 12, _HEIGHT - 56, x, value_axis(max(known, default=0.0), unit))
    parts = [plot.axes(frame)]
    width = _GROUP / len(series)
    for k, (strategy, values) in enumerate(series.items()):
        for i, value in enumerate(values):
            if not math.isnan(value):
                at = i - _GROUP / 2 + k * width
                parts.append(_bar(frame, at, width, value, k, f"{names[i]}, {strategy}: {short(value)}"))
    return plot.picture(_WIDTH, _HEIGHT, label, parts)


def value_axis(highest: float, title: str) -> Axis:
    """From zero to a round number at or above `highest`, which may be well below 1."""
    scale = 10.0 ** math.floor(math.log10(highest)) if 0 < highest < 5 else 1.0
    scale = min(1.0, scale / 10)
    counted = count_axis(highest / scale, title)
    ticks = tuple((value * scale, f"{value * scale:,.10g}") for value, _ in counted.ticks)
    return Axis(0, counted.high * scale, ticks, title)


def short(value: float) -> str:
    """Three digits or so, as they fit over a bar."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _bar(frame: Frame, at: float, width: float, value: float, colour: int, hint: str) -> str:
    left, right = (float(v) for v in frame.across([at, at + width]))
    low, high = sorted((float(frame.down(0)), float(frame.down(max(0.0, value)))), reverse=True)
    place = f'x="{left:.1f}" y="{high:.1f}" width="{right - left - 2:.1f}" height="{max(0.5, low - high):.1f}"'
    bar = f'<rect class="bar c{colour}" {place}><title>{escape(hint)}</title></rect>'
    return bar + plot.text((left + right) / 2 - 1, high - 4, short(value), "middle")
