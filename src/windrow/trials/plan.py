"""A cut looked at: what a strategy would submit now, and what the whole run comes to if the log
continues as it did.

The first decision is what would be done now; later ones happen in the simulation only, since the
queue is not known of tomorrow. Expected waits are those that the batch system would have told at
each submission.
"""

from dataclasses import dataclass, field

import numpy as np

from windrow.model.graph import Ints
from windrow.model.hazard import Hazard
from windrow.sim.cluster import Cluster
from windrow.story.states import JobStage
from windrow.story.story import JobStory
from windrow.strategies import Decision, Strategy, View
from windrow.trials.scenario import Scenario
from windrow.trials.trial import Trial


@dataclass(frozen=True)
class JobInPlan:
    """One job of the run; `job` counts from 0, as in a real run.

    Times count from the run's beginning; None if the job never came so far. `risk`: that a node
    fails under it.
    """

    job: int
    first_level: int
    last_level: int
    tasks: int
    nodes: int
    requested_s: int
    expected_wait_s: int
    expected_run_s: int
    leeway_s: int
    submitted_s: int
    started_s: int | None
    ended_s: int | None
    outcome: str
    risk: float | None


@dataclass(frozen=True)
class SimulatedPlan:
    """A strategy's cut of a workflow at one time: every job, and the decisions with their times
    from the beginning."""

    trial: Trial
    jobs: list[JobInPlan]
    decisions: list[tuple[int, Decision]]

    @property
    def first(self) -> Decision:
        """What would be submitted now, and why."""
        return self.decisions[0][1]

    @property
    def jobs_now(self) -> list[JobInPlan]:
        """The jobs of the first decision."""
        return self.jobs[: len(self.first.jobs)]


@dataclass
class _Asking:
    """A strategy that answers as another does, and notes what wait each of its jobs was told."""

    inner: Strategy
    cluster: Cluster
    waits_s: list[int] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The other's."""
        return self.inner.name

    def decide(self, view: View) -> Decision:
        """As the other decides. A clone is asked, so that asking changes nothing."""
        decision = self.inner.decide(view)
        if decision.jobs:
            nodes = np.array([plan.nodes for plan in decision.jobs], dtype=np.int64)
            requested = np.array([plan.requested_s for plan in decision.jobs], dtype=np.int64)
            self.waits_s += (
                self.cluster.clone().estimate(nodes, requested) - self.cluster.now_s
            ).tolist()
        return decision


def make_plan(scenario: Scenario, strategy: Strategy, at_s: int) -> SimulatedPlan:
    """The cut at that time, simulated to the end of the run."""
    cluster = scenario.warm(scenario.cluster(), at_s)
    asking = _Asking(strategy, cluster)
    trial = scenario.trial(cluster, asking)
    levels = scenario.workflow.levels
    begun_s = int(trial.recorded.begun_s)
    submitted = zip(trial.story.jobs.items(), asking.waits_s, strict=True)
    hazard = Hazard.of_mean(scenario.failures.nodes_s, scenario.failures.shape)
    jobs = [
        _planned(number, job, wait, levels, begun_s, hazard) for (number, job), wait in submitted
    ]
    decisions = [(int(told.at_s) - begun_s, told.decision) for told in trial.story.decisions]
    return SimulatedPlan(trial, jobs, decisions)


def _planned(
    number: int, job: JobStory, wait_s: int, levels: Ints, zero_s: int, hazard: Hazard
) -> JobInPlan:
    def since(at_s: float | None) -> int | None:
        if at_s is None:
            return None
        return int(at_s) - zero_s

    plan = job.plan
    mine = levels[list(job.plan.tasks)]
    return JobInPlan(
        job=number,
        first_level=int(mine.min()),
        last_level=int(mine.max()),
        tasks=len(plan.tasks),
        nodes=plan.nodes,
        requested_s=plan.requested_s,
        expected_wait_s=wait_s,
        expected_run_s=plan.run_s,
        leeway_s=plan.leeway_s,
        submitted_s=since(job.submitted_s) or 0,
        started_s=since(job.started_s),
        ended_s=since(job.ended_s),
        outcome="cancelled"
        if job.state is JobStage.STOPPED
        else job.state,  # in a plan, the run takes jobs back
        risk=1 - hazard.survival(plan.nodes, plan.run_s) if hazard else None,
    )
