"""Bars of what could be, one below the other: grey until something runs, coloured while it does,
pale to the end of all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from windrow.model.wording import shortened
from windrow.report import plot
from windrow.report.plot import Frame

STEP = 22
_BASE = 12
_NAME = 44


@dataclass(frozen=True, slots=True)
class Bar:
    """One of them; times count from where the axis begins. `words` stand behind the bars."""

    name: str
    wait_s: float
    run_s: float
    end_s: float
    words: str
    hint: str
    is_chosen: bool = False


def bar(frame: Frame, row: int, one: Bar) -> Iterator[str]:
    """The bar in that row of the frame, with its name before it and its words behind all bars."""
    top = frame.top + row * STEP + 3
    times = [0, one.wait_s, one.wait_s + one.run_s, one.end_s]
    a, b, c, d = frame.across(times).tolist()
    colour, css = ("c0", "strong") if one.is_chosen else ("c7", "")
    box = partial(plot.box, y=top, height=STEP - 8, hint=one.hint)
    name = shortened(one.name, _NAME)
    yield plot.text(frame.left - 10, top + _BASE, name, f"end {css}".strip())
    yield box("veil", a, width=b - a)
    yield box(f"bar {colour}", b, width=max(1.0, c - b))
    if d > c + 0.5:
        yield box(f"area {colour}", c, width=d - c)
    yield f'<path class="line {colour}" d="M{d:.1f} {top - 2:.1f}v{STEP - 4}"/>'
    yield plot.text(frame.right + 12, top + _BASE, one.words, css)
