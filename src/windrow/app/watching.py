"""Following a run event by event, for programs that act on what happens.

Law: a look costs what has happened since the one before, however long the run is. Nothing is kept
open between two looks.
"""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass

import msgspec

from windrow.app.runs import RunPaths
from windrow.story.events import TasksAdded
from windrow.story.journal import Record, RunJournal


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in a run, in the order of `number`.

    `what` is its name, such as `TaskFinished`. `task` and `job` are what it is about, if it is
    about one.
    """

    number: int
    at_s: float
    what: str
    task: str | None
    job: int | None
    detail: Mapping[str, object]


class _Named(msgspec.Struct):
    id: str


class _Tasks(msgspec.Struct):
    tasks: list[_Named]


class Watch:
    """What has happened in a run since the last look. For one thread at a time."""

    def __init__(self, paths: RunPaths, since: int = 0) -> None:
        self._paths = paths
        first = msgspec.json.decode(paths.workflow.read_bytes(), type=_Tasks)
        self._ids = [task.id for task in first.tasks]
        self._since = 0
        if since:
            for _ in self._records(since):
                pass

    def look(self) -> list[Event]:
        """All that is new, in order."""
        return [self._event(number, record) for number, record in self._records(None)]

    def _records(self, until: int | None) -> list[tuple[int, Record]]:
        found = []
        with closing(RunJournal.open(self._paths.journal)) as journal:
            for number, record in journal.records(self._since):
                if until is not None and number > until:
                    break
                if isinstance(record.event, TasksAdded):
                    self._ids += [task.id for task in record.event.added.tasks]
                self._since = number
                found.append((number, record))
        return found

    def _event(self, number: int, record: Record) -> Event:
        task = getattr(record.event, "task", None)
        return Event(
            number,
            record.at_s,
            RunJournal.kinds[type(record.event)],
            None if task is None else self._ids[task],
            getattr(record.event, "job", None),
            _about(record),
        )


def _about(record: Record) -> dict[str, object]:
    """What is known of an event, and of the attempt of which it is."""
    about = dict(record.detail or {})
    if record.attempt is not None:
        about |= record.attempt.told()
    return about
