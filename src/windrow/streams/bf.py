"""BF, backfilling: nothing is ever held back; the queue is served greedily in the order of arrival (section III-G)."""

from dataclasses import dataclass

from windrow.streams.policy import by_arrival
from windrow.streams.progress import Progress


@dataclass(frozen=True, slots=True)
class Backfilling:
    """No settings."""

    place = staticmethod(by_arrival)

    @property
    def name(self) -> str:
        """As users write it."""
        return "bf"

    def target(self, progress: Progress) -> int:  # noqa: ARG002
        """None beyond the eligible tasks."""
        return 0
