"""One job per task, submitted when the task is ready, under the cap. The thesis calls it OneJobPerTask."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.strategies.base import Decision, JobPlan, View


@dataclass(frozen=True, slots=True)
class Individual:
    """See the head of this file."""

    name: str = "individual"

    def decide(self, view: View) -> Decision:
        """A job for each ready task, the longest first, while the cap allows."""
        return Decision(jobs=single_jobs(view), why="each ready task is a job of its own")


def single_jobs(view: View) -> tuple[JobPlan, ...]:
    """Jobs of one task each for as many ready tasks as the cap leaves room for."""
    expected, nodes = view.work.expected_s, view.work.workflow.nodes
    jobs = []
    for task in view.ready[: max(0, view.cap - view.jobs)]:
        run = int(expected[task])
        jobs.append(JobPlan((task,), max(1, int(nodes[task])), run, view.request(run)))
    return tuple(jobs)
