"""What a case of bad input is, and a kind of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.hostile.options import Draw


@dataclass(frozen=True)
class Case:
    """One command line, and whether it must be refused. `codes`: its exit codes, if they are
    others."""

    argv: tuple[str, ...]
    is_bad: bool = True
    codes: tuple[int, ...] = ()

    @property
    def allowed(self) -> tuple[int, ...]:
        """The exit codes that it may have."""
        if self.codes:
            return self.codes
        if self.is_bad:
            return (2,)
        return (0, 2)


@dataclass(frozen=True)
class Kind:
    """A way to be wrong. `make` draws a case and may put files into the folder it is given.

    `weight`: of how many ways it consists, beside other kinds.
    """

    name: str
    make: Callable[[Draw, Path], Case]
    weight: int = 1


REFUSED: tuple[int, ...] = (2,)
RAN: tuple[int, ...] = (0, 1, 2)
FAILED: tuple[int, ...] = (1, 2)
"""Exit codes of what is refused; of what may run, and may fail; of what does not succeed."""

EMPTY: list[Any] = []
TABLE: dict[str, Any] = {}
"""Values of the wrong type."""
