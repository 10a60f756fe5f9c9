"""A claim of a paper beside what our runs say."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Claim:
    """What the text says, what our runs say, and whether they agree; `agrees` is None where ours cannot say."""

    where: str
    what: str
    printed: str
    ours: str
    agrees: bool | None
