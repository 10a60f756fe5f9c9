"""The tree of errors. Everything Windrow raises on purpose is in it; anything else is a bug::

    WindrowError
    ├── UserError          the user's input cannot be used; the message names it and the fix (exit code 2)
    │   └── InputError     the same, at a place in a file: file, line, what is wrong, what to do
    └── OutsideError       something outside failed: network, disk, batch system (exit code 1)
        └── NothingBegun   the same, before anything was started (exit code 2)

Exceptions stop at the command line, which prints one line and chooses the exit code; nothing else
prints errors.
"""  # noqa: E501

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from os import PathLike

_SHOWN = 80

STEERING = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Characters that steer a terminal, break a line or turn the direction of the text; none belongs
into a name."""


def printable(text: str) -> str:
    """The text with such characters written as escapes (`\\x1b`), newlines and tabs excepted."""
    return STEERING.sub(
        lambda found: found[0] if found[0] in "\n\t" else repr(found[0])[1:-1], text
    )


class WindrowError(Exception):
    """Root of the tree."""

    exit_code = 1


class UserError(WindrowError):
    """The request cannot be carried out as given. The message says what to change."""

    exit_code = 2


class InputError(UserError):
    """A file cannot be used. `line` is 1-based, or None if the problem has no line."""

    def __init__(
        self, file: str | PathLike[str], problem: str, *, line: int | None = None, fix: str = ""
    ) -> None:
        self.file = str(file)
        self.line = line
        self.problem = problem
        self.fix = fix
        if line is None:
            place = self.file
        else:
            place = f"{self.file}:{line}"
        super().__init__(f"{place}: {problem}" + (f"; {fix}" if fix else ""))


class OutsideError(WindrowError):
    """Something outside failed: a download failed, a disk is full. Trying again later may help."""


class NothingBegun(OutsideError):  # noqa: N818  (it says what matters: trying again is safe)
    """Something outside failed, and nothing was started."""

    exit_code = 2


def unknown_name(what: str, value: str, known: Iterable[str]) -> UserError:
    """The error for a name that does not exist: it lists the names there are, and the one that was
    likely meant."""
    names = list(known)
    value = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}..."
    near = difflib.get_close_matches(value, names, n=1)
    if near:
        hint = f"; did you mean {near[0]}?"
    else:
        hint = ";"
    return UserError(f"unknown {what} {value!r}{hint} known: {', '.join(names)}")
