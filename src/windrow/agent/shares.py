"""How the agents on one machine share all that it has, task by task: a small file in the folder of
the queue.

Rule 1: an agent looks into the file before it starts tasks, and writes down what its tasks take.
Rule 2: what is free is dealt out one task at a time, each to the agent that has the smallest part
of the machine, of equals to the one that has waited longest. Rule 3: if that one's task does not
fit yet, the rest is kept for it until it does; so a task that needs more than a fair share starts,
too. Rule 4: if it lacks GPUs, disk or another named resource alone, only that is kept for it;
what is left of those goes to the first that asks. Rule 5: what a dead agent had is free. Rule 6:
agents are told apart by process number and start, each writes its own part again at every look, and
a file that cannot be read is an empty one: whatever happens to it, it is right again after
everybody's next look.

Nothing running is stopped for another agent. An agent that is alone has everything.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from windrow.agent.job_file import tuples
from windrow.agent.machine import Identity, identity, name_of, this_machine, visible
from windrow.files import disk_faults
from windrow.model.nodes import NOTHING, Need
from windrow.model.packing import Packing
from windrow.model.resources import GPUS, NodeShape

LOOK_EVERY_S = 0.05
"""How often an agent looks that others keep waiting."""
_UNLIMITED = 1 << 62


@dataclass(frozen=True, slots=True)
class Share:
    """An agent's part: what its tasks hold, the least that it needs to start one more, and cores it
    wants in all.

    `since_s`: since when it waits, or when it last started a task. `has_turn`: what is free is kept
    for it, until it starts a task. `gpus`: the names of those that its tasks hold.
    """

    who: Identity
    held: Need
    least: Need = NOTHING
    wants: int = 0
    since_s: float = 0.0
    has_turn: bool = False
    gpus: tuple[str, ...] = ()

    @property
    def is_waiting(self) -> bool:
        """Whether it would start a task."""
        return self.wants > 0


def deal(total: Need, shares: Sequence[Share]) -> tuple[list[Need], int | None]:
    """What each may take now, and the one for which the rest is kept (None: for none). See rules 2
    to 4."""
    free = total
    for share in shares:
        free = free.plus(share.held, -1)
    dealt = [NOTHING for _ in shares]
    waiting = {place: share for place, share in enumerate(shares) if share.is_waiting}
    all_waiting = list(waiting)
    kept = set[str]()
    turn = _turns(total)
    while len(waiting) > 1:
        place = min(waiting, key=lambda at: turn(waiting[at]))
        share = waiting[place]
        short = _lacking(share.least, free, kept)
        if short & {"cores", "memory"}:
            return dealt, place
        if short:
            kept |= short
            del waiting[place]
            continue
        free = free.plus(share.least, -1)
        dealt[place] = dealt[place].plus(share.least)
        wants = share.wants - share.least.cores
        waiting[place] = replace(
            share,
            held=share.held.plus(share.least),
            wants=wants,
            since_s=float("inf"),
            has_turn=False,
        )
        if wants < share.least.cores:
            del waiting[place]
    rest = _rest(free, kept)
    for place in all_waiting:
        if place in waiting:
            dealt[place] = dealt[place].plus(rest)
        else:  # the first to ask gets it; of cores and memory, the only one who wants more
            dealt[place] = dealt[place].plus(rest._replace(cores=0, memory_bytes=0))
    return dealt, None


def _turns(total: Need) -> Callable[[Share], tuple[bool, float, float, int]]:
    """Whose turn it is: the least, of those who wait."""
    most = {name: amount for name, amount in total.amounts().items() if amount}

    def turn(share: Share) -> tuple[bool, float, float, int]:
        held = share.held.amounts()
        part = max(held.get(name, 0) / amount for name, amount in most.items())
        return not share.has_turn, part, share.since_s, share.who.pid

    return turn


def _lacking(least: Need, free: Need, kept: Collection[str]) -> set[str]:
    """What of the least that one needs is not there for it now."""
    there = free.amounts()
    return {
        name
        for name, amount in least.amounts().items()
        if amount and (name in kept or amount > there.get(name, 0))
    }


def _rest(free: Need, kept: Collection[str]) -> Need:
    """What is free, without what is kept for someone."""
    left = {name: max(0, amount) for name, amount in free.amounts().items() if name not in kept}
    sizes = [left.pop(name, 0) for name in ("cores", "memory", "disk")]
    return Need(sizes[0], sizes[1], 0, sizes[2], tuple(left.items()))


class Shares:
    """This agent's part in the file."""

    def __init__(self, path: str, shape: NodeShape) -> None:
        """`shape` is the most that the tasks of this job may hold."""
        with disk_faults(f"{path} cannot be opened"):
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        me = identity(os.getpid())
        assert me is not None, "this process lives"
        self._total = _together(this_machine(), shape)
        self._gpus = visible(os.environ) or []
        self._own = Share(me, NOTHING)
        self.is_kept_waiting = False
        """Whether a task could start if others held less."""

    @contextlib.contextmanager
    def sharing(self, packing: Packing) -> Iterator[None]:
        """Inside, tasks start within what this agent may hold; afterwards all know what they
        took."""
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            others, before = self._read()
            self._note(packing)
            others, limit = self._deal(others)
            packing.limit = limit
            packing.nodes.busy_gpus = self._busy_gpus(others)
            yield
            self._note(packing)
            self._write([*others, self._own], before)
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)
        self.is_kept_waiting = self._own.is_waiting and bool(others)

    def leave(self) -> None:
        """This agent holds nothing any more."""
        fcntl.flock(self._file, fcntl.LOCK_EX)
        others, before = self._read()
        self._write(others, before)
        os.close(self._file)  # unlocks

    def _note(self, packing: Packing) -> None:
        """Take down what the tasks hold and want now."""
        least, wants = packing.wanted()
        own = self._own
        held = packing.held
        has_grown = held.cores > own.held.cores or held.memory_bytes > own.held.memory_bytes
        is_new = has_grown or not own.is_waiting
        if is_new:
            since_s = time.monotonic()
        else:
            since_s = own.since_s
        gpus = tuple(name_of(gpu, self._gpus) for gpu in sorted(packing.nodes.held_gpus()))
        self._own = Share(
            own.who, held, least, wants, since_s, own.has_turn and not is_new and wants > 0, gpus
        )

    def _give_turn(self, others: list[Share], to: int) -> None:
        """Behind the others comes this agent."""
        if to == len(others):
            self._own = replace(self._own, has_turn=True)
        else:
            others[to] = replace(others[to], has_turn=True)

    def _busy_gpus(self, others: Sequence[Share]) -> frozenset[int]:
        """Those that tasks of others hold."""
        busy = {name for share in others for name in share.gpus}
        gpus = range(dict(self._total.counts).get(GPUS, 0))
        return frozenset(gpu for gpu in gpus if name_of(gpu, self._gpus) in busy)

    def _deal(self, others: list[Share]) -> tuple[list[Share], Need]:
        """The others, as far as they live, and what this agent may hold. Who is alive is asked
        where it matters."""
        dealt, kept_for = deal(self._total, [*others, self._own])
        if others and (
            dealt[-1].cores < self._own.wants
            or any(share.held[3:] != NOTHING[3:] for share in others)
        ):
            living = [share for share in others if identity(share.who.pid) == share.who]
            if len(living) < len(others):
                others = living
                dealt, kept_for = deal(self._total, [*others, self._own])
        if kept_for is not None and not any(share.has_turn for share in (*others, self._own)):
            self._give_turn(others, kept_for)
        return others, self._own.held.plus(dealt[-1])

    def _read(self) -> tuple[list[Share], bytes]:
        """The others, and what the file says. Only its first line counts: what is behind is left
        over."""
        line = os.pread(self._file, 1 << 20, 0).partition(b"\n")[0]
        try:
            rows = json.loads(line)
            others = [
                Share(
                    Identity(*row[:2]),
                    Need(*tuples(row[2])),
                    Need(*tuples(row[3])),
                    *map(tuples, row[4:]),
                )
                for row in rows
            ]
        except (ValueError, TypeError, IndexError, KeyError):
            return [], b""
        return [share for share in others if share.who != self._own.who], line

    def _write(self, shares: Sequence[Share], before: bytes) -> None:
        line = json.dumps([_row(share) for share in shares]).encode()
        if line != before:
            with contextlib.suppress(
                OSError
            ):  # a full disk must not stop the work: others then see what was
                os.pwrite(self._file, line + b"\n", 0)


def _row(share: Share) -> list[object]:
    """As it is written: what most agents do not have is left out."""
    plain = [
        share.who.pid,
        share.who.began_ticks,
        _short(share.held),
        _short(share.least),
        share.wants,
    ]
    return [*plain, share.since_s, share.has_turn, *([share.gpus] if share.gpus else [])]


def _short(need: Need) -> tuple[object, ...]:
    if need[3:] != NOTHING[3:]:
        return tuple(need)
    return need[:2]


def _together(machine: NodeShape, shape: NodeShape) -> Need:
    """All that agents may hold together.

    A task was let in by what its submitter saw of the machine: if we see less, it must start
    nonetheless.
    """
    asked = _UNLIMITED if shape.memory_bytes is None else shape.memory_bytes
    memory = max(machine.memory_bytes or 0, asked)
    disk = _UNLIMITED if shape.disk_bytes is None else shape.disk_bytes
    counts = dict(machine.counts) | dict(shape.counts)
    return Need(max(machine.cores, shape.cores), memory, 0, disk, tuple(sorted(counts.items())))
