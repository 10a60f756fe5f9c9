"""The tasks of one job inside its allocation: what may start, what has, what is left.

Rule 1: a task is offered to the nodes when its last parent is done, wherever that parent ran.
Rule 2: pure, and standard library only: the same code runs in simulation and on compute nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from windrow.model.nodes import Need
from windrow.model.packing import Packing, Space
from windrow.model.resources import NodeShape


class Member(NamedTuple):
    """A task of a job: what it needs, how long it should run, its parents that are not done, and
    its children."""

    need: Need
    expected_s: float
    open_parents: int
    children: Sequence[int]


class Allocation:
    """The nodes of a started job, and its tasks."""

    def __init__(
        self,
        nodes: int,
        shape: NodeShape,
        members: Mapping[int, Member],
        space: Space | None = None,
    ) -> None:
        self.space = space
        """That for files, if it is limited."""
        self.packing = Packing(nodes, shape, space)
        """The tasks on the nodes."""
        self._members: dict[int, Member] = {}
        self._open_parents: dict[int, int] = {}
        self.open: set[int] = set()
        """Tasks that are neither done nor given up."""
        self.add(members)

    def add(self, members: Mapping[int, Member]) -> None:
        """More tasks."""
        self._members |= members
        self._open_parents |= {task: member.open_parents for task, member in members.items()}
        self.open.update(members)
        for task in sorted(members):
            if self._open_parents[task] == 0:
                self._offer(task)

    def start(self) -> list[tuple[int, tuple[int, ...]]]:
        """Start what may and has room: tasks and their nodes, in order."""
        return self.packing.start()

    def finish(self, task: int, sizes: Sequence[int] | None = None) -> list[str]:
        """A task of this job is done, and made files of these sizes. Which files nothing needs any
        more."""
        if self.space is not None:
            freed = self.space.finish(task, sizes)
        else:
            freed = []
        self.packing.finish(task)
        self.open.discard(task)
        self.parent_done(self._members[task].children)
        return freed

    def done_elsewhere(self, task: int) -> None:
        """A task of this job that does not run here was done in another job."""
        if task in self.open:
            self.open.discard(task)
            if self.space is not None:  # its files are deleted by its agent or the manager
                self.space.finish(task)
            self.parent_done(self._members[task].children)

    def parent_done(self, children: Iterable[int]) -> None:
        """A parent of these tasks is done. Tasks of other jobs are passed over."""
        for child in children:
            if child in self._open_parents:
                self._open_parents[child] -= 1
                if self._open_parents[child] == 0 and child in self.open:
                    self._offer(child)

    def retry(self, task: int) -> None:
        """A running task failed and is to start again, when its turn comes."""
        self.packing.finish(task)
        self._offer(task)

    def give_up(self, task: int) -> list[int]:
        """A running task failed for good. Returns it with its descendants here, which will never
        start."""
        self.packing.finish(task)
        return self.abandon([task])

    def abandon(self, tasks: Iterable[int]) -> list[int]:
        """Of these tasks and their descendants, close those of this job, and return them, in
        order."""
        stack = list(tasks)
        closed = []
        while stack:
            task = stack.pop()
            if task in self.open:
                self.open.discard(task)
                closed.append(task)
                stack.extend(self._members[task].children)
        if self.space is not None and closed:
            self.space.give_up(closed)
        return sorted(closed)

    def _offer(self, task: int) -> None:
        member = self._members[task]
        self.packing.offer(task, member.expected_s, member.need)


def lasting_s(
    nodes: int,
    shape: NodeShape,
    members: Mapping[int, Member],
    space: Space | None = None,
    note: Callable[[int, float, float], object] = lambda _task, _start, _end: None,
) -> float | None:
    """How long the tasks run on these nodes, if each takes what is expected; None if some can
    never start.

    `note` hears of each task that starts, and when it will end.
    """
    allocation = Allocation(nodes, shape, members, space)
    ends: list[tuple[float, int]] = []
    now: float = 0
    while allocation.open:
        for task, _ in allocation.start():
            heappush(ends, (now + members[task].expected_s, task))
            note(task, now, now + members[task].expected_s)
        if not ends:
            return None
        now = ends[0][0]
        while ends and ends[0][0] == now:
            allocation.finish(heappop(ends)[1])
    return now
