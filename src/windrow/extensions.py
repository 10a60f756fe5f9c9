"""What other packages bring, by entry points: `windrow.importers`, `windrow.queues`,
`windrow.strategies`, `windrow.commands` (docs/reference/extensions.md).

Rule: they are looked up only for a name that is not ours, since it takes a while to look through
all that is installed; and ours cannot be replaced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windrow.errors import UserError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

IMPORTERS = "windrow.importers"
QUEUES = "windrow.queues"
STRATEGIES = "windrow.strategies"
COMMANDS = "windrow.commands"


def entries(group: str) -> list[EntryPoint]:
    """All of a group, by name."""
    from importlib.metadata import entry_points  # noqa: PLC0415  (slow, and seldom needed)

    return sorted(entry_points(group=group), key=lambda entry: entry.name)


def entry(group: str, name: str) -> EntryPoint | None:
    """The one of this name."""
    return next((found for found in entries(group) if found.name == name), None)


def loaded(group: str, name: str) -> Any:
    """What a package brings under this name; None if none does. UserError if it cannot be
    loaded."""
    found = entry(group, name)
    if found is None:
        return None
    try:
        return found.load()
    except (ImportError, AttributeError) as error:
        package = found.dist.name if found.dist is not None else "a package"
        raise UserError(
            f"{name} of {group} is {found.value} of {package}, which cannot be loaded ({error}); "
            "install that package again"
        ) from error
