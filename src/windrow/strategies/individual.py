"""One job per task, submitted when the task is ready, under the cap. The thesis calls it
OneJobPerTask."""

from collections.abc import Sequence
from dataclasses import dataclass

from windrow.strategies.base import Decision, Habits, JobPlan, View


@dataclass(frozen=True, slots=True)
class Individual:
    """See the head of this file. by_number: ready tasks go out in the workflow's order, not the
    longest first."""

    by_number: bool = False
    name: str = "individual"

    @property
    def habits(self) -> Habits:
        """When it need not be asked."""
        if self.by_number:
            return Habits()
        return Habits(by_task="always")

    def decide(self, view: View) -> Decision:
        """A job for each ready task, while the cap allows."""
        return Decision(
            jobs=single_jobs(view, by_number=self.by_number), why="each ready task is its own job"
        )


def single_jobs(view: View, *, by_number: bool = False) -> tuple[JobPlan, ...]:
    """Jobs of one task each for as many ready tasks as the cap leaves room for; the longest first,
    or by number."""
    expected = view.work.expected_s
    nodes = view.work.workflow.nodes
    jobs = []
    ready: Sequence[int] = view.ready
    if by_number:
        ready = sorted(ready)
    for task in ready[: max(0, view.cap - view.jobs)]:
        run = int(expected[task])
        jobs.append(JobPlan((task,), max(1, int(nodes[task])), run, view.request(run)))
    return tuple(jobs)
