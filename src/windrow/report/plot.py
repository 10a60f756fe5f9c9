"""Drawing in SVG: axes, a frame between two of them, and marks placed by them. Text in, text out.

Axes lead from values to places between 0 and 1, with ticks at round numbers in units that fit.
Rule: every tick lies on its axis, and at most about eight of them, so that labels never collide. A
step function is two arrays: times, ascending, and the value from each time on until the next; it is
made small enough to draw, with no peak lost.

Colours are classes (`c0`, `c1`, ...) that the page defines for light and for dark; here is only
geometry.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

_MOST_TICKS = 8

# Unit, its seconds, and the steps that people count it in.
_TIME_UNITS = (
    ("seconds", 1, (1, 2, 5, 10, 15, 30)),
    ("minutes", 60, (1, 2, 5, 10, 15, 30)),
    ("hours", 3600, (1, 2, 3, 6, 12, 24)),
    ("days", 86400, (1, 2, 5, 7, 10, 20, 30, 50, 100, 200, 365, 500, 1000, 2000, 5000)),
)

_DAY_S = 86400
_UNITS = {
    "s": (1, (1, 10)),
    "min": (60, (1, 10)),
    "h": (3600, (1, 6)),
    "d": (_DAY_S, (1, 7, 30, 100)),
}
_UNITS["y"] = 365 * _DAY_S, (1, 10)
_LOG_DURATIONS = tuple(
    (n * seconds, f"{n} {unit}") for unit, (seconds, counts) in _UNITS.items() for n in counts
)


@dataclass(frozen=True, slots=True)
class Axis:
    """Values from `low` to `high`, linear or logarithmic, with labelled ticks."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    title: str = ""
    log: bool = False

    def place(self, values: ArrayLike) -> Floats:
        """Where values lie: 0 at `low`, 1 at `high`; what lies outside is put on the nearer end."""
        given = np.clip(np.asarray(values, dtype=np.float64), self.low, self.high)
        if self.log:
            return np.asarray(np.log(given / self.low) / math.log(self.high / self.low))
        return np.asarray((given - self.low) / (self.high - self.low))


def count_axis(highest: float, title: str = "", *, most_ticks: int = _MOST_TICKS) -> Axis:
    """From zero to a round number at or above `highest`."""
    step = round_step(max(highest, 1), most_ticks)
    count = max(1, math.ceil(highest / step - 1e-9))
    ticks = tuple((i * step, f"{i * step:,.10g}") for i in range(count + 1))
    return Axis(0, count * step, ticks, title)


def share_axis(title: str = "") -> Axis:
    """From 0 to 100 %; values are fractions of 1."""
    return Axis(0, 1, tuple((i / 4, f"{25 * i} %") for i in range(5)), title)


def time_axis(low_s: float, high_s: float, origin: str) -> Axis:
    """Moments in seconds, labelled in the unit that fits the span; `origin` says what they count
    from."""
    high_s = max(high_s, low_s + 1)
    fitting = [unit for unit in _TIME_UNITS if high_s - low_s >= 3 * unit[1]] or [_TIME_UNITS[0]]
    unit, seconds, steps = fitting[-1]
    span = (high_s - low_s) / seconds
    step = seconds * next(
        (step for step in steps if span / step <= _MOST_TICKS), round_step(span, _MOST_TICKS)
    )
    inside = range(math.ceil(low_s / step), math.floor(high_s / step) + 1)
    ticks = tuple((i * step, f"{i * step / seconds:,.10g}") for i in inside)
    return Axis(low_s, high_s, ticks, f"{unit} {origin}")


def log_duration_axis(lowest_s: float, highest_s: float, title: str = "") -> Axis:
    """Durations of at least a second, from the tick at or below `lowest_s` to a little above
    `highest_s`."""
    first = max([s for s, _ in _LOG_DURATIONS if s <= lowest_s], default=1)
    last = max(highest_s * 1.15, first * 10)
    ticks = tuple((s, label) for s, label in _LOG_DURATIONS if first <= s <= last)
    return Axis(first, last, ticks, title, log=True)


def round_step(span: float, most: int) -> float:
    """The smallest of 1, 2, 5, 10, 20, 50, ... that divides `span` into at most `most` parts; never
    below 1."""
    power = 10.0 ** math.floor(math.log10(max(span / most, 1)))
    return next(
        power * factor for factor in (1, 2, 5, 10) if span <= power * factor * most * (1 + 1e-9)
    )


Ints = NDArray[np.int64]


def thinned(times: Ints, values: Ints, most: int = 1500) -> tuple[Ints, Ints]:
    """At most `most` of the points, among them the first, last, least and greatest of each stretch
    of time."""
    if len(times) <= most:
        return times, values
    stretch = (times - times[0]) * (most // 4) // (times[-1] - times[0] + 1)
    # Sorted by stretch, then value: the ends of each group are its least and greatest point.
    by_value = np.lexsort((np.arange(len(times)), values, stretch))
    begins = np.flatnonzero(np.diff(stretch, prepend=-1))
    ends = np.append(begins[1:], len(times)) - 1
    kept = np.unique(np.concatenate([begins, ends, by_value[begins], by_value[ends]]))
    return times[kept], values[kept]


def averages(times: Ints, values: Ints, edges: Floats) -> Floats:
    """The mean value between each two neighbouring edges; the function is zero before its first
    time."""
    area = np.concatenate([[0.0], np.cumsum(values[:-1] * np.diff(times).astype(np.float64))])
    tail = np.maximum(edges - times[-1], 0) * float(values[-1])
    return np.asarray(np.diff(np.interp(edges, times, area) + tail) / np.diff(edges))


def round_length(span_s: float, most: int) -> int:
    """The shortest everyday length of time of which at most `most` make up the span."""
    minute = 60
    hour = 3600
    day = 86400
    lengths = (
        minute,
        10 * minute,
        hour,
        3 * hour,
        6 * hour,
        12 * hour,
        day,
        2 * day,
        7 * day,
        14 * day,
        28 * day,
    )
    return next((length for length in lengths if span_s <= most * length), 364 * day)


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
    """A rectangle of the picture, in pixels from its top left corner, with an axis along two
    sides."""

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


def picture(
    width: float, height: float, label: str, parts: Iterable[str], *, is_small: bool = False
) -> str:
    """A whole SVG element; `label` tells in words what it shows to who cannot see it. A small one
    is as wide as it says, and not as the page."""
    size = f' style="width:{width:g}px;min-width:0"' if is_small else ""
    head = f'<svg viewBox="0 0 {width:g} {height:g}"{size} role="img" aria-label="{escape(label)}">'
    return "\n".join([head, *parts, "</svg>"])


def text(x: float, y: float, words: str, css: str = "", *, turned: bool = False) -> str:
    """Words at a place; `turned` by a quarter to read upwards."""
    if turned:
        turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"'
    else:
        turn = ""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{css}"{turn}>{escape(words)}</text>'


def _ticks(frame: Frame, *, x_labels: bool) -> Iterator[str]:
    """Grid lines across, and short ticks below."""
    for value, label in frame.y.ticks:
        y = float(frame.down(value))
        yield f'<path class="grid" d="M{frame.left:.1f} {y:.1f}H{frame.right:.1f}"/>'
        yield text(frame.left - 8, y + 4, label, "end")
    for value, label in frame.x.ticks:
        x = float(frame.across(value))
        yield f'<path class="tick" d="M{x:.1f} {frame.bottom:.1f}v5"/>'
        if x_labels:
            yield text(x, frame.bottom + 19, label, "middle")


def axes(frame: Frame, *, x_labels: bool = True) -> str:
    """Grid lines, tick labels and titles of both axes."""
    parts = [*_ticks(frame, x_labels=x_labels)]
    parts.append(f'<path class="axis" d="M{frame.left:.1f} {frame.bottom:.1f}H{frame.right:.1f}"/>')
    if x_labels and frame.x.title:
        parts.append(
            text(frame.left + frame.width / 2, frame.bottom + 38, frame.x.title, "middle title")
        )
    if frame.y.title:
        parts.append(
            text(14, frame.top + frame.height / 2, frame.y.title, "middle title", turned=True)
        )
    return "\n".join(parts)


def line(frame: Frame, x: ArrayLike, y: ArrayLike, colour: int, *, thin: bool = False) -> str:
    """A line through points."""
    if thin:
        css = "line thin"
    else:
        css = "line"
    return f'<path class="{css} c{colour}" d="M{_points(frame.across(x), frame.down(y))}"/>'


def step_line(frame: Frame, times: NDArray[Any], values: NDArray[Any], colour: int) -> str:
    """A step function, in few enough points for a page, with the area under it tinted."""
    times, values = thinned(times, values)
    x = np.repeat(frame.across(times), 2)[1:]
    y = np.repeat(frame.down(values), 2)[:-1]
    outline = _points(x, y)
    area = f"M{x[0]:.1f} {frame.bottom:.1f}L{outline}V{frame.bottom:.1f}Z"
    return (
        f'<path class="area c{colour}" d="{area}"/>\n<path class="line thin c{colour}" '
        f'd="M{outline}"/>'
    )


def band(frame: Frame, x: ArrayLike, low: ArrayLike, high: ArrayLike, colour: int) -> str:
    """The area between two lines."""
    across = frame.across(x)
    there = _points(across, frame.down(high))
    back = _points(across[::-1], frame.down(low)[::-1])
    return f'<path class="area c{colour}" d="M{there}L{back}Z"/>'


def markers(frame: Frame, x: ArrayLike, y: ArrayLike, colour: int, hints: Sequence[str]) -> str:
    """One mark per point, of a shape that belongs to the colour; `hints` appear under a resting
    pointer."""
    shape = _MARKERS[colour]
    places = zip(frame.across(x), frame.down(y), hints, strict=True)
    return "\n".join(
        f'<g class="mark c{colour}" transform="translate({a:.1f} '
        f'{b:.1f})">{shape}<title>{escape(hint)}</title></g>'
        for a, b, hint in places
    )


def box(css: str, x: float, y: float, width: float, height: float, hint: str = "") -> str:
    """A rectangle from its upper left corner; `hint` appears under a resting pointer."""
    place = f'x="{x:.1f}" y="{y:.2f}" width="{max(width, 0):.1f}" height="{max(height, 0.1):.2f}"'
    title = ""
    if hint:
        title = f"<title>{escape(hint)}</title>"
    return f'<rect class="{css}" {place}>{title}</rect>'


def shade(frame: Frame, low: float, high: float) -> str:
    """A veil over the part of the frame between two values of x."""
    a, b = frame.across([low, high])
    if b - a < 0.5:
        return ""
    return box("veil", a, frame.top, b - a, frame.height)


def legend(names: Sequence[str], *, marks: bool = True) -> str:
    """The names of the series with their colours and marks (or plain squares), as HTML to stand
    above a picture."""
    square = '<rect x="-6" y="-6" width="12" height="12"/>'
    items = ""
    for i, name in enumerate(names):
        mark = square
        if marks:
            mark = _MARKERS[i % COLOURS]
        items += (
            f'<li><svg viewBox="-8 -8 16 16" class="key"><g class="mark c{i % COLOURS}">{mark}'
            f"</g></svg>{escape(name)}</li>"
        )
    return f'<ul class="legend">{items}</ul>'


def _points(x: Floats, y: Floats) -> str:
    return " ".join(f"{a:.1f} {b:.1f}" for a, b in zip(x.tolist(), y.tolist(), strict=True))
