"""Strategies side by side, for people: which is best and by how much, in words, figures and
pictures.

Rule: all times of one comparison are in one unit, so that a column can be read downwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np

from windrow.app.strategies import MEANINGS
from windrow.model import format_duration
from windrow.model.wording import Unit, count, percent, unit_for
from windrow.model.workflow import Floats
from windrow.report import plot
from windrow.report.page import cell, facts, figure, note, notes, page, section, table
from windrow.report.plot import Axis, Frame, count_axis, time_axis
from windrow.trials.compare import Comparison

_WIDTH = 960
_LEFT = 122
_ROW = 44
_THIN_ROW = 28
_MOST_MARKS = 60
Summary = dict[str, Any]
_DOTS = "stroke-width: 6; stroke-linecap: round; stroke-opacity: .55"


def _spread(comparison: Comparison, unit_s: float, unit: str) -> tuple[str, str]:
    """One row per strategy: a dot for each run, the middle eight tenths as a bar, the mean as a
    mark."""
    names = comparison.strategies
    longest = _longest_s(comparison) / unit_s
    x = count_axis(longest, f"makespan in {unit}")
    frame = _frame(_LEFT, _WIDTH - _LEFT - 30, len(names), x)
    parts = [plot.axes(frame)]
    for i, name in enumerate(names):
        makespans = comparison.column(name, "makespan_s") / unit_s
        parts += _spread_row(frame, i, name, makespans)
        parts.append(_mean(frame, i, float(makespans.mean()), f"{name}: mean", unit))
    caption = (
        "Each dot is a run: the further left, the sooner the workflow was done. The bar spans "
        "the middle 80 %, "
        "the line in it is the median, the large mark the mean."
    )
    return plot.picture(_WIDTH, frame.bottom + 50, "Makespan by strategy", parts), caption


def _mean(frame: Frame, row: int, mean: float, name: str, unit: str) -> str:
    """The large mark of a row."""
    hint = f"{name} {mean:,.1f} {unit}"
    return plot.markers(frame, [mean], [frame.y.high - row - 0.5], row % plot.COLOURS, [hint])


def _spread_row(frame: Frame, row: int, name: str, makespans: Floats) -> list[str]:
    """But for the mean."""
    y = frame.top + (row + 0.5) * _ROW
    colour = row % plot.COLOURS
    low, middle, high = frame.across(np.percentile(makespans, [10, 50, 90])).tolist()
    dots = "".join(f"M{x:.1f} {y:.1f}h0" for x in frame.across(makespans).tolist())
    return [
        plot.text(_LEFT - 10, y + 4, name, "end strong"),
        plot.box(f"area c{colour}", low, y - 11, high - low, 22),
        f'<path class="line c{colour}" d="M{middle:.1f} {y - 11:.1f}v22"/>',
        f'<path class="line c{colour}" style="{_DOTS}" d="{dots}"/>',
    ]


def _shares(comparison: Comparison, unit_s: float, unit: str) -> tuple[str, str]:
    """Two bars per strategy: the makespan with the part without tasks, the node-hours with those
    idle or lost."""
    summaries = comparison.summaries()
    width = (_WIDTH - _LEFT - 60) / 2
    longest = max(s["makespan_s_mean"] for s in summaries) / unit_s
    most = max(s["allocated_node_h_mean"] for s in summaries)
    across_time = count_axis(longest, f"mean makespan in {unit}", most_ticks=5)
    across_nodes = count_axis(most, "mean node-hours", most_ticks=5)
    time = _frame(_LEFT, width, len(summaries), across_time)
    nodes = _frame(_LEFT + width + 30, width, len(summaries), across_nodes)
    parts = [plot.axes(time), plot.axes(nodes)]
    for i, s in enumerate(summaries):
        name = s["strategy"]
        y = time.top + i * _ROW + 10
        parts.append(plot.text(_LEFT - 10, y + 16, name, "end strong"))
        idle = s["visible_wait_s_mean"] / unit_s
        makespan = s["makespan_s_mean"] / unit_s
        hint = f"{name}: {idle:,.1f} of {makespan:,.1f} {unit} no task ran"
        parts += _split(time, y, i, idle, makespan, hint)
        parts += _node_hours(nodes, y, i, s)
    caption = (
        "Left: the mean makespan; pale is the time in which no task ran, because jobs waited. "
        "Right: the node-hours "
        "that jobs had allocated; pale is the part that was idle, or lost with tasks that did "
        "not finish."
    )
    return plot.picture(
        _WIDTH, time.bottom + 50, "Waits and node-hours by strategy", parts
    ), caption


def _through(frame: Frame, times: Floats, hours: Floats, name: str, colour: int) -> Iterator[str]:
    """The line of one strategy."""
    yield plot.line(frame, times, hours, colour, thin=True)
    if len(times) <= _MOST_MARKS:
        hints = [f"{name}: {value:,.1f} h" for value in hours]
        yield plot.markers(frame, times, hours, colour, hints)


def _node_hours(frame: Frame, y: float, colour: int, s: Summary) -> list[str]:
    unused = s["idle_node_h_mean"] + s["lost_node_h_mean"]
    allocated = s["allocated_node_h_mean"]
    hint = f"{s['strategy']}: {unused:,.1f} of {allocated:,.1f} node-hours idle or lost"
    return _split(frame, y, colour, unused, allocated, hint)


def _over_time(comparison: Comparison) -> tuple[str, str, str]:
    """A line per strategy through the makespans at the submission times."""
    times = np.array(comparison.times_s, dtype=np.float64)
    longest = _longest_s(comparison) / 3600
    x = time_axis(
        float(times[0]), float(times[-1]), "from the log's first submission to the workflow's"
    )
    frame = Frame(74, 14, _WIDTH - 74 - 30, 320, x, count_axis(longest, "makespan in hours"))
    parts = [plot.axes(frame)]
    for i, name in enumerate(comparison.strategies):
        hours = comparison.column(name, "makespan_s") / 3600
        parts += _through(frame, times, hours, name, i % plot.COLOURS)
    caption = (
        "Each mark is a run, submitted when the axis below says; the lower, the better. Where "
        "lines cross, the state "
        "of the queue decides which strategy is best."
    )
    return (
        plot.picture(_WIDTH, 390, "Makespan by submission time", parts),
        caption,
        plot.legend(comparison.strategies),
    )


def _longest_s(comparison: Comparison) -> float:
    """The longest makespan of all runs."""
    return max(float(comparison.column(name, "makespan_s").max()) for name in comparison.strategies)


def _differences(comparison: Comparison, unit: Unit) -> tuple[str, str]:
    """By how much each strategy is behind the best one, in pairs at the same time: the mean as a
    mark, two standard errors to both sides as a line."""
    best, *others = comparison.summaries()
    leads = [_Lead(comparison, best, other) for other in others]
    low = min(0.0, *((lead.mean_s - 2 * lead.error_s) / unit.seconds for lead in leads))
    high = max((lead.mean_s + 2 * lead.error_s) / unit.seconds for lead in leads)
    axis = _difference_axis(low, high, f"{unit.long_name} behind {best['strategy']}")
    frame = Frame(_LEFT, 8, _WIDTH - _LEFT - 200, len(leads) * _THIN_ROW, axis, Axis(0, 1, ()))
    zero = float(frame.across(0.0))
    parts = [
        plot.axes(frame),
        f'<path class="grid" d="M{zero:.1f} {frame.top:.1f}V{frame.bottom:.1f}"/>',
    ]
    for row, lead in enumerate(leads):
        parts += _difference_row(frame, row, lead, unit)
    caption = (
        f"How much later than {best['strategy']} each strategy is done, at the same submission "
        "times. The mark is the mean, the line two standard errors to both sides: where it "
        "reaches 0, chance alone could give the difference."
    )
    picture = plot.picture(_WIDTH, frame.bottom + 50, "Differences to the best", parts)
    return picture, caption


def _difference_axis(low: float, high: float, title: str) -> Axis:
    """From a round number to a round number, both sides of zero if need be; in steps of any
    size."""
    span = max(high - low, 1e-9)
    step = 10.0 ** math.floor(math.log10(span / 5))
    step = next(step * factor for factor in (1, 2, 5, 10) if span <= step * factor * 8)
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    ticks = tuple((i * step, f"{i * step:,.10g}") for i in range(first, last + 1))
    return Axis(first * step, last * step, ticks, title)


def _difference_row(frame: Frame, row: int, lead: _Lead, unit: Unit) -> Iterator[str]:
    y = frame.top + (row + 0.5) * _THIN_ROW
    name = str(lead.other["strategy"])
    edges = [lead.mean_s - 2 * lead.error_s, lead.mean_s + 2 * lead.error_s, lead.mean_s]
    low, high, middle = frame.across([at / unit.seconds for at in edges]).tolist()
    said = f"{lead.mean_s / unit.seconds:+,.1f} ± {unit.write(2 * lead.error_s)}"
    style = "stroke-width: 3"
    colour = (row + 1) % plot.COLOURS
    yield plot.text(frame.left - 10, y + 4, name, "end strong")
    yield f'<path class="line c{colour}" style="{style}" d="M{low:.1f} {y:.1f}H{high:.1f}"/>'
    yield plot.box(f"bar c{colour}", middle - 4, y - 6, 8, 12, f"{name}: {said}")
    yield plot.text(frame.right + 14, y + 4, said)


def _frame(left: float, width: float, rows: int, x: Axis) -> Frame:
    return Frame(left, 8, width, rows * _ROW, x, Axis(0, rows, ()))


def _split(frame: Frame, y: float, colour: int, pale: float, whole: float, hint: str) -> list[str]:
    left, middle, right = frame.across([0, whole - pale, whole]).tolist()
    css = f"c{colour % plot.COLOURS}"
    return [
        plot.box(f"bar {css}", left, y, middle - left, 24, hint),
        plot.box(f"area {css}", middle, y, right - middle, 24, hint),
    ]


def unit_of(comparison: Comparison) -> Unit:
    """Seconds, minutes, hours or days, whichever suits the longest makespans."""
    return unit_for(max(summary["makespan_s_p90"] for summary in comparison.summaries()))


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the table: its title, what it says of a summary, and the value by which the
    least is best."""

    title: str
    write: Callable[[Summary], str]
    value: Callable[[Summary], float] | None = None

    def best_of(self, summaries: Sequence[Summary]) -> list[bool]:
        """Which entries to mark as best: none if all are the same."""
        values = [self.value(summary) if self.value else 0.0 for summary in summaries]
        return [value == min(values) and len(set(values)) > 1 for value in values]


def columns(comparison: Comparison) -> list[Column]:
    """The table's columns after the strategy's name, for the terminal and the page alike."""
    unit = unit_of(comparison)

    def time(title: str, key: str) -> Column:
        return Column(title, lambda s: unit.write(s[key]), lambda s: float(s[key]))

    def number(title: str, key: str) -> Column:
        return Column(title, lambda s: f"{s[key]:,.1f}", lambda s: float(s[key]))

    def spread(s: Summary) -> str:
        return f"{s['makespan_s_p10'] / unit.seconds:,.1f}–{unit.write(s['makespan_s_p90'])}"

    found = [
        time("makespan", "makespan_s_mean"),
        time("median", "makespan_s_median"),
        Column("10–90 %", spread),
        time("visible wait", "visible_wait_s_mean"),
        Column("hidden wait", lambda s: unit.write(s["hidden_wait_s_mean"])),
        number("node-hours", "allocated_node_h_mean"),
        number("idle", "idle_node_h_mean"),
        number("lost", "lost_node_h_mean"),
        number("jobs", "jobs_mean"),
        number("killed", "killed_jobs_mean"),
    ]
    if comparison.scenario.failures:
        found.append(number("node failures", "node_failures_mean"))
    return found


_FEW_TIMES = 10


def ranked(comparison: Comparison) -> Comparison:
    """The same with the best strategy first, by mean makespan, then by node-hours."""
    order = sorted(
        comparison.summaries(), key=lambda s: (s["makespan_s_mean"], s["allocated_node_h_mean"])
    )
    return replace(comparison, strategies=tuple(s["strategy"] for s in order))


def verdict(comparison: Comparison) -> list[str]:
    """Results, in sentences."""
    comparison = ranked(comparison)
    return [*_by_mean(comparison), _by_wins(comparison), _by_cost(comparison)]


def _by_mean(comparison: Comparison) -> Iterator[str]:
    unit = unit_of(comparison)
    best, *others = ranked(comparison).summaries()
    times = len(comparison.times_s)
    over = f"over {times:,} submission times"
    if times == 1:
        over = "at one submission time"
    first = f"{best['strategy']}, {unit.write(best['makespan_s_mean'])}"
    if not others:
        yield f"Mean makespan {over}: {first}; no other strategy was tried."
        return
    if best["makespan_s_mean"] == others[-1]["makespan_s_mean"]:
        yield (
            f"All strategies have the same mean makespan {over}, "
            f"{unit.write(best['makespan_s_mean'])}."
        )
        return
    yield from _Lead(comparison, best, others[0]).words(over)
    if times < _FEW_TIMES:
        few = "1 submission time is few" if times == 1 else f"{times} submission times are few"
        yield f"{few}: try more with --from, --to and --every."


class _Lead:
    """By how much the best strategy is ahead of another, in pairs at the same time."""

    def __init__(self, comparison: Comparison, best: Summary, other: Summary) -> None:
        self._unit = unit_of(comparison)
        self.best = best
        self.other = other
        self.less = 1 - best["makespan_s_mean"] / other["makespan_s_mean"]
        pairs = comparison.column(other["strategy"], "makespan_s") - comparison.column(
            best["strategy"], "makespan_s"
        )
        self._times = len(pairs)
        self.mean_s = float(pairs.mean())
        self.error_s = math.inf
        """The standard error of the mean."""
        if self._times > 1:
            self.error_s = float(pairs.std(ddof=1)) / self._times**0.5

    def words(self, over: str) -> Iterator[str]:
        """Which two are the best, and how sure that is; `over`: which submission times."""
        first, second = (
            f"{one['strategy']}, {self._unit.write(one['makespan_s_mean'])}"
            for one in (self.best, self.other)
        )
        if self.doubt:
            yield f"Shortest mean makespans {over}: {first}, and {second}; {self.doubt}."
        else:
            less = percent(self.less)
            yield f"Best by mean makespan {over}: {first}; next {second}, so {less} less."
        if self._times > 1 and self.less > 0:
            yield self._in_pairs()

    def _in_pairs(self) -> str:
        ahead = f"{self._unit.write(self.mean_s)} ± {self._unit.write(2 * self.error_s)}"
        return (
            f"In pairs at the same time, {self.best['strategy']} is ahead by {ahead} of "
            f"{self.other['strategy']} (two standard errors)."
        )

    @property
    def doubt(self) -> str:
        """Why that is no more than chance, or not worth a word; empty if it is."""
        is_beyond_chance = self.mean_s > 2 * self.error_s
        if is_beyond_chance and self.less >= 0.005:
            return ""
        if self._times == 1:
            return "one submission time says nothing about others"
        if is_beyond_chance:
            return "less than 1 % apart"
        return "a difference that chance alone could give"


def _by_wins(comparison: Comparison) -> str:
    wins = sorted(comparison.wins().items(), key=lambda pair: -pair[1])
    winners = ", ".join(f"{name} {won}" for name, won in wins if won)
    never = ", ".join(name for name, won in wins if not won)
    words = f"Shortest makespan, of {count(len(comparison.times_s), 'submission time')}: {winners}"
    if sum(comparison.wins().values()) > len(comparison.times_s):
        words += " (if several tie, each counts)"
    if never:
        words += f"; never {never}"
    return f"{words}."


def _by_cost(comparison: Comparison) -> str:
    summaries = {s["strategy"]: s for s in comparison.summaries()}
    best = summaries[comparison.best()]
    allocated_h = best["allocated_node_h_mean"]
    thrifty = min(summaries.values(), key=lambda s: s["allocated_node_h_mean"])
    words = (
        f"{best['strategy']} has {allocated_h:,.1f} node-hours allocated per run, "
        f"{percent(best['idle_node_h_mean'] / allocated_h)} of "
        f"them idle and {percent(best['lost_node_h_mean'] / allocated_h)} lost"
    )
    if thrifty is not best:
        least_h = thrifty["allocated_node_h_mean"]
        return f"{words}; the fewest are {thrifty['strategy']}'s, {least_h:,.1f}."
    if len(summaries) > 1:
        return f"{words}; no other has fewer."
    return f"{words}."


_WORDS = (
    ("makespan", "from the first submission to the end of the last task"),
    ("10–90 %", "at one time in ten the makespan is shorter, at one in ten longer"),
    ("visible wait", "time of the makespan in which no task ran"),
    (
        "hidden wait",
        "time that jobs waited in the queue while other tasks of the run were running, summed "
        "over jobs",
    ),
    (
        "node-hours",
        "allocated to jobs = used + idle + lost; used: by tasks that finished; lost: by tasks "
        "that did not",
    ),
    ("killed", "jobs that ran out of time with tasks in them; these start again"),
)


def _what_was_tried(comparison: Comparison, what: Sequence[str]) -> str:
    known = [f"{name}: {MEANINGS[name]}" for name in comparison.strategies if name in MEANINGS]
    tried = facts(_tried(comparison))
    return section("What was tried", tried, notes([*what]), notes(known))


def comparison_page(comparison: Comparison, what: Sequence[str]) -> str:
    """HTML that compares strategies; `what` says in lines what was tried."""
    scenario = comparison.scenario
    unit = unit_of(comparison)
    times = comparison.times_s
    comparison = ranked(comparison)
    said, *more = verdict(comparison)
    results = [f"<p>{escape(words)}</p>" for words in more]
    spread = figure(*_spread(comparison, unit.seconds, unit.long_name))
    shares = figure(*_shares(comparison, unit.seconds, unit.long_name))
    sections = [
        section("Results", *results, _table(comparison), facts(_WORDS)),
        section("How long it takes", spread),
        section("Where time and nodes go", shares),
    ]
    if len(times) > 1 and len(comparison.strategies) > 1:
        differences = figure(*_differences(comparison, unit))
        sections.insert(1, section("Differences", differences))
    if len(times) > 1:
        sections.append(section("Time by time", figure(*_over_time(comparison))))
    sections.append(_what_was_tried(comparison, what))
    title = f"{scenario.workflow.name}: {len(comparison.strategies)} strategies"
    return page(title, said, sections)


def _tried(comparison: Comparison) -> list[tuple[str, str]]:
    times = comparison.times_s
    when = format_duration(times[0])
    often = "once"
    if len(times) > 1:
        often = f"at {len(times):,} times"
        when += f" to {format_duration(times[-1])}"
    runs = f"{len(comparison.rows):,}, each strategy at each time, on clones of the same cluster"
    return [
        ("submitted", f"{often}, {when} after the log's first job"),
        ("runs", runs),
    ]


def _table(comparison: Comparison) -> str:
    summaries = comparison.summaries()
    shown = columns(comparison)
    marks = [column.best_of(summaries) for column in shown]
    rows = [
        [cell(s["strategy"]), *(cell(c.write(s), best=marks[k][i]) for k, c in enumerate(shown))]
        for i, s in enumerate(summaries)
    ]
    small = note(
        "The shortest mean makespan first. Means over the submission times, except median and "
        "10–90 %. Bold: the lowest in its column."
    )
    return table(["strategy", *(column.title for column in shown)], rows) + small


def longest_s(comparison: Comparison) -> float:
    """The greatest time that a plot of the spreads has to show."""
    return float(
        max(s[f"makespan_s_{key}"] for s in comparison.summaries() for key in ("mean", "p90"))
    )
