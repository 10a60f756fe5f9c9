"""A schedule: where each task runs, and when it starts.

Law (`check`): a task starts when the data of all its parents can be there, each from the execution
of the parent that delivers first; and a processor runs one task at a time, but for those that take
no time. The first rows are the tasks, in their order; rows behind them are copies.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from windrow.kernels.jit import in_python
from windrow.model.graph import Adjacency, Ints
from windrow_lab.grid.clusters import Floats
from windrow_lab.grid.costs import Costs
from windrow_lab.kernels.grid.placing import place
from windrow_lab.kernels.grid.rooms import empty_plan


@dataclass(frozen=True, eq=False)
class Schedule:
    """Rows: which task, on which of the grid's processors, from when on."""

    costs: Costs
    task: Ints
    processor: Ints
    start_s: Floats

    @cached_property
    def cluster(self) -> Ints:
        """Of each row."""
        return self.costs.grid.cluster_of(self.processor)

    @cached_property
    def end_s(self) -> Floats:
        """Of each row."""
        return self.start_s + self.costs.run_s[self.task, self.cluster]

    @property
    def makespan_s(self) -> float:
        """When all has ended; it begins at 0."""
        return float(self.end_s.max())

    @property
    def slr(self) -> float:
        """The makespan by the longest way in the mean, transfers included (see
        `Costs.critical_s`)."""
        if self.costs.critical_s:
            return self.makespan_s / self.costs.critical_s
        return 1.0

    @property
    def copies(self) -> int:
        """Executions beyond one for each task."""
        return len(self.task) - len(self.costs.workflow)

    def check(self) -> None:
        """AssertionError if it is not valid."""
        tasks = len(self.costs.workflow)
        slack = 1e-9 * self.makespan_s
        assert self.task[:tasks].tolist() == list(range(tasks)), "every task must be there"
        self._check_data(slack)
        self._check_processors(slack)

    def _check_data(self, slack: float) -> None:
        """No task starts before the data of its parents can be there."""
        given = self.costs.given
        rows = Adjacency.from_edges(len(self.costs.workflow), self.task, np.arange(len(self.task)))
        for row, task in enumerate(self.task.tolist()):
            for edge in range(given.start[task], given.start[task + 1]):
                parent = given.parent[edge]
                there_s = self._delivered_s(edge, rows.of(parent), row)
                assert self.start_s[row] >= there_s - slack, (
                    f"task {task} starts before the data of {parent}"
                )

    def _delivered_s(self, edge: int, sources: Ints, row: int) -> float:
        """When the data of an edge can be where the row is: from the source that delivers first."""
        given = self.costs.given
        link = (self.cluster[sources], self.cluster[row])
        way_s = given.latency_s[link] + given.size[edge] * given.s_per_byte[link]
        is_here = self.processor[sources] == self.processor[row]
        return float((self.end_s[sources] + np.where(is_here, 0, way_s)).min())

    def _check_processors(self, slack: float) -> None:
        """No processor runs two tasks at a time, but for those that take no time."""
        busy = np.lexsort((self.start_s, self.processor))
        busy = busy[self.end_s[busy] > self.start_s[busy]]
        same = self.processor[busy[1:]] == self.processor[busy[:-1]]
        overlaps = self.start_s[busy[1:]] < self.end_s[busy[:-1]] - slack
        assert not (same & overlaps).any(), "two tasks at a time"


def listed(costs: Costs, order: Ints, pinned: Ints | None = None, *, insertion: bool) -> Schedule:
    """Tasks one after the other, each where it ends first, or where it is pinned; into gaps, or
    behind all."""
    plan = empty_plan(costs.given, len(costs.workflow) if insertion else 0)
    with in_python(really=costs.is_small):
        place(costs.given, plan, order, np.full(len(order), -1) if pinned is None else pinned)
    return Schedule(costs, np.arange(len(order)), plan.processor, plan.begin)


def on_part(
    costs: Costs, nodes: Mapping[int, int], scheduler: Callable[[Costs], Schedule]
) -> Schedule:
    """The schedule that the scheduler makes on these nodes of these clusters alone, numbered as in
    the whole grid."""
    made = scheduler(costs.part(nodes))
    shift = costs.grid.first[list(nodes)] - made.costs.grid.first[:-1]
    return Schedule(costs, made.task, made.processor + shift[made.cluster], made.start_s)
