"""What a policy decides: how many processors a workflow should hold, and where it stands in the queue.

All else is the pool's: it goes through the queue in order, starts what is eligible, and keeps back what a workflow
should hold beyond its eligible tasks. So a policy is one small file.
"""

from typing import Protocol

from windrow.streams.progress import Progress


class Policy(Protocol):
    """One way to share a pool."""

    @property
    def name(self) -> str:
        """As users write it."""

    def target(self, progress: Progress) -> int:
        """Processors that the workflow should hold now, at work or idle; what is below its eligible set means none."""

    def place(self, at_s: float, length_s: float) -> float:
        """Where in the queue a workflow stands that arrived then and would take that long alone: the least first.

        Equals stand in the order of arrival.
        """


def by_arrival(at_s: float, length_s: float) -> float:  # noqa: ARG001
    """The place in a queue in the order of arrival."""
    return at_s
