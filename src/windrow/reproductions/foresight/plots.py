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
    costs, spans = [cell.node_h(name) for name in names], [cell.makespan_s(name) / 3600 for name in names]
    most_h, most_span = _FAR * min(costs), _FAR * min(spans)

    def draw(axes: Axes) -> None:
        near = [(min(cost, most_h), min(span, most_span)) for cost, span in zip(costs, spans, strict=True)]
        axes.plot(*zip(*sorted(near[: 1 + len(OBJECTIVES)]), strict=True), linewidth=1)
        for k, name in enumerate(names):
            axes.plot(*near[k], MARKERS[k], color=f"C{k}", label=shown(name), clip_on=False)

    far = {name for name, cost, span in zip(names, costs, spans, strict=True) if cost > most_h or span > most_span}
    edge = f" At the edge, beyond the scale: {', '.join(shown(n) for n in cell.names if n in far)}." if far else ""
    caption = (
        f"{cell.log}: each objective, joined by a line, and each fixed strategy, over {len(cell.runs)} runs. Lower and "
        f"further left is better.{edge}"
    )
    return chart(draw, caption, height=4, x="mean node-hours", y="mean makespan, hours")
