"""What a task asks for beyond nodes and parents: shares of the run's limits, its turn, what it is
to have at a later try, and what its failure means.

Standard library only: agents follow these rules, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

PRIORITY_MAX = 1_000_000


class Take(NamedTuple):
    """What a task takes of a limit of its run while it runs; `most` is what all may take at once.

    One that takes more than there is takes all.
    """

    name: str
    number: int
    most: int


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one task. Those of most tasks say nothing.

    `priority`: of tasks that may start, the one with the highest goes first. `loose`: parents, by
    id, of which it is enough that they are over, whatever became of them; `if_failed`: those of
    them that must not succeed, or else it is skipped. `stops`: if it fails, no other task of the
    run starts, but for those that come after something whatever becomes of it. `memories`,
    `limits_s`: what it has at its first try, its second and so on; the last one of them lasts.
    `expands`: the file, one of its outputs, that says which tasks join the run when it has
    finished.
    """

    takes: tuple[Take, ...] = ()
    priority: int = 0
    loose: tuple[str, ...] = ()
    stops: bool = False
    memories: tuple[int, ...] = ()
    limits_s: tuple[float, ...] = ()
    expands: str = ""
    if_failed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.takes:  # in a file they are lists
            object.__setattr__(self, "takes", tuple(map(Take._make, self.takes)))

    def memory_bytes(self, failed: int, least: int = 0) -> int:
        """What it is to have after this many failures."""
        if not self.memories:
            return least
        return max(least, self.memories[min(failed, len(self.memories) - 1)])

    def limit_s(self, failed: int, usual: float = 0.0) -> float:
        """How long it may run after this many failures; 0: there is no limit."""
        if not self.limits_s:
            return usual
        return self.limits_s[min(failed, len(self.limits_s) - 1)]


PLAIN = Rules()
"""Those of a task that says nothing."""
