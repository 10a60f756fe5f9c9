"""A strategy: all that is left in one job on one node."""

from dataclasses import dataclass
from typing import ClassVar

from windrow.strategies.base import Decision, Habits, View


@dataclass(frozen=True)
class Narrow:
    """See the head of this file."""

    name: str = "narrow"
    habits: ClassVar = Habits("while jobs are there")

    def decide(self, view: View) -> Decision:
        """One job, when none is in the system."""
        if view.jobs or not view.can_submit:
            return Decision()
        job = view.plan(0, view.levels.last, 1)
        return Decision(jobs=(job,), why="everything in one job on one node")
