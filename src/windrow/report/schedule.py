"""The page of schedules on a grid: how long each takes, and a picture of each, cluster by cluster.

Clusters that are used have a band each, with a row for each of their nodes that is used. Tasks on one node that could
not be told apart are drawn as one, so that a page of ten thousand tasks stays one that a browser can open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape

import numpy as np

from windrow.grid.costs import Costs
from windrow.grid.schedule import Schedule
from windrow.model.size import format_size
from windrow.model.wording import span
from windrow.report.page import cell, facts, figure, note, page, section, table
from windrow.report.svg import plot
from windrow.report.svg.axis import Axis, time_axis
from windrow.report.svg.plot import Frame
from windrow.report.workflow.drawing import kind_colours

_WIDTH, _LEFT, _RIGHT, _TOP = 960, 120, 20, 10
_HEIGHT, _GAP = 560.0, 7.0
_NODE = (1.0, 16.0)  # the least and the most pixels of a node
_LABEL = 9.0  # a band as high as this has room for its name
_MERGE = 0.5  # pixels
_MOST = 6  # schedules that are drawn


def schedule_page(costs: Costs, schedules: Mapping[str, Schedule], grid_name: str) -> str:
    """HTML about schedules of one workflow, by the names of their schedulers."""
    colours, keys = kind_colours(costs.workflow)
    best = min(schedule.makespan_s for schedule in schedules.values())
    rows = [
        [
            cell(name),
            cell(span(s.makespan_s), best=s.makespan_s == best),
            cell(f"{s.slr:.3g}"),
            cell(f"{len(np.unique(s.cluster)):,}"),
            cell(f"{len(np.unique(s.processor)):,}"),
            cell(f"{s.copies:,}"),
        ]
        for name, s in schedules.items()
    ]
    head = ["scheduler", "makespan", "SLR", "clusters used", "nodes used", "copies of tasks"]
    sections = [
        section("In figures", facts(_facts(costs))),
        section("Schedules", table(head, rows), note("SLR: the makespan divided by the longest way in the mean.")),
    ]
    longest = max(schedule.makespan_s for schedule in schedules.values())
    drawn = sorted(schedules, key=lambda name: schedules[name].makespan_s)[:_MOST]
    for name in (name for name in schedules if name in drawn):
        picture, caption = _picture(schedules[name], colours, longest)
        sections.append(section(name, figure(picture, caption, plot.legend(keys, marks=False))))
    if len(schedules) > _MOST:
        sections.append(note(f"Only the {_MOST} shortest of {len(schedules)} schedules are drawn."))
    title = f"Schedules of {costs.workflow.name} on {grid_name}"
    return page(title, f"The best takes {span(best)}; run times are exact, and no node is busy otherwise.", sections)


def _facts(costs: Costs) -> Iterator[tuple[str, str]]:
    yield "workflow", f"{len(costs.workflow):,} tasks, at most {costs.width:,} on a level"
    yield "grid", f"{costs.grid.processors:,} nodes in {len(costs.grid.clusters):,} clusters"
    yield "data between tasks", f"{format_size(costs.workflow.moved_bytes)}, CCR {costs.ccr:.3g}"
    yield "longest way", f"{span(costs.critical_s)}: the critical path with mean run times and transfers"


def _picture(schedule: Schedule, colours: Mapping[str, int], longest_s: float) -> tuple[str, str]:
    grid, used = schedule.costs.grid, np.unique(schedule.processor)
    clusters, counts = np.unique(grid.cluster_of(used), return_counts=True)
    gap = min(_GAP, _HEIGHT / 4 / len(clusters))
    node = min(_NODE[1], max(_NODE[0], (_HEIGHT - gap * len(clusters)) / len(used)))
    heights = np.maximum(counts * node, 2.0)
    tops = _TOP + np.concatenate(([0.0], np.cumsum(heights + gap)))
    frame = Frame(_LEFT, _TOP, _WIDTH - _LEFT - _RIGHT, float(tops[-1]) - _TOP, _axis(longest_s), Axis(0, 1, ()))
    parts = [plot.axes(frame)]
    for i, c in enumerate(clusters.tolist()):
        top, high, cluster = float(tops[i]), float(heights[i]), grid.clusters[c]
        words = f"{cluster.name}: {counts[i]:,} of {cluster.nodes:,} nodes used, speed {cluster.speed:g}"
        box = f'x="{frame.left:.1f}" y="{top:.2f}" width="{frame.width:.1f}" height="{high:.2f}"'
        parts.append(f'<rect class="veil" {box}><title>{escape(words)}</title></rect>')
        if high + gap >= _LABEL:
            name = cluster.name if len(cluster.name) <= 16 else f"{cluster.name[:15]}…"
            parts.append(plot.text(_LEFT - 8, top + high / 2 + 4, name, "end"))
    band, place = np.searchsorted(clusters, schedule.cluster), np.searchsorted(used, schedule.processor)
    first = np.searchsorted(used, grid.first[clusters])
    y = tops[band] + (place - first[band]) * node
    bars = list(_bars(schedule, y.tolist(), frame))
    parts += [_drawn(frame, bar, node, colours) for bar in bars]
    caption = "Each band is a cluster, each row in it a node that is used; tasks are coloured by their kind."
    if len(bars) < len(schedule.task):
        caption += " Tasks too short to distinguish are drawn as one bar."
    return plot.picture(_WIDTH, frame.bottom + 48, "A schedule by cluster", parts), caption


def _axis(longest_s: float) -> Axis:
    if longest_s >= 8:
        return time_axis(0, longest_s, "since the start")
    ticks = tuple((longest_s * i / 4, f"{longest_s * i / 4:.3g}") for i in range(5))
    return Axis(0, longest_s or 1.0, ticks, "seconds since the start")


def _bars(schedule: Schedule, y: list[float], frame: Frame) -> Iterator[tuple[float, float, float, str, str]]:
    """From, until, the place from the top, kind, and words; neighbours of one kind without a visible gap are one."""
    workflow, gap_s = schedule.costs.workflow, _MERGE / frame.width * frame.x.high
    start, end, task = schedule.start_s.tolist(), schedule.end_s.tolist(), schedule.task.tolist()
    names = [cluster.name for cluster in schedule.costs.grid.clusters]
    held: tuple[float, float, float, str, str] | None = None
    many = 1
    for row in np.lexsort((schedule.start_s, schedule.processor)).tolist():
        kind, cluster = workflow.kinds[task[row]], names[schedule.cluster[row]]
        short = end[row] - start[row] < 2 * gap_s
        if held and short and held[2:4] == (y[row], kind) and start[row] - held[1] < gap_s:
            many += 1
            held = (held[0], end[row], y[row], kind, f"{many:,} tasks ({kind}) on {cluster}")
            continue
        if held:
            yield held
        words = f"{workflow.ids[task[row]]} on {cluster}, {span(end[row] - start[row])} from {span(start[row])}"
        held, many = (start[row], end[row], y[row], kind, words), 1
    if held:
        yield held


def _drawn(frame: Frame, bar: tuple[float, float, float, str, str], node: float, colours: Mapping[str, int]) -> str:
    begin, end, y, kind, words = bar
    a, b = frame.across([begin, end]).tolist()
    high = node - min(0.8, node / 5)
    box = f'x="{a:.1f}" y="{y:.2f}" width="{max(b - a, 0.5):.1f}" height="{high:.2f}"'
    return f'<rect class="bar c{colours[kind]}" {box}><title>{escape(words)}</title></rect>'
