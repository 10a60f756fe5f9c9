"""Pictures of waits: their distribution, and how it falls on narrow and wide jobs."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from windrow.model import format_duration
from windrow.report.svg import plot
from windrow.report.svg.axis import Axis, log_duration_axis, share_axis
from windrow.report.svg.plot import Frame
from windrow.sim.simulation import Simulation

Window = tuple[float, float]
Ints = NDArray[np.int64]

_WIDTH = 960
_HEIGHT = 380
_LEFT = 74
_POINTS = 400


def distribution(simulations: Sequence[Simulation], window: Window) -> tuple[str, str, str]:
    """For each length of wait the share of jobs that wait no longer; with caption and legend."""
    waits = [np.sort(s.wait_s[_counted(s, window)]) for s in simulations]
    x = log_duration_axis(1, max(2, *(int(w[-1]) for w in waits)), "wait")
    frame = Frame(_LEFT, 14, _WIDTH - _LEFT - 30, _HEIGHT - 64, x, share_axis("jobs that wait no longer"))
    places = np.geomspace(x.low, x.high, _POINTS)
    parts = [plot.axes(frame)]
    for i, wait in enumerate(waits):
        share = np.searchsorted(wait, places, side="right") / len(wait)
        parts.append(plot.line(frame, places, share, i % plot.COLOURS))
    at_once = ", ".join(f"{(w <= 1).mean():.0%} under {s.label}" for s, w in zip(simulations, waits, strict=True))
    caption = (
        "Pick a wait below and go up to a curve: that share of jobs waits no longer. The higher the curve, the better. "
        f"The curves begin at the left with the jobs that wait a second at most: {at_once}."
    )
    return plot.picture(_WIDTH, _HEIGHT, "Distribution of waits", parts), caption, _legend(simulations)


def by_width(simulations: Sequence[Simulation], window: Window) -> tuple[str, str, str]:
    """The mean wait of jobs by how many nodes they ask for; with caption and legend."""
    widest = max(int(s.log.nodes[_counted(s, window)].max()) for s in simulations)
    classes = width_classes(widest)
    means = [mean_waits(s, classes, window) for s in simulations]
    all_means = np.concatenate(means)
    known = np.maximum(all_means[~np.isnan(all_means)], 1)
    y = log_duration_axis(float(known.min()), max(2.0, float(known.max())), "mean wait")
    ticks = tuple((float(i), _class_name(*c)) for i, c in enumerate(classes))
    x = Axis(-0.5, len(classes) - 0.5, ticks, "nodes requested")
    frame = Frame(_LEFT, 14, _WIDTH - _LEFT - 30, _HEIGHT - 64, x, y)
    parts = [plot.axes(frame), *(_class_marks(frame, i, s, means[i], classes) for i, s in enumerate(simulations))]
    caption = (
        "Each mark is the mean wait of the jobs that request that many nodes: the lower, the better. The scale is "
        "logarithmic, so equal steps up are equal factors. A line that climbs to the right means that wide jobs pay."
    )
    return plot.picture(_WIDTH, _HEIGHT, "Mean wait by width of job", parts), caption, _legend(simulations)


def width_classes(widest: int) -> list[tuple[int, int]]:
    """Ranges of widths, both ends included: 1, 2, 3-4, 5-8, and so on, the last one cut at `widest`."""
    ends = [1]
    while ends[-1] < widest:
        ends.append(2 * ends[-1])
    begins = [1, *(end + 1 for end in ends[:-1])]
    return [(begin, min(end, widest)) for begin, end in zip(begins, ends, strict=True)]


def mean_waits(simulation: Simulation, classes: Sequence[tuple[int, int]], window: Window) -> NDArray[np.float64]:
    """The mean wait of the jobs counted in each class; NaN where a class has none."""
    counted = _counted(simulation, window)
    wait, nodes = simulation.wait_s[counted], simulation.log.nodes[counted]
    place = np.searchsorted([end for _, end in classes], nodes)
    total = np.bincount(place, weights=wait, minlength=len(classes))
    count = np.bincount(place, minlength=len(classes))
    return np.asarray(np.divide(total, count, out=np.full(len(classes), np.nan), where=count > 0))


def _class_marks(
    frame: Frame, i: int, simulation: Simulation, means: NDArray[np.float64], classes: Sequence[tuple[int, int]]
) -> str:
    there = np.flatnonzero(~np.isnan(means)).tolist()
    hints = [
        f"{simulation.label}, {_class_name(*classes[k])} nodes: mean wait {format_duration(means[k])}" for k in there
    ]
    colour = i % plot.COLOURS
    marks = plot.markers(frame, there, means[there], colour, hints)
    return plot.line(frame, there, means[there], colour, thin=True) + marks


def _class_name(begin: int, end: int) -> str:
    return f"{begin:,}" if begin == end else f"{begin:,}–{end:,}"


def _counted(simulation: Simulation, window: Window) -> NDArray[np.bool_]:
    submit_s = simulation.log.submit_s
    return (submit_s >= window[0]) & (submit_s < window[1])


def _legend(simulations: Sequence[Simulation]) -> str:
    return plot.legend([simulation.label for simulation in simulations])
