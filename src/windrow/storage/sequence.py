"""An order in which tasks, one after the other, need little space: what files take at the worst of
times.

While a task runs there is all that was there before and all that it makes; when it has ended, what
no open task reads and is not kept is deleted. To find the order that needs least is as hard as such
problems get; up to `EXACT` tasks all orders are looked at. Beyond, tasks are put together in
*parts*, pipelines mostly: a task is in the part that made all temporary files it reads, unless
several tasks of one kind read such a file. A part goes to its end before the next one begins, if
that is possible. Of parts that leave less than there was before, those that need least go first; of
those that leave more, the ones that come down furthest after their worst moment. (For independent
pipelines no order of whole pipelines needs less: it is Johnson's rule.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heappop, heappush
from typing import NamedTuple

EXACT = 10
"""Up to this many tasks, all orders are tried."""


class FileUse(NamedTuple):
    """A file of the run. `maker` is None if it already exists; `readers` are tasks that are not
    done.

    `is_tie`: it ties its readers to the part of its maker. `kind`: files with the same number
    should be about as large. `is_known`: whether the size is more than the least that it could be.
    """

    name: str
    size: int
    maker: int | None
    readers: tuple[int, ...] = ()
    keep: bool = True
    is_tie: bool = True
    kind: int = -1
    is_known: bool = True


@dataclass
class Demand:
    """Tasks that are not done, in what order they may run, and what their files take."""

    parents: Mapping[int, Collection[int]]
    """Of each task those that are not done. The tasks are in an order in which they could run."""
    files: Sequence[FileUse]
    held: int = 0
    """Bytes of files that are there and stay."""
    made: dict[int, list[int]] = field(init=False)
    """The files that a task makes, by number."""
    used: dict[int, list[int]] = field(init=False)
    """The files that are deleted after it and others."""

    def __post_init__(self) -> None:
        self.made = {task: [] for task in self.parents}
        self.used = {task: [] for task in self.parents}
        self.users: list[set[int]] = []
        for number, file in enumerate(self.files):
            users: set[int] = set()
            if file.maker is not None:
                self.made[file.maker].append(number)
                users.add(file.maker)
            users.update(file.readers)
            if file.keep:
                users.clear()
            self.users.append(users)
            for task in users:
                self.used[task].append(number)

    @cached_property
    def children(self) -> dict[int, list[int]]:
        """The tasks that wait for each."""
        found: dict[int, list[int]] = {task: [] for task in self.parents}
        for task, parents in self.parents.items():
            for parent in parents:
                found[parent].append(task)
        return found

    @property
    def there(self) -> int:
        """Bytes that are there before any of its tasks runs."""
        return self.held + sum(file.size for file in self.files if file.maker is None)

    def out(self, task: int) -> int:
        """Bytes that a task makes."""
        return sum(self.files[f].size for f in self.made[task])

    def profile(self, order: Iterable[int], there: int | None = None) -> list[tuple[int, int]]:
        """What is there while each task runs, and after it, if they run in this order."""
        left = [len(users) for users in self.users]
        if there is None:
            now = self.there
        else:
            now = there
        found = list[tuple[int, int]]()
        for task in order:
            most = now = now + self.out(task)
            for f in self.used[task]:
                left[f] -= 1
                if not left[f]:
                    now -= self.files[f].size
            found.append((most, now))
        return found

    def peak(self, order: Sequence[int]) -> int:
        """The most that is ever there, in this order."""
        return max((need for need, _ in self.profile(order)), default=self.there)

    @cached_property
    def parts(self) -> dict[int, int]:
        """The part of each task, by number."""
        found: dict[int, int] = {}
        ties: dict[int, set[int]] = {}
        for file in self.files:
            if file.maker is not None and file.is_tie and not file.keep:
                for reader in file.readers:
                    ties.setdefault(reader, set()).add(file.maker)
        for number, task in enumerate(self.parents):
            homes = {found[maker] for maker in ties.get(task, ())}
            if len(homes) == 1:
                found[task] = homes.pop()
            else:
                found[task] = number
        return found

    @cached_property
    def members(self) -> dict[int, list[int]]:
        """The tasks of each part, in the order in which they are best run."""
        found: dict[int, list[int]] = {}
        for task, part in self.parts.items():
            found.setdefault(part, []).append(task)
        known: dict[object, list[int]] = {}
        for part, tasks in found.items():
            if len(tasks) > 1:
                key = self._likeness(tasks)
                if key not in known:
                    known[key] = [tasks.index(task) for task in self.alone(tasks)._best()]
                found[part] = [tasks[at] for at in known[key]]
        return found

    def _best(self) -> list[int]:
        if len(self.parents) <= EXACT:
            return self.exact()
        return self._by_task()

    def alone(self, tasks: Sequence[int], sizes: Sequence[int] | None = None) -> Demand:
        """These tasks with the files that they make; what others read of them stays. `sizes`: of
        all files, by now."""
        mine = set(tasks)
        numbers = [n for task in tasks for n in self.made[task]]
        files = []
        for n in numbers:
            file = self.files[n]
            keep = file.keep or not mine.issuperset(file.readers)
            size = file.size
            if sizes is not None:
                size = sizes[n]
            files.append(file._replace(size=size, keep=keep, is_tie=False))
        return Demand({task: mine.intersection(self.parents[task]) for task in tasks}, files)

    def _likeness(self, tasks: Sequence[int]) -> object:
        """The same for parts that differ in nothing but the numbers of their tasks."""
        place = {task: at for at, task in enumerate(tasks)}
        return tuple(
            (
                tuple(sorted(place[p] for p in self.parents[task] if p in place)),
                tuple(
                    (f.size, f.keep, tuple(place.get(r, -1) for r in f.readers))
                    for f in map(self.files.__getitem__, self.made[task])
                ),
            )
            for task in tasks
        )

    def exact(self) -> list[int]:
        """The order that needs least, by looking at all: from each set of done tasks on, the least
        peak first."""
        tasks = list(self.parents)
        place = {task: 1 << at for at, task in enumerate(tasks)}
        before = {task: sum(place[p] for p in self.parents[task]) for task in tasks}
        users = [sum(map(place.__getitem__, users)) for users in self.users]
        open_: list[tuple[int, int, int, tuple[int, ...]]] = [(self.there, 0, self.there, ())]
        seen: set[int] = set()
        while True:
            peak, done, now, order = heappop(open_)
            if len(order) == len(tasks):
                return list(order)
            if done in seen:
                continue
            seen.add(done)
            for task in tasks:
                then = done | place[task]
                if then == done or before[task] & ~done or then in seen:
                    continue
                need = after = now + self.out(task)
                for f in self.used[task]:
                    if not users[f] & ~then:
                        after -= self.files[f].size
                heappush(open_, (max(peak, need), then, after, (*order, task)))

    def _keys(self) -> dict[int, tuple[int, int]]:
        """Which part goes first, if there is a choice."""
        found = {}
        for part, tasks in self.members.items():
            profile = self.alone(tasks).profile(tasks, 0)
            inside = set(tasks)
            freed = sum(
                self.files[f].size
                for f in {f for task in tasks for f in self.used[task]}
                if self.files[f].maker not in inside and inside.issuperset(self.users[f])
            )
            most = max(need for need, _ in profile)
            found[part] = _key(most, profile[-1][1] - freed)
        return found

    def _by_parts(self) -> list[int]:
        return _PartByPart(self, self.parts, self.members, self._keys()).order()

    def _by_task(self) -> list[int]:
        """As if each task were a part."""
        parts = {task: task for task in self.parents}
        members = {task: [task] for task in self.parents}
        keys = {task: _key(self.out(task), self._left_by(task)) for task in self.parents}
        return _PartByPart(self, parts, members, keys).order()

    def _left_by(self, task: int) -> int:
        """What a task alone adds, if all others that use its files were done."""
        return self.out(task) - sum(
            self.files[f].size for f in self.used[task] if len(self.users[f]) == 1
        )

    def order(self, begun: Collection[int] = (), before: Sequence[int] = ()) -> list[int]:
        """An order that needs little; the least, up to `EXACT` tasks.

        `begun`: tasks that had their space, and were ended before they were done; `before`: the
        order that held then. With these first, that order will do again.
        """
        if len(self.parents) <= EXACT:
            return self.exact()
        ways = [self._by_parts(), self._by_task()]
        kept = [task for task in before if task in self.parents]
        if len(kept) == len(self.parents):
            ways.append(kept)
        first = [task for task in begun if task in self.parents and not self.parents[task]]
        if first:
            ways += [[*first, *(task for task in way if task not in set(first))] for way in ways]
        return min(ways, key=self.peak)


class _PartByPart:
    """An order of tasks: a part goes to its end before the next one begins, if that is
    possible."""

    def __init__(
        self,
        demand: Demand,
        parts: Mapping[int, int],
        members: Mapping[int, Sequence[int]],
        keys: Mapping[int, tuple[int, int]],
    ) -> None:
        self._parts = parts
        self._members = members
        self._keys = keys
        self._children = demand.children
        self._rank = {task: at for tasks in members.values() for at, task in enumerate(tasks)}
        self._waits = {task: len(parents) for task, parents in demand.parents.items()}
        self._opened: dict[int, int] = {}
        self._going: list[tuple[int, int, int]] = []
        """Ready tasks of parts that have started, the latest of these first."""
        self._new: list[tuple[tuple[int, int], int, int, int]] = []
        """Ready tasks of others, by the keys of their parts."""
        for task, waits in self._waits.items():
            if not waits:
                self._is_ready(task)

    def order(self) -> list[int]:
        """Of all tasks. Once."""
        order: list[int] = []
        done: set[int] = set()
        while self._going or self._new:
            if self._going:
                task = heappop(self._going)[2]
            else:
                task = heappop(self._new)[3]
            if task in done:
                continue
            if self._parts[task] not in self._opened:
                self._open(self._parts[task], task)
            done.add(task)
            order.append(task)
            for child in self._children[task]:
                self._waits[child] -= 1
                if not self._waits[child]:
                    self._is_ready(child)
        return order

    def _is_ready(self, task: int) -> None:
        part = self._parts[task]
        if part in self._opened:
            heappush(self._going, (self._opened[part], self._rank[task], task))
        else:
            heappush(self._new, (self._keys[part], part, self._rank[task], task))

    def _open(self, part: int, first: int) -> None:
        """From here on what is ready of the part goes before all that was."""
        self._opened[part] = -len(self._opened)
        for task in self._members[part]:
            if not self._waits[task] and task != first:
                self._is_ready(task)


def _key(most: int, after: int) -> tuple[int, int]:
    """Johnson's rule, for something that needs some space while it runs, and leaves more or less
    after it."""
    if after <= 0:
        return (0, most)
    return (1, after - most)
