"""What nodes offer. Loads nothing but the standard library, since it is used on compute nodes too."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.errors import UserError
from windrow.model.size import format_memory


@dataclass(frozen=True, slots=True)
class NodeShape:
    """What one node of a cluster offers. The papers' node has one core; memory None means unlimited."""

    cores: int = 1
    memory_bytes: int | None = None

    def __str__(self) -> str:
        cores = "1 core" if self.cores == 1 else f"{self.cores} cores"
        return cores if self.memory_bytes is None else f"{cores} and {format_memory(self.memory_bytes)} of memory"

    def __post_init__(self) -> None:
        if self.cores < 1 or (self.memory_bytes is not None and self.memory_bytes <= 0):
            raise UserError(f"a node needs at least one core and some memory, not {self.cores} and {self.memory_bytes}")
