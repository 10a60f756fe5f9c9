"""Commands that other packages bring: modules named in the entry-point group `windrow.commands`.

Rule: they are looked up only for a command that is not ours and for `windrow help all`, since it
takes a while to look through all that is installed. Such a module offers what one of ours does
(`main.Command`), with its text in the file of its name beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from windrow.errors import UserError
from windrow.extensions import COMMANDS, entries, entry

LAB = "windrow-lab"
LAB_COMMANDS = ("grid", "lab", "reproduce", "stream")
"""Of our own package of studies, which is asked for by name if it is not there."""


def command_of(name: str) -> ModuleType | None:
    """The module of that command; None if no package brings it. UserError if only the lab would."""
    found = entry(COMMANDS, name)
    if found is not None:
        module: ModuleType = found.load()
        return module
    if name in LAB_COMMANDS:
        raise _without_lab(f"windrow {name}")
    return None


def names() -> list[str]:
    """Every command of other packages, and of the lab also if it is not there."""
    return sorted({*LAB_COMMANDS, *(one.name for one in entries(COMMANDS))})


def groups() -> Mapping[str, Sequence[str]]:
    """The commands that are there, by the package that brings them, as a title for help."""
    found: dict[str, list[str]] = {}
    for one in entries(COMMANDS):
        package = one.dist.name if one.dist is not None else "other packages"
        found.setdefault(f"with {package}", []).append(one.name)
    if entry(COMMANDS, LAB_COMMANDS[0]) is None:
        found[f"with {LAB}, which is not installed (pip install {LAB})"] = []
    return found


def from_lab(name: str, who: str) -> Any:
    """What the lab offers to one of our own commands, by its name in the group `windrow.studies`.

    UserError if the lab is not there; `who` needs it.
    """
    found = entry("windrow.studies", name)
    if found is None:
        raise _without_lab(who)
    return found.load()


def _without_lab(who: str) -> UserError:
    return UserError(f"{who} needs {LAB}, which is not installed; pip install {LAB}")
