"""What the files of a run took over time: if space is limited, beside what was planned; and on
disks of nodes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from windrow.errors import UserError
from windrow.model import NodeShape
from windrow.model.site import Site
from windrow.model.size import format_size
from windrow.report import plot
from windrow.report.page import figure, note
from windrow.storage.timeline import Points, peak
from windrow.story.figures import RecordedRun
from windrow.story.node_files import space_on_nodes
from windrow.story.space import taken, words_on_space
from windrow.strategies import Work, whole_seconds

_MOST_NODES = 6


def _planned(told: RecordedRun) -> Points:
    """As estimated, on the nodes of the first job; nothing if the records do not say."""
    workflow = told.story.workflow
    nodes = next((job.plan.nodes for job in told.story.jobs.values()), 1)
    try:
        work = Work(
            workflow,
            whole_seconds(workflow),
            Site.of(nodes, NodeShape(told.cores)),
            space=told.space,
        )
    except UserError:  # tasks need what only the site knows
        return []
    return work.space_over_time(np.arange(len(workflow)), nodes)


def space(told: RecordedRun) -> str:
    """A figure."""
    lines = {"planned": _planned(told), "actual": taken(told)}
    shown = {name: points for name, points in lines.items() if points}
    if told.space is None:
        limit = ""
    else:
        limit = f"; they were allowed {format_size(told.space.size)}"
    figures = _drawn(shown, "What files of the run took.", f"{limit}.")
    return "".join(map(note, words_on_space(told))) + figures


def space_of_nodes(told: RecordedRun) -> str:
    """A figure, with a line for each node, of those that had most."""
    by_node = sorted(space_on_nodes(told).items(), key=lambda one: (-peak(one[1]), one[0]))
    shown = dict(by_node[:_MOST_NODES])
    if len(by_node) > len(shown):
        more = f" Of {len(by_node):,} nodes, these had most."
    else:
        more = ""
    until = (
        "A file counts from the start of the attempt that brought or made it until it is "
        "removed, or its job ends."
    )
    return _drawn(shown, "What files of the run took on the disks of nodes.", f".{more} {until}")


def _curve(frame: plot.Frame, points: Points, colour: int) -> str:
    times = np.array([at for at, _ in points])
    return plot.step_line(frame, times, np.array([used / 1e6 for _, used in points]), colour)


def _drawn(shown: Mapping[str, Points], what: str, more: str) -> str:
    most = max([1, *map(peak, shown.values())])
    end_s = max((p[-1][0] for p in shown.values()), default=1)
    x = plot.time_axis(0, end_s, "since the run started")
    frame = plot.Frame(70, 14, 860, 200, x, plot.count_axis(most / 1e6, "MB"))
    curves = [_curve(frame, points, i) for i, points in enumerate(shown.values())]
    picture = plot.picture(960, frame.bottom + 50, "Space over time", [plot.axes(frame), *curves])
    told_of = ", ".join(f"{name} {format_size(peak(points))}" for name, points in shown.items())
    return figure(picture, f"{what} At most: {told_of}{more}", plot.legend(list(shown)))
