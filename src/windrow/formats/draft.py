"""A workflow while it is being read: columns that grow task by task, turned into a Workflow at the
end.

Laws: an edge may be said by either of its ends, or by both, or twice, and counts once; a file named
twice by a task counts once; run times are known for all tasks or for none (then they are 0: the
file describes structure only).

Columns are flat arrays of machine numbers, so that a draft of a million tasks costs little beside
their names.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windrow.model import Adjacency, File, Workflow, WorkflowError
from windrow.model.rules import Rules
from windrow.model.wording import listed

Ints = NDArray[np.int64]

SLIGHTLY_S = 60
"""Run times no further below zero are read as 0, and counted: published workflows have some, noise
on short runs."""


class Lists:
    """Lists of numbers, one per task, appended in task order."""

    def __init__(self) -> None:
        self._flat = array("q")
        self._ends = array("q", [0])

    def append(self, numbers: Sequence[int]) -> None:
        """The list of the next task."""
        if numbers:
            self._flat.extend(numbers)
        self._ends.append(len(self._flat))

    def append_mapped(self, names: Sequence[str], numbers: Mapping[str, int]) -> None:
        """The list of the next task, by names. KeyError if one is unknown; then this object is
        of no more use."""
        if names:
            self._flat.extend(map(numbers.__getitem__, names))
        self._ends.append(len(self._flat))

    def adjacency(self) -> Adjacency:
        """All lists, as arrays of their own."""
        return Adjacency(np.array(self._ends, dtype=np.int64), np.array(self._flat, dtype=np.int64))


class FileTable:
    """Gathers mentions of files: each id once, in order of first mention, with one size; `files()`
    is the outcome.

    Formats that state a file's size at every use contradict themselves (most DAX files of the
    Pegasus gallery do). The law: the size said first by a task that writes the file holds; if no
    writer says one, the largest a reader says.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._sizes: list[int] = []
        self._settled: list[bool] = []
        self.more: dict[str, dict[str, Any]] = {}
        """What else is said of files: fields of `File`, by file."""

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
        if len(numbers) == len(set(numbers)):
            return numbers
        return list(dict.fromkeys(numbers))

    def state_size(self, file_id: str, size_bytes: int, *, by_writer: bool) -> int:
        """Note what a task says about a file's size; returns the file's number."""
        number = self.number(file_id)
        if not self._settled[number]:
            # A negative size stays, for the model to refuse it.
            settled = by_writer or size_bytes < 0
            if not settled:
                size_bytes = max(self._sizes[number], size_bytes)
            self._sizes[number] = size_bytes
            self._settled[number] = settled
        return number

    def files(self) -> list[File]:
        """All files, by number."""
        rows = zip(self._numbers, self._sizes, strict=True)
        return [File(file_id, size, **self.more.get(file_id, {})) for file_id, size in rows]


class Draft:
    """Columns of a workflow whose tasks are known by name from the start, and otherwise not yet.

    `outside` are tasks that are not in the file, of the run that it adds to: behind its own, and
    nothing else is known of them.
    """

    def __init__(self, name: str, ids: Sequence[str], outside: Sequence[str] = ()) -> None:
        self.name = name
        self.outside = len(outside)
        self.ids = [*ids, *outside] if outside else ids
        n = len(self.ids)
        self.kinds: list[str] = [""] * n  # to be interned: they are few, and repeat
        self.runtime_s = np.full(n, np.nan)
        self.cores = np.ones(n, dtype=np.int64)
        self.nodes = np.zeros(n, dtype=np.int64)
        self.memory_bytes = np.zeros(n, dtype=np.int64)
        self.disk_bytes = np.zeros(n, dtype=np.int64)
        self.counts: dict[str, NDArray[np.int64]] = {}
        self.guessed_run_times = 0
        self.commands: dict[int, tuple[str, ...]] = {}
        self.rules: dict[int, Rules] = {}
        self.parents = Lists()
        self.children = Lists()
        self.inputs = Lists()
        self.outputs = Lists()
        self.files = FileTable()

    def count(self, task: int, counts: Iterable[tuple[str, int]]) -> None:
        """How many of each named resource a task needs."""
        for name, number in counts:
            self.counts.setdefault(name, np.zeros(len(self.ids), dtype=np.int64))[task] = number

    def workflow(self) -> Workflow:
        """The finished workflow. WorkflowError if the tasks do not make one."""
        for lists in (self.parents, self.children, self.inputs, self.outputs):
            for _ in range(self.outside):
                lists.append(())
        parents = self._all_parents()
        slightly = (self.runtime_s < 0) & (self.runtime_s >= -SLIGHTLY_S)
        self.runtime_s[slightly] = 0
        return Workflow(
            self.name,
            ids=self.ids,
            kinds=self.kinds,
            runtime_s=self._all_run_times(),
            cores=self.cores,
            nodes=self.nodes,
            memory_bytes=self.memory_bytes,
            disk_bytes=self.disk_bytes,
            counts=self.counts,
            parents=parents,
            files=self.files.files(),
            inputs=self.inputs.adjacency(),
            outputs=self.outputs.adjacency(),
            commands=self.commands,
            rules=self.rules,
            mended_run_times=int(slightly.sum()),
            guessed_run_times=self.guessed_run_times,
        )

    def _all_parents(self) -> Adjacency:
        """Each task's parents: those it names, in its order, then those that name it as a child.
        Each once."""
        n = len(self.ids)
        parents = self.parents.adjacency()
        children = self.children.adjacency()
        child = np.concatenate([parents.sources(), children.index])
        parent = np.concatenate([parents.index, children.sources()])
        first = np.sort(np.unique(child * n + parent, return_index=True)[1])
        late = child[child >= n - self.outside]
        if late.size:
            raise WorkflowError(
                f"task {self.ids[late[0]]} of the run cannot come after tasks that are added to it"
            )
        return Adjacency.from_edges(n, child[first], parent[first])

    def _all_run_times(self) -> NDArray[np.float64]:
        own = len(self.ids) - self.outside
        self.runtime_s[own:] = 0
        missing = np.isnan(self.runtime_s[:own])
        if missing.all():
            return np.zeros(len(self.ids))
        if missing.any():
            found = ", ".join(self.ids[i] for i in np.flatnonzero(missing)[:5])
            raise WorkflowError(
                f"{int(missing.sum())} of {len(missing)} tasks have no run time ({found}); give "
                "one to all or to none"
            )
        return self.runtime_s


def unique_numbers(ids: Sequence[str], outside: Sequence[str] = ()) -> Mapping[str, int]:
    """Each id's place in the list, those `outside` behind the others. WorkflowError if two are
    equal."""
    if outside and (taken := sorted(set(ids).intersection(outside))):
        raise WorkflowError(f"the run already has a task {taken[0]}; rename the one that is added")
    numbers = {task_id: i for i, task_id in enumerate((*ids, *outside) if outside else ids)}
    if len(numbers) < len(ids) + len(outside):
        twice = sorted({task_id for i, task_id in enumerate(ids) if numbers[task_id] != i})
        shown = listed(twice, most=5)
        raise WorkflowError(f"task ids must be unique, given more than once: {shown}")
    return numbers
