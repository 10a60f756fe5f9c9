"""What a manager hears of its jobs, from the queue and from the agents' event files.

Rule 1: it only listens: what it heard is handed on as records, and believed when the manager has
journaled them.
Rule 2: one query asks for all jobs, soon after one was submitted or lost and ever more rarely after
that: the queue's controller serves all users. What agents tell of is not asked for.
Rule 3: a job is over when queue or agent say so, and its agent has had the time to say what it did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from windrow.agent import event_file
from windrow.manager.core import Core
from windrow.model.attempt import DONE, Leaving
from windrow.queues.port import JobState, JobStatus, Queue, QueueError
from windrow.story import translate
from windrow.story.events import JobEnded, JobKilled, JobStarted, JobTaken
from windrow.story.journal import Record

if TYPE_CHECKING:
    from windrow.data.mirror import Mirror

POLL_S = 2.0
"""The least time between two queries of the queue."""
SLOWEST_POLL_S = 40.0
_SLOWER = 2.0
MANY = 32
"""Of more jobs than these, those that the queue does not call running are listened to in turn, this
many at a time."""
_BUSY_S = 0.1
_IDLE_S = 0.5
_IDLE_WITH_MANY_S = 1.0
PATIENCE_S = 3.0
"""How long after a job's end its agent's last words may take to show up on a disk of this
machine."""
LATE_FILES_S = 60.0
"""The same on a file system that other machines write to and that may keep what it saw before for
so long."""
FORGOTTEN_S = 60.0
"""How long the queue may not know a job before it is given up for lost."""
_PRINTED_BYTES = 1 << 14
LATE_S = 600.0
"""How long after its walltime a job that was given up is listened to."""


def next_look_s(jobs: int, *, happened: bool) -> float:
    """How long to sleep before the agents of these jobs are listened to again; `happened`: one of
    them spoke."""
    if happened:
        return _BUSY_S
    if jobs <= MANY:
        return _IDLE_S
    return _IDLE_WITH_MANY_S


@dataclass(slots=True)
class PollTimes:
    """When to ask the queue next: soon after something happened, ever more rarely while nothing
    does."""

    gap_s: float = POLL_S
    last_s: float = float("-inf")

    def is_due(self, now_s: float) -> bool:
        """Whether it is time to ask."""
        return now_s >= self.last_s + self.gap_s

    def asked(self, now_s: float) -> None:
        """The queue was asked: the next time comes later."""
        if self.last_s == float("-inf"):
            self.gap_s = POLL_S
        else:
            self.gap_s = min(self.gap_s * _SLOWER, SLOWEST_POLL_S)
        self.last_s = now_s

    def hurry(self) -> None:
        """Something happened: ask again as soon as is decent."""
        self.gap_s = POLL_S


@dataclass(slots=True)
class Placed:
    """A job that is in the core, as the shell sees it. `id` is None while the queue has not
    accepted it.

    `is_taken`: the agent of another job runs it, and `id` is that job's. `claimant` is what the
    queue calls the job that has its claim, once that was looked at; a claim never changes.
    """

    tail: event_file.Tail
    id: str | None = None
    is_doubtful: bool = True
    is_started: bool = False
    is_taken: bool = False
    status: JobStatus | None = None
    missing_since_s: float | None = None
    over_since_s: float | None = None
    last_word: Leaving | None = None
    alive_s: float | None = None
    """When it was last known to run, by our clock: at the latest record of its agent, or as the
    queue said so."""
    claimant: str = ""
    kept_s: float = 0.0
    """How long its agent kept its nodes for tasks to come."""
    offered_until_s: float = float("-inf")
    """Until when, by the steady clock, running jobs may take it over before it is submitted."""


@dataclass(slots=True)
class GivenUp:
    """A job whose agent may live on. After `until_s` its walltime is over for sure."""

    tail: event_file.Tail
    until_s: float


@dataclass
class Hearing:
    """Listens for the jobs in `placed`, which the manager keeps."""

    core: Core
    queue: Queue
    placed: dict[int, Placed]
    now_s: Callable[[], float]
    steady_s: Callable[[], float]
    pace: PollTimes = field(default_factory=PollTimes)
    mirror: Mirror | None = None
    """Where jobs here see other files than those of home."""
    patience_s: float = PATIENCE_S
    """How long after a job's end its agent's last words are awaited."""
    _turn: int = 0
    given_up: dict[int, GivenUp] = field(default_factory=dict)
    """Jobs that are over for the core, whose agents may live."""
    trouble: str = ""
    """The queue's last complaint, while it lasts."""
    silent_since_s: float | None = None
    """When it began, by the steady clock."""

    def listen(self) -> tuple[list[Record], dict[int, int]]:
        """All that is new, in an order that can be believed; and how far the event files have been
        read."""
        records, offsets = self._late_words()
        more, further = self._agents()
        records = records + more
        offsets = offsets | further
        if self.pace.is_due(self.steady_s()):
            records += self._ask_queue()
        records += self._endings()
        if any(isinstance(record.event, JobKilled) for record in records):
            self.pace.hurry()  # what agents tell of need not be asked for
        return records, offsets

    def answered(self) -> None:
        """The queue answers."""
        self.trouble = ""
        self.silent_since_s = None

    def complain(self, why: str) -> None:
        """The queue does not answer."""
        self.trouble = why
        if self.silent_since_s is None:
            self.silent_since_s = self.steady_s()

    def due_s(self) -> float:
        """When there is something to do though no agent speaks, by the steady clock: a query,
        patience at an end."""
        over = (job.over_since_s for job in self.placed.values() if job.over_since_s is not None)
        return min(
            [self.pace.last_s + self.pace.gap_s, *(since_s + self.patience_s for since_s in over)]
        )

    def _late_words(self) -> tuple[list[Record], dict[int, int]]:
        """What agents finished whose jobs were given up. Each is listened to until it leaves, or
        must have."""
        records: list[Record] = []
        offsets: dict[int, int] = {}
        for number, job in list(self.given_up.items()):
            while words := job.tail.read():
                offsets[number] = job.tail.offset
                heard = (
                    self._here(translate.from_given_up(number, word))
                    for word in map(self._timed, words)
                )
                records += [record for record in heard if record is not None]
            if job.tail.has_ended or self.now_s() > job.until_s:
                del self.given_up[number]
        return records, offsets

    def _agents(self) -> tuple[list[Record], dict[int, int]]:
        """New words of agents. If very many jobs wait, of some in turn: another job may have
        taken one over."""
        records: list[Record] = []
        offsets: dict[int, int] = {}
        quiet = [
            n for n, job in self.placed.items() if not job.is_started and job.over_since_s is None
        ]
        skipped: set[int] = set()
        if len(self.placed) > MANY and quiet:
            self._turn = (self._turn + MANY) % len(quiet)
            skipped = set(quiet) - set((quiet[self._turn :] + quiet)[:MANY])
        for number, job in self.placed.items():
            if number in skipped:
                continue
            while words := job.tail.read():
                offsets[number] = job.tail.offset
                records += self._words(number, words)
        return self._without_repeated_starts(records), offsets

    def _words(self, number: int, words: Iterable[event_file.Record]) -> list[Record]:
        records: list[Record] = []
        for word in words:
            self.note_sign_of_life(number, word)
            if isinstance(word, event_file.AgentLeft) and word.why != DONE:
                self.pace.hurry()  # the queue will soon say how it ended
            if (heard := self._here(translate.from_agent(number, self._timed(word)))) is not None:
                self.placed[number].is_started |= isinstance(heard.event, JobTaken)
                records.append(heard)
        return records

    def note_sign_of_life(self, number: int, word: event_file.Record) -> None:
        """The agent of a job wrote this. When it left, that was the end of the job."""
        job = self.placed[number]
        at_s = self._timed(word).at
        if isinstance(word, event_file.AgentLeft):
            job.last_word = word.why
            job.kept_s = word.kept_s
            job.alive_s = at_s
        elif job.last_word is None:
            job.alive_s = max(at_s, job.alive_s or at_s)

    def _timed(self, word: event_file.Record) -> event_file.Record:
        """The same by our clock, if that of the site is off: times of two clocks do not
        compare."""
        if self.mirror is None:
            off_s = 0.0
        else:
            off_s = self.mirror.skew_s
        if not off_s:
            return word
        if isinstance(word, event_file.AttemptFinished | event_file.AttemptFailed):
            word = replace(word, of=replace(word.of, begun=word.of.begun - off_s))
        return replace(word, at=word.at - off_s)

    def _timed_status(self, status: JobStatus) -> JobStatus:
        """The same of what the queue says."""
        if self.mirror is None:
            off_s = 0.0
        else:
            off_s = self.mirror.skew_s
        told = {name: getattr(status, name) for name in ("started_s", "ended_s")}
        shifted = {name: at_s - off_s for name, at_s in told.items() if off_s and at_s is not None}
        if shifted:
            return replace(status, **shifted)
        return status

    def _here(self, record: Record | None) -> Record | None:
        """The same, with the place of files where it happened, if that is not home."""
        if record is None or self.mirror is None:
            return record
        if record.attempt is None:
            return record
        return replace(record, attempt=replace(record.attempt, place=self.mirror.name))

    def _without_repeated_starts(self, records: list[Record]) -> list[Record]:
        """Both the queue and the agent say that a job started; the first one counts."""
        kept = []
        for record in records:
            if isinstance(record.event, JobStarted):
                if self.placed[record.event.job].is_started:
                    continue
                self.placed[record.event.job].is_started = True
            kept.append(record)
        return kept

    def _ask_queue(self) -> list[Record]:
        """One query for all jobs."""
        ids: dict[
            str, list[int]
        ] = {}  # those that were taken over have the id of the job that runs them
        for number, job in self.placed.items():
            if job.id is not None and job.over_since_s is None:
                ids.setdefault(job.id, []).append(number)
        self.pace.asked(self.steady_s())
        if not ids:
            return []
        try:
            statuses = self.queue.status(list(ids))
        except QueueError as error:
            self.complain(str(error))
            return []
        self.answered()
        records: list[Record] = []
        for queue_id, numbers in ids.items():
            for number in numbers:
                records += self._sighted(number, statuses.get(queue_id))
        return self._without_repeated_starts(records)

    def _sighted(self, number: int, status: JobStatus | None) -> list[Record]:
        job = self.placed[number]
        now = self.steady_s()
        if status is None:
            _note_missing(job, now)
            return []
        status = self._timed_status(status)
        job.missing_since_s = None
        job.status = status
        if status.state.is_over:
            job.over_since_s = now
        elif status.state is JobState.RUNNING and job.last_word is None:
            job.alive_s = max(self.now_s(), job.alive_s or 0.0)
        if status.started_s is None or job.is_started:
            return []
        started_s = status.started_s
        return [Record(JobStarted(int(started_s), number), {"by": "queue"}, started_s)]

    def _endings(self) -> list[Record]:
        """Jobs whose agents have done all they could, and jobs that are over by the queue's
        word."""
        records: list[Record] = []
        for number, job in self.placed.items():
            at = self._alive_s(number, job)
            if job.last_word == DONE:
                detail = {"agent": job.last_word} | _kept(job)
                records.append(Record(JobEnded(int(at), number), detail, at))
            elif job.over_since_s is not None and not self._may_still_speak(job):
                ended = translate.ending(
                    number,
                    job.status if job.missing_since_s is None else None,
                    at,
                    was_asked=self.core.jobs[number].is_stopping,
                    last_word=job.last_word,
                    printed=_printed(job),
                )
                records.append(replace(ended, detail={**(ended.detail or {}), **_kept(job)}))
        return records

    def _alive_s(self, number: int, job: Placed) -> float:
        """When a job was last known to run; of one of which nothing is known, when it started, or
        now if it did not."""
        if job.alive_s is not None:
            return job.alive_s
        started_s = self.core.jobs[number].started_s
        if started_s is None:
            return self.now_s()
        return float(started_s)

    def _may_still_speak(self, job: Placed) -> bool:
        """Whether what a job that is over did may not have reached this machine yet."""
        may_have_run = job.is_started or job.missing_since_s is not None
        is_silent = may_have_run and job.last_word is None
        return (
            is_silent
            and job.over_since_s is not None
            and self.steady_s() - job.over_since_s < self.patience_s
        )


def _kept(job: Placed) -> dict[str, object]:
    """How long nodes were kept for tasks to come, if they were."""
    if job.kept_s:
        return {"kept_s": job.kept_s}
    return {}


def _printed(job: Placed) -> str:
    """The end of what a job printed whose agent fell silent."""
    if job.last_word is not None:
        return ""
    try:
        printed = job.tail.path.with_name("output").read_bytes()
    except OSError:
        return ""
    return printed[-_PRINTED_BYTES:].decode(errors="replace")


def _note_missing(job: Placed, now: float) -> None:
    """The queue does not know it; after a while that means that it is over."""
    if job.missing_since_s is None:
        job.missing_since_s = now
    if job.last_word is not None or now - job.missing_since_s > FORGOTTEN_S:
        job.over_since_s = now
