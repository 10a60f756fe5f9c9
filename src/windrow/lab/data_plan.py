"""Which storage allocation to take for a workflow in an environment: each is played, and the one that ends first wins.

Bent's models stand beside as a reference where the workflow is a canonical one: chains of equal length, one file from
each task to the next. Where sizes differ they take the largest, an upper bound that loses no work.
"""

from dataclasses import dataclass
from math import inf

import numpy as np

from windrow.model import Workflow, format_duration
from windrow.model.graph import Ints
from windrow.model.size import format_size
from windrow.sim.flows import DataFlow, Played, of_workflow, play
from windrow.storage.allocations import ALLOCATIONS, Environment, Workload, run_time_s

SEEDS = 5
"""Draws of failures, where nodes fail; the mean counts."""


@dataclass(frozen=True, slots=True)
class Option:
    """An allocation: the least space for it, what came out in each draw (nothing where it has no space), the model."""

    allocation: str
    least_bytes: float
    runs: tuple[Played, ...]
    model_s: float

    @property
    def time_s(self) -> float:
        """The mean; infinite where it does not end, or is not possible."""
        return sum(run.time_s for run in self.runs) / len(self.runs) if self.runs else inf


@dataclass(frozen=True, slots=True)
class DataPlan:
    """All five, and the one to take: None where none is possible."""

    flow: DataFlow
    where: Environment
    options: tuple[Option, ...]

    @property
    def chosen(self) -> Option | None:
        """The one that ends first; of equals, that which needs the least space."""
        best = min(self.options, key=lambda option: (option.time_s, option.least_bytes))
        return best if best.time_s < inf else None

    @property
    def why(self) -> str:
        """The reason in a sentence or two."""
        chosen = self.chosen
        if chosen is None:
            least = min(option.least_bytes for option in self.options)
            return f"no allocation is possible in {format_size(self.where.storage)}: give at least {format_size(least)}"
        others = [option for option in self.options if option.time_s < inf and option is not chosen]
        slower = [f"{one.allocation} {100 * (one.time_s / chosen.time_s - 1):.1f} % later" for one in others]
        small = [f"{one.allocation} {format_size(one.least_bytes)}" for one in self.options if not one.runs]
        parts = [f"{chosen.allocation} ends first, after {format_duration(chosen.time_s)}"]
        parts += [", ".join(slower)] if slower else []
        parts += [f"not possible, as the space needed is: {', '.join(small)}"] if small else []
        return "; ".join(parts)


def plan_data(workflow: Workflow, where: Environment, seed: int = 0) -> DataPlan:
    """Play every allocation that has the space."""
    flow = of_workflow(workflow)
    draws = range(seed, seed + (SEEDS if where.failures_per_s else 1))
    work, options = as_canonical(flow), []
    for one in ALLOCATIONS:
        least = flow.least_storage(one)
        runs = tuple(play(flow, one, where, draw) for draw in draws) if least <= where.storage else ()
        options.append(Option(one, least, runs, run_time_s(one, work, where) if work else inf))
    return DataPlan(flow, where, tuple(options))


def as_canonical(flow: DataFlow) -> Workload | None:
    """Its six variables, where all pipelines are chains of one length."""
    lengths = np.unique(np.diff(flow.pipes))
    one_each = all((lists.degrees() == 1).all() for lists in (flow.inputs, flow.outputs))
    if len(lengths) != 1 or not one_each or flow.parents.edges != len(flow.level) - (len(flow.pipes) - 1):
        return None
    mean = float(flow.run_s.mean())
    spread = float(flow.run_s.std()) / mean if mean else 0.0
    return Workload(
        len(flow.pipes) - 1, int(lengths[0]), int(flow.batch_need), int(flow.files.max(initial=0)), mean, spread
    )


def busy_nodes(run: Played) -> tuple[Ints, Ints]:
    """How many nodes have a job, from each of these times on."""
    times = np.concatenate([run.start_s, run.end_s])
    order = np.lexsort((np.repeat([1, -1], len(run.start_s)), times))
    return times[order].astype(np.int64), np.cumsum(np.repeat([1, -1], len(run.start_s))[order])
