"""All tasks that are left in one job, on the number of nodes that ends first: GLUME thesis, section
5.2."""

from dataclasses import dataclass
from typing import ClassVar

from windrow.strategies.base import Candidate, Decision, Habits, View, best_nodes


@dataclass(frozen=True, slots=True)
class OneJob:
    """See the head of this file."""

    name: str = "one-job"
    habits: ClassVar = Habits("while jobs are there")

    def decide(self, view: View) -> Decision:
        """One job on the number of nodes that ends first, when none is in the system."""
        if view.jobs or not view.can_submit:
            return Decision()
        nodes, wait, run = best_nodes(view, 0, view.levels.last, 0)
        chosen = Candidate("all levels", nodes, wait, run, 0, wait + run, "chosen")
        return Decision(
            (view.plan(0, view.levels.last, nodes),), (chosen,), f"ends first on {nodes} nodes"
        )
