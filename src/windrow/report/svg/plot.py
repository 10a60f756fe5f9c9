"""Drawing in SVG: a frame with two axes, and marks placed by them. Text in, text out.

Colours are classes (`c0`, `c1`, ...) that the page defines for light and for dark; here is only geometry.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from windrow.report.svg.axis import Axis
from windrow.report.svg.steps import thinned

Floats = NDArray[np.float64]

COLOURS = 8
"""How many series colours there are; the last one is a grey for all the rest."""

_MARKERS = (
    '<circle cx="0" cy="0" r="4.5"/>',
    '<rect x="-4" y="-4" width="8" height="8"/>',
    '<path d="M0-5.5 5 4H-5Z"/>',
    '<path d="M0-5.8 5.8 0 0 5.8-5.8 0Z"/>',
    '<path d="M0 5.5 5-4H-5Z"/>',
    '<path d="M-5-2H-2V-5H2V-2H5V2H2V5H-2V2H-5Z"/>',
    '<path d="M-5.6-2H-2V-5.6H2V-2H5.6V2H2V5.6H-2V2H-5.6Z" transform="rotate(45)"/>',
    '<path d="M-4.5-4.5 4.5 4.5M-4.5 4.5 4.5-4.5"/>',
)


@dataclass(frozen=True, slots=True)
class Frame:
    """A rectangle of the picture, in pixels from its top left corner, with an axis along two sides."""

    left: float
    top: float
    width: float
    height: float
    x: Axis
    y: Axis

    @property
    def bottom(self) -> float:
        """The lower side."""
        return self.top + self.height

    @property
    def right(self) -> float:
        """The right side."""
        return self.left + self.width

    def across(self, values: ArrayLike) -> Floats:
        """Pixels from the left of the picture."""
        return self.left + self.x.place(values) * self.width

    def down(self, values: ArrayLike) -> Floats:
        """Pixels from the top of the picture."""
        return self.bottom - self.y.place(values) * self.height


def picture(width: float, height: float, label: str, parts: Iterable[str]) -> str:
    """A whole SVG element; `label` tells in words what it shows to who cannot see it."""
    head = f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(label)}">'
    return "\n".join([head, *parts, "</svg>"])


def text(x: float, y: float, words: str, css: str = "", *, turned: bool = False) -> str:
    """Words at a place; `turned` by a quarter to read upwards."""
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{css}"{turn}>{escape(words)}</text>'


def axes(frame: Frame, *, x_labels: bool = True) -> str:
    """Grid lines, tick labels and titles of both axes."""
    parts = []
    for value, label in frame.y.ticks:
        y = float(frame.down(value))
        parts.append(f'<path class="grid" d="M{frame.left:.1f} {y:.1f}H{frame.right:.1f}"/>')
        parts.append(text(frame.left - 8, y + 4, label, "end"))
    for value, label in frame.x.ticks:
        x = float(frame.across(value))
        parts.append(f'<path class="tick" d="M{x:.1f} {frame.bottom:.1f}v5"/>')
        if x_labels:
            parts.append(text(x, frame.bottom + 19, label, "middle"))
    parts.append(f'<path class="axis" d="M{frame.left:.1f} {frame.bottom:.1f}H{frame.right:.1f}"/>')
    if x_labels and frame.x.title:
        parts.append(text(frame.left + frame.width / 2, frame.bottom + 38, frame.x.title, "middle title"))
    if frame.y.title:
        parts.append(text(14, frame.top + frame.height / 2, frame.y.title, "middle title", turned=True))
    return "\n".join(parts)


def line(frame: Frame, x: ArrayLike, y: ArrayLike, colour: int, *, thin: bool = False) -> str:
    """A line through points."""
    css = "line thin" if thin else "line"
    return f'<path class="{css} c{colour}" d="M{_points(frame.across(x), frame.down(y))}"/>'


def step_line(frame: Frame, times: NDArray[Any], values: NDArray[Any], colour: int) -> str:
    """A step function, in few enough points for a page, with the area under it tinted."""
    times, values = thinned(times, values)
    x, y = np.repeat(frame.across(times), 2)[1:], np.repeat(frame.down(values), 2)[:-1]
    outline = _points(x, y)
    area = f"M{x[0]:.1f} {frame.bottom:.1f}L{outline}V{frame.bottom:.1f}Z"
    return f'<path class="area c{colour}" d="{area}"/>\n<path class="line thin c{colour}" d="M{outline}"/>'


def band(frame: Frame, x: ArrayLike, low: ArrayLike, high: ArrayLike, colour: int) -> str:
    """The area between two lines."""
    across = frame.across(x)
    there = _points(across, frame.down(high))
    back = _points(across[::-1], frame.down(low)[::-1])
    return f'<path class="area c{colour}" d="M{there}L{back}Z"/>'


def markers(frame: Frame, x: ArrayLike, y: ArrayLike, colour: int, hints: Sequence[str]) -> str:
    """One mark per point, of a shape that belongs to the colour; `hints` appear under a resting pointer."""
    shape = _MARKERS[colour]
    places = zip(frame.across(x), frame.down(y), hints, strict=True)
    return "\n".join(
        f'<g class="mark c{colour}" transform="translate({a:.1f} {b:.1f})">{shape}<title>{escape(hint)}</title></g>'
        for a, b, hint in places
    )


def shade(frame: Frame, low: float, high: float) -> str:
    """A veil over the part of the frame between two values of x."""
    a, b = frame.across([low, high])
    if b - a < 0.5:
        return ""
    return f'<rect class="veil" x="{a:.1f}" y="{frame.top:.1f}" width="{b - a:.1f}" height="{frame.height:.1f}"/>'


def legend(names: Sequence[str], *, marks: bool = True) -> str:
    """The names of the series with their colours and marks (or plain squares), as HTML to stand above a picture."""
    square = '<rect x="-6" y="-6" width="12" height="12"/>'
    keys = [(i % COLOURS, escape(name)) for i, name in enumerate(names)]
    items = (
        f'<li><svg viewBox="-8 -8 16 16" class="key"><g class="mark c{c}">{_MARKERS[c] if marks else square}</g></svg>'
        f"{name}</li>"
        for c, name in keys
    )
    return f'<ul class="legend">{"".join(items)}</ul>'


def _points(x: Floats, y: Floats) -> str:
    return " ".join(f"{a:.1f} {b:.1f}" for a, b in zip(x.tolist(), y.tolist(), strict=True))
