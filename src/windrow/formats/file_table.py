"""The files of a workflow while it is being read: each id once, in order of first mention, with one size.

Formats that state a file's size at every use contradict themselves (most DAX files of the Pegasus gallery do). The law
here: the size said first by a task that writes the file holds; where no writer says one, the largest a reader says.
"""

from __future__ import annotations

from collections.abc import Sequence

from windrow.model import File


class FileTable:
    """Gathers mentions of files; `files()` is the outcome."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._sizes: list[int] = []
        self._settled: list[bool] = []

    def __contains__(self, file_id: str) -> bool:
        return file_id in self._numbers

    def number(self, file_id: str) -> int:
        """The file's number; a file not mentioned before gets the next one."""
        number = self._numbers.setdefault(file_id, len(self._sizes))
        if number == len(self._sizes):
            self._sizes.append(0)
            self._settled.append(False)
        return number

    def numbers(self, file_ids: Sequence[str]) -> Sequence[int]:
        """The numbers of the files a task names, each file once."""
        if not file_ids:
            return ()
        try:  # nearly always all are known and named once; then this is all there is to do
            numbers = [self._numbers[file_id] for file_id in file_ids]
        except KeyError:
            numbers = [self.number(file_id) for file_id in file_ids]
        return numbers if len(numbers) == len(set(numbers)) else list(dict.fromkeys(numbers))

    def state_size(self, file_id: str, size_bytes: int, *, by_writer: bool) -> int:
        """Note what a task says about a file's size; returns the file's number."""
        number = self.number(file_id)
        if not self._settled[number]:
            settled = by_writer or size_bytes < 0  # a negative size stays, for the model to refuse it
            self._sizes[number] = size_bytes if settled else max(self._sizes[number], size_bytes)
            self._settled[number] = settled
        return number

    def files(self) -> list[File]:
        """All files, by number."""
        return [File(file_id, size) for file_id, size in zip(self._numbers, self._sizes, strict=True)]
