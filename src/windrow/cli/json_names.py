"""Names in what `--json` prints, as `docs/reference/json.md` tells them.

Rule: inside, every time has a name that ends in `_s`. Outside, such a name is a duration; that of
an instant ends in `_at`. Instants of real runs are seconds since 1970, those of simulations seconds
since the first submission of their log.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SCHEMA = 1
"""It changes when a name or its meaning does; names may be added."""
_INSTANTS = frozenset(
    (
        "begun_s",
        "created_s",
        "end_s",
        "ended_s",
        "from_s",
        "last_s",
        "planned_s",
        "predicted_s",
        "start_s",
        "started_s",
        "submit_by_s",
        "submit_s",
        "submitted_s",
        "times_s",
        "to_s",
    )
)


def outward(value: Any) -> Any:
    """The same with these names, whatever views are in it."""
    if isinstance(value, Mapping):
        return {_name(key): outward(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [outward(one) for one in value]
    if value is None or isinstance(value, str | int | float):
        return value
    from msgspec import to_builtins

    return outward(to_builtins(value))


def _name(key: Any) -> str:
    if key == "at_s":
        return "at"
    if key in _INSTANTS:
        return f"{key.removesuffix('_s')}_at"
    return str(key)
