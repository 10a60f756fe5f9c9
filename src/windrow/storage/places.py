"""Which files may stay on the node that makes them: those that only tasks of the same job read.

Law: an output may stay if tasks read it, each of them is in the job of its maker or done, one at
least is in that job, and the user has not asked for it: neither `keep: true`, nor `stays`, nor a
pattern of [data] keep. Folders that have other files of the workflow in them, and files in such
folders, do not stay: who reads one may read the other. What is not to be kept and no task reads
stays, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from windrow.storage.lifetimes import folders_above

if TYPE_CHECKING:
    from windrow.model import Workflow
    from windrow.model.graph import Adjacency


class Staying:
    """The files of a workflow that may ever stay, with the tasks that read each and the one that
    makes it."""

    def __init__(self, workflow: Workflow, keep: Sequence[str] = ()) -> None:
        names = [file.id for file in workflow.files]
        wanted = _wanted(workflow, keep) | _nested(names)
        made = _named_edges(workflow.outputs, names)
        read = _named_edges(workflow.inputs, names)
        self.maker = {name: task for name, task in made if name not in wanted}
        """Of each file that may ever stay."""
        unkept = {file.id for file in workflow.files if file.keep is False}
        self._unread = unkept.difference(name for name, _ in read)
        self.readers: dict[str, set[int]] = {}
        for name, task in read:
            if name in self.maker:
                self.readers.setdefault(name, set()).add(task)

    def of(
        self, outputs: Sequence[str], job: Collection[int], is_done: Callable[[int], bool]
    ) -> tuple[str, ...]:
        """Those outputs of a task that may stay, if these tasks are in its job."""

        def stays(name: str) -> bool:
            readers = self.readers.get(name, set())
            is_read_here = not readers.isdisjoint(job) or (
                name in self._unread and name in self.maker
            )
            return is_read_here and all(task in job or is_done(task) for task in readers)

        return tuple(name for name in outputs if stays(name))


def _wanted(workflow: Workflow, keep: Sequence[str]) -> set[str]:
    """What the user has asked for."""
    wanted = {file.id for file in workflow.files if file.keep is True or file.stays}
    for file in workflow.files:
        if any(fnmatchcase(file.id, pattern) for pattern in keep):
            wanted.add(file.id)
    return wanted


def _nested(names: Sequence[str]) -> set[str]:
    """Folders that have other files in them, and the files in such folders."""
    known = set(names)
    folders = {above for name in names for above in folders_above(name) if above in known}
    return folders | {name for name in names if folders.intersection(folders_above(name))}


def _named_edges(edges: Adjacency, names: Sequence[str]) -> list[tuple[str, int]]:
    return [(names[f], task) for task, f in edges.pairs()]
