"""The port to a batch queue: what the manager asks of it, in few words.

Rule 1: a queue never retries and never remembers what it was asked; policy and memory belong to the
manager.
Rule 2: a job that the queue does not know is absent from an answer, which is not the same as
finished.
Rule 3: every job carries a tag, by which it is found again after a crash.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, runtime_checkable

from windrow.errors import OutsideError, UserError
from windrow.model.cause import Cause
from windrow.model.nodes import NOTHING, Need
from windrow.model.parts import Sharing
from windrow.model.resources import NodeShape
from windrow.model.site import NodeKind


class SpecError(UserError):
    """The queue will never accept this job as it is. The message has the queue's own words."""


class QueueError(OutsideError):
    """The queue did not do it, and did not begin to; the same call may succeed later."""


class OutcomeUnknown(OutsideError):  # noqa: N818  (no error: unknown)
    """It is unknown whether the queue did it. Ask `find` for the tag before trying again."""


class JobState(StrEnum):
    """Where a job is in its life."""

    WAITING = "waiting"
    RUNNING = "running"
    ENDED = "ended"  # it gave its nodes back by itself; exit_code says how
    TIMED_OUT = "timed out"
    CANCELLED = "cancelled"
    NODE_FAILED = "node failed"
    PREEMPTED = "preempted"
    OUT_OF_MEMORY = "out of memory"
    KILLED = "killed"  # by anything else

    @property
    def is_over(self) -> bool:
        """Whether it will never run again."""
        return self not in (JobState.WAITING, JobState.RUNNING)


@dataclass(frozen=True, slots=True)
class JobSpec:
    """A job to submit: `nodes` whole nodes for at most `walltime_s`, running `command` once on the
    first of them.

    `walltime_s` None: for as long as it takes; only a queue whose jobs start at once takes such a
    job. `tag` is its name in the queue (letters, digits, `-`, `_`, `.`). `output` is the file that
    gets what it prints. `avoid` are nodes that it should not get, if the queue can be told so.
    `per_node` is what each of its nodes must have for it, beyond what all nodes have: 0 of whatever
    does not matter. `part`: if it asks for parts of nodes, what each of them has; `nodes` is then
    how many, on whichever nodes have room. `notice_s`: how long before it takes the nodes away the
    queue should send SIGUSR1, if it can; 0: it need not.
    """

    tag: str
    nodes: int
    walltime_s: int | None
    command: tuple[str, ...]
    workdir: str
    output: str
    avoid: tuple[str, ...] = ()
    per_node: Need = NOTHING
    notice_s: int = 0
    part: NodeShape | None = None

    @property
    def limit_s(self) -> int:
        """Its walltime, for a queue that needs one. SpecError if it has none."""
        if self.walltime_s is None:
            raise SpecError(f"job {self.tag!r}: it has no walltime, and this queue needs one")
        return self.walltime_s


@dataclass(frozen=True, slots=True)
class JobStatus:
    """What the queue says of one job. Times are seconds since the epoch, None if it has not come
    so far.

    `reason` is the queue's own word for why it waits or how it ended. `expected_start_s` is the
    queue's estimate. `hosts` are its nodes by name, the first one first, if the queue tells them
    and can be told to avoid one.
    """

    id: str
    state: JobState
    submitted_s: float | None = None
    started_s: float | None = None
    ended_s: float | None = None
    exit_code: int | None = None
    reason: str = ""
    expected_start_s: float | None = None
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """What the site allows. None means no limit known. `max_array` 1 means no arrays.

    `starts_at_once`: no job ever waits here, so there is nothing to forecast and nothing to gain
    from several jobs. `usable_nodes` are those of the `nodes` that new jobs could get when this was
    read; None: all. `closed` says in one clause why no job can start at all; empty if some can.
    `from_settings`: what nodes there are is said by windrow.toml, if the user may raise it.
    `narrow` says what sets `max_nodes`, for people; `left_out`, which nodes do not count since one
    alone is more than a job may have. `kinds` are the nodes by what they have, if that is known;
    `shape` is what each has at least. `room_bytes`: for the files of a run that begins in this
    folder now. `sharing`: how users share nodes, if a job can have parts of them.
    """

    nodes: int
    shape: NodeShape
    max_nodes: int | None = None
    max_walltime_s: int | None = None
    max_jobs: int | None = None
    max_array: int = 1
    starts_at_once: bool = False
    usable_nodes: int | None = None
    closed: str = ""
    from_settings: bool = False
    narrow: str = ""
    left_out: str = ""
    kinds: tuple[NodeKind, ...] = ()
    sharing: Sharing | None = None
    room_bytes: int | None = field(default=None, compare=False)  # it changes all the time

    @property
    def has_one_way(self) -> bool:
        """Whether one job for everything is best, so that there is nothing to forecast or to
        compare.

        No job ever waits, or there is one node, which only this user's jobs share.
        """
        return self.starts_at_once or (self.from_settings and self.nodes == 1)


@dataclass(frozen=True, slots=True)
class OthersJob:
    """A job of anyone, as the queue shows it. Waiting jobs are listed in the order in which the
    queue takes them.

    Of queues whose jobs share nodes: its `cores`, its memory and its `hosts`, and whether it
    `is_alone` on its nodes. `nodes` is then how many parts like ours it takes, if it is known what
    those are.
    """

    id: str
    nodes: int
    requested_s: int
    is_running: bool
    started_s: float | None
    priority: float
    user: str
    cores: int = 0
    memory_bytes: int = 0
    is_alone: bool = False
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The whole queue at one time: usable nodes (not down or drained), and all jobs, running ones
    first.

    `offered` are the nodes that a new job of ours could ever get as things are; None: all of them.
    Fewer if nodes are drained while their last jobs run, or if our jobs may not use all.
    `closures`: maintenance that is announced: from when to when, and how many of the nodes have no
    jobs then. `hidden_nodes` are in use, and none of the jobs has them: the batch system does not
    show all. `left`: what jobs leave of limits that ours share with them, in nodes; None: no such
    limit.
    """

    at_s: float
    nodes: int
    jobs: tuple[OthersJob, ...]
    offered: int | None = None
    closures: tuple[tuple[float, float, int], ...] = ()
    hidden_nodes: int = 0
    left: int | None = None

    def open_to(self, nodes: int) -> int:
        """How wide a new job is best if some task takes `nodes`: a wider one could start, but
        not before others that count for the same limit end."""
        if self.left is None:
            return self.open_nodes
        return min(self.open_nodes, max(self.left, nodes))

    @property
    def open_nodes(self) -> int:
        """How wide a new job may be."""
        if self.offered is None:
            return self.nodes
        return min(self.offered, self.nodes)


@dataclass(frozen=True, slots=True)
class PastJob:
    """A job of anyone, waiting, running or over. Times are seconds since the epoch, None if it
    has not come so far.

    What was cancelled before it ran does not count: it took no nodes. `cores`, `memory_bytes`: as
    those of an `OthersJob`.
    """

    id: str
    user: str
    nodes: int
    requested_s: int
    submitted_s: float
    started_s: float | None = None
    ended_s: float | None = None
    cores: int = 0
    memory_bytes: int = 0

    @property
    def run_s(self) -> float | None:
        """How long it ran; None if that is not known."""
        if self.started_s is None or self.ended_s is None:
            return None
        return self.ended_s - self.started_s


@dataclass(frozen=True, slots=True)
class Life:
    """For how long a job had its nodes, and what ended it: a cause if it was lost, None if it
    was not (yet).

    `hosts` are its nodes by name, if that is known; `node` is the one that is to blame.
    """

    job: str
    nodes: int
    started_s: float
    ended_s: float
    cause: Cause | None = None
    hosts: tuple[str, ...] = ()
    node: str = ""

    @property
    def run_s(self) -> float:
        """How long it ran."""
        return self.ended_s - self.started_s


@runtime_checkable
class Remembers(Protocol):
    """A queue whose accounts tell how jobs ended."""

    def lives(self, since_s: float) -> list[Life] | None:
        """All jobs that had nodes since then, those of our own runs too. None if no accounts are
        kept."""


@runtime_checkable
class Accounts(Protocol):
    """A queue whose site may keep accounts, which remember all users' jobs. Most have none, and
    runs do without."""

    @property
    def place(self) -> str:
        """Which queue of which cluster this is: what was learned of one says nothing of another."""

    def past_jobs(self, since_s: float) -> list[PastJob] | None:
        """All jobs that were in the queue since then, without those of our own runs. None if no
        accounts are kept.

        Raises QueueError if they do not answer. A site may show each user no jobs but their own.
        """


@runtime_checkable
class Shares(Protocol):
    """A queue whose jobs may have parts of nodes, where users share these (`Limits.sharing`)."""

    def in_parts(self, part: NodeShape) -> Queue:
        """The same queue, which counts nodes and jobs in such parts."""

    def in_nodes(self) -> Queue:
        """The same queue for jobs that have whole nodes, although they could have parts."""


def place_of(queue: Queue) -> str:
    """Which queue of which cluster this is, as far as it tells: the key of what is learned of
    it."""
    if isinstance(queue, Accounts):
        return queue.place
    return queue.name


@runtime_checkable
class Checked(Protocol):
    """A queue that can tell before a run whether it is set up well."""

    @property
    def shell(self) -> Mapping[str, str]:
        """The variables of the user's shell that count as settings, or by which the batch system is
        found. A run keeps them, wherever it is resumed."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know of where jobs go."""

    def check(self) -> None:
        """UserError if the queue would refuse every job, as it is set up."""


class Queue(Protocol):
    """A batch queue as its users see it."""

    @property
    def name(self) -> str:
        """What users call it."""

    @property
    def policy(self) -> str:
        """The policy of a simulated cluster that comes closest to its scheduler."""

    def limits(self) -> Limits:
        """What may be asked for. May be cached for the life of the object."""

    def submit(self, spec: JobSpec) -> str:
        """Submit a job. Returns its id: the queue has accepted it. Raises SpecError, QueueError or
        OutcomeUnknown."""

    def submit_array(self, specs: Sequence[JobSpec]) -> list[str]:
        """Submit jobs that differ in nothing but tag, command and output, in one call; at most
        `max_array` of them.

        Their tags are one prefix and consecutive numbers: `run-7`, `run-8`, ... All or nothing,
        with the errors of `submit`. `find` finds each of them by its own tag.
        """

    def status(self, ids: Collection[str]) -> Mapping[str, JobStatus]:
        """What the queue knows of these jobs, in one query for all (a second one, for those it has
        forgotten)."""

    def cancel(self, ids: Collection[str]) -> None:
        """Ask that these jobs go. A request, not a fact: the fact arrives in a later status. Over
        already: no error."""

    def find(self, tags: Collection[str]) -> Mapping[str, str]:
        """The ids of the jobs with these tags, as far as the queue knows any, over or not."""

    def snapshot(self) -> Snapshot:
        """The whole queue now."""

    def probe(self, nodes: int, walltime_s: int) -> float | None:
        """The queue's own estimate of when such a job would start if submitted now; None if it
        gives none."""

    def commands(self, specs: Sequence[JobSpec]) -> list[str]:
        """The exact commands by which these jobs would be submitted, for a person to read; nothing
        is submitted."""
