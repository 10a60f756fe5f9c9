"""Until when files are needed that are not to be kept: those of `keep: false`.

Law: such a file is needed until its maker and all its readers are done; then it is due to be
deleted. Once deleted it counts as made: it is gone, and not lost. If a reader is undone after
that, what it reads has to be made again (`missing_for`); if its maker is undone it is not gone
any more. So it is with files that were on nodes of a job alone, and are gone with it (`void`),
though no one deletes them. A task that reads something in a folder reads the folder. A folder in
which other tasks write is not deleted.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windrow.model import Workflow
    from windrow.model.graph import Adjacency


class Lifetimes:
    """The temporary files of a workflow, by name, as its tasks are done and undone."""

    def __init__(self, makers: Mapping[str, int], readers: Mapping[str, Collection[int]]) -> None:
        self.temporary = frozenset(makers)
        self.maker = dict(makers)
        """The task that makes each of them, and of others that are `void`."""
        self._waits: dict[str, float] = {
            name: len({task, *readers.get(name, ())}) for name, task in makers.items()
        }
        self._of: dict[int, list[str]] = {}
        for name, task in makers.items():
            for user in {task, *readers.get(name, ())}:
                self._of.setdefault(user, []).append(name)
        self.due: dict[str, None] = {}
        """Those that nothing needs any more, in the order in which that came about."""
        self.gone: set[str] = set()
        """Those that were deleted."""
        self.void: set[str] = set()
        """Other files that are gone, which were on nodes of jobs that are over."""
        self._workflow: Workflow | None = None

    @staticmethod
    def of(
        workflow: Workflow, done: Iterable[int] = (), before: Lifetimes | None = None
    ) -> Lifetimes:
        """Those of a workflow of which these tasks are done, and such files gone as were `before`
        it had more tasks."""
        found = Lifetimes(*temporary_files(workflow))
        found._workflow = workflow
        for task in done:
            found.done(task)
        if before is not None:
            found.deleted(before.gone)
            found.deleted(before.void, is_local=True)
        return found

    def done(self, task: int) -> None:
        """A task is done."""
        for name in self._of.get(task, ()):
            self._waits[name] -= 1
            if not self._waits[name] and name not in self.gone:
                self.due[name] = None

    def undone(self, task: int) -> None:
        """A task that was done is to run again."""
        for name in self._of.get(task, ()):
            self._waits[name] += 1
            self.due.pop(name, None)
            if self.maker[name] == task:
                self.gone.discard(name)
                self.void.discard(name)

    def deleted(self, names: Collection[str], is_local: bool = False) -> None:
        """These files were deleted, or are about to be; `is_local`: they went with the nodes of a
        job."""
        self.gone.update(self.temporary.intersection(names))
        for name in self.gone.intersection(self.due):
            del self.due[name]
        workflow = self._workflow
        others = set(names) - self.temporary
        if not is_local or workflow is None or not others:
            return
        for task, name in self._follow(workflow.outputs, others):
            self.maker[name] = task
        self._follow(workflow.inputs, others)
        self.void |= others

    def _follow(self, of_tasks: Adjacency, names: Collection[str]) -> list[tuple[int, str]]:
        """From now on know which tasks make or read these files, for ever; those that are new."""
        assert self._workflow is not None
        files = self._workflow.files
        found = []
        for task, f in of_tasks.pairs():
            name = files[f].id
            if name in names and name not in self._of.get(task, ()):
                self._waits[name] = inf
                self._of.setdefault(task, []).append(name)
                found.append((task, name))
        return found

    def missing_for(self, task: int) -> list[str]:
        """What this task reads and is gone."""
        if self.void:
            gone = self.gone | self.void
        else:
            gone = self.gone
        return [
            name for name in self._of.get(task, ()) if name in gone and self.maker[name] != task
        ]


def temporary_files(workflow: Workflow) -> tuple[dict[str, int], dict[str, set[int]]]:
    """Files that are not to be kept, with the task that makes each, and the tasks that read it."""
    if not workflow.has_temporary:
        return {}, {}
    names = [file.id for file in workflow.files]
    temporary = {n for n, file in enumerate(workflow.files) if file.keep is False}
    if not temporary:
        return {}, {}
    written = {file: task for task, file in workflow.outputs.pairs()}
    shared = {above for file in written for above in folders_above(names[file])}
    makers = {names[f]: written[f] for f in written if f in temporary and names[f] not in shared}
    readers: dict[str, set[int]] = {}
    for task, file in workflow.inputs.pairs():
        for name in (names[file], *folders_above(names[file])):
            if name in makers:
                readers.setdefault(name, set()).add(task)
    return makers, readers


def without_intermediate(workflow: Workflow) -> Workflow:
    """The same, of which no file is kept that tasks write and read, unless it is said to be."""
    written = {workflow.files[f].id for f in workflow.outputs.index.tolist()}
    read = {workflow.files[f].id for f in workflow.inputs.index.tolist()}
    read |= {above for name in read for above in folders_above(name)}
    both = written & read
    files = [
        replace(f, keep=False) if f.keep is None and f.id in both else f for f in workflow.files
    ]
    return workflow.changed(files=files)


def folders_above(name: str) -> Iterator[str]:
    """The folders in which a file lies, as far as its name tells."""
    while (above := posixpath.dirname(name)) not in ("", name):
        yield above
        name = above
