"""How the agents on one machine share its cores and memory, task by task: a small file in the folder of the queue.

Rule 1: an agent looks into the file before it starts tasks, and writes down what its tasks take. Rule 2: what is free
is dealt out one task at a time, each to the agent that has the smallest part of the machine, of equals to the one that
has waited longest. Rule 3: where that one's task does not fit yet, the rest is kept for it until it does; so a task
that needs more than a fair share starts, too. Rule 4: what a dead agent had is free. Rule 5: agents are told apart by
process number and start, each writes its own part again at every look, and a file that cannot be read is an empty one:
whatever happens to it, it is right again after everybody's next look.

Nothing running is stopped for somebody else. An agent that is alone has everything.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from windrow.agent.machine import Identity, identity, this_machine
from windrow.files import disk_faults
from windrow.model.nodes import Need
from windrow.model.packing import Packing
from windrow.model.resources import NodeShape

VARIABLE = "WINDROW_SHARES"
"""Names the file, where agents share a machine."""
LOOK_EVERY_S = 0.05
"""How often an agent looks that others keep waiting."""
_NOTHING = Need(0)
_UNLIMITED = 1 << 62


@dataclass(frozen=True, slots=True)
class Share:
    """An agent's part: what its tasks hold, the least that it needs to start one more, and cores it wants in all.

    `since_s`: since when it waits, or when it last started a task. `has_turn`: what is free is kept for it, until it
    starts a task.
    """

    who: Identity
    held: Need
    least: Need = _NOTHING
    wants: int = 0
    since_s: float = 0.0
    has_turn: bool = False

    @property
    def is_waiting(self) -> bool:
        """Whether it would start a task."""
        return self.wants > 0


def deal(total: Need, shares: Sequence[Share]) -> tuple[list[Need], int | None]:
    """What each may take now, and the one for which the rest is kept (None: for none). See rules 2 and 3."""

    def turn(share: Share) -> tuple[bool, float, float, int]:
        part = max(share.held.cores / total.cores, share.held.memory_bytes / total.memory_bytes)
        return not share.has_turn, part, share.since_s, share.who.pid

    cores = total.cores - sum(share.held.cores for share in shares)
    memory = total.memory_bytes - sum(share.held.memory_bytes for share in shares)
    dealt = [_NOTHING for _ in shares]
    waiting = {place: share for place, share in enumerate(shares) if share.is_waiting}
    while len(waiting) > 1:
        place = min(waiting, key=lambda at: turn(waiting[at]))
        share = waiting[place]
        least = share.least
        if least.cores > cores or least.memory_bytes > memory:
            return dealt, place
        cores, memory = cores - least.cores, memory - least.memory_bytes
        dealt[place] = _sum(dealt[place], least)
        wants = share.wants - least.cores
        waiting[place] = replace(share, held=_sum(share.held, least), wants=wants, since_s=float("inf"), has_turn=False)
        if wants < least.cores:
            del waiting[place]
    for place in waiting:  # nobody else wants what is left
        dealt[place] = _sum(dealt[place], Need(max(0, cores), max(0, memory)))
    return dealt, None


def _sum(one: Need, other: Need) -> Need:
    return Need(one.cores + other.cores, one.memory_bytes + other.memory_bytes)


class Shares:
    """This agent's part in the file."""

    def __init__(self, path: str, shape: NodeShape) -> None:
        """`shape` is the most that the tasks of this job may hold."""
        with disk_faults(f"{path} cannot be opened"):
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        me = identity(os.getpid())
        assert me is not None, "this process lives"
        machine = this_machine()
        # A task was let in by what its submitter saw of the machine: where we see less, it must start nonetheless.
        memory = max(machine.memory_bytes or 0, _UNLIMITED if shape.memory_bytes is None else shape.memory_bytes)
        self._total = Need(max(machine.cores, shape.cores), memory)
        self._own = Share(me, _NOTHING)
        self.is_kept_waiting = False
        """Whether a task could start if others held less."""

    @contextlib.contextmanager
    def sharing(self, packing: Packing) -> Iterator[None]:
        """Inside, tasks start within what this agent may hold; afterwards everybody knows what they took."""
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            others, before = self._read()
            self._note(packing)
            others, limit = self._deal(others)
            packing.limit = limit
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
        own, held = self._own, packing.held
        has_grown = held.cores > own.held.cores or held.memory_bytes > own.held.memory_bytes
        is_new = has_grown or not own.is_waiting
        since_s = time.monotonic() if is_new else own.since_s
        self._own = Share(own.who, held, least, wants, since_s, own.has_turn and not is_new and wants > 0)

    def _deal(self, others: list[Share]) -> tuple[list[Share], Need]:
        """The others, as far as they live, and what this agent may hold. Who is alive is asked where it matters."""
        dealt, kept_for = deal(self._total, [*others, self._own])
        if dealt[-1].cores < self._own.wants and others:
            living = [share for share in others if identity(share.who.pid) == share.who]
            if len(living) < len(others):
                others = living
                dealt, kept_for = deal(self._total, [*others, self._own])
        if kept_for is not None and not any(share.has_turn for share in (*others, self._own)):
            if kept_for == len(others):
                self._own = replace(self._own, has_turn=True)
            else:
                others[kept_for] = replace(others[kept_for], has_turn=True)
        return others, _sum(self._own.held, dealt[-1])

    def _read(self) -> tuple[list[Share], bytes]:
        """The others, and what the file says. Only its first line counts: what is behind is left over."""
        line = os.pread(self._file, 1 << 20, 0).partition(b"\n")[0]
        try:
            rows = [(Identity(*row[:2]), Need(*row[2]), Need(*row[3]), *row[4:]) for row in json.loads(line)]
            others = [Share(who, held, least, wants, since_s, turn) for who, held, least, wants, since_s, turn in rows]
        except (ValueError, TypeError, IndexError, KeyError):
            return [], b""
        return [share for share in others if share.who != self._own.who], line

    def _write(self, shares: Sequence[Share], before: bytes) -> None:
        rows = [(s.who.pid, s.who.began_ticks, s.held[:2], s.least[:2], s.wants, s.since_s, s.has_turn) for s in shares]
        line = json.dumps(rows).encode()
        if line != before:
            with contextlib.suppress(OSError):  # a full disk must not stop the work: others then see what was
                os.pwrite(self._file, line + b"\n", 0)
