"""What the objectives of `foresight` trade: mean makespan over mean node-hours, one picture for each log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from windrow.reproductions.charts import MARKERS, chart
from windrow.reproductions.foresight.plan import OBJECTIVES
from windrow.reproductions.foresight.results import ForesightResults, RunsCell
from windrow.reproductions.foresight.tables import by_objective, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FAR = 2.0  # times the shortest makespan or the fewest node-hours: what is beyond lies at the edge


def frontiers(results: ForesightResults) -> Iterator[str]:
    """A figure for each log."""
    return map(_frontier, results.by_log("objectives"))


def _frontier(cell: RunsCell) -> str:
    names = by_objective(cell)
    costs = _near([cell.node_h(name) for name in names])
    spans = _near([cell.makespan_s(name) / 3600 for name in names])

    def draw(axes: Axes) -> None:
        ours = sorted(list(zip(costs, spans, strict=True))[: 1 + len(OBJECTIVES)])
        axes.plot(*zip(*ours, strict=True), linewidth=1)
        for k, name in enumerate(names):
            axes.plot(costs[k], spans[k], MARKERS[k], color=f"C{k}", label=shown(name), clip_on=False)

    return chart(draw, _caption(cell), height=4, x="mean node-hours", y="mean makespan, hours")


def _near(values: list[float]) -> list[float]:
    return [min(value, _FAR * min(values)) for value in values]


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
