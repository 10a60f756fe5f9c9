"""Bar charts as papers draw them: groups of bars that rise or fall from a line at zero."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape

from windrow.report.page import figure
from windrow.report.svg import plot
from windrow.report.svg.axis import Axis, count_axis, round_step
from windrow.report.svg.plot import Frame

_WIDTH = 960
_HEIGHT = 330
_LEFT = 74
_GROUP = 0.8
"""The part of a group's place that its bars fill."""

FLOOR = -100.0
"""Percentages that fall deeper are cut there, with their value written at their end."""


def grouped_bars(
    names: Sequence[str], series: Mapping[str, Sequence[float]], y: Axis, caption: str, write: Callable[[float], str]
) -> str:
    """A figure with one group per name and one bar per series; NaN leaves a gap.

    Where all rise, each has its value above it.
    """
    x = Axis(-0.5, len(names) - 0.5, tuple((float(i), name) for i, name in enumerate(names)))
    frame = Frame(_LEFT, 22, _WIDTH - _LEFT - 12, _HEIGHT - 56, x, y)
    parts = [plot.axes(frame)]
    width = _GROUP / len(series)
    for k, (strategy, values) in enumerate(series.items()):
        for i, value in enumerate(values):
            if not math.isnan(value):
                hint = f"{names[i]}, {strategy}: {write(value)}"
                parts += _bar(frame, i - _GROUP / 2 + k * width, width, value, k, hint)
                parts += _value(frame, i - _GROUP / 2 + (k + 0.5) * width, value, write)
    zero = float(frame.down(0))
    parts.append(f'<path class="axis" d="M{frame.left:.1f} {zero:.1f}H{frame.right:.1f}"/>')
    svg = plot.picture(_WIDTH, _HEIGHT, caption, parts)
    return figure(svg, caption, plot.legend(list(series), marks=False))


def percent_axis(lowest: float, highest: float, title: str) -> Axis:
    """Round numbers around zero and all values, but not below `FLOOR`."""
    low, high = min(0.0, max(lowest, FLOOR)), max(0.0, highest)
    step = max(5.0, round_step(max(high - low, 1), 7))
    first, last = math.floor(low / step), max(1, math.ceil(high / step))
    ticks = tuple((i * step, f"{i * step:+g}" if i else "0") for i in range(first, last + 1))
    return Axis(first * step, last * step, ticks, title)


def value_axis(highest: float, title: str) -> Axis:
    """From zero to a round number at or above `highest`, which may be well below 1."""
    scale = 10.0 ** math.floor(math.log10(highest)) if 0 < highest < 5 else 1.0
    scale = min(1.0, scale / 10)
    counted = count_axis(highest / scale, title)
    ticks = tuple((value * scale, f"{value * scale:,.10g}") for value, _ in counted.ticks)
    return Axis(0, counted.high * scale, ticks, title)


def known(series: Mapping[str, Sequence[float]]) -> list[float]:
    """All values that are numbers; a zero where there are none."""
    return [v for values in series.values() for v in values if not math.isnan(v)] or [0.0]


def short(value: float) -> str:
    """Three digits or so, as they fit over a bar."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _bar(frame: Frame, at: float, width: float, value: float, colour: int, hint: str) -> list[str]:
    left, right = (float(v) for v in frame.across([at, at + width]))
    top, bottom = sorted((float(frame.down(0)), float(frame.down(value))))
    place = f'x="{left:.1f}" y="{top:.1f}" width="{right - left - 1:.1f}" height="{max(0.5, bottom - top):.1f}"'
    return [f'<rect class="bar c{colour}" {place}><title>{escape(hint)}</title></rect>']


def _value(frame: Frame, middle: float, value: float, write: Callable[[float], str]) -> list[str]:
    """The value of a bar that is cut off, or of one that can only rise."""
    x = float(frame.across(middle))
    if value < frame.y.low:
        return [plot.text(x + 4, frame.bottom - 4, f"{value:.0f}", "strong", turned=True)]
    return [plot.text(x, float(frame.down(value)) - 4, write(value), "middle")] if frame.y.low == 0 else []
