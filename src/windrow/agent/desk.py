"""The jobs at which one agent works, and their files: its own, and those that it took over.

A batch system may start a run's jobs in any order. A job that has nodes, and waits for tasks of a
job that has none, takes that job over: it claims it, runs its tasks in its own allocation, and
writes what happens to them into the events file of the job that they are in. When the queue starts
the other job after all, its agent finds the claim and leaves.

Rule 1: only a job of this site not claimed by any agent is taken, only if its tasks fit this
allocation, and only if those that are ready should end before the deadline. Rule 2: claim first,
then look for the fence; the manager does it the other way round, so at least one of the two sees
the other. Rule 3: records are written before what they say is acted on. Rule 4: a job that is
`offered` has only copies of tasks that run elsewhere. An agent whose nodes are idle takes it at
once, if its own tasks need neither the room nor less time.

News of tasks for which tasks here wait come from the other agents' events files and from the
manager's lists: of abandoned tasks, and of those whose files have arrived from elsewhere. What
another job lost or dropped is not news: the manager plans it again, and its end will stand in the
events of a later job.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

from windrow.agent.claim import claim, is_fenced
from windrow.agent.core import AgentCore
from windrow.agent.event_file import (
    AgentLeft,
    AgentStarted,
    AttemptFailed,
    AttemptFinished,
    OutputsCommitted,
    Tail,
    Writer,
)
from windrow.agent.folder import RunFolder
from windrow.agent.job_file import JobFile, read_job
from windrow.errors import InputError
from windrow.model.attempt import DONE, Leaving

GIVEN_UP = "the run has given this job up"
_SLOWEST_S = 5.0
_BACK_OFF = 1.5

News = tuple[int, str]
"""A task of another job, and why it will never be done; empty if it is."""


def _still_local(record: AttemptFinished | OutputsCommitted) -> tuple[str, ...]:
    """Outputs of a task that are on nodes of its job alone after this."""
    if isinstance(record, OutputsCommitted):
        return record.local
    return record.of.local


class Elsewhere:
    """Looks into the other jobs' files, less and less often while there is nothing new."""

    def __init__(self, folder: RunFolder, job: JobFile, mine: Iterable[int] = ()) -> None:
        """`mine`: other jobs that this agent works at."""
        self._folder = folder
        self._job = job
        self._passed_over = {job.job, *job.over, *mine}
        self._tails: dict[int, Tail] = {}
        self._abandoned = Tail(folder.abandoned, job.abandoned_bytes)
        self._wishes = Tail(folder.abandoned, job.abandoned_bytes)
        self._arrived = Tail(folder.arrived, job.arrived_bytes)
        self._concern = {number for task in job.tasks for number in (task.task, *task.parents)}
        self._rivals = [number for number in job.given_up if self._may_share_tasks(number)]
        self.wait_s = 0.0
        """How long to wait before the next look."""

    @property
    def may_have_our_tasks(self) -> bool:
        """Whether a job that was given up may still finish tasks that are also in this job."""
        return any(n not in self._tails or not self._tails[n].has_ended for n in self._rivals)

    def _may_share_tasks(self, number: int) -> bool:
        try:
            tasks = {task.task for task in read_job(self._folder.job_file(number)).tasks}
        except InputError:  # it is not at this site
            return True
        return not tasks.isdisjoint(task.task for task in self._job.tasks)

    def look(self) -> list[News]:
        """What is new since the last look."""
        given_up = "the run has given it up, or a task on which it depends"
        news = [
            *self._from_jobs(),
            *(
                (int(record["task"]), given_up)
                for record in self._abandoned.read_json()
                if "priority" not in record and "again" not in record
            ),
        ]
        news += [(int(record["task"]), "") for record in self._arrived.read_json()]
        # What else the run does does not call for a look more often.
        news = [(task, why_never) for task, why_never in news if task in self._concern]
        if news or not self.wait_s:
            self.wait_s = self._job.poll_s
        else:
            self.wait_s = min(self.wait_s * _BACK_OFF, _SLOWEST_S)
        return news

    def wishes(self) -> list[dict[str, Any]]:
        """What the run wants of tasks of the job, since the last look: they `ends`, since the user
        does not want them any more, or changes them; they are to run `again` in another job, since
        what they read is made again; or they have this `priority`."""
        lines = self._wishes.read_json()
        tasks = {task.task for task in self._job.tasks} if lines else set()
        return [
            line
            for line in lines
            if line["task"] in tasks and not line.keys().isdisjoint(("ends", "again", "priority"))
        ]

    def _reads(self, parent: int, names: tuple[str, ...]) -> bool:
        """Whether tasks here read these outputs of a task, which are on a node of another job
        alone."""
        readers = (spec for spec in self._job.tasks if parent in spec.parents)
        return any(not set(names).isdisjoint(spec.inputs) for spec in readers)

    def _from_jobs(self) -> Iterator[News]:
        for number in self._folder.numbers():
            if (
                number not in self._passed_over
                and number not in self._tails
                and number >= self._job.over_below
            ):
                self._tails[number] = Tail(
                    self._folder.events(number), self._job.heard_bytes.get(str(number), 0)
                )
        for number, tail in self._tails.items():
            while not tail.has_ended and (records := tail.read()):
                for record in records:
                    if (
                        number in self._job.given_up
                    ):  # as the manager takes it (`translate.from_given_up`)
                        if isinstance(record, AttemptFinished) and not record.of.local:
                            yield record.task, ""
                    elif isinstance(record, (AttemptFinished, OutputsCommitted)):
                        if not self._reads(record.task, _still_local(record)):
                            yield record.task, ""
                    elif isinstance(record, AttemptFailed) and record.final:
                        yield record.task, f"task {record.task}, on which it depends, failed"


class Desk:
    """What an agent reads and writes. The first job is its own."""

    def __init__(
        self,
        folder: RunFolder,
        job: JobFile,
        core: AgentCore,
        writer: Writer,
        hosts: tuple[str, ...],
        queue_id: str,
    ) -> None:
        self._folder = folder
        self._job = job
        self._core = core
        self._hosts = hosts
        self._queue_id = queue_id
        self._writers = {job.job: writer}
        self._sources = {job.job: Elsewhere(folder, job)}
        self._look_at = self._idle_since = 0.0
        self._refused: set[int] = set()  # jobs that are not offered, or were taken by others

    def begin(self, at: float) -> None:
        """The job starts."""
        self._idle_since = at
        self._writers[self._job.job].add(
            AgentStarted(at, self._hosts[0], os.getpid(), self._queue_id, self._hosts)
        )
        self.write(at)

    @property
    def _listens(self) -> bool:
        listens = self._core.is_waiting_for_others or self._core.may_be_beaten
        return listens or any(source.may_have_our_tasks for source in self._sources.values())

    def look_again_s(self, now: float) -> float | None:
        """Seconds until `hear` should be called; None while nothing is waited for."""
        if self._listens:
            return max(0.0, self._look_at - now)
        return None

    @property
    def take_over_at(self) -> float:
        """From when on `take_over` may have something to do."""
        is_idle = self._core.is_waiting_for_others and not self._core.running
        if is_idle:
            return self._idle_since + self._job.takeover_s
        return float("inf")

    @property
    def may_host(self) -> bool:
        """Whether jobs of copies may be offered to idle nodes here."""
        return self._job.offered is not None and not self._core.is_done

    def sync_due_s(self) -> float | None:
        """Seconds until `write` should be called though nothing happened."""
        due = [
            due_s for writer in self._writers.values() if (due_s := writer.sync_due_s()) is not None
        ]
        return min(due, default=None)

    def hear(self, now: float) -> None:
        """Take in what other jobs have done, and which jobs were given up. Before anything is
        started."""
        if self._listens and now >= self._look_at:
            for source in self._sources.values():
                self._tell(source.look(), now)
            self._look_at = now + min(source.wait_s for source in self._sources.values())
        if self._core.may_start:
            self.hear_wishes(now)
            for number in self._writers:
                if is_fenced(self._folder, number):
                    self._core.drain(GIVEN_UP, now, None if number == self._job.job else number)

    def hear_wishes(self, now: float) -> None:
        """End what the user does not want any more, start nothing that reads what is to be made
        again, and take up other priorities."""
        for source in list(self._sources.values()):
            for wish in source.wishes():
                if "priority" in wish:
                    self._core.rank(wish["task"], wish["priority"])
                elif "again" in wish:
                    self._core.call_back(wish["task"], now)
                else:
                    self._core.dismiss(wish["task"], now)

    def take_over(self, now: float) -> bool:
        """Take another job's tasks if nothing has run here for a while, and tasks wait for them.
        Whether it did."""
        if self._core.running or not self._core.is_waiting_for_others:
            self._idle_since = now
        if now - self._idle_since >= self._job.takeover_s:
            self._idle_since = now
            return any(self._take(number, now) for number in self._folder.numbers())
        if not self.may_host:
            return False
        return any(
            self._take(n, now, is_offer=True)
            for n in self._folder.numbers()
            if n not in self._refused
        )

    def take_more(self, now: float) -> bool:
        """Take a job whose tasks joined the run while nodes are kept here. Whether it did."""
        return any(
            self._take(n, now, is_idle=True)
            for n in self._folder.numbers()
            if n not in self._refused
        )

    def _take(
        self, number: int, now: float, *, is_offer: bool = False, is_idle: bool = False
    ) -> bool:
        """Take this job, if it has not been started and it fits; only one that `is_offer`ed.
        Whether it did. `is_idle`: nothing here waits for it, or for anything."""
        is_old = (
            number < self._job.over_below or number in self._job.over or number in self._writers
        )
        if is_old or self._folder.claim(number).exists() or is_fenced(self._folder, number):
            self._refused.add(number)
            return False
        job = self._fitting(number, now, is_offer=is_offer, is_idle=is_idle)
        if job is None:
            return False
        source = Elsewhere(self._folder, job, self._writers)
        news = source.look()
        done = {task for task, why_never in news if not why_never}
        if not is_offer and not self._core.can_adopt(job, done, now):
            return False
        holder = claim(
            self._folder.claim(number), self._hosts[0], self._queue_id, now, by_job=self._job.job
        )
        if holder or is_fenced(self._folder, number):
            return False
        writer = self._writers[self._job.job].beside(self._folder.events(number))
        self._writers[number] = writer
        self._sources[number] = source
        mine = os.getpid(), self._queue_id, self._hosts, self._job.job
        writer.add(AgentStarted(now, self._hosts[0], *mine))
        self._core.adopt(job, now)
        self._tell(news, now)
        self.write(now)
        return True

    def _fitting(self, number: int, now: float, *, is_offer: bool, is_idle: bool) -> JobFile | None:
        """The job, if it is of the kind that is looked for, and could run here."""
        try:
            job = read_job(self._folder.job_file(number))
        except InputError:  # it is being written
            return None
        is_near = job.site == self._job.site
        if is_offer and not (job.offered and is_near):
            self._refused.add(number)
        if not is_near or bool(job.offered) != is_offer:
            return None
        if is_offer:
            fits = self._core.can_host(job, now)
        else:
            fits = is_idle or self._core.waits_for_any(job)
        return job if fits else None

    def _tell(self, news: Iterable[News], now: float) -> None:
        for task, why_never in news:
            if why_never:
                self._core.never(task, why_never, now)
            else:
                self._core.done_elsewhere(task)

    def write(self, at: float, why: Leaving = DONE) -> None:
        """Write what happened, each record into the file of its job. A job that was taken over and
        is done ends."""
        for record in self._core.take_records():
            home = self._core.home_of(getattr(record, "task", None), self._job.job)
            self._writers[home if home in self._writers else self._job.job].add(record)
        for number in [n for n in self._writers if n != self._job.job and self._core.is_closed(n)]:
            writer = self._writers.pop(number)
            del self._sources[number]
            writer.add(AgentLeft(at, why))
            writer.close()
        for writer in self._writers.values():
            writer.flush()
            if writer.sync_due_s() == 0:
                writer.sync()

    def sync(self) -> None:
        """What was written lasts: it is about to be acted on in a way that cannot be undone."""
        for writer in self._writers.values():
            if writer.sync_due_s() is not None:
                writer.sync()

    def end(self, why: Leaving, at: float, kept_s: float = 0.0) -> None:
        """The agent leaves; for so long it kept its nodes for tasks to come."""
        self._core.end(why, at, kept_s)
        self.write(at, why)
        for writer in self._writers.values():
            writer.close()
