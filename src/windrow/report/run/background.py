"""What the cluster did while a simulated run went on, as curves under its picture and on the same time axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.report.svg import plot
from windrow.report.svg.axis import count_axis
from windrow.report.svg.plot import COLOURS, Frame
from windrow.report.svg.steps import thinned

if TYPE_CHECKING:
    from windrow.lab.background import Background, Ints

_CURVE = 96
_GAP = 34
HEIGHT = 30 + 2 * (_CURVE + _GAP) - _GAP
"""Pixels that the curves take below the picture, their labels aside."""
CAPTION = (
    "Below, on the same time axis: the nodes busy with other jobs (blue), with this run's on top (orange), and how "
    "many other jobs wait."
)


def curves(background: Background, above: Frame) -> list[str]:
    """Two curves below a picture: busy nodes, of others and of this run on top of them, and the queue of others."""
    x, left, width = above.x, above.left, above.width
    nodes = Frame(left, above.bottom + 30, width, _CURVE, x, count_axis(background.machine_nodes, most_ticks=3))
    high = int(background.jobs_waiting[1].max(initial=0))
    queue = Frame(left, nodes.bottom + _GAP, width, _CURVE, x, count_axis(max(1, high), most_ticks=3))
    return [
        plot.axes(nodes, x_labels=False),
        plot.step_line(nodes, *background.busy_nodes, 1),
        _cleared(nodes, *thinned(*background.others_nodes)),
        plot.step_line(nodes, *background.others_nodes, 0),
        plot.text(left, nodes.top - 8, f"busy nodes, of {background.machine_nodes:,}", "name"),
        plot.axes(queue),
        plot.step_line(queue, *background.jobs_waiting, COLOURS - 1),
        plot.text(left, queue.top - 8, f"other jobs waiting, at most {high:,}", "name"),
    ]


def _cleared(frame: Frame, times: Ints, values: Ints) -> str:
    """The area under a step function in the colour of the page, so that what is drawn next is not tinted twice."""
    across, down = frame.across(times).tolist(), frame.down(values).tolist()
    outline = "".join(f"H{x:.1f}V{y:.1f}" for x, y in zip(across, down, strict=True))
    return f'<path style="fill: var(--ground)" d="M{across[0]:.1f} {frame.bottom:.1f}{outline}V{frame.bottom:.1f}Z"/>'
