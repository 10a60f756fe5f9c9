"""Charts of papers, by matplotlib: SVG within a page, in its colours for light and dark, the same
bytes each time."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from windrow.report.page import figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SERIES = ("#0072b2", "#d55e00", "#00845f", "#b0508a", "#a87400", "#3a3f9e", "#bf1e3c", "#7b8087")
_SOFT = "#5c6570"
_RULE = "#dfe3e7"
_GROUND = "#fdfdfc"
_VARIABLES = {colour: f"var(--c{k})" for k, colour in enumerate(_SERIES)}
_VARIABLES |= {_SOFT: "var(--soft)", _RULE: "var(--rule)", _GROUND: "var(--ground)"}
_NEVER_DATED = dict.fromkeys(("Date", "Creator", "Format", "Type"))
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "windrow",
    "font.family": "sans-serif",
    "font.size": 9,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": _RULE,
    "legend.frameon": False,
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), _SOFT
    ),
    **dict.fromkeys(("axes.spines.top", "axes.spines.left", "axes.spines.right"), False),
}
MARKERS = "osD^vPX*"
FLOOR = -100.0
"""Percentages that fall deeper are cut there, with their value written at their end."""


def chart(
    draw: Callable[[Axes], object], caption: str, *, height: float = 3.2, x: str = "", y: str = ""
) -> str:
    """A figure of a page with what `draw` puts on a pair of axes, their titles, and a legend of
    what has a label."""
    import matplotlib as mpl  # noqa: PLC0415  (an extra)
    from cycler import cycler  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    with mpl.rc_context(_STYLE | {"axes.prop_cycle": cycler(color=_SERIES)}):
        drawing = Figure(figsize=(9.6, height), layout="constrained")
        axes = drawing.subplots()
        axes.set(xlabel=x, ylabel=y)
        draw(axes)
        _count_as_people_do(axes)
        if axes.get_legend_handles_labels()[0]:
            drawing.legend(loc="outside upper left", ncols=8)
        text = io.StringIO()
        drawing.savefig(text, format="svg", metadata=_NEVER_DATED)
    return figure(_of_the_page(text.getvalue(), caption), caption)


def _count_as_people_do(axes: Axes) -> None:
    """Ticks of logarithmic axes are numbers, not powers."""
    from matplotlib.ticker import LogLocator, NullLocator  # noqa: PLC0415

    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_locator(NullLocator())


def _of_the_page(svg: str, label: str) -> str:
    """Without what is for a file alone, and with the colours of the page, which differ by light and
    dark."""
    svg = re.sub(r"<(style|metadata).*?</\1>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    head = rf'<svg \1 role="img" aria-label="{escape(label)}">'
    svg = re.sub(r'^<svg.*?(viewBox="[^"]*").*?>', head, svg, flags=re.DOTALL)
    return re.sub("|".join(_VARIABLES), lambda match: _VARIABLES[match[0]], svg)


def grouped_bars(
    names: Sequence[str],
    series: Mapping[str, Sequence[float]],
    unit: str,
    caption: str,
    write: Callable[[float], str],
) -> str:
    """One group per name and one bar per series, from a line at zero; NaN leaves a gap.

    If all rise, each has its value above it.
    """
    values = [v for of in series.values() for v in of if not math.isnan(v)]
    falls = min(values, default=0) < 0

    def draw(axes: Axes) -> None:
        width = 0.8 / len(series)
        for k, (name, of) in enumerate(series.items()):
            at = np.arange(len(names)) - 0.4 + (k + 0.5) * width
            bars = axes.bar(at, np.maximum(of, FLOOR), 0.93 * width, label=name)
            _label(axes, bars, of, write, falls=falls)
        axes.set_xticks(range(len(names)), names)
        axes.grid(visible=False, axis="x")
        axes.axhline(0, color=_SOFT, linewidth=0.8)

    return chart(draw, caption, y=unit)


def _label(
    axes: Axes, bars: Any, values: Sequence[float], write: Callable[[float], str], *, falls: bool
) -> None:
    """Values above bars that all rise; or within those that fall deeper than the floor."""
    if falls:
        texts = [write(v) if v < FLOOR else "" for v in values]
        axes.bar_label(bars, texts, fontsize=7, padding=-34, rotation=90, color=_GROUND)
    else:
        texts = ["" if math.isnan(v) else write(v) for v in values]
        axes.bar_label(bars, texts, fontsize=7, padding=2)


def value_rows(
    names: Sequence[str], series: Mapping[str, Sequence[float]]
) -> tuple[tuple[str, ...], ...]:
    """The values of grouped bars as rows of a table, one per name."""
    return tuple(
        (name, *(short(values[k]) for values in series.values())) for k, name in enumerate(names)
    )


def short(value: float) -> str:
    """Three digits or so, as they fit over a bar."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}"
