"""The page of one log replayed under one or several policies: figures and pictures side by side."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windrow.errors import UserError
from windrow.model import Repairs, format_duration
from windrow.model.wording import percent
from windrow.report import plot
from windrow.report.page import cell, facts, figure, note, notes, page, section, table
from windrow.sim.settings import EVENTS, PLACEMENTS, POLICIES, PRIORITIES, REQUESTS
from windrow.sim.simulation import BOUND_S, Simulation, Summary


@dataclass(frozen=True, slots=True)
class SummaryFigure:
    """One line of the comparison: its title, its field in Summary, and how to write a value."""

    title: str
    field: str
    write: Callable[[float], str]
    best: Callable[[Sequence[float]], float] | None = None
    """Which of several values is the best one; None if none is better."""

    def values(self, summaries: Sequence[Summary]) -> list[float]:
        """This figure of each simulation."""
        return [float(getattr(summary, self.field)) for summary in summaries]

    def best_of(self, values: Sequence[float]) -> list[bool]:
        """Which values to mark as best: none if all are the same, or nothing is to compare."""
        if self.best is None or len(set(values)) < 2:
            return [False] * len(values)
        return [value == self.best(values) for value in values]


FIGURES = (
    SummaryFigure("mean wait", "mean_wait_s", format_duration, min),
    SummaryFigure("median wait", "median_wait_s", format_duration, min),
    SummaryFigure("90 % wait at most", "p90_wait_s", format_duration, min),
    SummaryFigure("99 % wait at most", "p99_wait_s", format_duration, min),
    SummaryFigure("longest wait", "max_wait_s", format_duration, min),
    SummaryFigure("mean bounded slowdown", "mean_bounded_slowdown", "{:,.2f}".format, min),
    SummaryFigure(
        "utilization", "utilization", lambda share: f"{share:.2%}".replace("%", " %"), max
    ),
    SummaryFigure("makespan", "makespan_s", format_duration, min),
    SummaryFigure("killed at their request", "killed", "{:,.0f}".format),
    SummaryFigure("failures of nodes", "node_failures", "{:,.0f}".format),
    SummaryFigure("runs that lost a node", "runs_hit", "{:,.0f}".format),
    SummaryFigure("jobs lost with a node", "jobs_lost", "{:,.0f}".format),
    SummaryFigure("lost with these runs", "lost_node_h", "{:,.0f} node-hours".format),
    SummaryFigure("out of service", "out_node_h", "{:,.0f} node-hours".format),
)


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
    tops = [max(peaks)] * len(peaks) if alike else peaks

    def draw(i: int, frame: plot.Frame) -> str:
        return plot.step_line(frame, *lengths[i], i % plot.COLOURS)

    axes = [plot.count_axis(top, "jobs waiting", most_ticks=3) for top in tops]
    names = [
        f"{s.label}: at most {peak:,} jobs wait" for s, peak in zip(simulations, peaks, strict=True)
    ]
    scale = "" if alike or len(peaks) == 1 else " Each row has its own scale."
    caption = (
        "The height of the line is the number of jobs submitted but not yet started at that time: "
        f"the lower, the sooner jobs start.{scale}{_veil_words(window)}"
    )
    return _rows(simulations, names, axes, draw, window), caption


def utilization(simulations: Sequence[Simulation], window: Window) -> tuple[str, str]:
    """The share of nodes that are busy, and its caption."""
    low, high = _span(simulations)
    length = plot.round_length(high - low, _MOST_AVERAGES)
    edges = np.arange(low, high + length, length, dtype=np.float64)

    def draw(i: int, frame: plot.Frame) -> str:
        return _busy_share(simulations[i], edges, frame, i % plot.COLOURS)

    names = [s.label for s in simulations]
    axes = [plot.share_axis("nodes busy")] * len(simulations)
    caption = (
        "The height of the line is the share of nodes that run jobs, averaged over "
        f"{_length_words(length)}. "
        "At 100 % no node is idle; a gap while jobs wait is room that the policy could not use."
    )
    if simulations[0].failures is not None:
        caption += " The thin line is the share of nodes that are not out."
    caption += _veil_words(window)
    return _rows(simulations, names, axes, draw, window), caption


def _busy_share(
    simulation: Simulation, edges: NDArray[np.float64], frame: plot.Frame, colour: int
) -> str:
    """Averages between these times; if nodes fail with the share of those that are up."""
    middle = (edges[:-1] + edges[1:]) / 2
    drawn = ""
    if simulation.failures is not None:
        up = plot.averages(*simulation.nodes_up(), edges) / simulation.machine_nodes
        drawn = plot.line(frame, middle, up, colour, thin=True)
    times, busy = simulation.busy_nodes()
    share = plot.averages(times, busy, edges) / simulation.machine_nodes
    drawn += plot.band(frame, middle, np.zeros(len(share)), share, colour)
    return drawn + plot.line(frame, middle, share, colour)


def _rows(
    simulations: Sequence[Simulation],
    names: Sequence[str],
    y_axes: Sequence[plot.Axis],
    draw: Callable[[int, plot.Frame], str],
    window: Window,
) -> str:
    low, high = _span(simulations)
    x = plot.time_axis(low, high, "since the first submission")
    parts = []
    for i, y in enumerate(y_axes):
        frame = plot.Frame(_LEFT, 26 + i * (_ROW + _GAP), _WIDTH - _LEFT - 16, _ROW, x, y)
        parts.append(plot.axes(frame, x_labels=i + 1 == len(y_axes)))
        parts.append(draw(i, frame))
        parts.append(plot.shade(frame, low, window[0]) + plot.shade(frame, window[1], high))
        parts.append(plot.text(frame.left, frame.top - 9, names[i], "name"))
    return plot.picture(
        _WIDTH, 26 + len(y_axes) * (_ROW + _GAP) + 16, f"{y_axes[0].title} over time", parts
    )


def _span(simulations: Sequence[Simulation]) -> tuple[float, float]:
    low = min(int(simulation.log.submit_s[0]) for simulation in simulations)
    return low, max(int(simulation.end_s.max()) for simulation in simulations)


def _veil_words(window: Window) -> str:
    if window == (0, math.inf):
        return ""
    return " Shaded: submitted outside the counted window."


def _length_words(length_s: int) -> str:
    unit, seconds = next((u, s) for u, s in _UNITS if length_s % s == 0)
    count = length_s // seconds
    if count > 1:
        return f"{count} {unit}s"
    return f"{'an' if unit == 'hour' else 'a'} {unit}"


Ints = NDArray[np.int64]

_HEIGHT = 380
_POINTS = 400


def distribution(simulations: Sequence[Simulation], window: Window) -> tuple[str, str, str]:
    """For each length of wait the share of jobs that wait no longer; with caption and legend."""
    waits = [np.sort(s.wait_s[_counted(s, window)]) for s in simulations]
    x = plot.log_duration_axis(1, max(2, *(int(w[-1]) for w in waits)), "wait")
    frame = _large(x, plot.share_axis("jobs that wait no longer"))
    places = np.geomspace(x.low, x.high, _POINTS)
    parts = [plot.axes(frame)]
    for i, wait in enumerate(waits):
        share = np.searchsorted(wait, places, side="right") / len(wait)
        parts.append(plot.line(frame, places, share, i % plot.COLOURS))
    at_once = ", ".join(
        f"{percent((w <= 1).mean())} under {s.label}"
        for s, w in zip(simulations, waits, strict=True)
    )
    caption = (
        "Pick a wait on the axis and go up to a curve: that share of jobs waits no longer. The "
        "higher the curve, the "
        f"better. The curves start at the left with the jobs that wait at most a second: {at_once}."
    )
    return (
        plot.picture(_WIDTH, _HEIGHT, "Distribution of waits", parts),
        caption,
        _legend(simulations),
    )


def _large(x: plot.Axis, y: plot.Axis) -> plot.Frame:
    """For a picture with one plot in it."""
    return plot.Frame(_LEFT, 14, _WIDTH - _LEFT - 30, _HEIGHT - 64, x, y)


def by_width(simulations: Sequence[Simulation], window: Window) -> tuple[str, str, str]:
    """The mean wait of jobs by how many nodes they ask for; with caption and legend."""
    widest = max(int(s.log.nodes[_counted(s, window)].max()) for s in simulations)
    classes = width_classes(widest)
    means = [mean_waits(s, classes, window) for s in simulations]
    y = _axis_of_means(np.concatenate(means))
    ticks = tuple((float(i), _class_name(*c)) for i, c in enumerate(classes))
    x = plot.Axis(-0.5, len(classes) - 0.5, ticks, "nodes requested")
    frame = _large(x, y)
    parts = [
        plot.axes(frame),
        *(_class_marks(frame, i, s, means[i], classes) for i, s in enumerate(simulations)),
    ]
    caption = (
        "Each mark is the mean wait of the jobs that request that many nodes: the lower, the "
        "better. The scale is "
        "logarithmic, so equal steps up are equal factors. A line that climbs to the right means "
        "that wide jobs pay."
    )
    return (
        plot.picture(_WIDTH, _HEIGHT, "Mean wait by width of job", parts),
        caption,
        _legend(simulations),
    )


def _axis_of_means(means: NDArray[np.float64]) -> plot.Axis:
    known = np.maximum(means[~np.isnan(means)], 1)
    return plot.log_duration_axis(float(known.min()), max(2.0, float(known.max())), "mean wait")


def width_classes(widest: int) -> list[tuple[int, int]]:
    """Ranges of widths, both ends included: 1, 2, 3-4, 5-8, and so on, the last one cut at
    `widest`."""
    ends = [1]
    while ends[-1] < widest:
        ends.append(2 * ends[-1])
    begins = [1, *(end + 1 for end in ends[:-1])]
    return [(begin, min(end, widest)) for begin, end in zip(begins, ends, strict=True)]


def mean_waits(
    simulation: Simulation, classes: Sequence[tuple[int, int]], window: Window
) -> NDArray[np.float64]:
    """The mean wait of the jobs counted in each class; NaN if a class has none."""
    counted = _counted(simulation, window)
    wait = simulation.wait_s[counted]
    nodes = simulation.log.nodes[counted]
    place = np.searchsorted([end for _, end in classes], nodes)
    total = np.bincount(place, weights=wait, minlength=len(classes))
    count = np.bincount(place, minlength=len(classes))
    return np.asarray(np.divide(total, count, out=np.full(len(classes), np.nan), where=count > 0))


def _class_marks(
    frame: plot.Frame,
    i: int,
    simulation: Simulation,
    means: NDArray[np.float64],
    classes: Sequence[tuple[int, int]],
) -> str:
    there = np.flatnonzero(~np.isnan(means)).tolist()
    hints = [
        f"{simulation.label}, {_class_name(*classes[k])} nodes: mean wait "
        f"{format_duration(means[k])}"
        for k in there
    ]
    colour = i % plot.COLOURS
    marks = plot.markers(frame, there, means[there], colour, hints)
    return plot.line(frame, there, means[there], colour, thin=True) + marks


def _class_name(begin: int, end: int) -> str:
    if begin == end:
        return f"{begin:,}"
    return f"{begin:,}–{end:,}"


def _counted(simulation: Simulation, window: Window) -> NDArray[np.bool_]:
    submit_s = simulation.log.submit_s
    return (submit_s >= window[0]) & (submit_s < window[1])


def _legend(simulations: Sequence[Simulation]) -> str:
    return plot.legend([simulation.label for simulation in simulations])


_WORDS = (
    ("wait", "from a job's submission to its start"),
    (
        "bounded slowdown",
        f"(wait + run) / run, where runs under {BOUND_S} s count as {BOUND_S} s; 1 means no wait",
    ),
    (
        "utilization",
        "node-seconds that the jobs counted ran, of all that the machine had during the makespan",
    ),
    ("makespan", "from the first submission to the last end, of the jobs counted"),
)
_FAILED = (
    (
        "runs that lost a node",
        "jobs that were killed because one of their nodes failed, each time that they were",
    ),
    (
        "lost with these runs",
        "what they had held until then; utilization and bounded slowdown count the last run only",
    ),
    ("out of service", "from failures to the end of repairs, during the makespan"),
)
_MEANINGS: dict[str, Mapping[str, str]] = {
    "priority": PRIORITIES,
    "requests": REQUESTS,
    "events": EVENTS,
}
_MEANINGS |= {"placement": PLACEMENTS, "cap": {}, "failures": {}}


def simulation_page(
    simulations: Sequence[Simulation],
    *,
    from_s: float = 0,
    to_s: float = math.inf,
    repairs: Repairs | None = None,
) -> str:
    """HTML that compares simulations of one log. Jobs submitted in [from_s, to_s) are counted.

    `repairs` are those of the whole log, if only a part of it was simulated.
    """
    if not simulations:
        raise UserError("a report needs at least one simulation")
    summaries = [simulation.summary(from_s, to_s) for simulation in simulations]
    labels = [simulation.label for simulation in simulations]
    first = simulations[0]
    window = (from_s, to_s)
    said = facts(_what(first, window, repairs or first.log.repairs))
    words = [*_WORDS]
    if first.failures is not None:
        words += _FAILED
    sections = [
        section("What was simulated", said, notes(_meanings(labels))),
        section("Figures", _table(labels, summaries), facts(words)),
        section("Jobs waiting", figure(*queue(simulations, window))),
        section("Nodes busy", figure(*utilization(simulations, window))),
        section("How long jobs wait", figure(*distribution(simulations, window))),
        section("Who waits: narrow and wide jobs", figure(*by_width(simulations, window))),
    ]
    title = f"{first.log.name}: {len(labels)} policies"
    if len(labels) == 1:
        title = f"{first.log.name} under {labels[0]}"
    under = " and ".join(filter(None, (", ".join(labels[:-1]), labels[-1])))
    lead = f"{summaries[0].jobs:,} jobs on {first.machine_nodes:,} nodes, simulated under {under}."
    return page(title, lead, sections)


def _meanings(labels: Sequence[str]) -> list[str]:
    """Of the policies that have these names."""
    known = []
    for label in dict.fromkeys(labels):
        name = label
        if label.startswith("depth:"):
            name = "depth:K"
        if name in POLICIES:
            known.append(f"{label}: {POLICIES[name]}")
    return known


def _what(
    simulation: Simulation, window: tuple[float, float], repairs: Repairs
) -> Iterator[tuple[str, str]]:
    log = simulation.log
    (from_s, to_s) = window
    span = format_duration(float(log.submit_s[-1] - log.submit_s[0]))
    yield "log", f"{log.name}: {len(log):,} jobs, submitted within {span}"
    yield "machine", f"{simulation.machine_nodes:,} nodes"
    if log.load:
        share = f"{percent(log.load)} of the node-seconds"
        yield "load", f"the jobs run for {share} from the first submission to the last"
    if window != (0, math.inf):
        end = "the end" if math.isinf(to_s) else format_duration(to_s)
        yield (
            "counted",
            f"jobs submitted from {format_duration(from_s)} to {end}; all others run too, but do "
            "not count",
        )
    yield from _explained(simulation.settings)
    yield "cleaning", "\n".join(repairs.lines()) or "no job had to be repaired or dropped"


def _explained(settings: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in settings.items():
        if name in _MEANINGS:
            meaning = _MEANINGS[name].get(value)
            yield name, f"{value}: {meaning}" if meaning else value


def _table(labels: Sequence[str], summaries: Sequence[Summary]) -> str:
    rows = [
        [cell(f.title), *_cells(f, summaries)]
        for f in FIGURES
        if f.best or any(f.values(summaries))
    ]
    if len(labels) > 1:
        hint = note("Bold: the best in its row.")
    else:
        hint = ""
    return table(["", *labels], rows) + hint


def _cells(what: SummaryFigure, summaries: Sequence[Summary]) -> Iterator[str]:
    values = what.values(summaries)
    for value, best in zip(values, what.best_of(values), strict=True):
        if what.field.endswith("_s") and value >= 120:
            seconds = f"{value:,.0f} s"
        else:
            seconds = ""
        yield cell(what.write(value), seconds, best=best)
