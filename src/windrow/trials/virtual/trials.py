"""Trials with failures that only the shell can show: of tasks, agents, the manager and the queue.

The run is that of a real user: agents need their time, the manager loses patience, and is started
again when it has died or given up. What fails when depends on the seed and the time of submission
alone, so that strategies are compared on the same luck: the n-th attempt at a task fails whatever
strategy runs it, and the queue is down at the same times. A strategy that looks ahead decides as it
does in the first run of a user: of the others in the queue no past is known.
"""

import random
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from math import ceil
from pathlib import Path
from types import MappingProxyType

from windrow.app.sites import OVERHEAD_S
from windrow.errors import UserError
from windrow.manager.losses import PATIENCE
from windrow.manager.terms import NO_COPIES, CopyRules, Terms
from windrow.model import Runnable, Step, Workflow
from windrow.model.checkpoint import Checkpoint
from windrow.model.failures import SLOW, Failures
from windrow.model.hazard import Hazard
from windrow.queues.simulated import SimulatedQueue
from windrow.sim.cluster import Cluster
from windrow.strategies import Strategy, Work
from windrow.trials.trial import Ints, Trial
from windrow.trials.virtual.disk import scratch
from windrow.trials.virtual.faults import Fault, Kind
from windrow.trials.virtual.shell import VirtualRun
from windrow.trials.virtual.world import World

RETRIES = 2
"""How often a task that failed is tried again at once, in the same job."""
_MOST_MANAGERS = 2000


def virtual_trial(
    cluster: Cluster,
    strategy: Strategy,
    *,
    terms: Terms,
    actual_s: Ints,
    work: Work,
    failures: Failures,
    seed: int,
    copies: CopyRules = NO_COPIES,
    checkpoints: Mapping[int, Checkpoint] = MappingProxyType({}),
) -> Trial:
    """Run the workflow on this cluster from its present time on (give it a clone), with these
    failures and copies. `checkpoints`: tasks that continue from them."""
    if copies:
        hazard = Hazard.of_mean(failures.nodes_s, failures.shape)
        work = Work(work.workflow, work.expected_s, replace(work.site, hazard=hazard))
    began_s = cluster.now_s
    world = _failing_world(cluster, work, actual_s, failures, f"{seed}/{began_s}")
    wanted = replace(terms, overhead_s=max(terms.overhead_s, OVERHEAD_S), patience=PATIENCE)
    with scratch() as folder:
        runnable = _bare(work.workflow, str(folder) if copies else "")
        if checkpoints:
            runnable = _continued(runnable, checkpoints, folder)
        run = VirtualRun(folder / "run", world, runnable, strategy, wanted, work=work, rules=copies)
        run.away_s = ceil(failures.away_s)
        run.survive(_MOST_MANAGERS, is_checked=False)
        records = run.records()
        run.close()
    if not run.is_complete:
        raise UserError(
            f"by {strategy.name} the run from {began_s} s on does not end; let less fail"
        )
    trial = Trial(work.workflow, strategy.name, work.shape.cores)
    trial.events = [
        (record.event, record.attempt.nodes if record.attempt else ()) for record in records
    ]
    return trial


def _failing_world(
    cluster: Cluster, work: Work, actual_s: Ints, failures: Failures, drawn: str
) -> World:
    """A world in which tasks fail and are slow as drawn by this seed."""
    times = actual_s.tolist()
    queue = SimulatedQueue(cluster, shape=work.shape, max_array=work.site.max_array, unique=False)
    world = World(
        queue,
        lambda task: times[task] * (SLOW if happens(f"slow/{task}", task, failures.slow) else 1),
    )

    def happens(what: str, task: int, share: float) -> bool:
        """Whether the attempt that runs now is among the share of which this is true."""
        return share > 0 and random.Random(f"{drawn}/{what}/{world.started[task]}").random() < share

    world.ends_saved = lambda _task: False
    world.failure = lambda task: "exit code 1" if happens(f"{task}", task, failures.tasks) else ""
    _strikes(world, failures, drawn)
    return world


def _strikes(world: World, failures: Failures, drawn: str) -> None:
    """Agents, the manager and the queue fail from now on."""
    rates = {
        Kind.AGENT: failures.agents_s,
        Kind.MANAGER: failures.manager_s,
        Kind.DOWN: failures.queue_s,
    }
    for kind, mean_s in rates.items():
        if mean_s is not None:
            _again(world, kind, mean_s, ceil(failures.away_s), random.Random(f"{drawn}/{kind}"))


def _continued(runnable: Runnable, checkpoints: Mapping[int, Checkpoint], folder: Path) -> Runnable:
    """The same with checkpoints in this folder, whatever the names of their files are to users."""
    steps = list(runnable.steps)
    for task, kept in checkpoints.items():
        mine = kept._replace(files=(f"state-{task}-*",), keep_existing=False)
        steps[task] = replace(steps[task], workdir=str(folder), checkpoint=mine)
    return Runnable(runnable.workflow, tuple(steps))


def _again(world: World, kind: Kind, mean_s: float, length_s: int, chance: random.Random) -> None:
    """This goes wrong after a while, and again, for as long as the world lasts."""

    def struck() -> None:
        world.strike(
            Fault(
                kind, pick=0 if kind is Kind.MANAGER else chance.randrange(1000), length_s=length_s
            )
        )
        wait()

    def wait() -> None:
        world.dues.append((world.now_s + ceil(chance.expovariate(1 / mean_s)), struck))

    wait()


@lru_cache(maxsize=4)
def _bare(workflow: Workflow, folder: str) -> Runnable:
    """Tasks that take time; what they read and write is left out. If they may have copies, each
    makes a file there."""
    made = [(str(number),) if folder else () for number in range(len(workflow))]
    tasks = [
        replace(workflow.task(n), inputs=(), outputs=files, command=())
        for n, files in enumerate(made)
    ]
    elsewhere = ((1, 0, 0),) if folder else ()
    steps = (
        Step(("true", *files), folder or "/", retries=RETRIES, elsewhere=elsewhere)
        for files in made
    )
    return Runnable(Workflow.from_tasks(workflow.name, tasks), tuple(steps))
