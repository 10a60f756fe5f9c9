"""Going on with a run whose workflow file has changed: a new run continues the old one.

A run never changes: it has one workflow, and one journal of what happened. So if the file says
something else now, NAME-2 is made, in which tasks that stay finished (app/changes.py) are
recorded as kept, and NAME-1 is marked as continued. What NAME-1 still has in the queue is stopped
first, and what it finished is taken in.

Rule: the new run is whole before the old one is marked, both under the old run's lock; a process
that dies in between leaves either the old run as it was, or a new one that says whom it continues.
"""

import stat
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from windrow.app import live_runs
from windrow.app.changes import Changes, changes
from windrow.app.execute import Prepared, drive, managed, prepare, start_run
from windrow.app.relocating import relocate
from windrow.app.runs import RunPaths, RunView, all_runs, facts_of, find_own_run, grown
from windrow.app.task_names import chosen_tasks
from windrow.errors import InputError, UserError, WindrowError
from windrow.formats import read_runnable as read_workflow_file
from windrow.model import Runnable, WorkflowError
from windrow.records.contents import Contents
from windrow.records.lock import RunLock
from windrow.records.runnable_file import RunnableRecord, made_files, outside_inputs
from windrow.storage.lifetimes import without_intermediate
from windrow.story import events as e
from windrow.story.journal import Record, RunJournal
from windrow.story.lost_files import LostFile, lost_files
from windrow.story.states import AttemptState, TaskState
from windrow.story.story import Addition, Kept, RunStory

_ASKED = "requested by windrow retry"


@dataclass(frozen=True)
class Standing:
    """A run beside its workflow file as it is now. Without `changes` the file cannot be read, and
    `unread` says why."""

    told: RunView
    changes: Changes | None
    lost: tuple[LostFile, ...] = ()
    """Finished tasks that would run again because files are gone; numbered as in the file, if
    that has changed."""
    unread: str = ""
    added: Sequence[Addition] = ()
    """What was added to it, and stays."""
    is_moved: bool = False
    """Whether its project is elsewhere now, so that a new run has to continue it."""

    @property
    def is_same(self) -> bool:
        """Whether the run can continue as it is."""
        if self.is_moved and self.changes is not None and not self._is_done:
            return False
        return self.changes is None or self.changes.is_same

    @property
    def _is_done(self) -> bool:
        assert self.changes is not None
        return self.changes.is_same and self.told.story.is_complete and not self.lost

    @property
    def to_run(self) -> int:
        """How many tasks would run now."""
        if self.changes is not None and not self.is_same:
            return self.changes.to_run + len(self.lost)
        story = self.told.story
        out = sum(map(story.count, (TaskState.FINISHED, TaskState.CANCELLED, TaskState.SKIPPED)))
        return len(story.tasks) - out + len(self.lost)

    @property
    def is_up_to_date(self) -> bool:
        """Whether there is nothing to do."""
        story = self.told.story
        is_done = self.to_run == 0 and not story.elsewhere and not story.unread_makers
        return self.is_same and is_done


def standing(told: RunView, accept: Sequence[str] = (), again: Iterable[str] = ()) -> Standing:
    """How the run stands beside its file. Nothing is changed. `accept`: patterns of tasks whose
    results are taken as they are. `again`: ids of tasks that are to run again. UserError if a
    pattern means no task."""
    move = relocate(told)
    workflow = told.runnable.workflow
    accepted = {workflow.ids[n] for n in chosen_tasks(workflow, accept, told.paths.name)}
    here = move.path if move else str
    found = _standing(told, here, accepted.__contains__, dict.fromkeys(again, _ASKED))
    return replace(found, is_moved=move is not None)


def _standing(
    told: RunView,
    here: Callable[[str], str],
    accepts: Callable[[str], bool],
    wanted: Mapping[str, str],
) -> Standing:
    if told.facts.request.source:  # it has none, and changes by additions alone
        return Standing(told, None, _lost(told), added=told.story.additions)
    file = told.facts.request.workflow
    try:
        read = read_workflow_file(file, told.facts.request.values)
        if told.facts.request.delete_intermediate:
            read = replace(read, workflow=without_intermediate(read.workflow))
        return _beside(
            told, read, Contents(told.paths.inputs, told.paths.hashes, here), accepts, wanted
        )
    except WorkflowError as error:
        problem = f"the tasks added to {told.paths.name} no longer fit the workflow: {error}"
        why = str(InputError(file, problem))
    except WindrowError as error:
        why = str(error)
    return Standing(told, None, _lost(told), why, added=told.story.additions)


def _beside(
    told: RunView,
    read: Runnable,
    contents: Contents,
    accepts: Callable[[str], bool],
    wanted: Mapping[str, str],
) -> Standing:
    """The run beside what its file says. Tasks that were added in the name of one that runs again
    go; it says what comes in their place."""
    story = told.story
    made = made_files(told.runnable)
    out: set[str] = set(wanted)  # tasks of which nothing stays that belongs to them
    while True:
        added = _staying(story.additions, read, out)
        new = grown(read, [*(one.event for one in added), *_changes_of(story, read, added)])
        found = changes(
            told.runnable,
            new,
            lambda task: story.tasks[task].state is TaskState.FINISHED,
            lambda task: _changed(told, task, made, contents),
            lambda same: _planned(told, same, len(read.workflow)),
            accepts,
            wanted,
        )
        lost = _lost(told)
        if not found.is_same:
            left = [task for task in range(len(new.workflow)) if task not in found.kept]
            lost = tuple(lost_files(found.runnable, left, found.kept.__contains__))
        makers = {one.event.maker for one in added} - {""}
        ids = (told.runnable if found.is_same else new).workflow.ids
        undone = {ids[one.maker] for one in lost} & makers
        wanted = {**wanted, **dict.fromkeys(undone, "an output of it is gone")}
        gone = undone | {one for one in makers if not _lasts(told, found, one)}
        if not gone:
            return Standing(told, _told_apart(found, story, added), lost, added=added)
        out |= gone


def _told_apart(found: Changes, story: RunStory, added: Sequence[Addition]) -> Changes:
    """What is gone from the file, and what makes way."""
    names = _names_of(story.additions) - _names_of(added)
    return replace(
        found,
        removed=tuple(name for name in found.removed if name not in names),
        replaced=tuple(name for name in found.removed if name in names),
    )


def _names_of(additions: Iterable[Addition]) -> set[str]:
    return {task.id for one in additions for task in one.event.added.tasks}


def _staying(additions: Iterable[Addition], read: Runnable, again: set[str]) -> list[Addition]:
    """What was added to the run, but for what belongs to tasks that are not there or run again."""
    there = set(read.workflow.ids)
    found = []
    for one in additions:
        maker = one.event.maker
        if not maker or (maker in there and maker not in again):
            found.append(one)
            there |= _names_of([one])
    return found


def _changes_of(
    story: RunStory, read: Runnable, added: Sequence[Addition]
) -> Iterator[e.TasksAmended]:
    """How tasks were changed that are still there."""
    there = {*read.workflow.ids, *_names_of(added)}
    for event in story.changes:
        now = event.now
        pairs = zip(now.tasks, now.steps, strict=True)
        stays = [(task, step) for task, step in pairs if task.id in there]
        if stays:
            tasks, steps = zip(*stays, strict=True)
            yield replace(event, now=RunnableRecord(now.name, [*tasks], now.files, [*steps]))


def _lasts(told: RunView, found: Changes, maker: str) -> bool:
    """Whether a task does not run again, or is at it, so that what belongs to it stays."""
    number = found.runnable.workflow.number(maker)
    before = told.story.tasks[told.runnable.workflow.number(maker)].state
    if before in (TaskState.SUBMITTED, TaskState.RUNNING):
        return number not in found.edited
    return number in found.kept


def _planned(told: RunView, runnable: Runnable, own: int) -> Runnable:
    """A workflow with the needs of its tasks in this run; those behind the `own` ones have them
    already."""
    if not told.facts.request.scratch or not any(step.mounts for step in runnable.steps):
        return runnable
    from windrow.app.volumes import on_disks  # noqa: PLC0415  (few runs have volumes)

    added = (replace(step, mounts=()) for step in runnable.steps[own:])
    return on_disks(Runnable(runnable.workflow, (*runnable.steps[:own], *added)))


def _lost(told: RunView) -> tuple[LostFile, ...]:
    story = told.story
    open_states = (TaskState.PENDING, TaskState.FAILED, TaskState.BLOCKED)
    left = [number for number, task in enumerate(story.tasks) if task.state in open_states]
    done = [task.state is TaskState.FINISHED for task in story.tasks]
    if told.facts.far is not None:  # what is elsewhere cannot be seen from here
        left = []
    is_home = story.is_complete and not story.elsewhere
    return tuple(lost_files(told.runnable, left, done.__getitem__, results=is_home))


def _changed(told: RunView, task: int, made: Container[str], contents: Contents) -> str | None:
    """Of an input of a finished task that no task makes, and that is another than when the task
    read it, that it changed.

    One that is gone says nothing: the task that needs it will.
    """
    started_s = _finished(told, task).started_s
    for name, path in outside_inputs(told.runnable, task, made):
        try:
            found = path.stat()
        except OSError:
            continue
        if not stat.S_ISREG(found.st_mode):  # folders change whenever something is put into them
            continue
        now = (found.st_size, found.st_mtime_ns)
        if why := contents.why_changed(str(path), name, now, started_s):
            return why
    return None


def _finished(told: RunView, task: int) -> Kept:
    """Where and when a finished task did its work."""
    story = told.story.tasks[task]
    if story.kept is not None:
        return story.kept
    attempts = [attempt for attempt in story.attempts if attempt.outcome is AttemptState.FINISHED]
    if not attempts:  # its start was lost with its node
        return Kept(told.paths.name, told.story.begun_s or 0.0, told.story.last_s)
    last = attempts[-1]
    hosts = told.story.jobs[last.job].hosts
    return Kept(
        told.paths.name, last.started_s, last.ended_s or told.story.last_s, tuple(hosts), last.sizes
    )


def plan_to_continue(told: RunView, now: Standing) -> tuple[Prepared, list[e.Event]]:
    """The run as it would continue now, and what has happened in it by then. Nothing is changed."""
    at_s = int(time.time())
    order = told.facts.request
    undone = [e.TaskUndone(at_s, one.maker) for one in now.lost]
    again = {one.maker for one in now.lost}
    if now.changes is not None and not now.is_same:
        kept = now.changes.kept
        prepared = prepare(order, now.changes.runnable, kept.keys() - again)
        return prepared, [
            *(e.TaskKept(at_s, task) for task in sorted(kept)),
            e.RunBegan(at_s),
            *undone,
        ]
    finished = {
        task for task, one in enumerate(told.story.tasks) if one.state is TaskState.FINISHED
    }
    prepared = prepare(order, told.runnable, finished - again)
    with closing(
        RunJournal.open(told.paths.journal)
    ) as journal:  # tasks that were added are in the workflow by now
        past = [
            record.event
            for _, record in journal.records()
            if not isinstance(record.event, e.TasksAdded | e.TasksAmended)
        ]
    return prepared, [*past, e.RunBegan(at_s), *undone]


def continued_run(
    told: RunView, *, wait_s: float, accept: Sequence[str] = (), again: Iterable[str] = ()
) -> RunPaths:
    """A new run that continues this one with the workflow file as it is now. Jobs of the old one
    are stopped first. `accept` and `again` as for `standing`."""
    relocate(told)
    if told.move is None and any(not job.outcome for job in told.story.jobs.values()):
        with managed(told.paths, wait_s=wait_s, writes=False) as manager:
            manager.stop()
            drive(manager)
    lock = RunLock(told.paths.lock, wait_s)
    try:
        told.refresh()
        refuse_continued(told)
        now = standing(told, accept, again)
        if now.changes is None:
            raise UserError(f"{now.unread}; correct the workflow file, then resume again")
        found = now.changes
        order = told.facts.request
        root = told.paths.folder.path.parent
        prepared = prepare(order, found.runnable, found.kept.keys(), root)
        kept = [(task, _finished(told, before)) for task, before in sorted(found.kept.items())]
        records = [
            Record(e.TaskKept(int(one.ended_s), task), asdict(one), one.ended_s)
            for task, one in kept
        ]
        live_runs.leave(told.paths)  # whose lock we hold, and whose jobs are over
        new = start_run(prepared, root, continues=told.paths.name, kept=records, added=now.added)
        mark_continued(told.paths, new.name)
    finally:
        lock.release()
    return new


def mark_continued(paths: RunPaths, by: str) -> None:
    """Note in a run which one continues it."""
    with closing(RunJournal.open(paths.journal, writable=True)) as journal:
        journal.set_fact("continued_by", by)


def run_to_change(name: str | None) -> RunView:
    """The run of this name, to continue it as it is. UserError if that cannot be done."""
    told = RunView(find_own_run(name))
    refuse_continued(told)
    refuse_moved(told)
    return told


def refuse_continued(told: RunView) -> None:
    """UserError if another run continues this one."""
    by = told.facts.continued_by
    if by is None:  # the process that made the other one may have died before it was noted here
        for paths in all_runs(told.paths.folder.path.parent):
            if paths.name != told.paths.name and facts_of(paths).continues == told.paths.name:
                by = paths.name
                mark_continued(told.paths, by)
    if by is not None:
        raise UserError(f"{told.paths.name} is continued by {by}; use windrow resume {by}")


def refuse_moved(told: RunView) -> None:
    """UserError if the run is not where it was started: its commands and files are named by that
    place."""
    now = told.paths.folder.path.parent
    was = Path(told.facts.root)
    if was == now or (was.exists() and was.samefile(now)):
        return
    old = was.parents[1]
    here = now.parents[1]
    file = told.facts.request.workflow
    moved = here / file.relative_to(old) if file.is_relative_to(old) else file
    how, fix = "moved", "move it back"
    if was.exists():
        how, fix = "copied", f"resume it in {old}"
    if moved.exists():
        fix += f", or start it from the beginning with windrow run {moved}"
    raise UserError(
        f"{told.paths.name} was started in {old} and has been {how} to {here}, but its tasks "
        f"must run in {old}: {fix}"
    )
