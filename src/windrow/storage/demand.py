"""From a workflow to the space that its open tasks need: which files they make and read, and what is there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from windrow.storage.admission import LEAST_NEED, Admission
from windrow.storage.lifetimes import temporary_files
from windrow.storage.sequence import Demand, FileUse

if TYPE_CHECKING:
    from windrow.model import Workflow


class SpaceLimit(NamedTuple):
    """The most that files of a run may take, and which task goes first within that (`admission.ORDERS`)."""

    size: int
    order: str = LEAST_NEED

    def admission(self, demand: Demand, sequence: Sequence[int]) -> Admission:
        """What may start of it, with this order as the last resort."""
        return Admission(demand, self.size, self.order, sequence)


def demand_of(
    workflow: Workflow,
    tasks: Iterable[int] | None = None,
    sizes: Mapping[int, int] | None = None,
) -> Demand:
    """What these tasks need, or all; the others are done.

    `sizes` are those of files, by number, that are known better than the workflow has them.
    """
    w, sizes = workflow, sizes or {}
    open_ = set(range(len(w))) if tasks is None else set(tasks)
    start, index = w.parents.start.tolist(), w.parents.index.tolist()
    parents = {
        task: [p for p in index[start[task] : start[task + 1]] if p in open_]
        for task in w.order.tolist()
        if task in open_
    }
    makers, readers = temporary_files(w)
    files, held = list[FileUse](), 0
    for f, maker in zip(w.outputs.index.tolist(), w.outputs.sources().tolist(), strict=True):
        file, size = w.files[f], sizes.get(f, w.files[f].size_bytes)
        users = readers.get(file.id, set()) if file.id in makers else set()
        mine, keep = tuple(sorted(users & open_)), file.id not in makers
        if maker in open_:
            kinds = [w.kinds[reader] for reader in users]
            files.append(FileUse(file.id, size, maker, mine, keep, len(set(kinds)) == len(kinds)))
        elif mine:
            files.append(FileUse(file.id, size, None, mine, keep=False))
        elif keep:
            held += size
    return Demand(parents, files, held)
