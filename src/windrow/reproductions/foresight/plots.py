"""What the objectives of `foresight` trade: mean makespan over mean node-hours, one picture for each log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from windrow.report.page import figure
from windrow.report.svg import plot
from windrow.report.svg.axis import Axis, round_step
from windrow.report.svg.plot import Frame
from windrow.reproductions.foresight.plan import OBJECTIVES
from windrow.reproductions.foresight.results import ForesightResults, RunsCell
from windrow.reproductions.foresight.tables import by_objective, shown

_TICKS = 7
_FAR = 2.0  # times the shortest makespan or the fewest node-hours: what is beyond lies at the edge


def frontiers(results: ForesightResults) -> Iterator[str]:
    """A figure for each log."""
    for cell in results.by_log("objectives"):
        names = by_objective(cell)
        yield figure(_frontier(cell, names), _caption(cell), plot.legend([shown(name) for name in names]))


def _frontier(cell: RunsCell, names: Sequence[str]) -> str:
    spans = [cell.makespan_s(name) / 3600 for name in names]
    costs = [cell.node_h(name) for name in names]
    frame = Frame(74, 22, 620, 300, around(costs, "mean node-hours"), around(spans, "mean makespan, hours"))
    ours = sorted(list(zip(costs, spans, strict=True))[: 1 + len(OBJECTIVES)])
    marks = [
        plot.markers(frame, [cost], [span], k % plot.COLOURS, [f"{shown(name)}: {span:.1f} h, {cost:,.0f} node-hours"])
        for k, (name, span, cost) in enumerate(zip(names, spans, costs, strict=True))
    ]
    line = plot.line(frame, [cost for cost, _ in ours], [span for _, span in ours], 0, thin=True)
    return plot.picture(720, 370, f"Makespan over node-hours on {cell.log}", [plot.axes(frame), line, *marks])


def _caption(cell: RunsCell) -> str:
    far = [shown(name) for name in cell.names if _is_far(cell, name)]
    edge = f" At the edge, beyond the scale: {', '.join(far)}." if far else ""
    return (
        f"{cell.log}: each objective, joined by a line, and each fixed strategy, over {len(cell.runs)} runs. Lower and "
        f"further left is better.{edge}"
    )


def _is_far(cell: RunsCell, name: str) -> bool:
    least_s, least_h = min(map(cell.makespan_s, cell.names)), min(map(cell.node_h, cell.names))
    return cell.makespan_s(name) > _FAR * least_s or cell.node_h(name) > _FAR * least_h


def around(values: Sequence[float], title: str) -> Axis:
    """From a round number below the least value to one above the greatest that is not far from it."""
    least = min(values)
    most = max(value for value in values if value <= _FAR * least)
    room = max(0.08 * (most - least), 0.01 * most)
    low, high = least - room, most + room
    step = _step(high - low)
    first, last = int(low // step), int(-(-high // step))
    ticks = tuple((k * step, f"{k * step:,.6g}") for k in range(first, last + 1))
    return Axis(first * step, last * step, ticks, title)


def _step(span: float) -> float:
    """As `round_step`, for spans below its least step as well."""
    scale = 1.0
    while span * scale < _TICKS:
        scale *= 10
    return round_step(span * scale, _TICKS) / scale
