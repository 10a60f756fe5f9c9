"""All tasks that are left in one job, on as many nodes as they can use: the baseline of Zhang,
Koelbel and Cooper."""

from dataclasses import dataclass
from typing import ClassVar

from windrow.strategies.base import Decision, Habits, View


@dataclass(frozen=True, slots=True)
class Giant:
    """See the head of this file."""

    name: str = "giant"
    habits: ClassVar = Habits("while jobs are there")

    def decide(self, view: View) -> Decision:
        """One job at full width, when none is in the system."""
        if view.jobs or not view.can_submit:
            return Decision()
        nodes = view.levels.usable(0, view.levels.last)
        if nodes == 1:
            size = "on one node"
        else:
            size = f"of full width, {nodes} nodes"
        return Decision(
            jobs=(view.plan(0, view.levels.last, nodes),), why=f"everything in one job {size}"
        )
