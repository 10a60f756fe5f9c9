"""One job per level, submitted when the level before is done. GLUME thesis, section 5.2."""

from dataclasses import dataclass
from typing import ClassVar

from windrow.strategies.base import Candidate, Decision, Habits, View, best_nodes


@dataclass(frozen=True, slots=True)
class LevelByLevel:
    """See the head of this file."""

    name: str = "level-by-level"
    habits: ClassVar = Habits("while jobs are there")

    def decide(self, view: View) -> Decision:
        """The first level that is left, on the number of nodes that ends first, when no job is in
        the system."""
        if view.jobs or not view.can_submit:
            return Decision()
        nodes, wait, run = best_nodes(view, 0, 0, 0)
        chosen = Candidate("level 0", nodes, wait, run, 0, None, "chosen")
        return Decision(
            (view.plan(0, 0, nodes),), (chosen,), f"the next level ends first on {nodes} nodes"
        )
