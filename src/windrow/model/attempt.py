"""Why an agent left its job, as a value. Standard library only: agents write it, and everyone who
tells of a run reads it.

Rule: what is decided by it is decided by the value; sentences are for people.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from windrow.model.cause import Cause


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
