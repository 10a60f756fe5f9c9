"""SR, strict reservation: every workflow holds as many processors as it may ever use (section III-D).

No workflow is ever delayed by one behind it. The price is processors that stand idle for the day they are needed.
"""

from dataclasses import dataclass

from windrow.streams.policy import by_arrival
from windrow.streams.progress import Progress


@dataclass(frozen=True, slots=True)
class StrictReservation:
    """`exact`: hold the exact level of parallelism instead of the widest generation, as the paper does."""

    exact: bool = False

    place = staticmethod(by_arrival)

    @property
    def name(self) -> str:
        """As users write it."""
        return "sr-exact" if self.exact else "sr"

    def target(self, progress: Progress) -> int:
        """The level of parallelism."""
        return progress.exact_parallelism if self.exact else progress.parallelism
