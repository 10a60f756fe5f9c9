"""Which tasks may start where files must not take more than so much: never more than the limit, and never stuck.

Law (the banker's): a task starts only if its files fit beside all that is there and promised to tasks that run; and if
afterwards, once all that runs has ended, what is left could still run to its end, one task after the other in the order
of `sequence`. So when nothing runs, the first of that order can always start.

Within that, `least-need` and `depth-first` open a new part (`sequence`) only if the most that it will need fits beside
the most that all open parts will yet need: else many would begin, and each would wait for the others' space. Tasks of
open parts go first. New parts: by least-need the one that needs least, by depth-first the next one of the sequence.
`breadth-first` takes tasks level by level, as long as the first law allows.

Tasks that are given up for now, because they failed or time is short, are to run later: their place in the sequence, or
the space that they had, stays theirs. So it may be that nothing runs and nothing may start; then the job is over. Sizes
may turn out otherwise (`finish`). Where they are larger the space may not do any more: then what fits still starts.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from typing import Any

from windrow.storage.sequence import Demand, FileUse

LEAST_NEED, DEPTH_FIRST, BREADTH_FIRST = ORDERS = ("least-need", "depth-first", "breadth-first")
"""Which task goes first, of those that may."""

_NEVER = -(1 << 62)


class _Heights:
    """Numbers in a row: add to some neighbours, ask for the largest of all, which is `most[1]`."""

    def __init__(self, values: Sequence[int]) -> None:
        self._size = 1
        while self._size < len(values):
            self._size *= 2
        self.most = [_NEVER] * self._size + [*values] + [_NEVER] * (self._size - len(values))
        self._more = [0] * (2 * self._size)
        for at in range(self._size - 1, 0, -1):
            self.most[at] = max(self.most[2 * at], self.most[2 * at + 1])

    def add(self, first: int, end: int, more: int) -> None:
        """Add to those from `first` to before `end`."""
        left, right = first + self._size, end + self._size
        ends = left, right - 1
        if first >= end or not more:
            return
        while left < right:
            if left & 1:
                self._raise(left, more)
                left += 1
            if right & 1:
                right -= 1
                self._raise(right, more)
            left, right = left >> 1, right >> 1
        for at in ends:
            at >>= 1  # noqa: PLW2901
            while at:
                self.most[at] = self._more[at] + max(self.most[2 * at], self.most[2 * at + 1])
                at >>= 1  # noqa: PLW2901

    def _raise(self, at: int, more: int) -> None:
        self.most[at] += more
        self._more[at] += more


class Admission:
    """The tasks of a run that are not done, within a limit of bytes."""

    def __init__(self, demand: Demand, limit: int, order: str = LEAST_NEED, sequence: Sequence[int] = ()) -> None:
        """`sequence`: the order of `demand.order`, where that is known."""
        self.demand, self.limit, self.rule = demand, limit, order
        self.sequence = list(sequence) or demand.order()
        self.smallest = demand.peak(self.sequence)
        """The least space with which it would go to its end."""
        self._place = {task: at for at, task in enumerate(self.sequence)}
        self._sizes = [file.size for file in demand.files]
        self._users = [set(users) for users in demand.users]
        self.used = demand.there
        """Bytes that are there, or promised to tasks that run."""
        self.running: set[int] = set()
        self._done: set[int] = set()
        self._begun: set[int] = set()
        self._offered: list[tuple[tuple[int, ...], int]] = []
        self._keys: dict[int, tuple[int, ...]] = {}
        self._heights = _Heights([need for need, _ in demand.profile(self.sequence)])
        self._level: dict[int, int] = {}
        self._set_up_parts()

    def record(self) -> list[object]:
        """All that `restored` needs, as JSON has it."""
        parents = [[task, *sorted(self.demand.parents[task])] for task in self.sequence]
        return [self.limit, self.rule, self.demand.held, parents, [list(file) for file in self.demand.files]]

    @staticmethod
    def restored(record: Sequence[Any]) -> Admission:
        """From what `record` said before anything started."""
        limit, rule, held, rows, files = record
        parents = {task: before for task, *before in rows}
        return Admission(Demand(parents, [FileUse(*file) for file in files], held), limit, rule, list(parents))

    def _set_up_parts(self) -> None:
        demand, members = self.demand, self.demand.members
        for task, parents in demand.parents.items():
            self._level[task] = 1 + max((self._level[p] for p in parents), default=-1)
        self._held = dict.fromkeys(members, 0)
        self._yet: dict[int, list[int]] = {}  # the most that a part needs from each of its tasks on
        self._next = dict.fromkeys(members, 0)
        for part, tasks in members.items():
            needs = [need for need, _ in demand.alone(tasks).profile(tasks, 0)]
            for at in range(len(needs) - 1, 0, -1):
                needs[at - 1] = max(needs[at - 1], needs[at])
            self._yet[part] = [*needs, 0]
        self._open: set[int] = set()
        self._promised = 0  # what open parts will yet need beyond what they have

    def offer(self, task: int) -> None:
        """The task may start as far as others are concerned."""
        self._keys[task] = self._urgency(task)
        insort(self._offered, (self._keys[task], task))

    def _take_back(self, task: int) -> None:
        if task in self._keys:
            del self._offered[bisect_left(self._offered, (self._keys.pop(task), task))]

    def _urgency(self, task: int) -> tuple[int, ...]:
        part = self.demand.parts[task]
        if self.rule == BREADTH_FIRST:
            return (1, self._level[task], self._place[task])
        need = self._yet[part][0] if self.rule == LEAST_NEED else 0
        return (0, self._place[task]) if part in self._open else (1, need, self._place[task])

    def candidates(self) -> Iterator[int]:
        """What was offered, the most urgent first; none behind a new part that was refused."""
        for urgency, task in list(self._offered):
            if urgency[0] and self.rule != BREADTH_FIRST and not self._has_room_for_part(task):
                return
            yield task

    def _out(self, task: int) -> int:
        return sum(self._sizes[f] for f in self.demand.made[task])

    def _promise(self, part: int) -> int:
        return max(0, self._yet[part][self._next[part]] - self._held[part])

    def _has_room_for_part(self, task: int) -> bool:
        part = self.demand.parts[task]
        more = 0 if part in self._open else self._promise(part)
        return not self.running or self.used + self._promised + more <= self.limit

    def admit(self, task: int) -> bool:
        """Start a task that was offered, if it may."""
        out, part = self._out(task), self.demand.parts[task]
        if task in self._begun:  # it failed, and has its space
            self._start(task)
            return True
        if self.used + out > self.limit or not self._keeps_promises(task, part, out):
            return False
        self._pull(task, 1)
        if self._heights.most[1] > self.limit and (self.running or self._is_safe_without(task)):
            self._pull(task, -1)
            return False
        self._begin(task)
        self._start(task)
        return True

    def _begin(self, task: int) -> None:
        """Its files have their space from here on, and it is out of the sequence."""
        part = self.demand.parts[task]
        members, ready = self.demand.members[part], self._keys.keys()
        self._begun.add(task)
        if part not in self._open:
            self._open.add(part)
            self._promised += self._promise(part)
            for other in [other for other in members if other in ready] if self.rule != BREADTH_FIRST else ():
                self._take_back(other)
                self.offer(other)
        self._promised -= self._promise(part)
        while self._next[part] < len(members) and members[self._next[part]] in self._begun:
            self._next[part] += 1
        self._promised += self._promise(part)
        self._hold(part, self._out(task))

    def _hold(self, part: int, more: int) -> None:
        self.used += more
        self._promised -= self._promise(part) if part in self._open else 0
        self._held[part] += more
        self._promised += self._promise(part) if part in self._open else 0

    def _keeps_promises(self, task: int, part: int, out: int) -> bool:
        """Whether open parts could still have what they will need. Where nothing runs, that waits for itself."""
        if self.rule == BREADTH_FIRST or not self.running:
            return True
        own = self._promise(part)
        rest = self._promised - (own if part in self._open else 0)
        return self.used + rest + max(out, own) <= self.limit and self._has_room_for_part(task)

    def _is_safe_without(self, task: int) -> bool:
        """Whether another task could start instead, though nothing runs: the first that is left of the sequence."""
        self._pull(task, -1)
        is_safe = self._heights.most[1] <= self.limit
        self._pull(task, 1)
        return is_safe

    def _start(self, task: int) -> None:
        self._take_back(task)
        self.running.add(task)

    def _pull(self, task: int, way: int) -> None:
        """In the sequence let it be the next that runs; `way` -1: as before."""
        at, users = self._place[task], self._users
        lasting = (self._sizes[f] for f in self.demand.made[task] if len(users[f]) != 1)  # kept, or read later
        self._heights.add(0, at, way * sum(lasting))
        for f in self.demand.used[task]:
            if self.demand.files[f].maker != task and (last := self._last_user(f, task)) < at:
                self._heights.add(last + 1, at, -way * self._sizes[f])
        self._heights.add(at, at + 1, way * _NEVER)

    def _last_user(self, f: int, but: int = -1) -> int:
        """The place in the sequence of the last task that has not started and uses the file; beyond all if it stays."""
        if not self._users[f]:
            return len(self._place)
        return max((self._place[u] for u in self._users[f] - self._begun if u != but), default=-1)

    def finish(self, task: int, sizes: Sequence[int] | None = None) -> list[str]:
        """The task is done, here or elsewhere, and its files have these sizes; which files nothing needs any more."""
        if task in self._done or task not in self._place:
            return []
        if task not in self._begun:
            self._pull(task, 1)
            self._begin(task)
        for f, size in zip(self.demand.made[task], sizes or (), strict=False):
            more, self._sizes[f] = size - self._sizes[f], size
            self._hold(self.demand.parts[task], more)
            self._heights.add(0, min(self._last_user(f) + 1, len(self._place)), more)
        self.running.discard(task)
        self._take_back(task)
        self._done.add(task)
        freed = [f for f in self.demand.used[task] if self._done.issuperset(self._users[f])]
        for f in freed:
            maker = self.demand.files[f].maker
            if maker is None:
                self.used -= self._sizes[f]
            else:
                self._hold(self.demand.parts[maker], -self._sizes[f])
        return [self.demand.files[f].name for f in freed]

    def give_up(self, tasks: Sequence[int]) -> None:
        """These tasks will not run here, or not again. They are to run later: what they had stays theirs."""
        for task in tasks:
            self.running.discard(task)
            self._take_back(task)
