"""Which files of a run are on nodes of a job alone, as the journal tells it.

Law: a place belongs to an allocation. A file is on the nodes of the job whose agent said so when
its maker finished, until the agent says that it is committed (FilesMoved), its maker is undone, or
the job is over: then it is gone (FilesGone), as a temporary file that was deleted. Who made it runs
again if an open task reads it, and so does the task that made what that one reads and is gone. A
task in another job waits for its maker: until the file is committed, or made again.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field

from windrow.model import Workflow
from windrow.model.attempt import Attempt
from windrow.story import events as e
from windrow.story.journal import Record


@dataclass
class LocalPlaces:
    """The files that are on nodes alone, by name, each with its job."""

    at: dict[str, int] = field(default_factory=dict)
    _maker: dict[str, int] = field(default_factory=dict)
    committed: set[tuple[str, int]] = field(default_factory=set)
    """Files that were, each with its job, and have come to the shared file system since."""

    def _made(self, task: int, attempt: Attempt | None) -> None:
        if attempt is not None:
            self.at |= dict.fromkeys(attempt.local, attempt.job)
            self._maker |= dict.fromkeys(attempt.local, task)

    def note(self, record: Record) -> None:
        """Take in what happened."""
        event = record.event
        if isinstance(event, e.TaskFinished):
            self._made(event.task, record.attempt)
        elif self.at and isinstance(event, e.TaskUndone):
            self._forget(name for name, maker in self._maker.items() if maker == event.task)
        elif self.at and isinstance(event, e.FilesMoved | e.FilesGone):
            names = [name for name in event.files if name in self.at and self.at[name] == event.job]
            if isinstance(event, e.FilesMoved):
                self.committed.update((name, self.at[name]) for name in names)
            self._forget(names)

    def _forget(self, names: Iterable[str]) -> None:
        for name in list(names):
            del self.at[name], self._maker[name]

    def makers_for(self, workflow: Workflow, task: int, job: int) -> set[int]:
        """The tasks that made what this one reads, if that is on nodes of another job."""
        if self.at:
            names = workflow.task(task).inputs
        else:
            names = ()
        return {self._maker[name] for name in names if self.at.get(name, job) != job}

    def void(self, jobs: Container[int]) -> dict[int, dict[str, int]]:
        """What was on nodes of jobs that are over, by job; each file with the task that made it."""
        found: dict[int, dict[str, int]] = {}
        for name, job in self.at.items():
            if job not in jobs:
                found.setdefault(job, {})[name] = self._maker[name]
        return found
