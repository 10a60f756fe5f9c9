"""What must be true of every run, whatever goes wrong; `Violation` says what is not.

1. No event before its record: the core hears of nothing but the journal's next record
   (`WatchedCore`).
2. A task starts in no job that was given up, nor in two that were not unless it may have copies,
   nor without an input where it reads it, nor on one that is half-written, stale or otherwise wrong
   (`World.begins`).
3. What is finished is never undone without a lost file: no task finishes twice, unless a job that
   ran it was given up.
4. One submission a tag, unless one that got no answer arrived after its tag was looked for, or came
   and went, and was forgotten by the queue, while a full disk kept the manager from writing it
   down. No job has two in the journal, unless one arrived late, started first and so is the job
   (`Outpost.follow_claims`).
5. Story equals core: both, and a core that replays the journal, believe the same of every task and
   job.
6. Nothing is left at the end: no job in the queue, no unfinished output or draft of a file on disk;
   and every task is done, its outputs there, and what they would be in a perfect world (`content`);
   of a task that is not done, there is what was there before. A file that a job given up wrote in
   place may be half; so may what was made of it meanwhile, and what a task made that ran while
   someone deleted a file that it had yet to read.
7. Of a run at two places of files, results are at home then, and the other has nothing.
8. No attempt starts behind the last checkpoint that was heard of, unless that was deleted; none
   finds in its files what another wrote meanwhile (`World.begins`, `saves`); and when a task is
   done they are gone.
9. Of files that are not to be kept none is left that nothing needs, and none was deleted that was
   needed: the task that made one runs again only for a task that had finished, or joined the run
   later. If space is limited, files (drafts of attempts that died, too) never take more, and no
   task is promised more (`World.begins`), unless an agent works that the run has given up.
10. If jobs keep files on disks of their nodes, a task starts only if what it reads is: among
    the shared files or on a node of its job (`World.begins`); in the end results are among the
    shared files, and those disks are empty.
11. Jobs never hold more nodes at a time than there are, as the story tells it, whenever someone
    looked; so held node time is at most nodes times span.
12. If machines forget what was not synced (`memory`), claims, fences, files of jobs and lists
    for agents outlive the machine of who made them, as soon as they are made; what agents wrote
    does after a few seconds; and so does each commit of the journal.
13. What nodes share is what its home has, whatever rots on their disks (`rotting`).
14. Of a task that the user does not want nothing starts and runs for long (`World.begins`,
    `Watch`), and one that was changed does what it is now; a run that someone holds stays open, and
    ends soon when no one does.
15. No node has more to hold than it can, and no attempt runs for longer than it may
    (`World.begins`, `finished`). What starts should end in time; of what has room in a job the most
    urgent starts first; what comes after another in any way does not start while that runs for the
    first time; each try has what it asks for; and of what is done no copy runs on
    (`CauseWatch`). What is told of attempts is what became of them (`check_attempts`).
16. What is kept of an earlier run is not run again, unless files of it are gone (`reuse`).
17. Whatever goes wrong, and for however long: attempts, jobs and time stay within `bounds`. A run
    whose faults do not end gives up, or waits, and is complete after someone has repaired them.
    Nor does a task come back from job after job in which it did not start (`check_sent_back`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windrow.agent.event_file import AttemptFinished, AttemptStarted, CommitFailed, Tail
from windrow.agent.event_file import Record as AgentRecord
from windrow.agent.folder import RunFolder
from windrow.agent.kept_files import found
from windrow.agent.order import absolute
from windrow.manager.core import Core
from windrow.manager.terms import Terms
from windrow.model import Runnable
from windrow.queues.simulated import SimulatedQueue
from windrow.story.events import (
    Action,
    DiskRefused,
    Event,
    FilesGone,
    JobEnded,
    JobKilled,
    JobSubmitted,
    TaskFinished,
    TasksAdded,
    TaskUndone,
    is_local,
)
from windrow.story.journal import Record, RunJournal
from windrow.story.states import TaskState
from windrow.story.story import RunStory
from windrow.story.translate import is_given_up
from windrow.strategies.levels import Work
from windrow.trials.virtual.content import content
from windrow.trials.virtual.counted import Invariant

if TYPE_CHECKING:
    from windrow.trials.virtual.world import World

_LEFTOVERS = ("**/.windrow-*", "**/*.windrow-old*", "**/.*.part")


class Violation(AssertionError):  # noqa: N818  (no error of those who use it)
    """Something that must never be is."""


class WatchedCore(Core):
    """A core that looks each event up in the journal before it takes it in. `reached` hears of each
    record."""

    def __init__(
        self,
        work: Work | Sequence[Work],
        terms: Terms,
        journal: RunJournal,
        reached: Callable[[int], None],
    ) -> None:
        super().__init__(work, terms)
        self._journal = journal
        self._reached = reached
        self._seen = 0

    def handle(self, event: Event) -> list[Action]:
        """Take in what happened, if it is written down."""
        self._seen, record = next(self._journal.records(self._seen), (self._seen + 1, None))
        if record is None or record.event != event:
            raise Violation(
                f"the core hears of {event}, which is not record {self._seen} of the journal"
            )
        self._reached(self._seen)
        return super().handle(event)


def check_beliefs(core: Core, again: Core, records: Sequence[Record]) -> None:
    """What the core believes, what the new one `again` will, and what the story tells are the
    same."""
    core.check()
    story = RunStory.of(again.work.workflow, records)
    for record in records:
        again.handle(record.event)
    if story.strays:
        raise Violation(f"states follow each other that may not: {story.strays}")
    for name, one, other in zip(
        ("task", "job", "run"), _beliefs(core), _beliefs(again), strict=True
    ):
        if one != other:
            raise Violation(
                f"replaying the journal gives another {name}: {_difference(one, other)}"
            )
    known = _beliefs(core)[0]
    told = [
        _believed(task.state, core, number, known[number])
        for number, task in enumerate(story.tasks)
    ]
    if told != known:
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
        if task in core.cancelled:
            return TaskState.CANCELLED
        if task in core.failed:
            return TaskState.FAILED
        if task in core.skipped:
            return TaskState.SKIPPED
        if task in core.blocked:
            return TaskState.BLOCKED
        return TaskState.PENDING

    jobs = [
        (n, sorted(j.open_tasks), j.copies, j.is_running, j.is_stopping, j.taken_by)
        for n, j in sorted(core.jobs.items())
    ]
    return (
        [state(task) for task in range(len(core.job_of))],
        jobs,
        [core.trouble, core.is_stopped, core.submitted],
    )


def _believed(told: TaskState, core: Core, task: int, known: TaskState) -> TaskState:
    """What the core should believe of a task of which the story tells this.

    One that runs may finish, although it waits for a task whose output cannot be kept.
    """
    if told is not TaskState.RUNNING:
        return told
    if known is TaskState.BLOCKED and core.job_of[task] is not None:
        return TaskState.BLOCKED
    return TaskState.SUBMITTED


def _difference(one: Sequence[object], other: Sequence[object]) -> str:
    found = [
        f"{i}: {a} and {b}" for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b
    ]
    return "; ".join(found) or f"{len(one)} and {len(other)} of them"


def told_in(folder: RunFolder) -> Iterator[tuple[int, AgentRecord]]:
    """All that agents wrote, each with the job in whose events it stands."""
    for number in folder.numbers():
        for word in Tail(folder.events(number)).read():
            yield number, word


def finished_in(folder: RunFolder) -> list[tuple[int, int]]:
    """Each task that an agent said it has done, with the job in whose events it stands."""
    return [
        (word.task, number) for number, word in told_in(folder) if isinstance(word, AttemptFinished)
    ]


def _check_told(world: World, folders: Iterable[RunFolder]) -> None:
    """Of each attempt that began where the agent left in good order it was told that it began."""
    folders = list(folders)
    if len(folders) > 1:  # of a site that is lost not all was heard
        return
    words = (word for folder in folders for _, word in told_in(folder))
    told = Counter(word.task for word in words if isinstance(word, AttemptStarted))
    starts = [start for start in world.starts if start.queue_id in world.left_in_order]
    world.exercised[Invariant.TOLD] += len(starts)
    for task, number in Counter(start.task for start in starts).items():
        if told[task] < number:
            raise Violation(f"task {task} began {number} times, of which {told[task]} were told")


def _check_last_words(world: World, records: Sequence[Record]) -> None:
    """What an agent said when it left in good order was heard, though it was seen late."""
    known = world.left_in_order.difference(world.was_unseen, world.turned_away)
    ids: dict[int, str] = {}
    for record in records:
        event = record.event
        if isinstance(event, JobSubmitted):
            ids[event.job] = event.id
        elif isinstance(event, JobKilled | JobEnded) and ids.get(event.job) in known:
            is_own = _number(world.queue, ids[event.job]) == event.job
            world.exercised[Invariant.LAST_WORDS] += is_own
            if is_own and is_given_up(record):
                raise Violation(f"job {event.job} left in good order, and was not heard: {record}")


def _check_commits(world: World, folders: Iterable[RunFolder]) -> None:
    """What an agent could not bring to the shared files, it has told."""
    words = (word for folder in folders for _, word in told_in(folder))
    told = Counter(word.task for word in words if isinstance(word, CommitFailed))
    failed = Counter(task for name, task in world.not_committed if name in world.left_in_order)
    world.exercised[Invariant.TOLD] += failed.total()
    if failed - told:
        raise Violation(f"of tasks {dict(failed - told)} outputs were not copied, which is untold")


def check_nothing_twice(
    world: World, folders: Iterable[RunFolder], records: Sequence[Record]
) -> None:
    """Of what was done, nothing was done again; of what was submitted, nothing twice; nothing is in
    the queue."""
    _check_submissions(world, records)
    _check_undone(world, records)
    given_up = {start.task for start in world.starts if start.queue_id in world.was_unseen}
    undone = Counter(task for record in records if (task := _undone(record.event)) is not None)
    folders = list(folders)
    _check_told(world, folders)
    if len(folders) == 1:  # of a site that is lost not all was heard
        _check_commits(world, folders)
        _check_last_words(world, records)
    ends = Counter(task for folder in folders for task, _ in finished_in(folder))
    again = {t: n for t, n in ends.items() if n > 1 + undone[t] and t not in given_up}
    world.exercised[Invariant.ONCE_DONE] += sum(n > 1 for n in world.started.values())
    if again:
        raise Violation(f"finished again: {again}")
    world.exercised[Invariant.NO_JOB_LEFT] += len(world.queue.jobs)
    if world.queue.left:
        raise Violation(f"left in the queue: {world.queue.left}")


def _undone(event: Event) -> int | None:
    """The task whose end does not count any more: its output is lost, or cannot leave its node."""
    if isinstance(event, TaskUndone) or (isinstance(event, DiskRefused) and event.is_final):
        return event.task
    return None


def _check_submissions(world: World, records: Iterable[Record]) -> None:
    """No tag was submitted again that could be found, and no job is in the journal twice."""
    queue = world.queue
    twice = {tag: n for tag, n in queue.taken.items() if n > 1 + queue.late[tag] + queue.again[tag]}
    submitted = (record.event for record in records if isinstance(record.event, JobSubmitted))
    pairs = Counter((one.job, one.id) for one in submitted if _number(queue, one.id) == one.job)
    told = Counter(job for job, _ in pairs)
    unseen = queue.late + queue.again
    late = Counter({_number_in(tag): n for tag, n in unseen.items()})
    again = {f"job {job} in the journal": n for job, n in told.items() if n > 1 + late[job]}
    again |= {f"job {job} as {name}": n for (job, name), n in pairs.items() if n > 1}
    if twice or again:
        raise Violation(f"submitted twice: {twice or again}")


def _number_in(tag: str) -> int:
    return int(tag.rpartition("-")[2])


def _number(queue: SimulatedQueue, queue_id: str) -> int:
    """The job that was submitted under this name: one that was taken over has another's."""
    return _number_in(queue.jobs[queue_id].spec.tag)


def _check_undone(world: World, records: Iterable[Record]) -> None:
    """Tasks were undone only for files that were lost, and no file was deleted that was needed."""
    may_be_lost = world.deleted | {Path(path).name for path in world.doubtful}
    # with its folder elsewhere went what only tasks read; who joins the run later needs it again
    is_cleaned = False
    # tasks: those that have finished
    gone = set[str]()
    joined = False
    tasks = set[int]()
    for record in records:
        event = record.event
        if isinstance(event, TaskFinished):
            tasks.add(event.task)
        elif isinstance(event, TasksAdded):
            joined = True
        elif isinstance(event, FilesGone):
            gone |= set(event.files)
            is_cleaned |= not event.files
            may_be_lost |= set(event.files) if is_local(event) else set()
            world.exercised[Invariant.NEEDED] += bool(event.files) and not event.place
        elif isinstance(event, TaskUndone) and not is_cleaned:
            again = world.wishes.repeated
            _check_cause(
                event, record.detail or {}, may_be_lost, gone, tasks, again, is_late=joined
            )


def _check_cause(
    event: TaskUndone,
    detail: Mapping[str, Any],
    may_be_lost: Collection[str],
    gone: Collection[str],
    finished: Collection[int],
    repeated: Collection[int],
    *,
    is_late: bool,
) -> None:
    """The file for which a task was undone was lost, or is needed by one that had finished, or that
    joined the run later; or it was asked for."""
    file = detail.get("file")
    if file in may_be_lost or (not file and event.task in repeated):
        return
    if file not in gone:
        raise Violation(f"task {event.task} was undone, though no output of it was deleted")
    if detail["reader"] not in finished and not is_late:
        raise Violation(f"{file} was deleted, though task {detail['reader']} needed it")


def check_held(world: World, story: RunStory) -> None:
    """At no time do the jobs of a run hold more nodes than there are. Of runs whose manager's clock
    was right."""
    gone = world.was_unseen  # the queue gives others what these hold
    changes: list[tuple[float, int]] = []
    for job in story.jobs.values():
        if job.started_s is None or job.taken_by is not None or job.id in gone:
            continue
        if job.ended_s is None:
            end_s = story.last_s
        else:
            end_s = job.ended_s
        changes += [(job.started_s, job.plan.nodes), (max(job.started_s, end_s), -job.plan.nodes)]
    held = 0
    for at_s, nodes in sorted(changes):
        world.exercised[Invariant.HELD] += held > 0
        held += nodes
        if held > world.queue.cluster.nodes:
            raise Violation(f"{held} of {world.queue.cluster.nodes} nodes are held at {at_s}")


def check_results(world: World, runnable: Runnable, *, all_kept: bool) -> None:
    """Results are among the shared files; of a run that keeps files nowhere else, all that is to be
    kept."""
    workflow = runnable.workflow
    if all_kept:
        read = set()
    else:
        read = set(workflow.inputs.index.tolist())
    for f in set(workflow.outputs.index.tolist()) - read:
        path = Path(runnable.steps[0].workdir, workflow.files[f].id)
        if (
            workflow.files[f].keep is not False
            and not path.exists()
            and path.name not in world.deleted
        ):
            raise Violation(f"{path} is not there, though all is done")
        world.exercised[Invariant.THERE] += 1


def check_home(world: World, far: Path, runnable: Runnable) -> None:
    """Of a run whose tasks were done at two places, what no task reads is at home, and the other
    place is empty."""
    workflow = runnable.workflow
    for f in set(workflow.outputs.index.tolist()) - set(workflow.inputs.index.tolist()):
        world.exercised[Invariant.HOME] += 1
        file = workflow.files[f]
        is_home = Path(runnable.steps[0].workdir, file.id).exists() or file.id in world.deleted
        if file.keep is not False and not is_home:
            raise Violation(f"{file.id} did not come home")
    if far.exists():
        raise Violation(f"left elsewhere: {sorted(map(str, far.rglob('*')))}")


def check_unfinished(world: World, runnable: Runnable, core: Core) -> None:
    """Where outputs of unfinished tasks are to be, there is what was there before, or what is
    right."""
    temporary = {file.id for file in runnable.workflow.files if file.keep is False}
    for task, step in enumerate(runnable.steps):
        outputs = runnable.workflow.task(task).outputs
        for path in absolute(step.workdir, outputs) if not core.is_done(task) else ():
            text = content(path)
            name = Path(path).name
            before = world.earlier.get(path)
            if path in world.doubtful or name in world.tainted or name in world.deleted:
                continue
            if text is None and name in temporary:  # it was made, and was not to be kept
                continue
            world.exercised[Invariant.UNTOUCHED] += bool(text or before)
            was_deleted = text is None and name in core.temporary.temporary
            if text not in (before, world.expected.get(name)) and not was_deleted:
                raise Violation(f"{path} of task {task}, which is not done, has {text!r}")


def check_disk(world: World, folder: RunFolder, runnable: Runnable, core: Core) -> None:
    """Outputs of finished tasks are right; no draft or old file is left, and nothing that is not to
    be kept."""
    places = {folder.path}
    for task, step in enumerate(runnable.steps):
        outputs = runnable.workflow.task(task).outputs
        for path in absolute(step.workdir, outputs):
            world.exercised[Invariant.RIGHT] += Path(path).exists()
            world.exercised[Invariant.CHANGED] += task in world.wishes.changed
            if core.is_done(task) and not _is_left_from_before(world, runnable, core, path):
                _check_right(world, task, path)
            places.add(Path(path).parent)
        if step.checkpoint and core.is_done(task):
            kept = step.checkpoint.files
        else:
            kept = ()
        users = {Path(path).name for path in world.of_user}
        if left := sorted(set(found(step.workdir, kept)) - users):
            raise Violation(f"task {task} is done, and has left {left}")
    check_unfinished(world, runnable, core)
    check_users(world)
    if core.is_complete:
        check_results(world, runnable, all_kept=not (world.is_local or core.sites[1:]))
    _check_deleted(world, runnable, core)
    left = sorted(
        str(path) for place in places for pattern in _LEFTOVERS for path in place.glob(pattern)
    )
    if left:
        raise Violation(f"left on disk: {left}")


def check_users(world: World) -> None:
    """What the user had is there, under its name or beside it, and so is what an earlier run left
    of which there is no record, unless a job that was given up has written into it."""
    earlier = {
        path: text
        for path, text in world.earlier.items()
        if Path(path).name not in world.deleted and path not in world.doubtful | world.recorded
    }
    for path, text in (world.of_user | earlier).items():
        world.exercised[Invariant.USERS] += 1
        places = [Path(path), *Path(path).parent.glob(f"{Path(path).name}.before-*")]
        if all(content(place) != text for place in places):
            raise Violation(f"{path} of the user is gone")


def _check_right(world: World, task: int, path: str) -> None:
    text = content(path)
    name = Path(path).name
    expected = world.expected.get(name)
    is_known = path in world.doubtful or name in world.tainted
    if world.is_wrong(path, text) and not is_known:
        raise Violation(
            f"{path} of task {task}, which is done, and should have {expected!r}, has {text!r}"
        )


def _is_left_from_before(world: World, runnable: Runnable, core: Core, path: str) -> bool:
    """Whether it is an older file, and the new one was made and needed at another place alone."""
    if not core.sites[1:] or content(path) != world.earlier.get(path):
        return False
    workflow = runnable.workflow
    return any(workflow.files[f].id == Path(path).name for f in workflow.inputs.index.tolist())


def _folders_of_temporary(runnable: Runnable, maker: Mapping[str, int]) -> dict[str, str]:
    """Where the tasks ran that make what is not to be kept."""
    temporary = {file.id for file in runnable.workflow.files if file.keep is False}
    return {name: runnable.steps[maker[name]].workdir for name in temporary & set(maker)}


def _check_deleted(world: World, runnable: Runnable, core: Core) -> None:
    """Of what is not to be kept nothing is left that nothing needs."""
    files = core.temporary
    made = _folders_of_temporary(runnable, files.maker)
    over = {*files.due, *files.gone, *(made if core.is_complete else ())}
    world.exercised[Invariant.DELETED] += len(over)
    left = {path for name in over for path in absolute(made[name], [name]) if Path(path).exists()}
    left = {path for path in left if not _is_left_from_before(world, runnable, core, path)}
    if left - world.doubtful:
        raise Violation(f"not deleted: {sorted(left)}")
