"""The page of schedules on a grid: how long each takes, and a picture of each, cluster by cluster.

Clusters that are used have a band each, with a row for each of their nodes that is used. Tasks on
one node that could not be told apart are drawn as one, so that a page of ten thousand tasks stays
one that a browser can open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from windrow.model.size import format_size
from windrow.model.wording import span
from windrow.report import plot
from windrow.report.page import cell, facts, figure, note, page, section, table
from windrow.report.plot import Axis, Frame, time_axis
from windrow.report.workflow import kind_colours
from windrow_lab.grid.clusters import Floats
from windrow_lab.grid.costs import Costs
from windrow_lab.grid.schedule import Schedule

_WIDTH = 960
_LEFT = 120
_TOP = 10
_HEIGHT = 560.0
_GAP = 7.0
_NODE = (1.0, 16.0)  # the least and the most pixels of a node
_LABEL = 9.0  # a band as high as this has room for its name
_MERGE = 0.5  # pixels
_MOST = 6  # schedules that are drawn

HEAD = ("scheduler", "makespan", "SLR", "clusters", "nodes", "copies")


def row(name: str, s: Schedule) -> tuple[str, ...]:
    """What is said of each, under `HEAD`."""
    used = f"{len(np.unique(s.cluster)):,}", f"{len(np.unique(s.processor)):,}"
    return name, span(s.makespan_s), f"{s.slr:.3g}", *used, f"{s.copies:,}"


def schedule_page(costs: Costs, schedules: Mapping[str, Schedule], grid_name: str) -> str:
    """HTML about schedules of one workflow, by the names of their schedulers."""
    order = sorted(schedules, key=lambda name: schedules[name].makespan_s)
    best_s = schedules[order[0]].makespan_s
    rows = [
        [cell(value, best=s.makespan_s == best_s) for value in row(name, s)]
        for name, s in schedules.items()
    ]
    words = note("SLR: the makespan divided by the longest path. Clusters and nodes: those in use.")
    sections = [
        section("In figures", facts(_figures(costs).items())),
        section("Schedules", table(HEAD, rows), words),
        *_pictures(costs, schedules, order),
    ]
    lead = f"The best takes {span(best_s)}; run times are exact, and the nodes do nothing else."
    return page(f"Schedules of {costs.workflow.name} on {grid_name}", lead, sections)


def _figures(costs: Costs) -> Mapping[str, str]:
    """What there is to schedule."""
    workflow = costs.workflow
    grid = costs.grid
    ccr = workflow.ccr(grid.mean_s_per_byte)
    return {
        "workflow": f"{len(workflow):,} tasks, at most {costs.width:,} on a level",
        "grid": f"{grid.processors:,} nodes in {len(grid.clusters):,} clusters",
        "data between tasks": f"{format_size(workflow.moved_bytes)}, CCR {ccr:.3g}",
        "longest path": f"{span(costs.critical_s)}: the critical path with mean run times and "
        "transfers",
    }


def _pictures(
    costs: Costs, schedules: Mapping[str, Schedule], order: Sequence[str]
) -> Iterator[str]:
    """Of the shortest, on one scale; `order` has the shortest first."""
    (colours, keys) = kind_colours(costs.workflow)
    longest_s = schedules[order[-1]].makespan_s
    for name in (name for name in schedules if name in order[:_MOST]):
        picture, caption = _picture(schedules[name], colours, longest_s)
        yield section(name, figure(picture, caption, plot.legend(keys, marks=False)))
    if len(schedules) > _MOST:
        yield note(f"Only the {_MOST} shortest of {len(schedules)} schedules are drawn.")


def _picture(schedule: Schedule, colours: Mapping[str, int], longest_s: float) -> tuple[str, str]:
    bands = _Bands(schedule)
    axis = time_axis(0, max(longest_s, 1.0), "since the start")
    height = float(bands.tops[-1]) - _TOP
    frame = Frame(_LEFT, _TOP, _WIDTH - _LEFT - 20, height, axis, Axis(0, 1, ()))
    bars = list(_bars(schedule, _MERGE / frame.width * axis.high))
    parts = [plot.axes(frame), *bands.drawn(frame), *_boxes(schedule, bars, bands, frame, colours)]
    caption = (
        "Each band is a cluster, each row in it a node that is used; tasks are coloured by "
        "their kind."
    )
    if len(bars) < len(schedule.task):
        caption += " Tasks too short to distinguish are drawn as one bar."
    return plot.picture(_WIDTH, frame.bottom + 48, "A schedule by cluster", parts), caption


def _boxes(
    schedule: Schedule,
    bars: Iterable[tuple[float, float, int, str]],
    bands: _Bands,
    frame: Frame,
    colours: Mapping[str, int],
) -> Iterator[str]:
    y = bands.rows()
    high = bands.node - min(0.8, bands.node / 5)
    for begin, end, first, words in bars:
        a, b = frame.across([begin, end]).tolist()
        colour = colours[schedule.costs.workflow.kinds[schedule.task[first]]]
        yield plot.box(f"bar c{colour}", a, float(y[first]), max(b - a, 0.5), high, words)


class _Bands:
    """A band for each cluster that is used, with a row for each of its nodes that is."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        grid = schedule.costs.grid
        self._used = np.unique(schedule.processor)
        self._clusters, self._counts = np.unique(grid.cluster_of(self._used), return_counts=True)
        self._gap = min(_GAP, _HEIGHT / 4 / len(self._clusters))
        room = _HEIGHT - self._gap * len(self._clusters)
        self.node = min(_NODE[1], max(_NODE[0], room / len(self._used)))
        """How high a row is."""
        highs = self._counts * self.node + self._gap
        self.tops = _TOP + np.concatenate(([0.0], np.cumsum(highs)))
        """Where each band begins, and where the last one ends."""

    def drawn(self, frame: Frame) -> Iterator[str]:
        """The bands, with the names of those that have room for it."""
        bands = zip(
            self.tops.tolist(), self._counts.tolist(), self._clusters.tolist(), strict=False
        )
        for top, number, cluster in bands:
            about = self._schedule.costs.grid.clusters[cluster]
            high = number * self.node
            words = f"{about.name}: {number:,} of {about.nodes:,} nodes used, speed {about.speed:g}"
            yield plot.box("veil", frame.left, top, frame.width, high, words)
            if high + self._gap >= _LABEL:
                name = about.name
                if len(name) > 16:
                    name = f"{name[:15]}…"
                yield plot.text(_LEFT - 8, top + high / 2 + 4, name, "end")

    def rows(self) -> Floats:
        """Where the row of each part of the schedule is."""
        grid = self._schedule.costs.grid
        band = np.searchsorted(self._clusters, self._schedule.cluster)
        place = np.searchsorted(self._used, self._schedule.processor)
        first = np.searchsorted(self._used, grid.first[self._clusters])
        rows: Floats = self.tops[band] + (place - first[band]) * self.node
        return rows


def _bars(schedule: Schedule, gap_s: float) -> Iterator[tuple[float, float, int, str]]:
    """From, until, the first row in it, and words: short neighbours of one kind without a visible
    gap are one bar."""
    held: list[int] = []
    for at in np.lexsort((schedule.start_s, schedule.processor)).tolist():
        if held and not _looks_like_one(schedule, held[-1], at, gap_s):
            yield _bar(schedule, held)
            held.clear()
        held.append(at)
    yield _bar(schedule, held)


def _looks_like_one(schedule: Schedule, last: int, at: int, gap_s: float) -> bool:
    """Whether a row is short, and of the same kind and node as the last one, which ends just
    before."""
    kinds = schedule.costs.workflow.kinds
    start_s = float(schedule.start_s[at])
    return bool(
        schedule.processor[at] == schedule.processor[last]
        and kinds[schedule.task[at]] == kinds[schedule.task[last]]
        and schedule.end_s[at] - start_s < 2 * gap_s
        and start_s - schedule.end_s[last] < gap_s
    )


def _bar(schedule: Schedule, held: Sequence[int]) -> tuple[float, float, int, str]:
    first = held[0]
    start_s = float(schedule.start_s[first])
    end_s = float(schedule.end_s[held[-1]])
    if len(held) == 1:
        what = schedule.costs.workflow.ids[schedule.task[first]]
    else:
        what = f"{len(held):,} tasks"
    cluster = schedule.costs.grid.clusters[schedule.cluster[first]].name
    words = f"{what} on {cluster}, {span(end_s - start_s)} from {span(start_s)}"
    return start_s, end_s, first, words
