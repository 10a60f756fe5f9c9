"""The figures of the reproduction, drawn: 2, 4, 5, 6, 7 and 8."""

from __future__ import annotations

import numpy as np

from windrow.lab.stream.workload import WORKLOADS
from windrow.report.page import figure
from windrow.report.stream import dots, log_axis, steps
from windrow.report.svg import plot
from windrow.report.svg.axis import Axis, count_axis, time_axis
from windrow.reproductions.ilyushkin.pictures import RUNTIME_EDGES_S, SIZES, TRACE_S, WORK_EDGES_S
from windrow.reproductions.ilyushkin.plan import POLICIES, IlyushkinResults
from windrow.reproductions.paper import Gallery, Picture

_WIDTH = 920
_ONE_KIND = ("montage", "ligo", "sipht")


def galleries(results: IlyushkinResults) -> list[Gallery]:
    """One for each figure."""
    figures = {
        "Figure 2": [_parallelism(results)],
        "Figures 4 and 5": [_work(results), _runtimes(results)],
        "Figure 6": [_slowdowns(results, policy) for policy in POLICIES],
        "Figure 7": [_scatter(results)],
        "Figure 8": [_reserved(results)],
    }
    return [Gallery(title, "", [*map(Picture, drawn)]) for title, drawn in figures.items()]


def _parallelism(results: IlyushkinResults) -> str:
    found = results.pictures.parallelism
    frame = _frame(count_axis(max(SIZES), "tasks"), count_axis(max(p.exact for p in found), "level of parallelism"))
    parts = [plot.axes(frame)]
    for i, workload in enumerate(_ONE_KIND):
        of = [p for p in found if p.workload == workload]
        tasks = [p.tasks for p in of]
        hints = [f"{p.tasks} tasks: tokens {p.tokens:.1f}, exact {p.exact:.1f}" for p in of]
        parts += [plot.line(frame, tasks, [p.exact for p in of], i)]
        parts += [plot.markers(frame, tasks, [p.tokens for p in of], i, hints)]
    picture = plot.picture(_WIDTH, 330, "Level of parallelism by size", parts)
    return figure(picture, "Lines: exact. Marks: by tokens.", plot.legend(_ONE_KIND))


def _work(results: IlyushkinResults) -> str:
    counts = results.pictures.work_counts / results.pictures.work_counts.sum()
    y = Axis(0, 0.25, tuple((t / 20, f"{5 * t} %") for t in range(6)), "workflows")
    frame = _frame(time_axis(0, float(WORK_EDGES_S[-1]), "of work"), y, height=180)
    parts = [plot.axes(frame), plot.step_line(frame, WORK_EDGES_S, [*counts, 0.0], 0)]
    return figure(plot.picture(_WIDTH, 260, "Distribution of work", parts), "Work of a workflow: 100,000 draws.")


def _runtimes(results: IlyushkinResults) -> str:
    low, high = float(RUNTIME_EDGES_S[0]), float(RUNTIME_EDGES_S[-1])
    frame = _frame(log_axis(low, high, "seconds"), log_axis(1e-1, 100, "% of tasks"), height=220)
    parts = [plot.axes(frame)]
    middle = np.sqrt(RUNTIME_EDGES_S[1:] * RUNTIME_EDGES_S[:-1])
    for i, (_, counts) in enumerate(results.pictures.runtime_counts):
        some = counts > 0
        parts.append(plot.line(frame, middle[some], 100 * counts[some] / counts.sum(), i))
    picture = plot.picture(_WIDTH, 300, "Distribution of task run times", parts)
    return figure(picture, "Run times of tasks, normalised.", plot.legend(_ONE_KIND, marks=False))


def _slowdowns(results: IlyushkinResults, policy: str) -> str:
    """The mean slowdown by utilization, a line per workload, to the last stable one."""
    lines = {w: _points(results, w, policy) for w in WORKLOADS}
    highest = max([y for points in lines.values() for _, y in points], default=2.0)
    x = Axis(0, 1, tuple((t / 5, f"{t / 5:g}") for t in range(6)), "utilization")
    frame = _frame(x, log_axis(1, max(10.0, 1.1 * highest), "mean slowdown"), height=180)
    parts = [plot.axes(frame), plot.text(frame.left + 8, frame.top + 14, policy, "name")]
    for i, points in enumerate(lines.values()):
        if points:
            across, up = zip(*points, strict=True)
            hints = [f"{u:g}: {s:.2f}" for u, s in points]
            parts += [plot.line(frame, across, up, i), plot.markers(frame, across, up, i, hints)]
    picture = plot.picture(_WIDTH, 262, f"Mean slowdown under {policy}", parts)
    return figure(picture, f"{policy}: the last point is the highest stable utilization.", plot.legend(list(WORKLOADS)))


def _points(results: IlyushkinResults, workload: str, policy: str) -> list[tuple[float, float]]:
    maximal = results.maximal(workload, policy)
    offered = sorted({p.offered for c in results.curves_of(workload, policy) for p in c.points if p.offered <= maximal})
    found = ((u, results.mean_at(workload, policy, u)) for u in offered)
    return [(u, float(np.mean([p.slowdown for p in points]))) for u, points in found if points]


def _scatter(results: IlyushkinResults) -> str:
    scatters = results.pictures.scatters
    highest = max(float(s.slowdown.max(initial=1.0)) for s in scatters)
    frame = _frame(log_axis(25, 700, "tasks"), log_axis(0.9, max(10.0, 1.1 * highest), "slowdown"), height=300)
    drawn = [dots(frame, s.tasks, s.slowdown, i) for i, s in enumerate(scatters)]
    picture = plot.picture(_WIDTH, 380, "Slowdown by size", [plot.axes(frame), *drawn])
    names = [f"{s.policy} at {s.utilization:g}" for s in scatters]
    return figure(picture, "One dot per workflow of the mixture.", plot.legend(names, marks=False))


def _reserved(results: IlyushkinResults) -> str:
    trace = results.pictures.trace
    times = trace[:, 0] - trace[0, 0]
    frame = _frame(time_axis(0, TRACE_S, "from the middle of the stream"), count_axis(110, "processors"), height=200)
    eligible = np.minimum(trace[:, 1] + trace[:, 2], 110)
    parts = [plot.axes(frame), steps(frame, times, eligible, 0), steps(frame, times, trace[:, 3], 1)]
    picture = plot.picture(_WIDTH, 282, "Eligible tasks and kept processors under sr", parts)
    return figure(picture, "sr on the mixture at 0.35, cropped at 110.", _keys("eligible, running or not", "kept idle"))


def _keys(*names: str) -> str:
    return plot.legend(names, marks=False)


def _frame(x: Axis, y: Axis, *, height: float = 250) -> plot.Frame:
    return plot.Frame(70, 16, _WIDTH - 90, height, x, y)
