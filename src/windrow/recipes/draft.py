"""A workflow being drawn up, in whole arrays of tasks and files.

Law: a dependency is a file. A task depends on another exactly if it reads a file that the other
writes, so data and precedence cannot disagree; recipes never state an edge in any other way.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from windrow.model import Adjacency, File, Workflow
from windrow.model.graph import Ints
from windrow.model.workflow import Floats

MEGABYTE = 1_000_000


class RecipeDraft:
    """Collects tasks, files, readers and writers, all by number; `workflow()` makes the
    Workflow."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._ids: list[str] = []
        self._kinds: list[str] = []
        self._of_kind: Counter[str] = Counter()
        self._times: list[Floats] = []
        self._files: list[File] = []
        none = np.zeros((2, 0), dtype=np.int64)
        # tasks above files
        self._writes = [none]
        self._reads = [none]

    def add(self, kind: str, runtime_s: ArrayLike) -> Ints:
        """Adds one task of this kind for each run time. Returns their numbers."""
        times = np.atleast_1d(np.asarray(runtime_s, dtype=np.float64))
        first = len(self._ids)
        named = self._of_kind[kind]
        self._ids += [f"{kind}_{i:05d}" for i in range(named + 1, named + 1 + len(times))]
        self._kinds += [kind] * len(times)
        self._of_kind[kind] += len(times)
        self._times.append(times)
        return np.arange(first, first + len(times), dtype=np.int64)

    def files(
        self,
        names: str | Sequence[str],
        size_bytes: ArrayLike,
        *,
        written_by: ArrayLike | None = None,
        read_by: ArrayLike | None = None,
        role: str = "",
    ) -> Ints:
        """Adds one file for each name; sizes are rounded up to whole bytes. Returns their
        numbers."""
        all_names = [names] if isinstance(names, str) else names
        sizes = np.broadcast_to(
            np.ceil(np.asarray(size_bytes, dtype=np.float64)), len(all_names)
        ).astype(np.int64)
        first = len(self._files)
        self._files += [
            File(name, size, role=role)
            for name, size in zip(all_names, sizes.tolist(), strict=True)
        ]
        numbers = np.arange(first, first + len(all_names), dtype=np.int64)
        if written_by is not None:
            self._writes.append(_pairs(written_by, numbers))
        if read_by is not None:
            self.reads(read_by, numbers)
        return numbers

    def writes(self, tasks: ArrayLike, files: ArrayLike) -> None:
        """Each task writes the file beside it; a single one on either side is paired with all on
        the other."""
        self._writes.append(_pairs(tasks, files))

    def reads(self, tasks: ArrayLike, files: ArrayLike) -> None:
        """Each task reads the file beside it; a single one on either side is paired with all on the
        other."""
        self._reads.append(_pairs(tasks, files))

    def phases(self, phases: Iterable[tuple[str, ArrayLike]], file_bytes: float) -> None:
        """Kinds and run times of phases, in order: all tasks of one read the file that each of the
        one before wrote.

        Of two neighbours at least one is a single task, so the number of files read grows with the
        tasks only.
        """
        before = self.files("input", file_bytes)
        for number, (kind, runtime_s) in enumerate(phases):
            tasks = self.add(kind, runtime_s)
            assert len(tasks) == 1 or len(before) == 1, (
                "two parallel phases need a single task between them"
            )
            self.reads(tasks, before)
            before = self.files(
                numbered(f"phase_{number}_{{}}", len(tasks)), file_bytes, written_by=tasks
            )

    def workflow(self) -> Workflow:
        """The workflow as drawn up so far."""
        n = len(self._ids)
        writer, written = np.concatenate(self._writes, axis=1)
        reader, read = np.concatenate(self._reads, axis=1)
        assert len(np.unique(written)) == len(written), "a file has two writers"
        source = np.full(len(self._files), -1, dtype=np.int64)
        source[written] = writer
        return Workflow(
            self._name,
            ids=self._ids,
            kinds=self._kinds,
            runtime_s=np.concatenate(self._times),
            parents=_parents(n, reader, source[read]),
            files=self._files,
            inputs=Adjacency.from_edges(n, reader, read),
            outputs=Adjacency.from_edges(n, writer, written),
        )


def _pairs(tasks: ArrayLike, files: ArrayLike) -> Ints:
    left, right = np.broadcast_arrays(
        np.asarray(tasks, dtype=np.int64), np.asarray(files, dtype=np.int64)
    )
    return np.stack([left.ravel(), right.ravel()])


def numbered(pattern: str, count: int) -> list[str]:
    """`pattern` with 1..count written into its `{}`, five digits each."""
    return [pattern.format(f"{i:05d}") for i in range(1, count + 1)]


def _parents(n: int, reader: Ints, writer: Ints) -> Adjacency:
    """Of n tasks: each reader waits for the writer of what it reads, if a task wrote it."""
    internal = writer >= 0
    edge = np.unique(reader[internal] * n + writer[internal])
    return Adjacency.from_edges(n, edge // n, edge % n)
