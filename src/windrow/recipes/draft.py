"""A workflow being drawn up, in whole arrays of tasks and files.

Law: a dependency is a file. A task depends on another exactly where it reads a file that the other writes, so data
and precedence cannot disagree; recipes never state an edge in any other way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from windrow.model import Adjacency, File, Workflow
from windrow.model.graph import Ints
from windrow.model.workflow import Floats


class RecipeDraft:
    """Collects tasks, files, readers and writers, all by number; `workflow()` makes the Workflow."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._ids: list[str] = []
        self._kinds: list[str] = []
        self._of_kind: Counter[str] = Counter()
        self._times: list[Floats] = []
        self._files: list[File] = []
        self._writes = _Pairs()
        self._reads = _Pairs()

    def add(self, kind: str, runtime_s: ArrayLike) -> Ints:
        """Adds one task of this kind for each run time. Returns their numbers."""
        times = np.atleast_1d(np.asarray(runtime_s, dtype=np.float64))
        first, named = len(self._ids), self._of_kind[kind]
        self._ids += [f"{kind}_{i:05d}" for i in range(named + 1, named + 1 + len(times))]
        self._kinds += [kind] * len(times)
        self._of_kind[kind] += len(times)
        self._times.append(times)
        return np.arange(first, first + len(times), dtype=np.int64)

    def files(self, names: str | Sequence[str], size_bytes: ArrayLike) -> Ints:
        """Adds one file for each name; sizes are rounded up to whole bytes. Returns their numbers."""
        all_names = [names] if isinstance(names, str) else names
        sizes = np.broadcast_to(np.ceil(np.asarray(size_bytes, dtype=np.float64)), len(all_names)).astype(np.int64)
        first = len(self._files)
        self._files += [File(name, size) for name, size in zip(all_names, sizes.tolist(), strict=True)]
        return np.arange(first, first + len(all_names), dtype=np.int64)

    def writes(self, tasks: ArrayLike, files: ArrayLike) -> None:
        """Each task writes the file beside it; a single one on either side is paired with all on the other."""
        self._writes.extend(tasks, files)

    def reads(self, tasks: ArrayLike, files: ArrayLike) -> None:
        """Each task reads the file beside it; a single one on either side is paired with all on the other."""
        self._reads.extend(tasks, files)

    def workflow(self) -> Workflow:
        """The workflow as drawn up so far."""
        n = len(self._ids)
        writer, written = self._writes.columns()
        reader, read = self._reads.columns()
        assert len(np.unique(written)) == len(written), "a file has two writers"
        source = np.full(len(self._files), -1, dtype=np.int64)
        source[written] = writer
        internal = source[read] >= 0
        edge = np.unique(reader[internal] * n + source[read[internal]])
        return Workflow(
            self._name,
            ids=self._ids,
            kinds=self._kinds,
            runtime_s=np.concatenate(self._times),
            parents=Adjacency.from_edges(n, edge // n, edge % n),
            files=self._files,
            inputs=Adjacency.from_edges(n, reader, read),
            outputs=Adjacency.from_edges(n, writer, written),
        )


class _Pairs:
    """Pairs of (task, file), gathered as arrays."""

    def __init__(self) -> None:
        self._tasks: list[Ints] = []
        self._files: list[Ints] = []

    def extend(self, tasks: ArrayLike, files: ArrayLike) -> None:
        left, right = np.broadcast_arrays(np.asarray(tasks, dtype=np.int64), np.asarray(files, dtype=np.int64))
        self._tasks.append(left.ravel())
        self._files.append(right.ravel())

    def columns(self) -> tuple[Ints, Ints]:
        none = np.zeros(0, dtype=np.int64)
        return np.concatenate([none, *self._tasks]), np.concatenate([none, *self._files])


def numbered(pattern: str, count: int) -> list[str]:
    """`pattern` with 1..count written into its `{}`, five digits each."""
    return [pattern.format(f"{i:05d}") for i in range(1, count + 1)]
