"""Each job several times: whatever a strategy plans, and other jobs with copies of the same tasks.

The copies wait and run like the job itself; whichever attempt at a task finishes first is the one
that counts. So a run survives a job that hangs or waits for long, for as many times the node time.
Copies never take the place of a job: they have what the cap leaves, and tasks that cannot be copied
(`may_copy`) are in one job alone.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from windrow.strategies.base import Decision, Strategy, View, decided


@dataclass(frozen=True, slots=True)
class WithCopies:
    """A strategy of which each job is submitted `copies` times."""

    strategy: Strategy
    copies: int
    may_copy: Callable[[int], bool]

    @property
    def name(self) -> str:
        """That of the strategy."""
        return self.strategy.name

    def decide(self, view: View) -> Decision:
        """Its jobs, as many as leave room for their copies, then these."""
        room = view.cap - view.jobs
        most = view.jobs
        if room > 0:
            most += max(1, room // self.copies)
        decision = decided(self.strategy, replace(view, cap=most))
        others = [
            replace(plan, tasks=(), copies=tasks)
            for plan in decision.jobs
            if (tasks := tuple(filter(self.may_copy, plan.tasks)))
            for _ in range(1, self.copies)
        ]
        if not others:
            return decision
        why = f"{decision.why}; {self.copies} jobs run the same tasks (--copies)"
        return replace(
            decision, jobs=(*decision.jobs, *others[: max(0, room - len(decision.jobs))]), why=why
        )
