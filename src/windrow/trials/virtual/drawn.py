"""Runs drawn from a seed: a braid of tasks, a cluster, what tasks take, and what goes wrong.

Which strategy, how many nodes, which tasks write in place and how long the queue remembers are
drawn as well. The same seed gives the same run, step by step, on every machine.
"""

import json
import random
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from windrow.agent.order import absolute
from windrow.app.strategies import find_strategy
from windrow.manager.inbox import LATE_FILES_S
from windrow.manager.terms import CopyRules
from windrow.model import Runnable, Step, Task, Workflow
from windrow.model.checkpoint import Checkpoint
from windrow.model.failures import Failures
from windrow.model.hazard import Hazard
from windrow.model.parts import Sharing
from windrow.model.resources import NodeShape
from windrow.model.rules import Rules, Take
from windrow.records.runnable_file import record_of
from windrow.storage.admission import ORDERS
from windrow.storage.demand import SpaceLimit, demand_of
from windrow.story.events import EXPANDS, TasksAdded
from windrow.strategies import Work, whole_seconds
from windrow.strategies.base import Decision, Strategy, View
from windrow.trials.virtual.bounds import Bounds
from windrow.trials.virtual.causes import (
    CauseWatch,
    check_attempts,
    check_failed,
    check_limits,
    check_refused,
    check_saved,
    check_sent_back,
    check_tries,
)
from windrow.trials.virtual.content import earlier, perfect
from windrow.trials.virtual.counted import with_zeros
from windrow.trials.virtual.crew import note_of
from windrow.trials.virtual.disk import scratch
from windrow.trials.virtual.faults import draw, draw_few
from windrow.trials.virtual.invariants import Violation
from windrow.trials.virtual.kinds import FAR, LOCAL, ONLY_FAR, ONLY_LOCAL, USERS, WORSE, Fault, Kind
from windrow.trials.virtual.reuse import check_kept, continued
from windrow.trials.virtual.shell import VirtualRun
from windrow.trials.virtual.world import BEGIN_S, World, empty_queue

_LIMIT_S = 150  # of jobs, if tasks have checkpoints; some of these take 260 s
_LOSING = (
    Kind.FILE,
    Kind.CUT_OFF,
    Kind.FORGOTTEN,
)  # outputs of finished tasks may have to be made again
_STOPS = 0.1
"""Of tasks with rules, those after whose failure nothing more starts."""
_SAID = 0.5
"""Of runs that grow, those that do because tasks say so."""
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
    """Above 0: nodes fail all the time, with Weibull lives of this shape; else sometimes, with
    exponential ones."""
    checkpoints: int = 0
    """1: tasks have checkpoints, and jobs are shorter than some of them."""
    temporary: int = 0
    """1: most files are not to be kept."""
    space: int = 0
    """1: besides, what they take is limited, to little more than what is needed at least; one
    strategy goes with it."""

    local: int = 0
    """1: jobs use disks of their nodes."""
    rules: int = 0
    """1: tasks take of limits, some are more urgent, some come after others whatever becomes of
    them, and some ask for more memory at their next try."""
    parts: int = 0
    """1: jobs ask for parts of nodes, and who is done takes the tasks of a job that has not
    started."""

    users: int = 0
    """1: people cancel tasks, change them and run them again, and hold the run open."""

    needs: int = 0
    """1: nodes have several cores, and tasks need unlike parts of them, and have time limits."""

    edited: int = 0
    """1: when the run is complete its workflow is changed, and another run continues it."""

    worse: int = 0
    """1: machines fail and forget, and what goes wrong may last."""

    few: int = 0
    """1: what goes wrong is of a few kinds, and copies may be slow."""

    surely: str = ""
    """Besides, a fault of this kind strikes."""

    only: tuple[int, ...] | None = None
    """If it is given: of the faults drawn, in their order, these alone."""

    @property
    def command(self) -> str:
        """What plays it again."""
        asked = {
            "strategy": self.strategy,
            "kind": self.kind,
            "record": self.record,
            "surely": self.surely,
        }
        more = [
            f"--{name} {json.dumps(value)}"
            for name, value in asked.items()
            if value not in ("", None)
        ]
        sizes = [
            f"--{name} {value}" for name in USUAL if (value := getattr(self, name)) != USUAL[name]
        ]
        has = ",".join(name for name, feature in FEATURES.items() if getattr(self, feature.field))
        more += [f"--with {has}"] if has else []
        more += [] if self.only is None else [f"--only {','.join(map(str, self.only)) or 'none'}"]
        return " ".join(["python -m windrow.trials.virtual --seed", str(self.seed), *sizes, *more])


class Feature(NamedTuple):
    """What some worlds have: the scenario's field for it, and what it means."""

    field: str
    meaning: str


FEATURES: Mapping[str, Feature] = {
    "far": Feature("far", "a second place, with files of its own, for every second task"),
    "disks": Feature("local", "nodes have disks, on which jobs keep files"),
    "parts": Feature(
        "parts", "jobs have parts of nodes, and take the tasks of others that have not started"
    ),
    "checkpoints": Feature("checkpoints", "tasks write some, and jobs are shorter than some tasks"),
    "temporary": Feature("temporary", "most files are deleted at their last reader"),
    "space": Feature("space", "what files take is limited"),
    "rules": Feature("rules", "tasks take of limits, are urgent, or need not wait for success"),
    "late-copies": Feature("speculate", "tasks that are late get copies"),
    "users": Feature(
        "users", "people cancel, change and repeat tasks, and hold the run open for more"
    ),
    "needs": Feature("needs", "tasks need unlike parts of nodes, and have time limits"),
    "edited": Feature("edited", "a changed workflow is continued when its run is complete"),
    "worse": Feature(
        "worse",
        "machines fail and forget, programs and queues do what they should not, and what goes "
        "wrong may last",
    ),
    "few": Feature("few", "what goes wrong is of few kinds, again and again"),
}
"""By the name that a person gives."""
_OWN = (
    "seed",
    "strategy",
    "kind",
    "record",
    "surely",
    "only",
    *(one.field for one in FEATURES.values()),
)
USUAL = {
    name: field.default
    for name, field in VirtualScenario.__dataclass_fields__.items()
    if name not in _OWN
}


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
    exercised: dict[str, int] = field(default_factory=dict)
    """How often each invariant was put to the test."""
    drawn: int = 0
    """How many faults could strike."""


def _making(made: tuple[str, ...], workdir: Path, chance: random.Random, replicas: int) -> Step:
    """The step that makes these files, in place or elsewhere."""
    places = tuple((1 + place, 0, place) for place in range(len(made)))
    elsewhere = places if chance.random() < 0.5 else ()
    retries = chance.choice([0, 0, 1])
    command = ("make", *made)
    return Step(command, str(workdir), retries=retries, elsewhere=elsewhere, replicas=replicas)


def braid(
    lanes: int,
    levels: int,
    workdir: Path,
    chance: random.Random,
    replicas: int = 1,
    *,
    has_more: bool = False,
) -> Runnable:
    """Tasks of which each needs two of the level before; each makes a file, in place or elsewhere.

    `has_more`: one in four makes two files, of which one task in two also reads the second.
    """
    tasks = []
    steps = []

    def made_by(level: int, lane: int) -> tuple[str, ...]:
        name = f"t{level}-{lane}"
        makes_more = has_more and (level * lanes + lane) % 4 == 1
        return (f"{name}.out", f"{name}.more") if makes_more else (f"{name}.out",)

    for level in range(levels):
        for lane in range(lanes):
            near = tuple(dict.fromkeys((lane, (lane + 1) % lanes))) if level else ()
            read = [made_by(level - 1, other)[: 1 + (lane + 1) % 2] for other in near]
            task = Task(
                f"t{level}-{lane}",
                chance.choice([20, 60, 200]),
                parents=tuple(f"t{level - 1}-{other}" for other in near),
                inputs=tuple(name for names in read for name in names),
                outputs=made_by(level, lane),
            )
            tasks.append(task)
            steps.append(_making(task.outputs, workdir, chance, 1 + (level + lane) % replicas))
    return Runnable(Workflow.from_tasks("braid", tasks), tuple(steps))


def play(scenario: VirtualScenario, *, tells: bool = False) -> Ending:
    """Play it. What breaks an invariant is in the answer, with the command that plays it again."""
    chance = random.Random(scenario.seed)
    with scratch() as folder:
        (folder / "work").mkdir()
        runnable = _workflow(scenario, folder / "work", chance)
        run = _run(scenario, runnable, folder, chance)
        drawn = list(run.world.faults)
        violation = _survived(run, scenario)
        story = _story(run, drawn) if tells else {}
        counts = run.world.now_s - BEGIN_S, run.deaths + 1, len(run.records())
        run.close()
        ending = Ending(scenario, dict(run.world.met), *counts, violation, run.world.transfers)
        exercised = with_zeros(run.world.exercised)
        return replace(ending, story=story, exercised=exercised, drawn=len(drawn))


def _survive(run: VirtualRun) -> None:
    """Let it come to its end, and look at what it has told."""
    run.survive()
    check_failed(run, run.records())
    check_tries(run, run.records())
    check_limits(run)
    check_saved(run)
    check_attempts(run, run.records())
    check_sent_back(run, run.records())
    check_refused(run, run.records(), 1 if run.bounds is None else run.bounds.copies)


def _continue(first: VirtualRun, scenario: VirtualScenario) -> None:
    """Let a run of the changed workflow continue it, with a few faults of its own."""
    chance = random.Random(f"edited {scenario.seed}")
    run = continued(first, first.path.with_name("again"), chance)
    run.each_look = CauseWatch(run)
    horizon_s = int(sum(run.runnable.workflow.runtime_s)) + 200
    run.world.faults = draw(scenario.seed, horizon_s, BEGIN_S, min(3, scenario.faults))
    try:
        _survive(run)
        check_kept(run)
    finally:
        run.close()
        first.world.met.update(run.world.met)
        first.world.exercised.update(run.world.exercised)


def _survived(run: VirtualRun, scenario: VirtualScenario) -> str:
    """What this run breaks, whatever breaks it, and how to play it again; empty if nothing."""
    try:
        _survive(run)
        if scenario.edited:
            _continue(run, scenario)
    except Violation as violation:
        broken = str(violation)
    except Exception as error:  # noqa: BLE001  (what ships may break in any way)
        broken = "".join(traceback.format_exception(error))
    else:
        return ""
    return f"{broken}; to play it again: {scenario.command}"


def _workflow(scenario: VirtualScenario, workdir: Path, chance: random.Random) -> Runnable:
    """The braid, with files that are not to be kept and checkpoints if the scenario has them."""
    runnable = braid(
        scenario.lanes,
        scenario.levels,
        workdir,
        chance,
        scenario.replicas,
        has_more=bool(scenario.worse),
    )
    if scenario.temporary or scenario.space:
        runnable = _some_kept(runnable, chance, is_sized=bool(scenario.space))
    if scenario.checkpoints:
        runnable = _with_checkpoints(runnable)
    if scenario.needs:
        are_parts = bool(scenario.parts)
        chances = random.Random(f"needs {scenario.seed}")
        has_disks = bool(scenario.local)
        runnable = _with_needs(runnable, chances, are_parts=are_parts, has_disks=has_disks)
    if scenario.rules:
        runnable = _with_rules(runnable, random.Random(f"rules {scenario.seed}"))
    return runnable


def _with_rules(runnable: Runnable, chance: random.Random) -> Runnable:
    """Two limits, of which some tasks take; and so on."""
    most = {"few": chance.randint(1, 3), "more": chance.randint(2, 6)}
    tasks = list[Task]()
    ends = random.Random(chance.getrandbits(32))
    for number, task in enumerate(runnable.workflow):
        takes = tuple(
            Take(name, chance.randint(1, min(2, there)), there)
            for name, there in most.items()
            if chance.random() < 0.4
        )
        before = [other.id for other in tasks[-8:] if other.id not in task.parents]
        loose = tuple(chance.sample(before, 1)) if before and chance.random() < 0.3 else ()
        rules = Rules(takes, chance.choice([0, 0, 5, -5]), loose)
        if ends.random() < _STOPS:
            rules = replace(rules, stops=True)
        if number % 3 == 0:
            rules = replace(rules, memories=(1 << 20, 2 << 20))
        tasks.append(
            replace(
                task,
                parents=(*task.parents, *loose),
                memory_bytes=rules.memory_bytes(0),
                rules=rules,
            )
        )
    workflow = Workflow.from_tasks(runnable.workflow.name, tasks, runnable.workflow.files)
    return Runnable(workflow, runnable.steps)


def _some_kept(runnable: Runnable, chance: random.Random, *, is_sized: bool) -> Runnable:
    """Two of three files are not to be kept; if `is_sized`, files take space."""
    keep = [chance.choice([False, False, None]) for _ in runnable.workflow.files]
    sizes = [chance.choice([0, 1, 5, 9]) * is_sized for _ in runnable.workflow.files]
    files = [
        replace(file, keep=kept, size_bytes=size)
        for file, kept, size in zip(runnable.workflow.files, keep, sizes, strict=True)
    ]
    return Runnable(runnable.workflow.changed(files=files), runnable.steps)


def _with_checkpoints(runnable: Runnable) -> Runnable:
    """Every task has checkpoints, asked for every 40 s or only because of an end."""
    steps = []
    for number, step in enumerate(runnable.steps):
        notice_s = (10.0, 30.0)[number % 3 > 0]
        every_s = 20.0 * (number & 2)
        kept = Checkpoint((f"state-{number}-*",), "USR1", notice_s, every_s)
        steps.append(replace(step, checkpoint=kept))
    return Runnable(runnable.workflow, tuple(steps))


def _downs(scenario: VirtualScenario, horizon_s: int, chance: random.Random) -> Failures:
    """How often nodes fail."""
    downs = Failures()
    if scenario.faults and chance.random() < 0.3:
        downs = Failures(3.0 * horizon_s, 300.0)
    if scenario.shape:
        downs = Failures(horizon_s / 2, 300.0, scenario.shape)
    return downs


_SHAPE = NodeShape(cores=4, memory_bytes=8 << 30)
_NEEDS: Sequence[Mapping[str, int]] = (
    *({}, {"cores": 2}, {"cores": 3}, {"cores": 4}, {"nodes": 1}, {"nodes": 2}),
    *({"memory_bytes": 3 << 30}, {"memory_bytes": 6 << 30}, {"cores": 2, "memory_bytes": 5 << 30}),
)


def _with_needs(
    runnable: Runnable, chance: random.Random, *, are_parts: bool, has_disks: bool
) -> Runnable:
    """Tasks need more than a core of their nodes, or whole ones unless jobs have parts; those
    without checkpoints may have limits."""
    workflow = runnable.workflow
    tasks: list[Task] = []
    steps = []
    for number, step in enumerate(runnable.steps):
        wants: Any = chance.choice([need for need in _NEEDS if not (are_parts and "nodes" in need)])
        tasks.append(replace(workflow.task(number), **wants))
        limit_s = 0.0
        if not has_disks and step.checkpoint is None and chance.random() < 0.5:
            limit_s = chance.choice([1.5, 3.0]) * tasks[-1].runtime_s
        steps.append(replace(step, limit_s=limit_s))
    changed = Workflow.from_tasks(workflow.name, tasks, workflow.files)
    return Runnable(changed, tuple(steps))


def _world(
    scenario: VirtualScenario,
    runnable: Runnable,
    horizon_s: int,
    nodes: int,
    takes: list[int],
    chance: random.Random,
) -> World:
    """The cluster, how long its queue remembers, and what an earlier run left."""
    downs = _downs(scenario, horizon_s, chance)
    end_s = BEGIN_S + 2 * horizon_s
    failures = downs.draw(scenario.seed, nodes, BEGIN_S, end_s)
    queue = empty_queue(nodes, failures, _SHAPE if scenario.needs else None)
    queue.memory_s = chance.choice([30.0, 300.0, inf])
    world = World(queue, takes.__getitem__, expected=dict(perfect(runnable)))
    world.rules = dict(runnable.workflow.rules)
    world.loose = {
        task: runnable.workflow.loose_parents(task)
        for task, one in world.rules.items()
        if one.loose
    }
    world.wishes.whole = runnable
    world.limits_s = {
        task: step.limit_s for task, step in enumerate(runnable.steps) if step.limit_s
    }
    world.chance.seed(f"crashes {scenario.seed}")
    if not scenario.space:
        world.earlier = _left_before(runnable, random.Random(f"earlier {scenario.seed}"))
    world.of_user = _of_user(runnable, random.Random(f"user {scenario.seed}"))
    return world


def _describe_site(
    run: VirtualRun, scenario: VirtualScenario, horizon_s: int, strategy: str
) -> None:
    limit_s = _LIMIT_S if scenario.checkpoints else None
    run.site = replace(run.site, hazard=Hazard.of_mean(horizon_s / 2), max_request_s=limit_s)
    if scenario.parts:
        run.site = replace(run.site, sharing=Sharing(core_bytes=1 << 30, even_bytes=1 << 30))
        run.strategy = Taking(find_strategy(strategy))


def _pace_copies(world: World, pace: random.Random) -> None:
    """How long files take to nodes, and between places."""
    world.copies_s = pace.choice([1.0, 3.0, 3.0, 20.0, 90.0])
    world.move_s = pace.choice([2, 2, 10])


def _run(
    scenario: VirtualScenario, runnable: Runnable, folder: Path, chance: random.Random
) -> VirtualRun:
    """The run of this workflow in a world that is drawn for it."""
    expected = runnable.workflow.runtime_s.tolist()
    takes = [max(1, round(e * chance.choice([0.5, 0.9, 1.0, 1.0, 1.3]))) for e in expected]
    nodes = chance.choice([3, 6, 12])
    horizon_s = int(2 * sum(expected) / nodes) + 200
    world = _world(scenario, runnable, horizon_s, nodes, takes, chance)
    strategy = scenario.strategy or chance.choice(STRATEGIES)
    begins_with, joins = _parts(runnable, horizon_s, random.Random(f"growth {scenario.seed}"))
    expansions: dict[str, TasksAdded] = {}
    if scenario.space:
        begins_with = runnable
        joins = []
        strategy = "giant"
    elif (makers := random.Random(f"makers {scenario.seed}")).random() < _SAID:
        begins_with, expansions = _said(begins_with, [one for _, one in joins], makers)
        joins = []
    far = folder / "far" if scenario.far else None
    run = VirtualRun(folder / "run", world, begins_with, strategy, additions=joins, far=far)
    run.expansions = expansions
    run.copies = scenario.copies
    run.rules = CopyRules(scenario.reliability, bool(scenario.speculate))
    run.scratch = str(folder / "disks") if scenario.local else ""
    _describe_site(run, scenario, horizon_s, strategy)
    run.bounds = _bounds(scenario, takes)
    if scenario.worse or scenario.kind in WORSE:  # the folder's file system may show things late
        run.patience_s = LATE_FILES_S
        run.small_bytes = scenario.seed % 2
        world.commits_early = bool(run.small_bytes)
    world.faults = _faults(scenario, horizon_s, chance)
    if scenario.few:
        _pace_copies(world, random.Random(f"pace {scenario.seed}"))
    run.each_look = CauseWatch(run)
    if scenario.space:
        _limit_space(run, runnable, folder / "work", chance)
    return run


@dataclass(frozen=True)
class Taking:
    """A strategy whose jobs take the tasks of those that have not started."""

    strategy: Strategy

    @property
    def name(self) -> str:
        """That of the strategy."""
        return self.strategy.name

    def decide(self, view: View) -> Decision:
        """Its jobs, which do so."""
        decision = self.strategy.decide(view)
        return replace(decision, jobs=tuple(replace(job, takes=True) for job in decision.jobs))


def _faults(scenario: VirtualScenario, horizon_s: int, chance: random.Random) -> list[Fault]:
    """What goes wrong: the one fault that is asked for, or what is drawn."""
    if scenario.kind:
        pick = chance.randrange(1000)
        length_s = chance.choice([5, 30, 120, 600])
        return [Fault(Kind(scenario.kind), inf, scenario.record, pick, length_s)]
    also = [Kind.NOTICED] * scenario.checkpoints
    also += LOCAL * scenario.local
    also += USERS * scenario.users
    also += FAR * scenario.far
    also += [kind for kind in WORSE if may_strike(kind, scenario)] * scenario.worse
    drawing = draw_few if scenario.few else draw
    drawn = drawing(scenario.seed, horizon_s, BEGIN_S, scenario.faults, also)
    if scenario.surely:
        sure = random.Random(f"surely {scenario.seed}")
        at_s = BEGIN_S + sure.randrange(horizon_s)
        length_s = sure.choice([5, 30, 120, 600])
        drawn.append(Fault(Kind(scenario.surely), at_s, None, sure.randrange(1000), length_s))
    if scenario.only is None:
        return drawn
    return [fault for number, fault in enumerate(drawn) if number in scenario.only]


def may_strike(kind: Kind, scenario: VirtualScenario) -> bool:
    """Whether such a run has what this fault needs."""
    if kind in ONLY_FAR:
        return bool(scenario.far)
    return kind not in ONLY_LOCAL or bool(scenario.local)


def _bounds(scenario: VirtualScenario, takes: Sequence[int]) -> Bounds:
    """How much work the run needs at most: a task with checkpoints may end at each of them."""
    longest_s = 5 * max(takes)  # a task may take this many times longer than was expected
    copies = max(scenario.copies, scenario.replicas, 2 if scenario.speculate else 1)
    if scenario.reliability:
        copies = max(copies, 4)
    tries = 2 + (longest_s // 20 if scenario.checkpoints else 0)
    pieces = 1 + (longest_s // (_LIMIT_S // 2) if scenario.checkpoints else 0)
    return Bounds(scenario.lanes * scenario.levels, copies, tries, longest_s, pieces)


def _limit_space(run: VirtualRun, runnable: Runnable, workdir: Path, chance: random.Random) -> None:
    """Files may take little more than they must; all that they can if some may be lost."""
    world = run.world
    workflow = runnable.workflow
    demand = demand_of(workflow)
    world.limit = demand.peak(demand.order()) + chance.choice([0, 3, 20])
    if any(fault.kind in _LOSING for fault in world.faults):  # made again, beside all else
        world.limit = sum(f.size_bytes for f in workflow.files)
    world.sizes = {str(workdir / f.id): f.size_bytes for f in workflow.files}
    limit = SpaceLimit(world.limit, chance.choice(ORDERS))
    run.work = Work(workflow, whole_seconds(workflow), run.site, space=limit)


def _of_user(runnable: Runnable, chance: random.Random) -> dict[str, str]:
    """In one run of three, files of the user have names that tasks give to files of theirs."""
    if chance.random() > 1 / 3:
        return {}
    found = dict[str, str]()
    for task, step in enumerate(runnable.steps):
        name = note_of(task)
        if step.checkpoint is not None and chance.random() < 0.5:
            name = f"state-{task}-2"
        if chance.random() < 0.5:
            path = Path(step.workdir, name)
            found[str(path)] = "of the user"
            path.write_text(found[str(path)])
    return found


def _left_before(runnable: Runnable, chance: random.Random) -> dict[str, str]:
    """In one run of three, files of an earlier run lie where some results are to be; by path."""
    if chance.random() > 1 / 3:
        return {}
    found = dict[str, str]()
    for task in range(len(runnable.workflow)):
        for path in absolute(runnable.steps[task].workdir, runnable.workflow.task(task).outputs):
            if chance.random() < 0.5:
                found[path] = earlier(Path(path).name)
                Path(path).write_text(found[path])
    return found


def _parts(
    runnable: Runnable, horizon_s: int, chance: random.Random
) -> tuple[Runnable, list[tuple[int, TasksAdded]]]:
    """In one run of three, not all tasks are there from the beginning: some join it, while it runs
    or later."""
    count = len(runnable.workflow)
    if chance.random() < 1 / 3 and count > 1:
        cuts = sorted({chance.randint(1, count - 1) for _ in range(chance.randint(1, 3))})
    else:
        cuts = []
    times = sorted(BEGIN_S + chance.randrange(2 * horizon_s) for _ in cuts)
    parts = [record_of(runnable, first, end) for first, end in pairwise((0, *cuts, count))]
    base = Workflow.from_tasks(runnable.workflow.name, parts[0].tasks, parts[0].files)
    joins = [
        (at_s, TasksAdded(at_s, f"join-{n}", part))
        for n, (at_s, part) in enumerate(zip(times, parts[1:], strict=True))
    ]
    return Runnable(base, tuple(parts[0].steps)), joins


def _said(
    first: Runnable, joins: Sequence[TasksAdded], chance: random.Random
) -> tuple[Runnable, dict[str, TasksAdded]]:
    """The same parts, each of which joins when a task of the one before says it: the first part,
    and the others by these tasks."""
    workflow = first.workflow
    tasks = [*workflow]
    parts = [tasks, *(join.added.tasks for join in joins)]
    found = {}
    for before, join in zip(parts, joins, strict=False):
        place = chance.randrange(len(before))
        maker = before[place]
        before[place] = replace(maker, rules=replace(maker.rules, expands=maker.outputs[0]))
        found[maker.id] = replace(join, id=f"{EXPANDS}{join.id}", maker=maker.id)
    again = Workflow.from_tasks(workflow.name, tasks, workflow.files)
    return Runnable(again, first.steps), found


def play_all(
    scenarios: Sequence[VirtualScenario], workers: int = 1, *, tells: bool = False
) -> Iterator[Ending]:
    """All of these, in their order, whatever the number of processes that play them."""
    if workers == 1 or tells:
        yield from (play(scenario, tells=tells) for scenario in scenarios)
        return
    from windrow.trials.processes import worker_processes  # noqa: PLC0415  (few need several)

    with worker_processes(workers) as pool:
        yield from pool.map(play, scenarios, chunksize=10)


def every_record(first: VirtualScenario) -> list[VirtualScenario]:
    """Each kind of fault at each record that the journal of this run has when nothing goes wrong;
    and at each copy."""
    usual = play(replace(first, kind=Kind.NODE, record=None))
    kinds = [kind for kind in Kind if may_strike(kind, first)]
    counts = {kind: usual.transfers if kind is Kind.COPYING else usual.records for kind in kinds}
    return [
        replace(first, kind=kind, record=record)
        for kind in kinds
        for record in range(1, counts[kind] + 1)
    ]


def _story(run: VirtualRun, drawn: list[Fault]) -> dict[str, Any]:
    """What happened, for a person to read."""
    story = run.story()
    begin_s = BEGIN_S

    def when(at_s: float | None) -> int | None:
        if at_s is None:
            return None
        return round(at_s - begin_s)

    return {
        "strategy": run.strategy,
        "nodes": run.world.queue.cluster.nodes,
        "tasks": len(story.tasks),
        "faults": [
            {
                "kind": f.kind,
                "at_s": when(f.at_s) if f.at_record is None else None,
                "record": f.at_record,
            }
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
