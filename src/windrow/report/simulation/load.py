"""Pictures over time: how many jobs wait, how many nodes are busy. One row per policy, all on the same time axis."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from windrow.report.svg import plot
from windrow.report.svg.axis import Axis, count_axis, share_axis, time_axis
from windrow.report.svg.plot import Frame
from windrow.report.svg.steps import averages, round_length
from windrow.sim.simulation import Simulation

Window = tuple[float, float]

_WIDTH = 960
_LEFT = 74
_ROW = 116
_GAP = 34
_MOST_AVERAGES = 320
_UNITS = (("week", 604800), ("day", 86400), ("hour", 3600), ("minute", 60))
_ALIKE = 4  # scales that differ by no more than this share one axis


def queue(simulations: Sequence[Simulation], window: Window) -> tuple[str, str]:
    """The length of the queue, and its caption."""
    lengths = [simulation.queue_length() for simulation in simulations]
    peaks = [int(values.max()) for _, values in lengths]
    alike = max(peaks) <= _ALIKE * max(1, min(peaks))

    def draw(i: int, frame: Frame) -> str:
        return plot.step_line(frame, *lengths[i], i % plot.COLOURS)

    axes = [count_axis(max(peaks) if alike else peak, "jobs waiting", most_ticks=3) for peak in peaks]
    names = [f"{s.label}: at most {peak:,} jobs wait" for s, peak in zip(simulations, peaks, strict=True)]
    scale = "" if alike or len(peaks) == 1 else " Each row has its own scale."
    caption = (
        "The height of the line is the number of jobs submitted but not yet started at that time: "
        f"the lower, the sooner jobs start.{scale}{_veil_words(window)}"
    )
    return _rows(simulations, names, axes, draw, window), caption


def utilization(simulations: Sequence[Simulation], window: Window) -> tuple[str, str]:
    """The share of nodes that are busy, and its caption."""
    low, high = _span(simulations)
    length = round_length(high - low, _MOST_AVERAGES)
    edges = np.arange(low, high + length, length, dtype=np.float64)

    def draw(i: int, frame: Frame) -> str:
        times, busy = simulations[i].busy_nodes()
        share = averages(times, busy, edges) / simulations[i].machine_nodes
        middle = (edges[:-1] + edges[1:]) / 2
        colour = i % plot.COLOURS
        up = averages(*simulations[i].nodes_up(), edges) / simulations[i].machine_nodes
        drawn = plot.line(frame, middle, up, colour, thin=True) if simulations[i].failures is not None else ""
        drawn += plot.band(frame, middle, np.zeros(len(share)), share, colour)
        return drawn + plot.line(frame, middle, share, colour)

    names = [s.label for s in simulations]
    axes = [share_axis("nodes busy")] * len(simulations)
    caption = (
        f"The height of the line is the share of nodes that run jobs, averaged over {_length_words(length)}. "
        "At 100 % no node is idle; a gap while jobs wait is room that the policy could not use."
        f"{' The thin line is the share of nodes that are not out.' if simulations[0].failures is not None else ''}"
        f"{_veil_words(window)}"
    )
    return _rows(simulations, names, axes, draw, window), caption


def _rows(
    simulations: Sequence[Simulation],
    names: Sequence[str],
    y_axes: Sequence[Axis],
    draw: Callable[[int, Frame], str],
    window: Window,
) -> str:
    low, high = _span(simulations)
    x = time_axis(low, high, "since the first submission")
    parts = []
    for i, y in enumerate(y_axes):
        frame = Frame(_LEFT, 26 + i * (_ROW + _GAP), _WIDTH - _LEFT - 16, _ROW, x, y)
        parts.append(plot.axes(frame, x_labels=i + 1 == len(y_axes)))
        parts.append(draw(i, frame))
        parts.append(plot.shade(frame, low, window[0]) + plot.shade(frame, window[1], high))
        parts.append(plot.text(frame.left, frame.top - 9, names[i], "name"))
    return plot.picture(_WIDTH, 26 + len(y_axes) * (_ROW + _GAP) + 16, f"{y_axes[0].title} over time", parts)


def _span(simulations: Sequence[Simulation]) -> tuple[float, float]:
    low = min(int(simulation.log.submit_s[0]) for simulation in simulations)
    return low, max(int(simulation.end_s.max()) for simulation in simulations)


def _veil_words(window: Window) -> str:
    return "" if window == (0, math.inf) else " Veiled: submitted outside of the window that is counted."


def _length_words(length_s: int) -> str:
    unit, seconds = next((u, s) for u, s in _UNITS if length_s % s == 0)
    count = length_s // seconds
    return f"{count} {unit}s" if count > 1 else f"{'an' if unit == 'hour' else 'a'} {unit}"
