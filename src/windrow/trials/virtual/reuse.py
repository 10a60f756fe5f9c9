"""A workflow that someone changes when its run is complete, and the run that continues it, in a
world of its own in which the files of the first are.

What stays finished is said by the code that ships (`app.changes`), and must be all that has not
changed and depends on nothing that has. It is not run again, unless its files are gone; what is
changed makes what it makes now.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path

from windrow.agent.order import absolute
from windrow.app.changes import changes
from windrow.model import Runnable, Step
from windrow.story.events import TaskKept, TaskUndone
from windrow.story.journal import Record, RunJournal
from windrow.story.story import Kept
from windrow.trials.virtual.content import content, perfect
from windrow.trials.virtual.counted import Invariant
from windrow.trials.virtual.invariants import Violation
from windrow.trials.virtual.shell import VirtualRun
from windrow.trials.virtual.world import BEGIN_S, World, empty_queue

_CHANGES: tuple[Callable[[Step], Step], ...] = (
    lambda step: replace(step, command=(*step.command, "edited")),
    lambda step: replace(step, env=(*step.env, ("EDITED", "1"))),
)
_SHARE = 0.2
"""Of tasks that are changed."""


def edited(whole: Runnable, chance: random.Random) -> tuple[Runnable, set[int]]:
    """The workflow as someone has changed it, and which tasks are to run again. What a task needs
    may change, too, and runs nothing again."""
    steps = []
    again = set[int]()
    for task, step in enumerate(whole.steps):
        if chance.random() < _SHARE:
            again.add(task)
            steps.append(chance.choice(_CHANGES)(step))
        else:
            steps.append(replace(step, retries=step.retries + chance.randint(0, 1)))
    below = whole.workflow.children.below(again)
    return Runnable(whole.workflow, tuple(steps)), again | below


def continued(first: VirtualRun, folder: Path, chance: random.Random) -> VirtualRun:
    """The run that continues this one, which is complete. Violation if it keeps something else
    than it should."""
    new, kept = _kept(first, chance)
    run = VirtualRun(folder, _world_after(first, new, kept), new, first.strategy)
    run.site = first.site
    run.scratch = first.scratch
    run.small_bytes = first.small_bytes
    run.bounds = first.bounds
    run.patience_s = first.patience_s
    before = asdict(Kept("before", BEGIN_S - 1.0, BEGIN_S))
    records = [Record(TaskKept(BEGIN_S, task), before, float(BEGIN_S)) for task in sorted(kept)]
    with closing(RunJournal.open(run.path / "journal.sqlite", writable=True)) as journal:
        journal.append(records)
    run.world.exercised[Invariant.REUSED] += len(records)
    return run


def _kept(first: VirtualRun, chance: random.Random) -> tuple[Runnable, set[int]]:
    """The workflow as it was changed, and what stays finished of it."""
    whole = first.world.wishes.whole
    assert first.manager is not None
    assert whole is not None
    new, again = edited(whole, chance)
    found = changes(whole, new, first.manager.core.is_done, lambda _: None)
    wrong = set(found.kept) ^ (set(range(len(new.workflow))) - again)
    if wrong or any(now != before for now, before in found.kept.items()):
        raise Violation(f"of an edited workflow {found.kept} are kept, and {again} are to run")
    return new, set(found.kept)


def _world_after(first: VirtualRun, new: Runnable, kept: Collection[int]) -> World:
    """A world in which the files of the first run are."""
    before = first.world
    queue = empty_queue(before.queue.cluster.nodes, shape=before.queue.shape)
    takes = new.workflow.runtime_s.tolist()
    world = World(queue, takes.__getitem__, expected=dict(perfect(new)))
    world.of_user = before.of_user
    world.limits_s = before.limits_s
    world.wishes.whole = new
    world.rules = dict(new.workflow.rules)
    for task, step in enumerate(new.steps):
        for path in absolute(step.workdir, new.workflow.task(task).outputs):
            _note_file(world, path, is_kept=task in kept)
    return world


def _note_file(world: World, path: str, *, is_kept: bool) -> None:
    """What the first run has left of an output."""
    text = content(path)
    if text is None:  # it was not to be kept, or was on nodes alone
        world.deleted.add(Path(path).name)
        world.missing.add(Path(path).name)
    elif is_kept:
        world.made.add(path)
    else:
        world.earlier[path] = text
        world.recorded.add(path)


def check_kept(run: VirtualRun) -> None:
    """What was kept of the first run has not run again, unless a file of it was gone."""
    records = run.records()
    kept = {record.event.task for record in records if isinstance(record.event, TaskKept)}
    undone = Counter(
        record.event.task for record in records if isinstance(record.event, TaskUndone)
    )
    again = {task for task in kept if run.world.started[task] and not undone[task]}
    if again:
        raise Violation(f"tasks {sorted(again)} were kept, and have run again")
