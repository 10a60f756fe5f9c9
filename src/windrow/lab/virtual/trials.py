"""Trials with failures that only the shell can show: of tasks, agents, the manager and the queue.

The run is that of a real user: agents need their time, the manager loses patience, and is started again when it has
died or given up. What fails when depends on the seed and the time of submission alone, so that strategies are compared
on the same luck: the n-th attempt at a task fails whoever runs it, and the queue is down at the same times. A strategy
that looks ahead decides as it does in the first run of a user: of the others in the queue no past is known.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import lru_cache
from math import ceil

from windrow.app.sites import OVERHEAD_S
from windrow.errors import UserError
from windrow.lab.trial import Ints, Trial
from windrow.lab.virtual.disk import scratch
from windrow.lab.virtual.faults import Fault, Kind
from windrow.lab.virtual.shell import VirtualRun
from windrow.lab.virtual.world import World
from windrow.manager.losses import PATIENCE
from windrow.manager.terms import Terms
from windrow.model import Runnable, Step, Workflow
from windrow.model.failures import Failures
from windrow.queues.simulated import SimulatedQueue
from windrow.sim.cluster import Cluster
from windrow.strategies import Strategy, Work

RETRIES = 2
"""How often a task that failed is tried again at once, in the same job."""
_MOST_MANAGERS = 2000


def virtual_trial(
    cluster: Cluster, strategy: Strategy, *, terms: Terms, actual_s: Ints, work: Work, failures: Failures, seed: int
) -> Trial:
    """Run the workflow on this cluster from its present time on (give it a clone), with these failures."""
    began_s, drawn, times = cluster.now_s, f"{seed}/{cluster.now_s}", actual_s.tolist()
    queue = SimulatedQueue(cluster, shape=work.shape, max_array=work.site.max_array, unique=False)
    world = World(queue, lambda task: times[task])

    def failure(task: int) -> str:
        is_bad = random.Random(f"{drawn}/{task}/{world.started[task]}").random() < failures.tasks
        return "exit code 1" if is_bad else ""

    world.failure = failure
    rates = {Kind.AGENT: failures.agents_s, Kind.MANAGER: failures.manager_s, Kind.DOWN: failures.queue_s}
    for kind, mean_s in rates.items():
        if mean_s is not None:
            _again(world, kind, mean_s, ceil(failures.away_s), random.Random(f"{drawn}/{kind}"))
    wanted = replace(terms, overhead_s=max(terms.overhead_s, OVERHEAD_S), patience=PATIENCE)
    with scratch() as folder:
        run = VirtualRun(folder / "run", world, _bare(work.workflow), strategy, wanted, work=work)
        run.away_s = ceil(failures.away_s)
        run.survive(_MOST_MANAGERS, is_checked=False)
        records = run.records()
        run.close()
    if not run.is_complete:
        raise UserError(f"by {strategy.name} the run from {began_s} s on does not end; let less fail")
    trial = Trial(work.workflow, strategy.name, work.shape.cores)
    trial.events = [(record.event, tuple((record.detail or {}).get("nodes", ()))) for record in records]
    return trial


def _again(world: World, kind: Kind, mean_s: float, length_s: int, chance: random.Random) -> None:
    """This goes wrong after a while, and again, for as long as the world lasts."""

    def struck() -> None:
        world.strike(Fault(kind, pick=0 if kind is Kind.MANAGER else chance.randrange(1000), length_s=length_s))
        wait()

    def wait() -> None:
        world.dues.append((world.now_s + ceil(chance.expovariate(1 / mean_s)), struck))

    wait()


@lru_cache(maxsize=4)
def _bare(workflow: Workflow) -> Runnable:
    """Tasks that only take time: what they read and write is left out."""
    tasks = [replace(workflow.task(number), inputs=(), outputs=(), command=()) for number in range(len(workflow))]
    step = Step(("true",), "/", retries=RETRIES)
    return Runnable(Workflow.from_tasks(workflow.name, tasks), (step,) * len(tasks))
