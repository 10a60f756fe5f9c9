"""Which tasks may start if the space of files is limited: never more than the limit, and
never stuck.

Law (the banker's): a task starts only if its files fit beside all that is there and promised to
tasks that run; and if afterwards, once all that runs has ended, what is left could still run to its
end, one task after the other in the order of `sequence`. So when nothing runs, the first of that
order can always start.

Within that, `least-need` and `depth-first` open a new part (`sequence`) only if the most that it
will need fits beside the most that all open parts will yet need: else many would begin, and each
would wait for the others' space. Tasks of open parts go first. New parts: by least-need the one
that needs least, by depth-first the next one of the sequence. `breadth-first` takes tasks level by
level, as long as the first law allows.

Sizes may be unknown, or wrong. What a file turned out to take is expected of the others of its kind
from then on. A task that makes a file of unknown size runs by itself; so does one of a kind of
which the last turned out larger than expected. So the limit is exceeded by no more than one task
makes beyond what is known of it, and those that had started when the first of a kind turned out to
be larger.

Tasks that are given up for now, because they failed or time is short, are to run later: their place
in the sequence, or the space that they had, stays theirs. So it may be that nothing runs and
nothing may start; then the job is over. Sizes may turn out otherwise (`finish`). If they are
larger the space may not do any more: then what fits still starts, and, by itself, what takes away
more than it makes.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from typing import Any

from windrow.storage.sequence import Demand, FileUse

LEAST_NEED, DEPTH_FIRST, BREADTH_FIRST = ORDERS = ("least-need", "depth-first", "breadth-first")
"""Which task goes first, of those that may."""

_NEVER = -(1 << 62)


def _to_be_made(demand: Demand) -> dict[int, list[int]]:
    """The files of each kind that are to be made."""
    found: dict[int, list[int]] = {}
    for number, file in enumerate(demand.files):
        if file.maker is not None and file.kind >= 0:
            found.setdefault(file.kind, []).append(number)
    return found


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
        left = first + self._size
        right = end + self._size
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
            left = left >> 1
            right = right >> 1
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

    def __init__(
        self, demand: Demand, limit: int, order: str = LEAST_NEED, sequence: Sequence[int] = ()
    ) -> None:
        """`sequence`: the order of `demand.order`, if that is known."""
        self.demand = demand
        self.limit = limit
        self.rule = order
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
        self._of_kind = _to_be_made(demand)
        self._unsure = {number for number, file in enumerate(demand.files) if not file.is_known}
        """Files that may take more than is expected of them."""
        self._sure: set[int] = set()
        self._largest: dict[int, int] = {}
        """Kinds of which the last file was not larger than expected; the largest of each kind so
        far."""
        self._heights = _Heights([need for need, _ in demand.profile(self.sequence)])
        self._level: dict[int, int] = {}
        self._set_up_parts()

    def record(self) -> list[object]:
        """All that `restored` needs, as JSON has it."""
        parents = [[task, *sorted(self.demand.parents[task])] for task in self.sequence]
        return [
            self.limit,
            self.rule,
            self.demand.held,
            parents,
            [list(file) for file in self.demand.files],
        ]

    @staticmethod
    def restored(record: Sequence[Any]) -> Admission:
        """From what `record` said before anything started."""
        limit, rule, held, rows, files = record
        parents = {task: before for task, *before in rows}
        return Admission(
            Demand(parents, [FileUse(*file) for file in files], held), limit, rule, list(parents)
        )

    def _set_up_parts(self) -> None:
        demand = self.demand
        members = self.demand.members
        for task, parents in demand.parents.items():
            self._level[task] = 1 + max((self._level[p] for p in parents), default=-1)
        self._held = dict.fromkeys(members, 0)
        self._yet: dict[int, list[int]] = {}  # the most that a part needs from each of its tasks on
        self._next = dict.fromkeys(members, 0)
        for part in members:
            self._yet[part] = self._needs(part)
        self._open: set[int] = set()
        self._promised = 0  # what open parts will yet need beyond what they have

    def _needs(self, part: int) -> list[int]:
        """The most that a part needs from each of its tasks on."""
        tasks = self.demand.members[part]
        needs = [need for need, _ in self.demand.alone(tasks, self._sizes).profile(tasks, 0)]
        for at in range(len(needs) - 1, 0, -1):
            needs[at - 1] = max(needs[at - 1], needs[at])
        return [*needs, 0]

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
        if self.rule == LEAST_NEED:
            need = self._yet[part][0]
        else:
            need = 0
        if part in self._open:
            return (0, self._place[task])
        return (1, need, self._place[task])

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
        if part in self._open:
            more = 0
        else:
            more = self._promise(part)
        return not self.running or self.used + self._promised + more <= self.limit

    def admit(self, task: int) -> bool:
        """Start a task that was offered, if it may."""
        out = self._out(task)
        part = self.demand.parts[task]
        if self.running and any(map(self._is_unsure, (task, *self.running))):
            return False
        if task in self._begun:  # it failed, and has its space
            self._start(task)
            return True
        if not self.running and self.used > self.limit and self._frees(task) > out:
            self._pull(task, 1)
            self._begin(task)
            self._start(task)
            return True
        if self.used + out > self.limit or not self._keeps_promises(task, part, out):
            return False
        if not self._pulls_ahead(task):
            return False
        self._begin(task)
        self._start(task)
        return True

    def _pulls_ahead(self, task: int) -> bool:
        """Put the task in front of the order, unless what is left could then not finish."""
        self._pull(task, 1)
        if self._heights.most[1] > self.limit and (self.running or self._is_safe_without(task)):
            self._pull(task, -1)
            return False
        return True

    def _frees(self, task: int) -> int:
        """The bytes of files that go when this task is done."""
        used = self.demand.used[task]
        return sum(self._sizes[f] for f in used if self._users[f] - self._done == {task})

    def _is_unsure(self, task: int) -> bool:
        """Whether it may make more than is expected of it."""
        return not self._unsure.isdisjoint(self.demand.made[task])

    def _still_to_be_made(self, kind: int) -> list[int]:
        """Files of the kind whose makers have not started."""
        waiting = [n for n in self._of_kind[kind] if self.demand.files[n].maker not in self._begun]
        self._of_kind[kind] = waiting
        return waiting

    def _learn(self, f: int, size: int) -> None:
        """A file turned out to take this: so will those of its kind that are to be made, at
        least."""
        kind = self.demand.files[f].kind
        is_larger = size > self._sizes[f] and f not in self._unsure
        self._unsure.discard(f)
        if kind < 0 or (kind in self._sure and size <= self._largest[kind]):
            return
        self._largest[kind] = max(size, self._largest.get(kind, 0))
        waiting = self._still_to_be_made(kind)
        if is_larger:
            self._sure.discard(kind)
            self._unsure.update(waiting)
        else:
            self._sure.add(kind)
            self._unsure.difference_update(waiting)
        self._expect(size, [n for n in waiting if self._sizes[n] < size])

    def _expect(self, size: int, files: Sequence[int]) -> None:
        """These files, whose makers have not started, will take this much."""
        parts = set[int]()
        for f in files:
            maker = self.demand.files[f].maker
            assert maker is not None
            end = min(self._last_user(f) + 1, len(self._place))
            self._heights.add(self._place[maker], end, size - self._sizes[f])
            self._sizes[f] = size
            parts.add(self.demand.parts[maker])
        for part in parts:
            self._promised -= self._promised_if_open(part)
            self._yet[part] = self._needs(part)
            self._promised += self._promised_if_open(part)
            self._offer_again(part)

    def _offer_again(self, part: int) -> None:
        """What was offered of the part, as urgent as it is now."""
        for task in [task for task in self.demand.members[part] if task in self._keys]:
            self._take_back(task)
            self.offer(task)

    def _begin(self, task: int) -> None:
        """Its files have their space from here on, and it is out of the sequence."""
        part = self.demand.parts[task]
        members = self.demand.members[part]
        self._begun.add(task)
        if part not in self._open:
            self._open.add(part)
            self._promised += self._promise(part)
            if self.rule != BREADTH_FIRST:
                self._offer_again(part)
        self._promised -= self._promise(part)
        while self._next[part] < len(members) and members[self._next[part]] in self._begun:
            self._next[part] += 1
        self._promised += self._promise(part)
        self._hold(part, self._out(task))

    def _hold(self, part: int, more: int) -> None:
        self.used += more
        self._promised -= self._promised_if_open(part)
        self._held[part] += more
        self._promised += self._promised_if_open(part)

    def _promised_if_open(self, part: int) -> int:
        if part in self._open:
            return self._promise(part)
        return 0

    def _keeps_promises(self, task: int, part: int, out: int) -> bool:
        """Whether open parts could still have what they will need. If nothing runs, that waits
        for itself."""
        if self.rule == BREADTH_FIRST or not self.running:
            return True
        own = self._promise(part)
        rest = self._promised - self._promised_if_open(part)
        return self.used + rest + max(out, own) <= self.limit and self._has_room_for_part(task)

    def _is_safe_without(self, task: int) -> bool:
        """Whether another task could start instead, though nothing runs: the first that is left of
        the sequence."""
        self._pull(task, -1)
        is_safe = self._heights.most[1] <= self.limit
        self._pull(task, 1)
        return is_safe

    def _start(self, task: int) -> None:
        self._take_back(task)
        self.running.add(task)

    def _pull(self, task: int, way: int) -> None:
        """In the sequence let it be the next that runs; `way` -1: as before."""
        at = self._place[task]
        users = self._users
        lasting = (
            self._sizes[f] for f in self.demand.made[task] if len(users[f]) != 1
        )  # kept, or read later
        self._heights.add(0, at, way * sum(lasting))
        for f in self.demand.used[task]:
            if self.demand.files[f].maker != task and (last := self._last_user(f, task)) < at:
                self._heights.add(last + 1, at, -way * self._sizes[f])
        self._heights.add(at, at + 1, way * _NEVER)

    def _last_user(self, f: int, but: int = -1) -> int:
        """The place in the sequence of the last task that has not started and uses the file; beyond
        all if it stays."""
        if not self._users[f]:
            return len(self._place)
        return max((self._place[u] for u in self._users[f] - self._begun if u != but), default=-1)

    def finish(self, task: int, sizes: Sequence[int] | None = None) -> list[str]:
        """The task is done, here or elsewhere, and its files have these sizes; which files nothing
        needs any more."""
        if task in self._done or task not in self._place:
            return []
        if task not in self._begun:
            self._pull(task, 1)
            self._begin(task)
        for f, size in zip(self.demand.made[task], sizes or (), strict=False):
            self._learn(f, size)
            more = size - self._sizes[f]
            self._sizes[f] = size
            self._hold(self.demand.parts[task], more)
            self._heights.add(0, min(self._last_user(f) + 1, len(self._place)), more)
        self.running.discard(task)
        self._take_back(task)
        self._done.add(task)
        freed = [f for f in self.demand.used[task] if self._done.issuperset(self._users[f])]
        for f in freed:
            self._free(f)
        return [self.demand.files[f].name for f in freed]

    def _free(self, f: int) -> None:
        maker = self.demand.files[f].maker
        if maker is None:
            self.used -= self._sizes[f]
        else:
            self._hold(self.demand.parts[maker], -self._sizes[f])

    def give_up(self, tasks: Sequence[int]) -> None:
        """These tasks will not run here, or not again. They are to run later: what they had stays
        theirs."""
        for task in tasks:
            self.running.discard(task)
            self._take_back(task)
