"""From a workflow to the space that its open tasks need: which files they make and read, and what
is there."""

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
    """The most that files of a run may take, and which task goes first within that
    (`admission.ORDERS`).

    By `auto` all orders are played on what is left, and that which ends first is taken.
    """

    size: int
    order: str = LEAST_NEED

    def admission(
        self,
        demand: Demand,
        sequence: Sequence[int],
        lasting_s: Callable[[Admission], float | None],
    ) -> Admission:
        """What may start of it, with this sequence as the last resort. `lasting_s` plays it; None:
        it is stuck."""
        order = self.order
        if order == AUTO:
            orders = [LEAST_NEED, DEPTH_FIRST]
            if len(sequence) <= _FEW:
                orders.append(BREADTH_FIRST)
            took_s: dict[str, float] = {}
            for one in orders:
                lasts_s = lasting_s(Admission(demand, self.size, one, sequence))
                if lasts_s is None:
                    lasts_s = inf
                took_s[one] = lasts_s
            order = min(orders, key=took_s.__getitem__)
        return Admission(demand, self.size, order, sequence)


def with_likely_sizes(workflow: Workflow, sizes: Mapping[int, int]) -> dict[int, int]:
    """These sizes of files, by number; and for files of which nothing is known the largest of their
    kind so far.

    A file that is declared takes at least as much as the largest of its kind so far, too.
    """
    w = workflow
    most = dict[tuple[str, int], int]()
    kind_of = {
        f: (w.kinds[task], at)
        for task in range(len(w))
        for at, f in enumerate(w.outputs.of(task).tolist())
    }
    for f, size in sizes.items():
        if (kind := kind_of.get(f)) is not None:
            most[kind] = max(size, most.get(kind, 0))
    likely = {
        f: max(most[kind], w.files[f].size_bytes) for f, kind in kind_of.items() if kind in most
    }
    return likely | dict(sizes)


class _Outputs:
    """Outputs of a workflow: who reads them, whether they are kept, and which of them are alike."""

    def __init__(self, workflow: Workflow, sizes: Mapping[int, int] | None) -> None:
        self._workflow = workflow
        self._sizes = sizes
        makers, readers = temporary_files(workflow)
        self._readers: list[set[int]] = [readers.get(file.id, set()) for file in workflow.files]
        self._is_kept = [file.id not in makers for file in workflow.files]
        tasks = range(len(workflow))
        self._place = {f: n for t in tasks for n, f in enumerate(workflow.outputs.of(t).tolist())}
        self._kinds: dict[tuple[str, int], int] = {}

    def size(self, f: int) -> int:
        """As far as is known."""
        size_bytes = self._workflow.files[f].size_bytes
        if self._sizes is None:
            return size_bytes
        return self._sizes.get(f, size_bytes)

    def is_kept(self, f: int) -> bool:
        """Whether it stays when nothing needs it any more."""
        return self._is_kept[f]

    def readers(self, f: int) -> set[int]:
        """Who needs it until it is deleted; no one if it stays."""
        return self._readers[f]

    def to_be_made(self, f: int, maker: int, open_readers: tuple[int, ...]) -> FileUse:
        """By a task that is open."""
        kinds = self._workflow.kinds
        readers = [kinds[reader] for reader in self.readers(f)]
        file = self._workflow.files[f]
        is_known = self._sizes is None or f in self._sizes or bool(file.size_bytes)
        return FileUse(
            file.id,
            self.size(f),
            maker,
            open_readers,
            self.is_kept(f),
            is_tie=len(set(readers)) == len(readers),
            kind=self._kinds.setdefault((kinds[maker], self._place[f]), len(self._kinds)),
            is_known=is_known,
        )


def demand_of(
    workflow: Workflow,
    tasks: Iterable[int] | None = None,
    sizes: Mapping[int, int] | None = None,
) -> Demand:
    """What these tasks need, or all; the others are done.

    `sizes` are those of files, by number, that are known better than the workflow has them. If
    they are given, a file without a size is one of which nothing is known; elsewhere, as in
    simulations, it is empty.
    """
    open_ = set(range(len(workflow)) if tasks is None else tasks)
    known = _Outputs(workflow, sizes)
    files = list[FileUse]()
    held = 0
    for maker, f in workflow.outputs.pairs():
        readers = tuple(sorted(known.readers(f) & open_))
        if maker in open_:
            files.append(known.to_be_made(f, maker, readers))
        elif readers:
            files.append(FileUse(workflow.files[f].id, known.size(f), None, readers, keep=False))
        elif known.is_kept(f):
            held += known.size(f)
    return Demand(_open_parents(workflow, open_), files, held)


def _open_parents(workflow: Workflow, open_: set[int]) -> dict[int, list[int]]:
    """Of each open task those that are open, in an order in which they could run."""
    start = workflow.parents.start.tolist()
    index = workflow.parents.index.tolist()
    return {
        task: [parent for parent in index[start[task] : start[task + 1]] if parent in open_]
        for task in workflow.order.tolist()
        if task in open_
    }
