"""Strategies side by side, for people: which is best and by how much, in words, figures and pictures.

Rule: all times of one comparison are in one unit, so that a column can be read downwards.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from windrow.app.strategies import MEANINGS
from windrow.lab.compare import Comparison
from windrow.model import format_duration
from windrow.model.wording import percent
from windrow.report import plot
from windrow.report.page import cell, facts, figure, note, notes, page, section, table
from windrow.report.plot import Axis, Frame, count_axis, time_axis

_WIDTH = 960
_LEFT = 122
_ROW = 44
_MOST_MARKS = 60


def _spread(comparison: Comparison, unit_s: float, unit: str) -> tuple[str, str]:
    """One row per strategy: a dot for each run, the middle eight tenths as a bar, the mean as a mark."""
    names = comparison.strategies
    longest = max(float(comparison.column(name, "makespan_s").max()) for name in names) / unit_s
    frame = _frame(_LEFT, _WIDTH - _LEFT - 30, len(names), count_axis(longest, f"makespan in {unit}"))
    parts = [plot.axes(frame)]
    for i, name in enumerate(names):
        makespans = comparison.column(name, "makespan_s") / unit_s
        y = frame.top + (i + 0.5) * _ROW
        low, middle, high = frame.across(np.percentile(makespans, [10, 50, 90])).tolist()
        parts.append(plot.text(_LEFT - 10, y + 4, name, "end strong"))
        parts.append(plot.box(f"area c{i % plot.COLOURS}", low, y - 11, high - low, 22))
        parts.append(f'<path class="line c{i % plot.COLOURS}" d="M{middle:.1f} {y - 11:.1f}v22"/>')
        dots = "".join(f"M{x:.1f} {y:.1f}h0" for x in frame.across(makespans).tolist())
        style = "stroke-width: 6; stroke-linecap: round; stroke-opacity: .55"
        parts.append(f'<path class="line c{i % plot.COLOURS}" style="{style}" d="{dots}"/>')
        at = frame.y.high - i - 0.5
        hint = f"{name}: mean {makespans.mean():,.1f} {unit}"
        parts.append(plot.markers(frame, [makespans.mean()], [at], i % plot.COLOURS, [hint]))
    caption = (
        "Each dot is a run: the further left, the sooner the workflow was done. The bar spans the middle 80 %, "
        "the line in it is the median, the large mark the mean."
    )
    return plot.picture(_WIDTH, frame.bottom + 50, "Makespan by strategy", parts), caption


def _shares(comparison: Comparison, unit_s: float, unit: str) -> tuple[str, str]:
    """Two bars per strategy: the makespan with the part in which nothing ran, the node-hours with those wasted."""
    summaries = comparison.summaries()
    width = (_WIDTH - _LEFT - 60) / 2
    longest = max(s["makespan_s_mean"] for s in summaries) / unit_s
    most = max(s["used_node_h_mean"] for s in summaries)
    time = _frame(_LEFT, width, len(summaries), count_axis(longest, f"mean makespan in {unit}", most_ticks=5))
    nodes = _frame(_LEFT + width + 30, width, len(summaries), count_axis(most, "mean node-hours", most_ticks=5))
    parts = [plot.axes(time), plot.axes(nodes)]
    for i, s in enumerate(summaries):
        y = time.top + i * _ROW + 10
        parts.append(plot.text(_LEFT - 10, y + 16, s["strategy"], "end strong"))
        idle = s["visible_wait_s_mean"] / unit_s, s["makespan_s_mean"] / unit_s
        parts += _split(time, y, i, *idle, f"{s['strategy']}: {idle[0]:,.1f} of {idle[1]:,.1f} {unit} no task ran")
        waste = s["wasted_node_h_mean"], s["used_node_h_mean"]
        parts += _split(nodes, y, i, *waste, f"{s['strategy']}: {waste[0]:,.1f} of {waste[1]:,.1f} node-hours wasted")
    caption = (
        "Left: the mean makespan; pale is the time in which no task ran, because jobs waited. Right: the node-hours "
        "that jobs held; pale is the part without useful work: nodes idle while others worked, or work that was lost."
    )
    return plot.picture(_WIDTH, time.bottom + 50, "Waits and node-hours by strategy", parts), caption


def _over_time(comparison: Comparison) -> tuple[str, str, str]:
    """A line per strategy through the makespans at the submission times."""
    times = np.array(comparison.times_s, dtype=np.float64)
    longest = max(float(comparison.column(name, "makespan_s").max()) for name in comparison.strategies) / 3600
    x = time_axis(float(times[0]), float(times[-1]), "from the log's first submission to the workflow's")
    frame = Frame(74, 14, _WIDTH - 74 - 30, 320, x, count_axis(longest, "makespan in hours"))
    parts = [plot.axes(frame)]
    for i, name in enumerate(comparison.strategies):
        hours = comparison.column(name, "makespan_s") / 3600
        colour = i % plot.COLOURS
        parts.append(plot.line(frame, times, hours, colour, thin=True))
        if len(times) <= _MOST_MARKS:
            hints = [f"{name}: {value:,.1f} h" for value in hours]
            parts.append(plot.markers(frame, times, hours, colour, hints))
    caption = (
        "Each mark is a run, submitted when the axis below says; the lower, the better. Where lines cross, the state "
        "of the queue decides which strategy is best."
    )
    return plot.picture(_WIDTH, 390, "Makespan by submission time", parts), caption, plot.legend(comparison.strategies)


def _frame(left: float, width: float, rows: int, x: Axis) -> Frame:
    return Frame(left, 8, width, rows * _ROW, x, Axis(0, rows, ()))


def _split(frame: Frame, y: float, colour: int, pale: float, whole: float, hint: str) -> list[str]:
    left, middle, right = frame.across([0, whole - pale, whole]).tolist()
    css = f"c{colour % plot.COLOURS}"
    return [
        plot.box(f"bar {css}", left, y, middle - left, 24, hint),
        plot.box(f"area {css}", middle, y, right - middle, 24, hint),
    ]


Summary = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Unit:
    """The unit of all times of a comparison."""

    name: str
    long_name: str
    seconds: int
    least_s: int
    """From which time on it is used."""

    def write(self, seconds: float) -> str:
        """A time in this unit, such as `12.3 h`."""
        return f"{seconds / self.seconds:,.1f} {self.name}"


_UNITS = (
    Unit("d", "days", 86400, 10 * 86400),
    Unit("h", "hours", 3600, 2 * 3600),
    Unit("min", "minutes", 60, 120),
    Unit("s", "seconds", 1, 0),
)


def unit_of(comparison: Comparison) -> Unit:
    """Seconds, minutes, hours or days, whichever suits the longest makespans."""
    longest = max(summary["makespan_s_p90"] for summary in comparison.summaries())
    return next(unit for unit in _UNITS if longest >= unit.least_s)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the table: its title, what it says of a summary, and the value by which the least is best."""

    title: str
    write: Callable[[Summary], str]
    value: Callable[[Summary], float] | None = None

    def best_of(self, summaries: Sequence[Summary]) -> list[bool]:
        """Which entries to mark as best: none where all are the same."""
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

    return [
        time("makespan", "makespan_s_mean"),
        time("median", "makespan_s_median"),
        Column("10–90 %", spread),
        time("visible wait", "visible_wait_s_mean"),
        Column("hidden wait", lambda s: unit.write(s["hidden_wait_s_mean"])),
        number("node-hours", "used_node_h_mean"),
        number("wasted", "wasted_node_h_mean"),
        number("jobs", "jobs_mean"),
        number("killed", "killed_jobs_mean"),
        *([number("node failures", "node_failures_mean")] if comparison.scenario.failures else []),
    ]


_FEW_TIMES = 10


def verdict(comparison: Comparison) -> list[str]:
    """Results, in sentences."""
    return [*_by_mean(comparison), _by_wins(comparison), _by_cost(comparison)]


def _by_mean(comparison: Comparison) -> Iterator[str]:
    unit = unit_of(comparison)
    ranked = sorted(comparison.summaries(), key=lambda s: (s["makespan_s_mean"], s["used_node_h_mean"]))
    best = ranked[0]
    times = len(comparison.times_s)
    over = "at one submission time" if times == 1 else f"over {times:,} submission times"
    first = f"{best['strategy']}, {unit.write(best['makespan_s_mean'])}"
    if len(ranked) == 1:
        yield f"Mean makespan {over}: {first}; no other strategy was tried."
        return
    other = ranked[1]
    second = f"{other['strategy']}, {unit.write(other['makespan_s_mean'])}"
    if best["makespan_s_mean"] == ranked[-1]["makespan_s_mean"]:
        yield f"All strategies have the same mean makespan {over}, {unit.write(best['makespan_s_mean'])}."
        return
    less = 1 - best["makespan_s_mean"] / other["makespan_s_mean"]
    pairs = comparison.column(other["strategy"], "makespan_s") - comparison.column(best["strategy"], "makespan_s")
    error = float(pairs.std(ddof=1)) / times**0.5 if times > 1 else math.inf
    is_beyond_chance = float(pairs.mean()) > 2 * error
    if not is_beyond_chance or less < 0.005:
        same = "less than 1 % apart" if is_beyond_chance else "a difference that chance alone could give"
        same = "one submission time says nothing about others" if times == 1 else same
        yield f"Shortest mean makespans {over}: {first}, and {second}; {same}."
    else:
        yield f"Best by mean makespan {over}: {first}; next {second}, so {percent(less)} less."
    if times > 1 and less > 0:
        ahead = f"ahead by {unit.write(pairs.mean())} ± {unit.write(2 * error)}"
        yield f"In pairs at the same time, {best['strategy']} is {ahead} of {other['strategy']} (two standard errors)."
    if times < _FEW_TIMES:
        yield f"{times} submission time{'s are' if times > 1 else ' is'} few: try more with --from, --to and --every."


def _by_wins(comparison: Comparison) -> str:
    wins = sorted(comparison.wins().items(), key=lambda pair: -pair[1])
    won = ", ".join(f"{name} {count}" for name, count in wins if count)
    never = ", ".join(name for name, count in wins if not count)
    ties = " (where several tie, each counts)" if sum(comparison.wins().values()) > len(comparison.times_s) else ""
    times = f"{len(comparison.times_s):,} submission time" + ("s" if len(comparison.times_s) > 1 else "")
    return f"Shortest makespan, of {times}: {won}{ties}" + (f"; never {never}." if never else ".")


def _by_cost(comparison: Comparison) -> str:
    summaries = {s["strategy"]: s for s in comparison.summaries()}
    best = summaries[comparison.best()]
    used, wasted = best["used_node_h_mean"], best["wasted_node_h_mean"]
    thrifty = min(summaries.values(), key=lambda s: s["used_node_h_mean"])
    words = (
        f"{best['strategy']} holds {used:,.1f} node-hours per run, {percent(wasted / used)} of them without useful work"
    )
    if thrifty is best:
        return words + ("; no other holds fewer." if len(summaries) > 1 else ".")
    return f"{words}; the fewest are {thrifty['strategy']}'s, {thrifty['used_node_h_mean']:,.1f}."


_WORDS = (
    ("makespan", "from the first submission to the end of the last task"),
    ("10–90 %", "at one time in ten the makespan is shorter, at one in ten longer"),
    ("visible wait", "time of the makespan in which no task ran"),
    ("hidden wait", "time that jobs waited in the queue while other tasks of the run were running, summed over jobs"),
    ("node-hours", "what the jobs had allocated; wasted: the part of it that did no useful work"),
    ("killed", "jobs that ran out of time with tasks in them; these start again"),
)


def comparison_page(comparison: Comparison, what: Sequence[str]) -> str:
    """HTML that compares strategies; `what` says in lines what was tried."""
    scenario, unit = comparison.scenario, unit_of(comparison)
    times = comparison.times_s
    when = format_duration(times[0]) + (f" to {format_duration(times[-1])}" if len(times) > 1 else "")
    tried = [
        ("submitted", f"at {len(times):,} times, {when} after the log's first job"),
        ("runs", f"{len(comparison.rows):,}, each strategy at each time, on clones of the same cluster"),
    ]
    said, *more = verdict(comparison)
    title = f"{scenario.workflow.name}: {len(comparison.strategies)} strategies"
    sections = [
        section("Results", *(f"<p>{escape(words)}</p>" for words in more), _table(comparison), facts(_WORDS)),
        section("How long it takes", figure(*_spread(comparison, unit.seconds, unit.long_name))),
        section("Where time and nodes go", figure(*_shares(comparison, unit.seconds, unit.long_name))),
    ]
    if len(times) > 1:
        sections.append(section("Time by time", figure(*_over_time(comparison))))
    known = [f"{name}: {MEANINGS[name]}" for name in comparison.strategies if name in MEANINGS]
    sections.append(section("What was tried", facts(tried), notes([*what]), notes(known)))
    return page(title, said, sections)


def _table(comparison: Comparison) -> str:
    summaries, shown = comparison.summaries(), columns(comparison)
    marks = [column.best_of(summaries) for column in shown]
    rows = [
        [cell(s["strategy"]), *(cell(c.write(s), best=marks[k][i]) for k, c in enumerate(shown))]
        for i, s in enumerate(summaries)
    ]
    small = note("Means over the submission times, except median and 10–90 %. Bold: the lowest in its column.")
    return table(["strategy", *(column.title for column in shown)], rows) + small


def longest_s(comparison: Comparison) -> float:
    """The greatest time that a plot of the spreads has to show."""
    return float(max(s[f"makespan_s_{key}"] for s in comparison.summaries() for key in ("mean", "p90")))
