"""Runs drawn from a seed: a braid of tasks, a cluster, what tasks take, and what goes wrong.

Which strategy, how many nodes, which tasks write in place and how long the queue remembers are drawn as well. The same
seed gives the same run, step by step, on every machine.
"""

import json
import random
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

from windrow.lab.virtual.disk import scratch
from windrow.lab.virtual.faults import LOCAL, Fault, Kind, draw
from windrow.lab.virtual.invariants import Violation
from windrow.lab.virtual.shell import VirtualRun
from windrow.lab.virtual.world import BEGIN_S, World, empty_queue
from windrow.manager.events import TasksAdded
from windrow.manager.terms import CopyRules
from windrow.model import Runnable, Step, Task, Workflow
from windrow.model.checkpoint import Checkpoint
from windrow.model.failures import Failures
from windrow.model.hazard import Hazard
from windrow.records.runnable_file import record_of
from windrow.storage.admission import ORDERS
from windrow.storage.demand import SpaceLimit, demand_of
from windrow.strategies import Work, whole_seconds

_LIMIT_S = 150  # of jobs, where tasks have checkpoints; some of these take 260 s
_LOSING = (Kind.FILE, Kind.CUT_OFF, Kind.FORGOTTEN)  # outputs of finished tasks may have to be made again
STRATEGIES = ("individual", "glume", "level-by-level", "one-job", "giant", "zhang")


@dataclass(frozen=True, slots=True)
class VirtualScenario:
    """What one run meets: all of it follows from the seed, unless said otherwise."""

    seed: int
    lanes: int = 6
    levels: int = 10
    strategy: str = ""
    faults: int = 8
    kind: str = ""
    record: int | None = None
    copies: int = 1
    reliability: float = 0.0
    speculate: int = 0
    replicas: int = 1
    """The most attempts at a task that are wanted at the same time from its start on."""
    far: int = 0
    """1: every second task runs at a place with files of its own."""
    shape: float = 0.0
    """Above 0: nodes fail all the time, with Weibull lives of this shape; else sometimes, with exponential ones."""
    checkpoints: int = 0
    """1: tasks have checkpoints, and jobs are shorter than some of them."""
    temporary: int = 0
    """1: most files are not to be kept."""
    space: int = 0
    """1: besides, what they take is limited, to little more than what is needed at least; one strategy goes with it."""

    local: int = 0
    """1: jobs use disks of their nodes."""

    @property
    def command(self) -> str:
        """What plays it again."""
        asked = {"strategy": self.strategy, "kind": self.kind, "record": self.record}
        more = [f"--{name} {json.dumps(value)}" for name, value in asked.items() if value not in ("", None)]
        sizes = [f"--{name} {value}" for name in USUAL if (value := getattr(self, name)) != USUAL[name]]
        return " ".join(["python -m windrow.lab.virtual --seed", str(self.seed), *sizes, *more])


_OWN = ("seed", "strategy", "kind", "record")
USUAL = {name: field.default for name, field in VirtualScenario.__dataclass_fields__.items() if name not in _OWN}


@dataclass
class Ending:
    """What came of it."""

    scenario: VirtualScenario
    met: dict[str, int]
    run_s: int
    managers: int
    records: int
    violation: str = ""
    transfers: int = 0
    story: dict[str, Any] = field(default_factory=dict)


def braid(lanes: int, levels: int, workdir: Path, chance: random.Random, replicas: int = 1) -> Runnable:
    """Tasks of which each needs two of the level before; each makes a file, in place or elsewhere."""
    tasks, steps = [], []
    for level in range(levels):
        for lane in range(lanes):
            near = dict.fromkeys((lane, (lane + 1) % lanes)) if level else ()
            parents = tuple(f"t{level - 1}-{other}" for other in near)
            name, needs = f"t{level}-{lane}", tuple(f"{parent}.out" for parent in parents)
            made = f"{name}.out"
            tasks.append(Task(name, chance.choice([20, 60, 200]), parents=parents, inputs=needs, outputs=(made,)))
            elsewhere = ((1, 0, 0),) if chance.random() < 0.5 else ()
            retries = chance.choice([0, 0, 1])
            wanted = 1 + (level + lane) % replicas
            command = "make", f"{name}.out"
            steps.append(Step(command, str(workdir), retries=retries, elsewhere=elsewhere, replicas=wanted))
    return Runnable(Workflow.from_tasks("braid", tasks), tuple(steps))


def play(scenario: VirtualScenario, *, tells: bool = False) -> Ending:
    """Play it. What breaks an invariant is in the answer, with the command that plays it again."""
    chance = random.Random(scenario.seed)
    with scratch() as folder:
        (folder / "work").mkdir()
        runnable = braid(scenario.lanes, scenario.levels, folder / "work", chance, scenario.replicas)
        if scenario.temporary or scenario.space:
            files = [replace(f, keep=chance.choice([False, False, None])) for f in runnable.workflow.files]
            files = [replace(f, size_bytes=chance.choice([0, 1, 5, 9]) * scenario.space) for f in files]
            runnable = Runnable(runnable.workflow.changed(files=files), runnable.steps)
        if scenario.checkpoints:  # asked for every 40 s, or only because of an end
            steps = [
                replace(step, checkpoint=Checkpoint((f"state-{n}-*",), "USR1", (10.0, 30.0)[n % 3 > 0], 20.0 * (n & 2)))
                for n, step in enumerate(runnable.steps)
            ]
            runnable = Runnable(runnable.workflow, tuple(steps))
        expected = runnable.workflow.runtime_s.tolist()
        takes = [max(1, round(e * chance.choice([0.5, 0.9, 1.0, 1.0, 1.3]))) for e in expected]
        nodes = chance.choice([3, 6, 12])
        horizon_s = int(2 * sum(expected) / nodes) + 200
        downs = Failures(3.0 * horizon_s, 300.0) if scenario.faults and chance.random() < 0.3 else Failures()
        if scenario.shape:
            downs = Failures(horizon_s / 2, 300.0, scenario.shape)
        queue = empty_queue(nodes, downs.draw(scenario.seed, nodes, BEGIN_S, BEGIN_S + 2 * horizon_s))
        queue.memory_s = chance.choice([30.0, 300.0, inf])
        world = World(queue, takes.__getitem__)
        strategy = scenario.strategy or chance.choice(STRATEGIES)
        begins_with, joins = _parts(runnable, horizon_s, random.Random(f"growth {scenario.seed}"))
        if scenario.space:
            begins_with, joins, strategy = runnable, [], "giant"
        far, copies = folder / "far" if scenario.far else None, scenario.copies
        run = VirtualRun(folder / "run", world, begins_with, strategy, additions=joins, copies=copies, far=far)
        run.rules = CopyRules(scenario.reliability, bool(scenario.speculate))
        run.scratch = str(folder / "disks") if scenario.local else ""
        limit_s = _LIMIT_S if scenario.checkpoints else None
        run.site = replace(run.site, hazard=Hazard.of_mean(horizon_s / 2), max_request_s=limit_s)
        if scenario.kind:
            pick = chance.randrange(1000)
            world.faults = [Fault(Kind(scenario.kind), inf, scenario.record, pick, chance.choice([5, 30, 120, 600]))]
        else:
            also = (*[Kind.NOTICED] * scenario.checkpoints, *LOCAL * scenario.local)
            world.faults = draw(scenario.seed, horizon_s, BEGIN_S, scenario.faults, also)
        if scenario.space:
            demand, workflow = demand_of(runnable.workflow), runnable.workflow
            world.limit = demand.peak(demand.order()) + chance.choice([0, 3, 20])
            if any(fault.kind in _LOSING for fault in world.faults):  # what is made again needs room beside all else
                world.limit = sum(f.size_bytes for f in workflow.files)
            world.sizes = {str(folder / "work" / f.id): f.size_bytes for f in workflow.files}
            limit = SpaceLimit(world.limit, chance.choice(ORDERS))
            run.work = Work(workflow, whole_seconds(workflow), run.site, space=limit)
        drawn, violation = list(world.faults), ""
        try:
            run.survive()
        except Exception as error:  # noqa: BLE001  (what ships may break in any way; here it is told)
            broken = error if isinstance(error, Violation) else "".join(traceback.format_exception(error))
            violation = f"{broken}; to play it again: {scenario.command}"
        records = run.records()
        story = _story(run, drawn, strategy) if tells else {}
        run.close()
        counts = world.now_s - BEGIN_S, run.deaths + 1, len(records)
        return Ending(scenario, dict(world.met), *counts, violation, world.transfers, story)


def _parts(runnable: Runnable, horizon_s: int, chance: random.Random) -> tuple[Runnable, list[tuple[int, TasksAdded]]]:
    """In one run of three, not all tasks are there from the beginning: some join it, while it runs or later."""
    count = len(runnable.workflow)
    cuts = (
        sorted({chance.randint(1, count - 1) for _ in range(chance.randint(1, 3))}) if chance.random() < 1 / 3 else []
    )
    times = sorted(BEGIN_S + chance.randrange(2 * horizon_s) for _ in cuts)
    parts = [record_of(runnable, first, end) for first, end in pairwise((0, *cuts, count))]
    base = Workflow.from_tasks(runnable.workflow.name, parts[0].tasks, parts[0].files)
    joins = [
        (at_s, TasksAdded(at_s, f"join-{n}", part)) for n, (at_s, part) in enumerate(zip(times, parts[1:], strict=True))
    ]
    return Runnable(base, tuple(parts[0].steps)), joins


def play_all(scenarios: Sequence[VirtualScenario], workers: int = 1, *, tells: bool = False) -> Iterator[Ending]:
    """All of these, in their order, whatever the number of processes that play them."""
    if workers == 1 or tells:
        yield from (play(scenario, tells=tells) for scenario in scenarios)
        return
    from windrow.lab.campaign.workers import worker_processes  # noqa: PLC0415  (with all that campaigns need)

    with worker_processes(workers) as pool:
        yield from pool.map(play, scenarios, chunksize=10)


def every_record(first: VirtualScenario) -> list[VirtualScenario]:
    """Each kind of fault at each record that the journal of this run has when nothing goes wrong; and at each copy."""
    usual = play(replace(first, kind=Kind.NODE, record=None))
    kinds = [kind for kind in Kind if kind not in LOCAL or first.local]
    counts = {kind: usual.transfers if kind is Kind.COPYING else usual.records for kind in kinds}
    return [replace(first, kind=kind, record=record) for kind in kinds for record in range(1, counts[kind] + 1)]


def _story(run: VirtualRun, drawn: list[Fault], strategy: str) -> dict[str, Any]:
    """What happened, for a person to read."""
    story, begin_s = run.story(), BEGIN_S

    def when(at_s: float | None) -> int | None:
        return None if at_s is None else round(at_s - begin_s)

    return {
        "strategy": strategy,
        "nodes": run.world.queue.cluster.nodes,
        "tasks": len(story.tasks),
        "faults": [
            {"kind": f.kind, "at_s": when(f.at_s) if f.at_record is None else None, "record": f.at_record}
            for f in sorted(drawn, key=lambda f: (f.at_s, f.at_record or 0))
        ],
        "jobs": [
            {
                "job": number,
                "id": job.id,
                "nodes": job.plan.nodes,
                "tasks": len(job.plan.tasks),
                "planned_s": when(job.planned_s),
                "started_s": when(job.started_s),
                "ended_s": when(job.ended_s),
                "state": job.state,
                "note": job.note,
            }
            for number, job in story.jobs.items()
        ],
        "attempts": sum(len(task.attempts) for task in story.tasks),
    }
