"""Which storage allocation to take for a workflow in an environment: each is played, and the one
that ends first wins.

Bent's models stand beside as a reference if the workflow is a canonical one: chains of equal
length, one file from each task to the next. If sizes differ they take the largest, an upper
bound that loses no work.
"""

from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np

from windrow.model import Workflow, format_duration
from windrow.model.graph import Ints
from windrow.model.size import format_size
from windrow.model.wording import count
from windrow_lab.storage.allocations import (
    ALLOCATIONS,
    KEEPS_BATCH,
    Environment,
    PipelineWorkload,
    run_time_s,
)
from windrow_lab.storage.flows import DataFlow, Played, of_workflow, play

_BYTES = ("of_batch", "of_inputs", "of_results", "most_used")
HEADS = ("", "needs", "takes", "Bent's model", "from home", "to home", "fetches", "most space")


@dataclass(frozen=True, slots=True)
class Option:
    """An allocation: the least space for it, what came out in each draw (nothing if it has no
    space), the model."""

    allocation: str
    least_bytes: float
    runs: tuple[Played, ...]
    model_s: float

    @property
    def time_s(self) -> float:
        """The mean; infinite if it does not end, or is not possible."""
        if self.runs:
            return sum(run.time_s for run in self.runs) / len(self.runs)
        return inf

    def row(self) -> list[str]:
        """Under `HEADS`."""
        if self.time_s < inf:
            takes = format_duration(self.time_s)
        elif self.runs:
            takes = "never ends"
        else:
            takes = "not possible"
        if self.model_s < inf:
            model = format_duration(self.model_s)
        else:
            model = ""
        moved = [
            (run.of_batch + run.of_inputs, run.of_results, run.fetches, run.most_used)
            for run in self.runs[:1]
        ]
        more = [
            text
            for a, b, n, c in moved
            for text in (format_size(a), format_size(b), f"{n:,}", format_size(c))
        ]
        return [self.allocation, format_size(self.least_bytes), takes, model, *(more or [""] * 4)]

    def facts(self) -> dict[str, object]:
        """For programs; null if there is no number."""
        told: dict[str, object] = {
            "allocation": self.allocation,
            "least_bytes": int(self.least_bytes),
        }
        for name, value in (("time_s", self.time_s), ("model_s", self.model_s)):
            told[name] = value if value < inf else None
        for run in self.runs[:1]:
            told |= {f"{name}_bytes": int(getattr(run, name)) for name in _BYTES} | {
                "fetches": run.fetches
            }
        return told | {"is_possible": bool(self.runs)}


@dataclass(frozen=True)
class DataPlan:
    """All five, and the one to take: None if none is possible."""

    name: str
    flow: DataFlow
    where: Environment
    options: tuple[Option, ...]

    @cached_property
    def ending(self) -> list[Option]:
        """Those that end."""
        return [option for option in self.options if option.time_s < inf]

    @property
    def chosen(self) -> Option | None:
        """The one that ends first; of equals, that which needs the least space."""
        return min(
            self.ending, key=lambda option: (option.time_s, option.least_bytes), default=None
        )

    @property
    def lead(self) -> str:
        """What was played, and where."""
        rates = (
            f"{format_size(self.where.remote)}/s to home, {format_size(self.where.local)}/s within"
        )
        there = (
            f"{count(self.where.nodes, 'node')}, {format_size(self.where.storage)} of space, "
            f"{rates}"
        )
        return (
            f"{count(len(self.flow.level), 'task')} in "
            f"{count(len(self.flow.pipes) - 1, 'pipeline')}, on {there}"
        )

    @property
    def why(self) -> str:
        """The reason in a sentence or two."""
        chosen = self.chosen
        if chosen is None:
            return self._why_none
        slower = [
            f"{one.allocation} {100 * (one.time_s / chosen.time_s - 1):.1f} % later"
            for one in self.ending
            if one is not chosen
        ]
        small = [
            f"{one.allocation} {format_size(one.least_bytes)}"
            for one in self.options
            if not one.runs
        ]
        parts = [f"{chosen.allocation} ends first, after {format_duration(chosen.time_s)}"]
        if slower:
            parts.append(", ".join(slower))
        if small:
            parts.append(f"not possible; space needed: {', '.join(small)}")
        if chosen.allocation in KEEPS_BATCH:
            order = "depth-first"
        else:
            order = "breadth-first"
        return "; ".join([*parts, f"use it with windrow run --space-order {order}"])

    @property
    def _why_none(self) -> str:
        least = min(option.least_bytes for option in self.options)
        space = self.where.storage
        if least <= space:
            return (
                "no allocation ends: nodes fail too often, or tasks hold what others wait "
                "for; give more space"
            )
        return (
            f"no allocation is possible in {format_size(space)}: give at least {format_size(least)}"
        )


def plan_data(workflow: Workflow, where: Environment, seed: int = 0) -> DataPlan:
    """Play every allocation that has the space."""
    flow = of_workflow(workflow)
    draws = range(
        seed, seed + (5 if where.failures_per_s else 1)
    )  # where nodes fail the mean counts
    work = as_canonical(flow)
    options = list[Option]()
    for one in ALLOCATIONS:
        least = flow.least_storage(one)
        if work:
            model_s = run_time_s(one, work, where)
        else:
            model_s = inf
        runs = [play(flow, one, where, draw) for draw in draws if least <= where.storage]
        options.append(Option(one, least, tuple(runs), model_s))
    return DataPlan(workflow.name, flow, where, tuple(options))


def as_canonical(flow: DataFlow) -> PipelineWorkload | None:
    """Its six variables, if all pipelines are chains of one length."""
    width = len(flow.pipes) - 1
    lengths = np.unique(np.diff(flow.pipes))
    one_each = all((lists.degrees() == 1).all() for lists in (flow.inputs, flow.outputs))
    if len(lengths) != 1 or not one_each or flow.parents.edges != len(flow.level) - width:
        return None
    mean = float(flow.run_s.mean())
    spread = float(flow.run_s.std())
    sizes = int(flow.batch_need), int(flow.files.max(initial=0))
    return PipelineWorkload(width, int(lengths[0]), *sizes, mean, spread / mean if mean else 0.0)


def busy_nodes(run: Played) -> tuple[Ints, Ints]:
    """How many nodes have a job, from each of these times on."""
    times = np.concatenate([run.start_s, run.end_s])
    step = np.repeat([1, -1], len(run.start_s))
    order = np.lexsort((step, times))
    return times[order].astype(np.int64), np.cumsum(step[order])
