"""A comparison of policies on a stream, for people and programs: a table, sentences, a page,
JSON."""

import math
from dataclasses import asdict

import numpy as np
from numpy.typing import ArrayLike

from windrow.model import format_duration
from windrow.model.wording import percent
from windrow.report import plot
from windrow.report.page import facts, figure, note, notes, page, section, table
from windrow.report.plot import Axis, count_axis, thinned, time_axis
from windrow_lab.stream.comparison import PolicyRun, StreamComparison
from windrow_lab.stream.stability import BEHIND

_BEFORE = ("policy", "slowdown", "99 % below")
_AFTER = ("unfairness", "wait", "makespan", "used", "kept idle", "keeps up")

_ANSWERS = {True: "yes", False: "no", None: "?"}
_SIDE_S = 5 * 3600.0
_WIDTH = 920
_STRETCHES = 20


def words(comparison: StreamComparison) -> list[str]:
    """What was run."""
    c = comparison
    return [
        f"{c.workflows:,} workflows ({c.workload}) arrive within "
        f"{format_duration(c.last_arrival_s)} "
        f"and need {percent(c.utilization)} of {c.slots} processors.",
        *([f"{percent(c.jobs)} of the arrivals are ordinary batch jobs."] if c.jobs else []),
        f"Tasks are selected by {c.selection}, run times estimated: {c.estimates}; seed {c.seed}.",
    ]


def head(comparison: StreamComparison) -> tuple[str, ...]:
    """The names of the table's columns; in the middle the mean slowdowns by class."""
    return (*_BEFORE, *(size.size for size in comparison.runs[0].figures.sizes), *_AFTER)


def rows(comparison: StreamComparison) -> list[tuple[str, ...]]:
    """The cells of the table, one row per policy; see `head`."""
    return [_row(run) for run in comparison.runs]


def summary(comparison: StreamComparison) -> list[str]:
    """The findings, in sentences."""
    stable = [
        run
        for run in comparison.runs
        if run.keeps_up is not False and not math.isnan(run.figures.slowdown)
    ]
    lost = [run.figures.policy for run in comparison.runs if run.keeps_up is False]
    lines = []
    if stable:
        lines.append(_best(stable))
    if lost:
        lines.append(
            f"Saturated: {', '.join(lost)}. {percent(BEHIND)} or more of the workflows were in "
            "the pool at the last "
            "arrival; figures in those rows grow with the length of the stream."
        )
    if any(run.keeps_up is None for run in comparison.runs):
        lines.append(
            "The stream is too short to tell whether the pool keeps up where the table has a ?; "
            "take more workflows."
        )
    return lines


def _best(stable: list[PolicyRun]) -> str:
    """The policy with the lowest mean slowdown, and those that chance alone could put behind it."""
    best, *others = sorted(stable, key=lambda run: run.figures.slowdown)
    near = [run for run in others if not _is_beyond_chance(best, run)]
    named = ", ".join(f"{run.figures.policy} {run.figures.slowdown:.3f}" for run in (best, *near))
    if not near:
        return f"Lowest mean slowdown: {named}."
    if near[-1].figures.slowdown == best.figures.slowdown:
        return f"Lowest mean slowdowns: {named}; a tie."
    return f"Lowest mean slowdowns: {named}; differences that chance alone could give."


def _is_beyond_chance(best: PolicyRun, other: PolicyRun) -> bool:
    """Whether the other's slowdowns of the same workflows are higher by more than two standard
    errors.

    Neighbours in a stream wait for each other, so the error is that of means over stretches of the
    stream.
    """
    both = best.run.measured & other.run.measured
    more = other.run.slowdown[both] - best.run.slowdown[both]
    if len(more) < 2 * _STRETCHES:
        return False
    means = np.array([stretch.mean() for stretch in np.array_split(more, _STRETCHES)])
    return bool(means.mean() > 2 * means.std(ddof=1) / math.sqrt(_STRETCHES))


def stream_json(comparison: StreamComparison) -> dict[str, object]:
    """The same for programs; a mean over nothing is null."""
    c = comparison
    return {
        "workload": c.workload,
        "utilization": c.utilization,
        "processors": c.slots,
        **{
            name: getattr(c, name)
            for name in ("workflows", "selection", "estimates", "seed", "jobs")
        },
        "policies": [plain({**asdict(run.figures), "keeps_up": run.keeps_up}) for run in c.runs],
    }


def stream_page(comparison: StreamComparison) -> str:
    """The page as one HTML document."""
    sections = [
        section(
            "Policies",
            notes(summary(comparison)),
            table(head(comparison), rows(comparison)),
            note(_HOW),
        ),
        section("Slowdown and size", scatter_figure(comparison)),
        section(
            "The pool over five hours",
            *(pool_figure(run, comparison.slots) for run in comparison.runs),
        ),
        section("What was run", facts(_facts(comparison))),
    ]
    return page("A stream of workflows", " ".join(words(comparison)), sections)


_HOW = (
    "Slowdown: response time divided by the makespan alone on the pool; by size of workflow in "
    "the columns small, "
    "medium, large. Wait: arrival to first start. Used: the share of busy processors; kept idle: "
    "the share that a "
    "policy held for a workflow that did not need them. Keeps up: whether the pool can handle "
    "everything that arrives. "
    "The first third of the workflows, and those not finished at the last arrival, are not counted."
)


def scatter_figure(comparison: StreamComparison) -> str:
    """Slowdown of each measured workflow against its tasks, both logarithmic (as figure 7 of the
    paper)."""
    everything = np.concatenate([run.run.slowdown[run.run.measured] for run in comparison.runs])
    highest = max(10.0, float(everything.max(initial=1.0)) * 1.1)
    x = log_axis(0.9 if comparison.jobs else 20, float(comparison.tasks.max()) * 1.1, "tasks")
    frame = plot.Frame(64, 16, _WIDTH - 84, 320, x, log_axis(0.9, highest, "slowdown"))
    parts = [plot.axes(frame)]
    for i, run in enumerate(comparison.runs):
        of = run.run.measured
        parts.append(dots(frame, comparison.tasks[of], run.run.slowdown[of], i % plot.COLOURS))
    names = [run.figures.policy for run in comparison.runs]
    picture = plot.picture(_WIDTH, 390, "Slowdown of each workflow by its number of tasks", parts)
    return figure(
        picture, "One dot per workflow. Higher is worse.", plot.legend(names, marks=False)
    )


def pool_figure(run: PolicyRun, slots: int) -> str:
    """Processors at work, and kept idle on top, over five hours (figure 8 of the paper shows the
    latter)."""
    trace = run.trace
    if len(trace):
        trace = trace[trace[:, 0] <= trace[0, 0] + _SIDE_S]
    if len(trace) < 2:
        return note(f"{run.figures.policy}: too few events to draw.")
    x = time_axis(0, _SIDE_S, "from then on")
    frame = plot.Frame(64, 24, _WIDTH - 84, 150, x, count_axis(slots, most_ticks=4))
    times = trace[:, 0] - trace[0, 0]
    parts = [
        plot.axes(frame),
        steps(frame, times, trace[:, 1] + trace[:, 3], 1),
        steps(frame, times, trace[:, 1], 0),
        plot.text(frame.left, 14, run.figures.policy, "name"),
    ]
    picture = plot.picture(_WIDTH, 226, f"Processors over time under {run.figures.policy}", parts)
    legend = plot.legend(["at work", "at work, or idle and kept for a workflow"], marks=False)
    caption = f"From a third of the stream on. {run.figures.kept:.1%} kept on average."
    return figure(picture, caption, legend)


def steps(frame: plot.Frame, times_s: plot.Floats, values: plot.Floats, colour: int) -> str:
    """A step function over fractions of a second, in few enough points for a page."""
    times_ms, kept = thinned(
        np.round(times_s * 1000).astype(np.int64), np.round(values).astype(np.int64)
    )
    return plot.step_line(frame, times_ms / 1000, kept, colour)


def log_axis(low: float, high: float, title: str) -> Axis:
    """A logarithmic axis with ticks at 1, 2 and 5 times powers of ten."""
    candidates = (m * 10.0**e for e in range(-1, 6) for m in (1, 2, 5))
    return Axis(
        low, high, tuple((t, f"{t:g}") for t in candidates if low <= t <= high), title, log=True
    )


def dots(frame: plot.Frame, x: ArrayLike, y: ArrayLike, colour: int) -> str:
    """Thousands of dots as one path: zero-length strokes with round caps."""
    places = zip(frame.across(x).tolist(), frame.down(y).tolist(), strict=True)
    path = "".join(f"M{a:.1f} {b:.1f}h0" for a, b in places)
    return (
        f'<path class="line c{colour}" '
        f'style="stroke-width:3;stroke-linecap:round;stroke-opacity:.55" d="{path}"/>'
    )


def _row(run: PolicyRun) -> tuple[str, ...]:
    f = run.figures
    means = (f.slowdown, f.slowdown_p99, *(size.slowdown for size in f.sizes))
    slowdowns = ("-" if math.isnan(value) else f"{value:.2f}" for value in means)
    shares = f"{f.utilization:.2f}", "-" if math.isnan(f.kept) else f"{f.kept:.2f}"
    return (
        f.policy,
        *slowdowns,
        "-" if math.isnan(f.unfairness) else f"{f.unfairness:.2f}",
        _time(f.wait_s),
        _time(f.makespan_s),
        *shares,
        _ANSWERS[run.keeps_up],
    )


def _facts(comparison: StreamComparison) -> list[tuple[str, str]]:
    c = comparison
    return [
        ("workload", f"{c.workload}, {c.workflows:,} workflows, {int(c.tasks.sum()):,} tasks"),
        ("pool", f"{c.slots} processors"),
        ("utilization", f"{c.utilization:g}"),
        ("selection", c.selection),
        ("estimates", c.estimates),
        ("seed", str(c.seed)),
    ]


def _time(value: float) -> str:
    if math.isnan(value):
        return "-"
    return format_duration(value)


def plain(value: object) -> object:
    """NaN becomes None all through."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and math.isnan(value):
        return None
    return value
