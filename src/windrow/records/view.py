"""A journaled thing as any process can tell it: its facts, its events, who works at it. Reading changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Generic, TypeVar

from windrow.records.journal import Journal
from windrow.records.lock import holder_of

J = TypeVar("J", bound=Journal[Any])


class JournalView(Generic[J]):
    """Reads the journal; `refresh` reads what is new."""

    def __init__(self, journal: J, lock: Path) -> None:
        self._journal, self._lock, self._seen = journal, lock, 0
        self.refresh()

    def refresh(self) -> None:
        """Take in what has happened since the last look."""
        self.facts: dict[str, Any] = self._journal.facts()
        for seq, record in self._journal.records(self._seen):
            self._hear(record)
            self._seen = seq
        self.holder = holder_of(self._lock)
        """Who works at it now; None: nobody."""

    def _hear(self, record: Any) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Let go of the journal."""
        self._journal.close()
