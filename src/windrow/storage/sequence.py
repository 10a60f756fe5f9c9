"""An order in which tasks, one after the other, need little space: what files take at the worst of times.

While a task runs there is all that was there before and all that it makes; when it has ended, what no open task reads
and is not kept is deleted. To find the order that needs least is as hard as such problems get; up to `EXACT` tasks all
orders are looked at. Beyond, tasks are put together in *parts*, pipelines mostly: a task is in the part that made all
temporary files it reads, unless several tasks of one kind read such a file. A part goes to its end before the next one
begins, where that is possible. Of parts that leave less than there was before, those that need least go first; of those
that leave more, the ones that come down furthest after their worst moment. (For independent pipelines no order of whole
pipelines needs less: it is Johnson's rule.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import NamedTuple

EXACT = 10
"""Up to this many tasks, all orders are tried."""


class FileUse(NamedTuple):
    """A file of the run. `maker` is None if it already exists; `readers` are tasks that are not done.

    `is_tie`: it ties its readers to the part of its maker.
    """

    name: str
    size: int
    maker: int | None
    readers: tuple[int, ...] = ()
    keep: bool = True
    is_tie: bool = True


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
        self.made, self.used = {task: [] for task in self.parents}, {task: [] for task in self.parents}
        self.users: list[set[int]] = []
        for number, file in enumerate(self.files):
            maker = () if file.maker is None else (file.maker,)
            self.users.append(set() if file.keep else {*maker, *file.readers})
            for task in maker:
                self.made[task].append(number)
            for task in self.users[-1]:
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
        now, found = self.there if there is None else there, list[tuple[int, int]]()
        for task in order:
            while_s = now = now + self.out(task)
            for f in self.used[task]:
                left[f] -= 1
                now -= 0 if left[f] else self.files[f].size
            found.append((while_s, now))
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
            found[task] = homes.pop() if len(homes) == 1 else number
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
                key, place = self._likeness(tasks), tasks.index
                if key not in known:
                    best = self.alone(tasks)
                    known[key] = list(map(place, best.exact() if len(tasks) <= EXACT else best._by_parts(single=True)))
                found[part] = [tasks[at] for at in known[key]]
        return found

    def alone(self, tasks: Sequence[int]) -> Demand:
        """These tasks with the files that they make; what others read of them stays."""
        mine = set(tasks)
        files = [
            f._replace(keep=f.keep or not mine.issuperset(f.readers), is_tie=False)
            for f in (self.files[n] for task in tasks for n in self.made[task])
        ]
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
        """The order that needs least, by looking at all: from each set of done tasks on, the least peak first."""
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
                    after -= 0 if users[f] & ~then else self.files[f].size
                heappush(open_, (max(peak, need), then, after, (*order, task)))

    def _keys(self) -> dict[int, tuple[int, int]]:
        """Which part goes first, where there is a choice."""
        found = {}
        for part, tasks in self.members.items():
            profile = self.alone(tasks).profile(tasks, 0)
            inside = set(tasks)
            freed = sum(
                self.files[f].size
                for f in {f for task in tasks for f in self.used[task]}
                if self.files[f].maker not in inside and inside.issuperset(self.users[f])
            )
            most, after = max(need for need, _ in profile), profile[-1][1] - freed
            found[part] = (0, most) if after <= 0 else (1, after - most)
        return found

    def _by_parts(self, *, single: bool = False) -> list[int]:
        """Part by part, or task by task as if each were one."""
        parts = {task: task for task in self.parents} if single else self.parts
        members = {task: [task] for task in self.parents} if single else self.members
        rank = {task: at for tasks in members.values() for at, task in enumerate(tasks)}
        keys = {task: _key(self.out(task), self._left_by(task)) for task in self.parents} if single else self._keys()
        waits = {task: len(parents) for task, parents in self.parents.items()}
        opened: dict[int, int] = {}
        new = [(keys[parts[t]], parts[t], rank[t], t) for t in self.parents if not waits[t]]
        heapify(new)
        going: list[tuple[int, int, int]] = []  # ready tasks of parts that have started, the latest of these first
        order: list[int] = []
        done: set[int] = set()
        while going or new:
            task = heappop(going)[2] if going else heappop(new)[3]
            if task in done:
                continue
            if (part := parts[task]) not in opened:
                opened[part] = -len(opened)
                for other in members[part]:
                    if not waits[other] and other != task:
                        heappush(going, (opened[part], rank[other], other))
            done.add(task)
            order.append(task)
            for child in self.children[task]:
                waits[child] -= 1
                if not waits[child]:
                    home = parts[child]
                    if home in opened:
                        heappush(going, (opened[home], rank[child], child))
                    else:
                        heappush(new, (keys[home], home, rank[child], child))
        return order

    def _left_by(self, task: int) -> int:
        """What a task alone adds, if all others that use its files were done."""
        return self.out(task) - sum(self.files[f].size for f in self.used[task] if len(self.users[f]) == 1)

    def order(self, begun: Collection[int] = (), before: Sequence[int] = ()) -> list[int]:
        """An order that needs little; the least, up to `EXACT` tasks.

        `begun`: tasks that had their space, and were ended before they were done; `before`: the order that held then.
        With these first, that order will do again.
        """
        if len(self.parents) <= EXACT:
            return self.exact()
        ways = [self._by_parts(), self._by_parts(single=True)]
        first = [task for task in begun if task in self.parents and not self.parents[task]]
        if kept := [task for task in before if task in self.parents]:
            ways += [kept] if len(kept) == len(self.parents) else []
        ways += [[*first, *(task for task in way if task not in set(first))] for way in list(ways) if first]
        return min(ways, key=self.peak)


def _key(most: int, after: int) -> tuple[int, int]:
    """Johnson's rule, for something that needs so much while it runs, and so much more or less after it."""
    return (0, most) if after <= 0 else (1, after - most)
