"""Which files may stay on the node that makes them: those that only tasks of the same job read.

Law: an output may stay if tasks read it, each of them is in the job of its maker or done, one at least is in that job,
and the user has not asked for it: neither `keep: true`, nor `stays`, nor a pattern of [data] keep. Folders that have
other files of the workflow in them, and files in such folders, do not stay: who reads one may read the other. What is
not to be kept and no task reads stays, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from windrow.storage.lifetimes import folders_above

if TYPE_CHECKING:
    from windrow.model import Workflow


class Staying:
    """The files of a workflow that may ever stay, with the tasks that read each and the one that makes it."""

    def __init__(self, workflow: Workflow, keep: Sequence[str] = ()) -> None:
        names = [file.id for file in workflow.files]
        known = set(names)
        nested = {above for name in names for above in folders_above(name) if above in known}
        nested |= {name for name in names if nested.intersection(folders_above(name))}
        wanted = {file.id for file in workflow.files if file.keep is True or file.stays} | nested
        wanted |= {name for name in names if any(fnmatchcase(name, pattern) for pattern in keep)}
        outputs, inputs = workflow.outputs, workflow.inputs
        made = zip(outputs.index.tolist(), outputs.sources().tolist(), strict=True)
        self.maker = {names[f]: task for f, task in made if names[f] not in wanted}
        """Of each file that may ever stay."""
        self._unread = {f.id for f in workflow.files if f.keep is False} - {names[f] for f in inputs.index.tolist()}
        self.readers: dict[str, set[int]] = {}
        for f, task in zip(inputs.index.tolist(), inputs.sources().tolist(), strict=True):
            if names[f] in self.maker:
                self.readers.setdefault(names[f], set()).add(task)

    def of(self, outputs: Sequence[str], job: Collection[int], is_done: Callable[[int], bool]) -> tuple[str, ...]:
        """Those outputs of a task that may stay, where these tasks are in its job."""

        def stays(name: str) -> bool:
            readers = self.readers.get(name, set())
            is_read_here = not readers.isdisjoint(job) or (name in self._unread and name in self.maker)
            return is_read_here and all(task in job or is_done(task) for task in readers)

        return tuple(name for name in outputs if stays(name))
