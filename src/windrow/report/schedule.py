"""The page of schedules on a grid: how long each takes, and a picture of each, cluster by cluster.

Clusters that are used have a band each, with a row for each of their nodes that is used. Tasks on one node that could
not be told apart are drawn as one, so that a page of ten thousand tasks stays one that a browser can open.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from windrow.grid.costs import Costs
from windrow.grid.schedule import Schedule
from windrow.model.size import format_size
from windrow.model.wording import span
from windrow.report import plot
from windrow.report.page import cell, facts, figure, note, page, section, table
from windrow.report.plot import Axis, Frame, time_axis
from windrow.report.workflow import kind_colours

_WIDTH, _LEFT, _TOP = 960, 120, 10
_HEIGHT, _GAP = 560.0, 7.0
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
    workflow, grid, (colours, keys) = costs.workflow, costs.grid, kind_colours(costs.workflow)
    order = sorted(schedules, key=lambda name: schedules[name].makespan_s)
    best, longest = schedules[order[0]].makespan_s, schedules[order[-1]].makespan_s
    figures = {
        "workflow": f"{len(workflow):,} tasks, at most {costs.width:,} on a level",
        "grid": f"{grid.processors:,} nodes in {len(grid.clusters):,} clusters",
        "data between tasks": f"{format_size(workflow.moved_bytes)}, CCR {workflow.ccr(grid.mean_s_per_byte):.3g}",
        "longest path": f"{span(costs.critical_s)}: the critical path with mean run times and transfers",
    }
    rows = [[cell(value, best=s.makespan_s == best) for value in row(name, s)] for name, s in schedules.items()]
    words = note("SLR: the makespan divided by the longest path. Clusters and nodes: those in use.")
    sections = [section("In figures", facts(figures.items())), section("Schedules", table(HEAD, rows), words)]
    for name in (name for name in schedules if name in order[:_MOST]):
        picture, caption = _picture(schedules[name], colours, longest)
        sections.append(section(name, figure(picture, caption, plot.legend(keys, marks=False))))
    if len(schedules) > _MOST:
        sections.append(note(f"Only the {_MOST} shortest of {len(schedules)} schedules are drawn."))
    lead = f"The best takes {span(best)}; run times are exact, and the nodes do nothing else."
    return page(f"Schedules of {workflow.name} on {grid_name}", lead, sections)


def _picture(schedule: Schedule, colours: Mapping[str, int], longest_s: float) -> tuple[str, str]:
    grid, used = schedule.costs.grid, np.unique(schedule.processor)
    clusters, counts = np.unique(grid.cluster_of(used), return_counts=True)
    gap = min(_GAP, _HEIGHT / 4 / len(clusters))
    node = min(_NODE[1], max(_NODE[0], (_HEIGHT - gap * len(clusters)) / len(used)))
    tops = _TOP + np.concatenate(([0.0], np.cumsum(counts * node + gap)))
    axis = time_axis(0, max(longest_s, 1.0), "since the start")
    frame = Frame(_LEFT, _TOP, _WIDTH - _LEFT - 20, float(tops[-1]) - _TOP, axis, Axis(0, 1, ()))
    parts = [plot.axes(frame)]
    for top, number, cluster in zip(tops.tolist(), counts.tolist(), clusters.tolist(), strict=False):
        about = grid.clusters[cluster]
        words = f"{about.name}: {number:,} of {about.nodes:,} nodes used, speed {about.speed:g}"
        parts.append(plot.box("veil", frame.left, top, frame.width, number * node, words))
        if number * node + gap >= _LABEL:
            name = about.name if len(about.name) <= 16 else f"{about.name[:15]}…"
            parts.append(plot.text(_LEFT - 8, top + number * node / 2 + 4, name, "end"))
    band, place = np.searchsorted(clusters, schedule.cluster), np.searchsorted(used, schedule.processor)
    y = tops[band] + (place - np.searchsorted(used, grid.first[clusters])[band]) * node
    bars = list(_bars(schedule, _MERGE / frame.width * axis.high))
    for begin, end, first, words in bars:
        a, b = frame.across([begin, end]).tolist()
        colour = colours[schedule.costs.workflow.kinds[schedule.task[first]]]
        parts.append(plot.box(f"bar c{colour}", a, float(y[first]), max(b - a, 0.5), node - min(0.8, node / 5), words))
    caption = "Each band is a cluster, each row in it a node that is used; tasks are coloured by their kind."
    if len(bars) < len(schedule.task):
        caption += " Tasks too short to distinguish are drawn as one bar."
    return plot.picture(_WIDTH, frame.bottom + 48, "A schedule by cluster", parts), caption


def _bars(schedule: Schedule, gap_s: float) -> Iterator[tuple[float, float, int, str]]:
    """From, until, the first row in it, and words: short neighbours of one kind without a visible gap are one bar."""
    workflow, names = schedule.costs.workflow, [cluster.name for cluster in schedule.costs.grid.clusters]
    start, end, task = schedule.start_s.tolist(), schedule.end_s.tolist(), schedule.task.tolist()
    held: list[int] = []

    def bar() -> tuple[float, float, int, str]:
        first, last = held[0], held[-1]
        what = workflow.ids[task[first]] if len(held) == 1 else f"{len(held):,} tasks"
        words = (
            f"{what} on {names[schedule.cluster[first]]}, {span(end[last] - start[first])} from {span(start[first])}"
        )
        return start[first], end[last], first, words

    for at in np.lexsort((schedule.start_s, schedule.processor)).tolist():
        if held:
            same = schedule.processor[at] == schedule.processor[held[-1]]
            alike = same and workflow.kinds[task[at]] == workflow.kinds[task[held[-1]]]
            if not alike or end[at] - start[at] >= 2 * gap_s or start[at] - end[held[-1]] >= gap_s:
                yield bar()
                held.clear()
        held.append(at)
    yield bar()
