"""What must be true of every run, whatever goes wrong; `Violation` says what is not.

1. No event before its record: the core hears of nothing but the journal's next record (`WatchedCore`).
2. A task starts in no job that was given up, nor in two that were not unless it may have copies, nor on a half-written
   file (`World.begins`).
3. What is finished is never undone without a lost file: no task finishes twice, unless a job that ran it was given up.
4. One submission a tag, unless one that got no answer arrived after its tag was looked for, or came and went, and was
   forgotten by the queue, while a full disk kept the manager from writing it down. No job has two in the journal,
   unless one arrived late, started first and so is the job (`Outpost.follow_claims`).
5. Story equals core: both, and a core that replays the journal, believe the same of every task and job.
6. Nothing is left at the end: no job in the queue, no unfinished output or draft of a file on disk; and every task is
   done, its outputs whole. 7. Of a run at two places of files, results are at home then, and the other has nothing.
8. No attempt starts behind the last checkpoint that was heard of, unless that was deleted; none finds in its files what
   another wrote meanwhile (`World.begins`, `saves`); and when a task is done they are gone.
9. Of files that are not to be kept none is left that nothing needs, and none was deleted that was needed: the task that
   made one runs again only for a task that had finished, or joined the run later. Where space is limited, files (drafts
   of attempts that died, too) never take more, and no task is promised more (`World.begins`), unless an agent works
   that the run has given up.
10. Where jobs keep files on disks of their nodes, a task starts only where what it reads is: among the shared files or
   on a node of its job (`World.begins`); in the end results are among the shared files, and those disks are empty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windrow.agent.checkpoints import files_of
from windrow.agent.event_file import AttemptFinished, Tail
from windrow.agent.folder import RunFolder
from windrow.agent.order import absolute
from windrow.lab.virtual.crew import WHOLE
from windrow.manager.core import Core
from windrow.manager.events import (
    Action,
    Event,
    FilesGone,
    JobSubmitted,
    TaskFinished,
    TasksAdded,
    TaskUndone,
    is_local,
)
from windrow.manager.journal import Record, RunJournal
from windrow.manager.states import TaskState
from windrow.manager.story import RunStory
from windrow.manager.terms import Terms
from windrow.model import Runnable
from windrow.strategies.levels import Work

if TYPE_CHECKING:
    from windrow.lab.virtual.world import World

_LEFTOVERS = ("**/.windrow-*", "**/*.windrow-old*", "**/.*.part")


class Violation(AssertionError):  # noqa: N818  (no error of those who use it)
    """Something that must never be is."""


class WatchedCore(Core):
    """A core that looks each event up in the journal before it takes it in. `reached` hears of each record."""

    def __init__(
        self, work: Work | Sequence[Work], terms: Terms, journal: RunJournal, reached: Callable[[int], None]
    ) -> None:
        super().__init__(work, terms)
        self._journal, self._reached, self._seen = journal, reached, 0

    def handle(self, event: Event) -> list[Action]:
        """Take in what happened, if it is written down."""
        self._seen, record = next(self._journal.records(self._seen), (self._seen + 1, None))
        if record is None or record.event != event:
            raise Violation(f"the core hears of {event}, which is not record {self._seen} of the journal")
        self._reached(self._seen)
        return super().handle(event)


def check_beliefs(core: Core, again: Core, records: Sequence[Record]) -> None:
    """What the core believes, what the new one `again` will, and what the story tells are the same."""
    core.check()
    story = RunStory.of(again.work.workflow, records)
    for record in records:
        again.handle(record.event)
    if story.strays:
        raise Violation(f"states follow each other that may not: {story.strays}")
    for name, one, other in zip(("task", "job", "run"), _beliefs(core), _beliefs(again), strict=True):
        if one != other:
            raise Violation(f"replaying the journal gives another {name}: {_difference(one, other)}")
    told = [TaskState.SUBMITTED if task.state is TaskState.RUNNING else task.state for task in story.tasks]
    if told != (known := _beliefs(core)[0]):
        raise Violation(f"the story tells another task: {_difference(told, known)}")
    open_jobs = [number for number, job in story.jobs.items() if job.outcome is None]
    if open_jobs != sorted(core.jobs):
        raise Violation(f"the story has the jobs {open_jobs}, the core {sorted(core.jobs)}")


def _beliefs(core: Core) -> tuple[list[Any], list[Any], list[Any]]:
    """Of the tasks, of the jobs, of the run."""

    def state(task: int) -> TaskState:
        if core.is_done(task):
            return TaskState.FINISHED
        if core.job_of[task] is not None and task not in core.blocked:
            return TaskState.SUBMITTED
        if task in core.failed:
            return TaskState.FAILED
        return TaskState.BLOCKED if task in core.blocked else TaskState.PENDING

    jobs = [
        (n, sorted(j.open_tasks), j.copies, j.is_running, j.is_stopping, j.taken_by)
        for n, j in sorted(core.jobs.items())
    ]
    return [state(task) for task in range(len(core.job_of))], jobs, [core.trouble, core.is_stopped, core.submitted]


def _difference(one: Sequence[object], other: Sequence[object]) -> str:
    found = [f"{i}: {a} and {b}" for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b]
    return "; ".join(found) or f"{len(one)} and {len(other)} of them"


def finished_in(folder: RunFolder) -> list[tuple[int, int]]:
    """Each task that an agent said it has done, with the job in whose events it stands."""
    found = [(number, word) for number in folder.numbers() for word in Tail(folder.events(number)).read()]
    return [(word.task, number) for number, word in found if isinstance(word, AttemptFinished)]


def check_nothing_twice(world: World, folders: Iterable[RunFolder], records: Iterable[Record]) -> None:
    """Of what was done, nothing was done again; of what was submitted, nothing twice; nothing is in the queue."""
    queue, records = world.queue, list(records)
    twice = {tag: n for tag, n in queue.taken.items() if n > 1 + queue.late[tag] + queue.again[tag]}
    told = Counter(record.event.job for record in records if isinstance(record.event, JobSubmitted))
    late = Counter({int(tag.rpartition("-")[2]): n for tag, n in queue.late.items()})
    if twice or (twice := {f"job {job} in the journal": n for job, n in told.items() if n > 1 + late[job]}):
        raise Violation(f"submitted twice: {twice}")
    undone = Counter(r.event.task for r in records if isinstance(r.event, TaskUndone))
    may_be_lost = world.deleted | {Path(path).name for path in world.doubtful}
    is_cleaned = False  # with its folder elsewhere went what only tasks read; who joins the run later needs it again
    gone, joined, tasks = set[str](), False, set[int]()  # tasks: those that have finished
    for record in records:
        event, detail = record.event, record.detail or {}
        tasks |= {event.task} if isinstance(event, TaskFinished) else set()
        joined |= isinstance(event, TasksAdded)
        gone |= set(event.files) if isinstance(event, FilesGone) else set()
        is_cleaned |= isinstance(event, FilesGone) and not event.files
        may_be_lost |= set(event.files) if isinstance(event, FilesGone) and is_local(event) else set()
        if isinstance(event, TaskUndone) and not is_cleaned and (file := detail.get("file")) not in may_be_lost:
            if file not in gone:
                raise Violation(f"task {event.task} was undone, though no output of it was deleted")
            if detail["reader"] not in tasks and not joined:
                raise Violation(f"{file} was deleted, though task {detail['reader']} needed it")
    given_up = {start.task for start in world.starts if start.queue_id in world.was_unseen}
    ends = Counter(task for folder in folders for task, _ in finished_in(folder))
    again = {t: n for t, n in ends.items() if n > 1 + undone[t] and t not in given_up}
    if again:
        raise Violation(f"finished again: {again}")
    if world.queue.left:
        raise Violation(f"left in the queue: {world.queue.left}")


def check_results(world: World, runnable: Runnable) -> None:
    """Of a run that kept files on nodes, results are among the shared files."""
    workflow = runnable.workflow
    for f in set(workflow.outputs.index.tolist()) - set(workflow.inputs.index.tolist()):
        path = Path(runnable.steps[0].workdir, workflow.files[f].id)
        if workflow.files[f].keep is not False and not path.exists() and path.name not in world.deleted:
            raise Violation(f"{path} was never committed")


def check_home(far: Path, runnable: Runnable) -> None:
    """Of a run whose tasks were done at two places, what no task reads is at home, and the other place is empty."""
    workflow = runnable.workflow
    for f in set(workflow.outputs.index.tolist()) - set(workflow.inputs.index.tolist()):
        file = workflow.files[f]
        if file.keep is not False and not Path(runnable.steps[0].workdir, file.id).exists():
            raise Violation(f"{file.id} did not come home")
    if far.exists():
        raise Violation(f"left elsewhere: {sorted(map(str, far.rglob('*')))}")


def check_disk(world: World, folder: RunFolder, runnable: Runnable, core: Core) -> None:
    """Outputs of finished tasks are whole, of others there are none; no draft or old file is left."""
    places = {folder.path}
    for task, step in enumerate(runnable.steps):
        for path in absolute(step.workdir, runnable.workflow.task(task).outputs):
            text = Path(path).read_text() if Path(path).exists() else None
            if text not in ((WHOLE, None) if core.is_done(task) else (None,)) and path not in world.doubtful:
                state = "done" if core.is_done(task) else "not done"
                raise Violation(f"{path} of task {task}, which is {state}, has {text!r}")
            places.add(Path(path).parent)
        kept = step.checkpoint.files if step.checkpoint and core.is_done(task) else ()
        if left := files_of(step.workdir, kept):
            raise Violation(f"task {task} is done, and has left {left}")
    if world.is_local and core.is_complete:
        check_results(world, runnable)
    temporary = {file.id for file in runnable.workflow.files if file.keep is False}
    made = {
        name: runnable.steps[core.temporary.maker[name]].workdir for name in temporary & core.temporary.maker.keys()
    }
    over = {*core.temporary.due, *core.temporary.gone, *(made if core.is_complete else ())}
    over = {path for name in over for path in absolute(made[name], [name]) if Path(path).exists()}
    if over - world.doubtful:
        raise Violation(f"not deleted: {sorted(over)}")
    left = sorted(str(path) for place in places for pattern in _LEFTOVERS for path in place.glob(pattern))
    if left:
        raise Violation(f"left on disk: {left}")
