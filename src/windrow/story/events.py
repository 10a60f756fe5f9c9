"""What can happen to a run, and what its core asks the world to do about it.

Events are in the past tense, with the time it happened; a journal of these is the whole story of a
run. Actions are imperative; the outcome of each comes back as an event.
"""

from __future__ import annotations

from dataclasses import dataclass

from windrow.model import Workflow
from windrow.model.cause import Cause
from windrow.records.runnable_file import RunnableRecord
from windrow.strategies import Decision, JobPlan


@dataclass(frozen=True, slots=True)
class RunBegan:
    """The run starts, or continues after it was stopped. With `retry` tasks that had failed are
    retried."""

    at_s: int
    retry: bool = True


@dataclass(frozen=True, slots=True)
class RunStopped:
    """The user wants the run to stop."""

    at_s: int


@dataclass(frozen=True, slots=True)
class RunHeld:
    """Someone keeps the run open for tasks to come, though all that it has may be done.

    `keep_s`: how long nodes without tasks are kept for them.
    """

    at_s: int
    who: str
    keep_s: float


@dataclass(frozen=True, slots=True)
class RunClosed:
    """No one does any more: the run ends when its tasks have. `why`, if it was not wanted."""

    at_s: int
    why: str = ""


EXPANDS = "expands-"
"""How the ids of additions begin that tasks have said in files which they wrote."""


@dataclass(frozen=True, slots=True)
class TasksAdded:
    """Tasks joined the run, numbered behind those that it had; those may be their parents, and not
    the other way round.

    It tells all that is to be known of them. `id` is that of the request: it is carried out once.
    `folder` as for `Workflow.extended`. Of a simulated run there are no steps. `maker`: the task
    to which they belong, since it said what they are; what it said may be nothing.
    """

    at_s: int
    id: str
    added: RunnableRecord
    folder: str = ""
    maker: str = ""

    @property
    def is_expansion(self) -> bool:
        """Whether its maker said so in a file that it wrote."""
        return self.id.startswith(EXPANDS)

    def to(self, workflow: Workflow) -> Workflow:
        """The workflow with these tasks. WorkflowError if they do not go with it."""
        if not self.added.tasks:
            return workflow
        return workflow.extended(self.added.tasks, self.added.files, self.folder)


@dataclass(frozen=True, slots=True)
class TasksCancelled:
    """The user does not want these tasks: what runs of them is ended, and what needs them is
    blocked.

    `to_amend`: only until they are changed; then they run as `TasksAmended` says.
    """

    at_s: int
    tasks: tuple[int, ...]
    to_amend: bool = False


@dataclass(frozen=True, slots=True)
class TasksAmended:
    """These tasks, known by their ids, are now as `now` says it; none runs or has finished."""

    at_s: int
    id: str
    now: RunnableRecord

    def to(self, workflow: Workflow) -> Workflow:
        """The workflow with these tasks. WorkflowError if they do not go with it."""
        return workflow.amended(self.now.tasks)


@dataclass(frozen=True, slots=True)
class TasksRanked:
    """The user has given these tasks another priority; what already runs is not stopped."""

    at_s: int
    tasks: tuple[int, ...]
    priority: int


@dataclass(frozen=True, slots=True)
class JobsPlanned:
    """A strategy has decided, for the site of this name; an empty one is that of the only site.

    Decisions are events, so that replaying a journal asks no strategy again.
    """

    at_s: int
    decision: Decision
    site: str = ""


@dataclass(frozen=True, slots=True)
class JobSubmitted:
    """The queue has accepted a job, and calls it `id`."""

    at_s: int
    job: int
    id: str


@dataclass(frozen=True, slots=True)
class JobRejected:
    """The queue will never take this job."""

    at_s: int
    job: int
    why: str


@dataclass(frozen=True, slots=True)
class JobWithdrawn:
    """A job that waits is to leave the queue: at another site its tasks should end clearly earlier,
    as `why` says.

    They are not planned for the site that they left before `until_s`.
    """

    at_s: int
    job: int
    why: str
    until_s: int = 0


@dataclass(frozen=True, slots=True)
class JobStarted:
    """The queue gave a job its nodes."""

    at_s: int
    job: int


@dataclass(frozen=True, slots=True)
class JobTaken:
    """The agent of job `by`, which the queue calls `id`, has taken this job over, and runs its
    tasks on its nodes."""

    at_s: int
    job: int
    by: int
    id: str


@dataclass(frozen=True, slots=True)
class JobEnded:
    """A job gave its nodes back, or left the queue, because it was asked to or had no more to
    do."""

    at_s: int
    job: int


@dataclass(frozen=True, slots=True)
class JobKilled:
    """A job was ended by something else: its time was up, or whatever `cause` and `why` say.

    `node` is the node that is to blame, if that is known.
    """

    at_s: int
    job: int
    cause: Cause
    why: str = ""
    node: str = ""


@dataclass(frozen=True, slots=True)
class TaskStarted:
    """A task began to run in a job's allocation."""

    at_s: int
    job: int
    task: int


@dataclass(frozen=True, slots=True)
class TaskRetried:
    """An attempt at a task failed; the allocation tries again."""

    at_s: int
    job: int
    task: int


@dataclass(frozen=True, slots=True)
class TaskCheckpointed:
    """This much of a task's run, in seconds and over all attempts, is kept, should it be ended.

    `ended`: its attempt is over; the next continues from there. `idle`: how many pieces in a row
    ran out of time and kept nothing. If less is kept than before, checkpoint files were lost.
    """

    at_s: int
    job: int
    task: int
    done_s: int
    ended: bool = False
    idle: int = 0


@dataclass(frozen=True, slots=True)
class TaskFinished:
    """A task has done its work; `by`: in this job, which the run had given up."""

    at_s: int
    task: int
    by: int | None = None


@dataclass(frozen=True, slots=True)
class TaskUndone:
    """A task that had finished or failed is to run again: an output of it is gone and needed, or
    the user asked."""

    at_s: int
    task: int


@dataclass(frozen=True, slots=True)
class TaskKept:
    """A task had finished in the run that this one continues, and stays finished."""

    at_s: int
    task: int


@dataclass(frozen=True, slots=True)
class TaskFailed:
    """A task ended without having done its work, as often as it may be tried."""

    at_s: int
    task: int


@dataclass(frozen=True, slots=True)
class TaskDropped:
    """A job will not run this task of its own: there is no time left for it, or it waits for one
    that failed. Or it `lacks_memory`: it ran out of what it had (`used_bytes`, as far as
    that is known), and could have more. Or it `lacks_files`, which are still on their way from
    another place."""

    at_s: int
    job: int
    task: int
    lacks_memory: bool = False
    lacks_files: bool = False
    used_bytes: int = 0


@dataclass(frozen=True, slots=True)
class DiskRefused:
    """What a task made cannot be brought to its place or used, or a disk had no room for it; `why`
    says it.

    `is_final`: it would happen again. Then the task, which had finished, has failed; else a later
    job may try again.
    """

    at_s: int
    job: int
    task: int
    why: str
    is_final: bool = False


@dataclass(frozen=True, slots=True)
class CopyFailed:
    """A task that may be in several jobs failed in this one, as often as it may be tried there."""

    at_s: int
    job: int
    task: int


@dataclass(frozen=True, slots=True)
class FilesMoved:
    """These files, by their paths below the run's root, have come from one place of files to
    another."""

    at_s: int
    files: tuple[str, ...]
    origin: str
    to: str
    size_bytes: int
    took_s: float
    job: int | None = None
    """On whose nodes alone they were, which have no place of their own."""


@dataclass(frozen=True, slots=True)
class MoveFailed:
    """They have not; it is tried again. The same reason is told once."""

    at_s: int
    files: tuple[str, ...]
    origin: str
    to: str
    why: str


@dataclass(frozen=True, slots=True)
class FilesGone:
    """These files are not at this place any more. None: all results are at home, and the run's
    folder there is gone.

    At home, which has no name: files that were not to be kept, and that nothing needs any more;
    they count as made. So do those that were on nodes of a `job` alone, which is over.
    """

    at_s: int
    place: str
    files: tuple[str, ...] = ()
    job: int | None = None


def job_place(job: int) -> str:
    """What the disks of the nodes of a job are called as a place of files, for people."""
    return f"nodes of job {job}"


def is_local(event: FileEvent) -> bool:
    """Whether files were on nodes of a job alone before this."""
    return not isinstance(event, MoveFailed) and event.job is not None


JobEvent = JobSubmitted | JobRejected | JobWithdrawn | JobStarted | JobTaken | JobEnded | JobKilled
TaskOver = TaskFinished | TaskFailed | TaskDropped | CopyFailed | DiskRefused
TaskEvent = TaskStarted | TaskRetried | TaskCheckpointed | TaskUndone | TaskKept | TaskOver
FileEvent = FilesMoved | MoveFailed | FilesGone
RunEvent = RunBegan | RunStopped | RunHeld | RunClosed
ChangeEvent = TasksAdded | TasksCancelled | TasksAmended | TasksRanked
Event = RunEvent | ChangeEvent | JobsPlanned | JobEvent | TaskEvent | FileEvent


@dataclass(frozen=True, slots=True)
class Decide:
    """Ask the strategy what to submit to this site now; the answer comes back as JobsPlanned."""

    site: str = ""


@dataclass(frozen=True, slots=True)
class SubmitJob:
    """Submit a job to the queue."""

    job: int
    plan: JobPlan


@dataclass(frozen=True, slots=True)
class StopJob:
    """Take a job out of the queue, or make it give its nodes back."""

    job: int


@dataclass(frozen=True, slots=True)
class Abandon:
    """Let no allocation wait for these tasks: they will not run. `ends`: not even if they do.

    `again`: they will, but in other jobs, since what they read is to be made again.
    """

    tasks: tuple[int, ...]
    ends: bool = False
    again: bool = False


@dataclass(frozen=True, slots=True)
class Rank:
    """Let allocations start these tasks as this priority says."""

    tasks: tuple[int, ...]
    priority: int


def gone_files(event: Event) -> tuple[tuple[str, ...], bool]:
    """Files that are gone after this, and whether they went with the nodes of a job."""
    if isinstance(event, FilesGone):
        return (event.files, is_local(event))
    return ((), False)


Action = Decide | SubmitJob | StopJob | Abandon | Rank
