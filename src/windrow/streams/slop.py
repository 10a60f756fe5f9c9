"""SLoP(f), scaled level of parallelism: hold a fraction of what the workflow may ever use (section III-E).

f = 1 is `sr`, f = 0 is `bf`. A fraction of a processor counts as a whole one.
"""

import math
from dataclasses import dataclass

from windrow.errors import UserError
from windrow.streams.policy import by_arrival
from windrow.streams.progress import Progress

_ROUNDING = 1e-9  # so that 0.2 x 15 is 3 and not the 4 that binary fractions would make of it


@dataclass(frozen=True, slots=True)
class ScaledParallelism:
    """`fraction` is the paper's f."""

    fraction: float

    def __post_init__(self) -> None:
        if not 0 <= self.fraction <= 1:
            raise UserError(f"slop needs a fraction between 0 and 1, not {self.fraction:g}; for example slop:0.2")

    place = staticmethod(by_arrival)

    @property
    def name(self) -> str:
        """As users write it."""
        return f"slop:{self.fraction:g}"

    def target(self, progress: Progress) -> int:
        """The fraction of the widest generation, rounded up."""
        return math.ceil(self.fraction * progress.parallelism - _ROUNDING)
