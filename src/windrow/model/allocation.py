"""The tasks of one job inside its allocation: what may start, what has, what is left.

Rule 1: a task is offered to the nodes when its last parent is done, wherever that parent ran.
Rule 2: tasks that take of a limit of the run wait for their part of the share that their job has of
it. They have it from when they are offered until they are over, also between two tries.
Rule 3: pure, and standard library only: the same code runs in simulation and on compute nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from windrow.model.nodes import Need
from windrow.model.packing import Packing, Space
from windrow.model.resources import Counts, NodeShape


class Member(NamedTuple):
    """A task of a job: what it needs, how long it should run, its parents that are not done, and
    its children.

    `takes`: what it takes of shares of limits; `home`: the job that has these.
    """

    need: Need
    expected_s: float
    open_parents: int
    children: Sequence[int]
    priority: int = 0
    takes: Counts = ()
    home: int = 0


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
        self._shares: dict[tuple[int, str], int] = {}  # what is free of them
        self._takers: set[int] = set()  # tasks that have their part
        self._short: dict[
            tuple[int, Counts], list[tuple[int, float, int]]
        ] = {}  # those that wait for it, by whose they are and what they take
        self.add(members)

    def grant(self, home: int, shares: Counts) -> None:
        """This job has these shares of limits."""
        self._shares |= {(home, name): number for name, number in shares}

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
        self._give_share(task)
        self.parent_done(self._members[task].children)
        return freed

    def done_elsewhere(self, task: int) -> None:
        """A task of this job that does not run here was done in another job."""
        if task in self.open:
            self.open.discard(task)
            self._give_share(task)
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

    def retry(self, task: int, need: Need | None = None) -> None:
        """A running task failed and is to start again, when its turn comes; with this need, if it
        has another one now."""
        self.packing.finish(task)
        if need is not None:
            self._members[task] = self._members[task]._replace(need=need)
        self._offer(task)

    def rank(self, task: int, priority: int) -> None:
        """A task of this job has this priority from now on; one that runs already, at its next
        try."""
        if task not in self.open:
            return
        member = self._members[task]
        before = -member.priority, -member.expected_s, task
        now = -priority, -member.expected_s, task
        self._members[task] = member._replace(priority=priority)
        self.packing.rank(before, now)
        waiting = self._short.get((member.home, member.takes), [])
        if before in waiting:
            waiting.remove(before)
            waiting.append(now)
            heapify(waiting)

    def give_up(self, task: int) -> list[int]:
        """A running task failed for good. Returns it with its descendants here, which will never
        start."""
        self.packing.finish(task)
        closed = self.abandon([task])
        self._give_share(task)
        return closed

    def abandon(self, tasks: Iterable[int]) -> list[int]:
        """Of these tasks and their descendants, close those of this job, and return them, in
        order."""
        stack = list(tasks)
        closed = []
        while stack:
            task = stack.pop()
            if task in self.open:
                self.open.discard(task)
                self._give_share(task)
                closed.append(task)
                stack.extend(self._members[task].children)
        if self.space is not None and closed:
            self.space.give_up(closed)
        return sorted(closed)

    def _offer(self, task: int) -> None:
        member = self._members[task]
        if member.takes and not self._take_share(task):
            turn = -member.priority, -member.expected_s, task
            heappush(self._short.setdefault((member.home, member.takes), []), turn)
            return
        self.packing.offer(task, member.expected_s, member.need, member.priority)

    def _take_share(self, task: int) -> bool:
        """Whether it has its part of the shares."""
        if task in self._takers:
            return True
        member = self._members[task]
        wanted = {(member.home, name): number for name, number in member.takes}
        if any(self._shares.get(share, 0) < number for share, number in wanted.items()):
            return False
        for share, number in wanted.items():
            self._shares[share] -= number
        self._takers.add(task)
        return True

    def _give_share(self, task: int) -> None:
        """Give its part back; others have it from here."""
        if task not in self._takers:
            return
        self._takers.remove(task)
        member = self._members[task]
        for name, number in member.takes:
            self._shares[member.home, name] += number
        for waiting in self._short.values():
            while waiting and (waiting[0][-1] not in self.open or self._take_share(waiting[0][-1])):
                following = heappop(waiting)[-1]
                if following in self.open:
                    self._offer(following)


def lasting_s(
    nodes: int,
    shape: NodeShape,
    members: Mapping[int, Member],
    space: Space | None = None,
    note: Callable[[int, float, float], object] = lambda _task, _start, _end: None,
    shares: Counts = (),
) -> float | None:
    """How long the tasks run on these nodes, if each takes what is expected; None if some can
    never start.

    `shares`: what they may take of limits. `note` hears of each task that starts, and when it will
    end.
    """
    allocation = Allocation(nodes, shape, {}, space)
    allocation.grant(0, shares)
    allocation.add(members)
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
