"""All tasks that are left in one job, on as many nodes as they can use: the baseline of Zhang, Koelbel and Cooper."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.strategies.base import Decision, Habits, View


@dataclass(frozen=True, slots=True)
class Giant:
    """See the head of this file."""

    name: str = "giant"

    @property
    def habits(self) -> Habits:
        """When it need not be asked."""
        return Habits("while jobs are there")

    def decide(self, view: View) -> Decision:
        """One job at full width, when none is in the system."""
        if view.jobs or not view.can_submit:
            return Decision()
        nodes = view.levels.usable(0, view.levels.last)
        why = (
            "everything in one job on one node" if nodes == 1 else f"everything in one job of full width, {nodes} nodes"
        )
        return Decision(jobs=(view.plan(0, view.levels.last, nodes),), why=why)
