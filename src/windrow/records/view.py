"""A journaled thing as any process can tell it: its facts, its events, who works at it. Reading changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from windrow.records.lock import holder_of

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class ReadJournal(Protocol[R_co]):
    """What a view wants of a journal."""

    def facts(self) -> dict[str, Any]:
        """What is known of the whole."""

    def records(self, after: int = 0) -> Iterator[tuple[int, R_co]]:
        """Numbered records after this one."""

    def close(self) -> None:
        """Let go of the file."""


class JournalView(Generic[R]):
    """Reads the journal; `refresh` reads what is new."""

    def __init__(self, journal: ReadJournal[R], lock: Path) -> None:
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

    def _hear(self, record: R) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Let go of the journal."""
        self._journal.close()
