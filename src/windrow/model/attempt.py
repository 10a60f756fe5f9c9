"""What an agent says of an attempt at a task, and why it left its job, as values. Standard library
only: agents write them, the journal keeps them whole, and everyone who tells of a run reads them.

Rule 1: what is decided by a reason is decided by the value; sentences are for people.
Rule 2: there is one record of an attempt. Who measures something more adds a field here, sets it in
`agent.runner`, and shows it; nothing between them names it.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass, fields
from enum import StrEnum
from operator import attrgetter
from typing import Any, NamedTuple

from windrow.model.cause import Cause


class Moved(NamedTuple):
    """A file of an attempt on a node with a disk of its own, how it came or went, and bytes."""

    file: str
    link: str
    size_bytes: int


@dataclass(slots=True)
class Attempt:
    """One try at a task, as its agent knows it. An empty `why` of one that has ended means that it
    succeeded; else `cause` says what failed it.

    It is not changed once it was told; those who know more make another one (`replace`).
    """

    task: int
    number: int = 0
    """How often it had been tried, this time included; 0: the latest try in its job."""
    exit: int | None = None
    signal: int | None = None
    why: str = ""
    cpu_s: float = 0.0
    peak_bytes: int = 0
    """Of memory; 0 if it was too little to be told."""
    tail: str = ""
    """The last lines that it printed."""
    cause: str = ""
    sizes: tuple[int, ...] = ()
    """Bytes of its outputs, in their order, if it succeeded; of a folder, of all that is in it."""
    local: tuple[str, ...] = ()
    """Outputs that were on its node alone when it ended."""
    moved: tuple[Moved, ...] = ()
    """What came to its node for it, was found there, or left it, if that has a disk of its own."""
    fetch_s: float = 0.0
    """How long it waited for what came to its node."""
    begun: float = 0.0
    before_s: float = 0.0
    """What earlier attempts had done and kept, up to the checkpoint from which it continued."""
    nodes: tuple[int, ...] = ()
    near_bytes: int = 0
    """How much of what it read was on its first node alone when it started."""
    job: int = -1
    """In which it ran, if that has to be said; -1: the one of whose agent this is known."""
    place: str = ""
    """Of files, where it ran; empty: home."""

    @property
    def may_be_stop(self) -> bool:
        """Whether it looks like the end of a task that was told to go or killed, with its job, its
        node or alone."""
        stops = (signal.SIGTERM, signal.SIGKILL)
        return self.signal in stops or self.exit in [128 + stop for stop in stops]

    def told(self) -> dict[str, Any]:
        """What it says beside what is usual."""
        return {
            name: value
            for (name, usual), value in zip(_USUAL, _VALUES_OF(self))  # noqa: B905  (Python 3.9)
            if value is not usual and value != usual
        }

    @staticmethod
    def of(told: dict[str, Any]) -> Attempt:
        """The attempt of which this was told, read from JSON and given away. TypeError if that
        cannot be."""
        for name in _LISTS & told.keys():
            told[name] = tuple(told[name])
        if "moved" in told:
            told["moved"] = tuple(Moved(*one) for one in told["moved"])
        return Attempt(**told)


_USUAL: list[tuple[str, Any]] = [(field.name, field.default) for field in fields(Attempt)]
_VALUES_OF = attrgetter(*(name for name, _ in _USUAL))
_LISTS = frozenset(name for name, usual in _USUAL if usual == ())


class Leave(StrEnum):
    """Why an agent leaves."""

    DONE = "done"  # it has done all it could
    OUT_OF_TIME = "out of time"
    NOTICED = "noticed"  # the queue told it in time that it takes the nodes away
    NODE_LOST = "node lost"
    SIGNAL = "signal"  # it was told to stop
    TROUBLE = "trouble"  # it cannot work


_WORDS = {
    Leave.DONE: "nothing is left to do",
    Leave.OUT_OF_TIME: "the walltime is nearly over",
    Leave.NOTICED: "the queue is about to take its nodes away",
    Leave.NODE_LOST: "node {} was lost",
    Leave.SIGNAL: "stopped by signal {}",
    Leave.TROUBLE: "{}",
}
_CAUSES = {Leave.OUT_OF_TIME: Cause.TIME_LIMIT, Leave.SIGNAL: Cause.CANCELLED}


class Leaving(NamedTuple):
    """Why an agent leaves. `about`: the node, the signal or the trouble, if it is one of these."""

    reason: Leave
    about: str = ""

    @property
    def words(self) -> str:
        """For people."""
        return _WORDS[self.reason].format(self.about)

    @property
    def cause(self) -> Cause:
        """Why tasks are lost that still run then."""
        return _CAUSES.get(self.reason, Cause.AGENT)

    @property
    def lost_node(self) -> str:
        """The node that was lost; empty if none was."""
        if self.reason is Leave.NODE_LOST:
            return self.about
        return ""


DONE = Leaving(Leave.DONE)
OUT_OF_TIME = Leaving(Leave.OUT_OF_TIME)
NOTICED = Leaving(Leave.NOTICED)
