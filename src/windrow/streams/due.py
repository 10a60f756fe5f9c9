"""Due dates: as `bf`, but the queue is in the order of arrival + patience x the workflow's length alone. Ours.

The slowdown of a workflow is its response over its length, the makespan that it would have alone on the pool. So an
hour of waiting weighs most on the shortest. Each workflow is due at its arrival plus `patience` times its length, and
the earliest due goes first.

Law: nobody starves. A workflow that arrives after another is due never stands before it, so each is overtaken by no
more than those who arrive within `patience` times its length.

Lengths are estimates; how good they must be is measured in docs/theory/streams.md. Patience 0 is `bf`.
"""

import math
from dataclasses import dataclass

from windrow.errors import UserError
from windrow.streams.progress import Progress


@dataclass(frozen=True, slots=True)
class DueDates:
    """`patience`: how many times its length a workflow may be asked to wait for shorter ones."""

    patience: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.patience) and self.patience >= 0):
            raise UserError(f"due needs a patience of at least 0, not {self.patience:g}; for example due:2")

    @property
    def name(self) -> str:
        """As users write it."""
        return f"due:{self.patience:g}"

    def target(self, progress: Progress) -> int:  # noqa: ARG002
        """None beyond the eligible tasks."""
        return 0

    def place(self, at_s: float, length_s: float) -> float:
        """When the workflow is due."""
        return at_s + self.patience * length_s
