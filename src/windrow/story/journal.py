"""The journal of a run. Replaying its events into a new core gives the core that the run had.

Beside the events and facts of any journal it keeps what is known of an event beyond what the core
needs, how far the agents' event files have been read (in the same transaction as the events that
came from there), and predictions of starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, get_args

import msgspec

from windrow.model.attempt import Attempt
from windrow.records.compact import as_json
from windrow.records.journal import Journal
from windrow.story.events import Event


@dataclass(frozen=True, slots=True)
class Record:
    """An event with what is known of it beyond what the core needs.

    `at_s` is its exact time, if the core counts whole seconds. `attempt`: what its agent says of
    the attempt at a task of which the event is.
    """

    event: Event
    detail: Mapping[str, Any] | None = None
    at_s: float = -1.0
    attempt: Attempt | None = None

    def __post_init__(self) -> None:
        if self.at_s < 0:
            object.__setattr__(self, "at_s", float(self.event.at_s))


@dataclass(frozen=True, slots=True)
class PredictedStart:
    """What a forecaster said of one job when it was submitted. `used`: 1 if the decision was
    based on it."""

    job: int
    source: str
    at_s: float
    nodes: int
    requested_s: int
    start_s: float
    used: int


@dataclass(frozen=True, slots=True)
class QueueWords:
    """What the queue said last: what is wrong, why jobs wait, and what users should know."""

    trouble: str = ""
    reasons: Mapping[int, str] = field(default_factory=dict)
    """By the numbers of jobs."""
    notes: tuple[str, ...] = ()

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> QueueWords:
        """Those among the facts of a run."""
        return msgspec.convert(facts.get("queue_words", {}), cls, str_keys=True)


NO_WORDS = QueueWords()


_ATTEMPT = msgspec.json.Decoder(Attempt)


class RunJournal(Journal[Event]):
    """One run's journal."""

    kinds: ClassVar = {kind: kind.__name__ for kind in get_args(Event)}
    tables = """
CREATE TABLE events (seq INTEGER PRIMARY KEY, at_s REAL NOT NULL, kind TEXT NOT NULL, body BLOB NOT NULL, detail BLOB, attempt BLOB);
CREATE TABLE offsets (job INTEGER PRIMARY KEY, bytes INTEGER NOT NULL);
CREATE TABLE predictions (
    job INTEGER NOT NULL, source TEXT NOT NULL, at_s REAL NOT NULL,
    nodes INTEGER NOT NULL, requested_s INTEGER NOT NULL, start_s REAL NOT NULL, used INTEGER NOT NULL);
"""  # noqa: E501
    missing = ("there is no journal here", "windrow runs lists the runs of this folder")

    def append(self, records: Sequence[Record], offsets: Mapping[int, int] | None = None) -> None:
        """Keep these records for good, with how far the event files of these jobs have been
        read."""
        rows = [
            (
                *self._row(r.event),
                r.at_s,
                None if r.detail is None else as_json(r.detail),
                None if r.attempt is None else as_json(r.attempt.told()),
            )
            for r in records
        ]
        with self._transaction() as db:
            db.executemany(
                "INSERT INTO events (kind, body, at_s, detail, attempt) VALUES (?, ?, ?, ?, ?)",
                rows,
            )
            if offsets:
                db.executemany(
                    "INSERT OR REPLACE INTO offsets VALUES (?, ?)", list(offsets.items())
                )

    def predict(self, predictions: Sequence[PredictedStart]) -> None:
        """Keep these predictions."""
        columns = PredictedStart.__slots__
        rows = [tuple(getattr(p, name) for name in columns) for p in predictions]
        with self._transaction() as db:  # one write to disk for all of them
            db.executemany("INSERT INTO predictions VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def records(
        self, after: int = 0, kinds: Sequence[type[Event]] = ()
    ) -> Iterator[tuple[int, Record]]:
        """Numbered records, in order, from the one after `after` on; only those of these kinds,
        if any are given."""
        more = ", at_s, detail, attempt"
        for seq, event, (at_s, detail, attempt) in self._read(after, kinds, more):
            yield (
                seq,
                Record(
                    event,
                    None if detail is None else msgspec.json.decode(detail),
                    at_s,
                    None if attempt is None else _ATTEMPT.decode(attempt),
                ),
            )

    def offsets(self) -> dict[int, int]:
        """How far the agents' event files have been read, by job."""
        with self._file.explained():
            return dict(self._db.execute("SELECT job, bytes FROM offsets").fetchall())

    def predictions(self) -> list[PredictedStart]:
        """All predictions, in the order in which they were made."""
        query = "SELECT job, source, at_s, nodes, requested_s, start_s, used FROM predictions"
        with self._file.explained():
            return [PredictedStart(*row) for row in self._db.execute(query)]
