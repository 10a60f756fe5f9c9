"""Ten ways to run a workflow on clusters that fail (Zhang 2009, chapter 6), put together from a few
parts.

HEFT and DSH are as they are; with O tasks have copies by TOP, with C lost tasks are restarted. WDO
runs the workflow as a whole on several clusters, W_C each of these with restarts. All are played on
the same failures (`play`).

Law: base plans, and those of the workflow on one cluster alone, do not depend on what is believed,
and are made once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import NamedTuple

import numpy as np

from windrow.model.graph import Ints
from windrow_lab.grid.clusters import Floats
from windrow_lab.grid.costs import Costs
from windrow_lab.grid.dsh import dsh, executed
from windrow_lab.grid.heft import heft
from windrow_lab.grid.schedule import Schedule, on_part
from windrow_lab.grid.wdo import wdo
from windrow_lab.kernels.grid.duplicates import Executions
from windrow_lab.kernels.grid.overprovision import Aims, place_reliably
from windrow_lab.kernels.grid.play import Failing, Game, PlannedRows, play
from windrow_lab.kernels.grid.reliability import Beliefs
from windrow_lab.kernels.grid.rooms import PlacedTasks

AIMS = Aims(wanted=0.95, late=1.3, is_relative=False, limit=3)


class Restarts(NamedTuple):
    """How often a task may be restarted or, `is_total`, all together; `is_apart`: on the clusters
    of its plan only."""

    limit: int = 3
    is_total: bool = False
    is_apart: bool = False


NO_RESTARTS = Restarts(0)


class Method(NamedTuple):
    """base: heft, dsh or wdo. copies: by TOP. restarts: of lost tasks."""

    base: str
    copies: bool
    restarts: bool


METHODS: Mapping[str, Method] = {
    f"{base.upper()}{more}": Method(base, "O" in more, "C" in more)
    for base in ("heft", "dsh")
    for more in ("", "_O", "_C", "_OC")
} | {
    "WDO": Method("wdo", copies=False, restarts=False),
    "W_C": Method("wdo", copies=False, restarts=True),
}


@dataclass(frozen=True, eq=False)
class Outcome:
    """Of each draw: whether the workflow ended, when, and CPU time of executions that ended, of
    those that failed, and of what a workflow that failed would still need.
    """

    has_ended: Floats
    end_s: Floats
    cpu_s: Floats
    failed_s: Floats
    potential_s: Floats


@dataclass(frozen=True, eq=False)
class Planner:
    """Plans for a workflow on a grid."""

    costs: Costs
    alone: dict[int, Schedule] = field(default_factory=dict)

    @cached_property
    def bases(self) -> Mapping[str, Schedule]:
        """Without copies by TOP."""
        return {"heft": heft(self.costs), "dsh": dsh(self.costs)}

    def plans(self, method: Method, beliefs: Beliefs, aims: Aims = AIMS) -> list[Schedule]:
        """One schedule, or several that run beside each other."""
        if method.base == "wdo":
            chosen = wdo(self.costs, beliefs, wanted=aims.wanted, limit=aims.limit)
            for c in set(chosen) - set(self.alone):
                self.alone[c] = on_part(self.costs, {c: int(self.costs.grid.nodes[c])}, heft)
            return [self.alone[c] for c in chosen]
        return [
            self._with_copies(method.base, beliefs, aims)
            if method.copies
            else self.bases[method.base]
        ]

    def _with_copies(self, base: str, beliefs: Beliefs, aims: Aims) -> Schedule:
        costs = self.costs
        order = costs.by(-(costs.ranks[0] if base == "heft" else costs.static_level))
        children = np.bincount(costs.given.parent, minlength=len(order))

        def place(plan: PlacedTasks, runs: Executions) -> bool:
            return place_reliably(
                costs.given, plan, runs, order, children.copy(), beliefs, aims, base == "dsh"
            )

        return executed(costs, place, rows=2 + aims.limit)

    @cached_property
    def _edges(self) -> tuple[Ints, Ints, Ints]:
        parents = self.costs.workflow.parents
        edge = np.argsort(parents.index, kind="stable")
        counts = np.bincount(parents.index, minlength=len(self.costs.workflow))
        return np.append(0, np.cumsum(counts)), edge, parents.sources()[edge]

    def play(
        self, plans: Sequence[Schedule], failing: Failing, beliefs: Beliefs, restarts: Restarts
    ) -> Outcome:
        """On each draw of failures.

        Several plans do not wait for each other's nodes. When the first has ended, the others are
        stopped.
        """
        never = np.full(len(failing.time_s), inf)
        found = np.array([self._play(plan, failing, beliefs, restarts, never) for plan in plans])
        first = np.where(found[:, :, 0] > 0, found[:, :, 1], inf).min(axis=0)
        if len(plans) > 1:
            for n, plan in enumerate(plans):
                is_behind = found[n, :, 1] > first
                if is_behind.any():
                    stopped = self._play(plan, failing, beliefs, restarts, first)
                    found[n] = np.where(is_behind[:, None], stopped, found[n])
        return _outcome(found, first)

    def _play(
        self, plan: Schedule, failing: Failing, beliefs: Beliefs, restarts: Restarts, until: Floats
    ) -> Floats:
        allowed = np.ones(len(self.costs.grid.clusters), dtype=np.int64)
        if restarts.is_apart:
            allowed[np.setdiff1d(np.arange(len(allowed)), plan.cluster)] = 0
        planned = PlannedRows(plan.task, plan.cluster, plan.start_s, *self._edges, allowed)
        out = np.zeros((len(until), 5))
        ends = np.full(len(self.costs.workflow), inf)
        np.minimum.at(ends, plan.task, plan.end_s)
        game = Game(self.costs.given, planned, failing, beliefs, restarts.limit, restarts.is_total)
        play(game, float(ends.max()), until, out)
        return out


def _outcome(found: Floats, first: Floats) -> Outcome:
    """Of what each plan gave on each draw, and when the first had ended there."""
    has_ended = np.isfinite(first)
    cpu_s, failed_s, potential_s = found[:, :, 2:].sum(axis=0).T
    end_s = np.where(has_ended, first, found[:, :, 1].max(axis=0))
    lost_s = np.where(has_ended, 0.0, potential_s)
    return Outcome(has_ended.astype(np.float64), end_s, cpu_s, failed_s, lost_s)
