"""News of tasks in other jobs of the run, for which tasks of this job wait.

Read from the other agents' events files and from the manager's list of abandoned tasks. What another job lost or
dropped is no news: the manager plans it anew, and its end will stand in the events of a later job.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from windrow.agent.event_file import AttemptFailed, AttemptFinished, LineTail, Tail, json_lines
from windrow.agent.folder import RunFolder
from windrow.agent.job_file import JobFile

_SLOWEST_S = 5.0
_BACK_OFF = 1.5


@dataclass(frozen=True, slots=True)
class News:
    """A task of another job is done, or will never be."""

    task: int
    why_never: str = ""


class Elsewhere:
    """Looks into the other jobs' files, less and less often while there is nothing new."""

    def __init__(self, folder: RunFolder, job: JobFile, mine: Iterable[int] = ()) -> None:
        """`mine`: other jobs that this agent works at."""
        self._folder = folder
        self._passed_over = {job.job, *job.over, *mine}
        self._tails: dict[int, Tail] = {}
        self._first = job.over_below
        self._heard_bytes = job.heard_bytes
        self._abandoned = LineTail(folder.abandoned, job.abandoned_bytes)
        self._given_up = set(job.given_up)
        self._first_s = job.poll_s
        self.wait_s = 0.0
        """How long to wait before the next look."""

    @property
    def may_have_our_tasks(self) -> bool:
        """Whether a job that was given up may still finish tasks that are also in this job."""
        return any(n not in self._tails or not self._tails[n].has_ended for n in self._given_up)

    def look(self) -> list[News]:
        """What is new since the last look."""
        news = [*self._from_jobs(), *self._from_manager()]
        self.wait_s = self._first_s if news or not self.wait_s else min(self.wait_s * _BACK_OFF, _SLOWEST_S)
        return news

    def _from_jobs(self) -> Iterator[News]:
        for number in self._folder.numbers():
            if number not in self._passed_over and number not in self._tails and number >= self._first:
                self._tails[number] = Tail(self._folder.events(number), self._heard_bytes.get(str(number), 0))
        for number, tail in self._tails.items():
            while not tail.has_ended and (records := tail.read()):
                for record in records:
                    if isinstance(record, AttemptFinished):
                        yield News(record.task)
                    elif isinstance(record, AttemptFailed) and record.final and number not in self._given_up:
                        yield News(record.task, f"task {record.task}, on which it depends, failed")

    def _from_manager(self) -> Iterator[News]:
        for record in json_lines(self._abandoned):
            yield News(int(record["task"]), "the run has given it up, or a task on which it depends")
