"""The figures of the reproduction, drawn: 2, 4, 5, 6, 7 and 8."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windrow_lab.reproductions.charts import MARKERS, chart
from windrow_lab.reproductions.ilyushkin.pictures import RUNTIME_EDGES_S, TRACE_S, WORK_EDGES_S
from windrow_lab.reproductions.ilyushkin.plan import POLICIES, IlyushkinResults
from windrow_lab.reproductions.paper import Gallery, Picture
from windrow_lab.stream.workload import WORKLOADS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ONE_KIND = ("montage", "ligo", "sipht")
_MOST = 110  # processors shown


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
    def draw(axes: Axes) -> None:
        for k, workload in enumerate(_ONE_KIND):
            of = [p for p in results.pictures.parallelism if p.workload == workload]
            tasks = [p.tasks for p in of]
            [line] = axes.plot(tasks, [p.exact for p in of], label=workload)
            axes.plot(tasks, [p.tokens for p in of], MARKERS[k], color=line.get_color())

    return chart(draw, "Lines: exact. Marks: by tokens.", x="tasks", y="level of parallelism")


def _work(results: IlyushkinResults) -> str:
    share = 100 * results.pictures.work_counts / results.pictures.work_counts.sum()
    caption = "Work of a workflow: 100,000 draws."
    return chart(
        lambda axes: axes.stairs(share, WORK_EDGES_S / 3600),
        caption,
        x="hours of work",
        y="% of workflows",
    )


def _runtimes(results: IlyushkinResults) -> str:
    middle = np.sqrt(RUNTIME_EDGES_S[1:] * RUNTIME_EDGES_S[:-1])

    def draw(axes: Axes) -> None:
        for name, counts in results.pictures.runtime_counts:
            axes.loglog(middle[counts > 0], 100 * counts[counts > 0] / counts.sum(), label=name)
        axes.set(xlim=(RUNTIME_EDGES_S[0], RUNTIME_EDGES_S[-1]), ylim=(0.1, 100))

    return chart(draw, "Run times of tasks, normalised.", x="seconds", y="% of tasks")


def _slowdowns(results: IlyushkinResults, policy: str) -> str:
    """The mean slowdown by utilization, a line per workload, to the last stable one."""

    def draw(axes: Axes) -> None:
        for mark, workload in zip(MARKERS, WORKLOADS, strict=False):
            means = _stable_means(results, workload, policy)
            axes.semilogy(list(means), list(means.values()), f"{mark}-", label=workload)
        axes.set(xlim=(0, 1), ylim=(1, max(10.0, axes.get_ylim()[1])))

    caption = f"{policy}: the last point is the highest stable utilization."
    return chart(draw, caption, height=2.6, x="utilization", y="mean slowdown")


def _stable_means(results: IlyushkinResults, workload: str, policy: str) -> dict[float, float]:
    """The mean slowdown at each utilization that was offered, as far as it is stable."""
    maximal = results.maximal(workload, policy)
    curves = results.curves_of(workload, policy)
    offered = sorted({p.offered for c in curves for p in c.points if p.offered <= maximal})
    found = {u: results.mean_at(workload, policy, u) for u in offered}
    return {u: float(np.mean([p.slowdown for p in of])) for u, of in found.items() if of}


def _scatter(results: IlyushkinResults) -> str:
    def draw(axes: Axes) -> None:
        for s in results.pictures.scatters:
            label = f"{s.policy} at {s.utilization:g}"
            axes.loglog(s.tasks, s.slowdown, ".", markersize=3, alpha=0.55, label=label)

    return chart(draw, "One dot per workflow of the mixture.", height=3.8, x="tasks", y="slowdown")


def _reserved(results: IlyushkinResults) -> str:
    trace = results.pictures.trace
    hours = (trace[:, 0] - trace[0, 0]) / 3600

    def draw(axes: Axes) -> None:
        axes.step(
            hours,
            np.minimum(trace[:, 1] + trace[:, 2], _MOST),
            where="post",
            label="eligible, running or not",
        )
        axes.step(hours, trace[:, 3], where="post", label="kept idle")
        axes.set(xlim=(0, TRACE_S / 3600), ylim=(0, _MOST))

    x = "hours from the middle of the stream"
    return chart(
        draw, f"sr on the mixture at 0.35, cropped at {_MOST}.", height=2.8, x=x, y="processors"
    )
