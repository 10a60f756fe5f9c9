"""The journal of a pool."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from windrow.deletion import discard, put
from windrow.pool.events import KINDS, Event
from windrow.records.journal import Journal


class PoolJournal(Journal[Event]):
    """One pool's journal."""

    kinds = KINDS
    tables = (
        "CREATE TABLE events (seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, body BLOB NOT NULL);"
    )
    missing = ("there is no journal of a pool here", "windrow pool NAME starts a pool")

    @classmethod
    def create(cls, path: Path, facts: Mapping[str, Any]) -> Self:
        """The journal that is there, or a new one with these facts, whole or not at all. Open for
        reading."""
        if not path.exists():
            draft = path.with_name(path.name + ".new")
            discard(draft)
            super().create(draft, facts).close()
            put(draft, path)
        return cls.open(path)

    def append(self, events: Sequence[Event], facts: Mapping[str, Any] | None = None) -> None:
        """Keep these events for good, and replace these facts, in one step."""
        rows = [self._row(event) for event in events]
        with self._transaction() as db:
            db.executemany("INSERT INTO events (kind, body) VALUES (?, ?)", rows)
            self._keep(facts or {})

    def records(self, after: int = 0) -> Iterator[tuple[int, Event]]:
        """Numbered events, in order, from the one after `after` on."""
        return ((seq, event) for seq, event, _ in self._read(after))
