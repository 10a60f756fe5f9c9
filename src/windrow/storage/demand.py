"""From a workflow to the space that its open tasks need: which files they make and read, and what is there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from windrow.storage.admission import BREADTH_FIRST, DEPTH_FIRST, LEAST_NEED, Admission
from windrow.storage.lifetimes import temporary_files
from windrow.storage.sequence import Demand, FileUse

if TYPE_CHECKING:
    from windrow.model import Workflow


AUTO = "auto"
_FEW = 300
"""Up to as many tasks `breadth-first` is tried, too: it takes long to play, and seldom wins."""


class SpaceLimit(NamedTuple):
    """The most that files of a run may take, and which task goes first within that (`admission.ORDERS`).

    By `auto` all orders are played on what is left, and that which ends first is taken.
    """

    size: int
    order: str = LEAST_NEED

    def admission(
        self, demand: Demand, sequence: Sequence[int], lasting_s: Callable[[Admission], float | None]
    ) -> Admission:
        """What may start of it, with this sequence as the last resort. `lasting_s` plays it; None: it is stuck."""
        order = self.order
        if order == AUTO:
            orders = (LEAST_NEED, DEPTH_FIRST, BREADTH_FIRST) if len(sequence) <= _FEW else (LEAST_NEED, DEPTH_FIRST)
            took_s = {one: lasting_s(Admission(demand, self.size, one, sequence)) for one in orders}
            order = min(orders, key=lambda one: inf if (time_s := took_s[one]) is None else time_s)
        return Admission(demand, self.size, order, sequence)


def with_likely_sizes(workflow: Workflow, sizes: Mapping[int, int]) -> dict[int, int]:
    """These sizes of files, by number; and for files of which nothing is known the largest of their kind so far."""
    w, most = workflow, dict[tuple[str, int], int]()
    kind_of = {f: (w.kinds[task], at) for task in range(len(w)) for at, f in enumerate(w.outputs.of(task).tolist())}
    for f, size in sizes.items():
        if (kind := kind_of.get(f)) is not None:
            most[kind] = max(size, most.get(kind, 0))
    return {f: most.get(kind, 0) for f, kind in kind_of.items() if not w.files[f].size_bytes} | dict(sizes)


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
