"""FES(depth), future eligible sets: hold as many processors as the next `depth` generations may use (section III-F).

Depth 0 is `bf`; a depth beyond the workflow's last generation is `sr`.
"""

from dataclasses import dataclass

from windrow.errors import UserError
from windrow.streams.policy import by_arrival
from windrow.streams.progress import Progress


@dataclass(frozen=True, slots=True)
class FutureEligibleSets:
    """`depth` is how many generations beyond the current one are looked at."""

    depth: int

    def __post_init__(self) -> None:
        if self.depth < 0:
            raise UserError(f"fes needs a depth of at least 0, not {self.depth}; for example fes:1")

    place = staticmethod(by_arrival)

    @property
    def name(self) -> str:
        """As users write it."""
        return f"fes:{self.depth}"

    def target(self, progress: Progress) -> int:
        """The widest generation within the depth."""
        return progress.widest(self.depth)
