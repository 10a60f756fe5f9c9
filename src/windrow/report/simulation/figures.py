"""The figures of a simulation as people read them, for the terminal and the page alike."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from windrow.model import format_duration
from windrow.sim.simulation import Summary


@dataclass(frozen=True, slots=True)
class SummaryFigure:
    """One line of the comparison: its title, its field in Summary, and how to write a value."""

    title: str
    field: str
    write: Callable[[float], str]
    best: Callable[[Sequence[float]], float] | None = None
    """Which of several values is the best one; None where none is better."""

    def values(self, summaries: Sequence[Summary]) -> list[float]:
        """This figure of each simulation."""
        return [float(getattr(summary, self.field)) for summary in summaries]

    def best_of(self, values: Sequence[float]) -> list[bool]:
        """Which values to mark as best: none where all are the same, or nothing is to compare."""
        if self.best is None or len(set(values)) < 2:
            return [False] * len(values)
        return [value == self.best(values) for value in values]


FIGURES = (
    SummaryFigure("mean wait", "mean_wait_s", format_duration, min),
    SummaryFigure("median wait", "median_wait_s", format_duration, min),
    SummaryFigure("90 % wait at most", "p90_wait_s", format_duration, min),
    SummaryFigure("99 % wait at most", "p99_wait_s", format_duration, min),
    SummaryFigure("longest wait", "max_wait_s", format_duration, min),
    SummaryFigure("mean bounded slowdown", "mean_bounded_slowdown", "{:,.2f}".format, min),
    SummaryFigure("utilization", "utilization", lambda share: f"{share:.2%}".replace("%", " %"), max),
    SummaryFigure("makespan", "makespan_s", format_duration, min),
    SummaryFigure("killed at their request", "killed", "{:,.0f}".format),
    SummaryFigure("failures of nodes", "node_failures", "{:,.0f}".format),
    SummaryFigure("runs that lost a node", "runs_hit", "{:,.0f}".format),
    SummaryFigure("jobs lost with a node", "jobs_lost", "{:,.0f}".format),
    SummaryFigure("lost with these runs", "lost_node_h", "{:,.0f} node-hours".format),
    SummaryFigure("out of service", "out_node_h", "{:,.0f} node-hours".format),
)
