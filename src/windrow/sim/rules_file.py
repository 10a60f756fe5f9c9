"""The rules of a simulated cluster from a file, as a batch system has its policy in one:

policy = "easy"
cap = 100                 # also: requests, events, placement; the names of the options

[priority]                # or in one line: priority = "fl"
wait = 1
nodes = {weight = 10, cap = 64}
requested = -2
half_life = 24
users = {17 = 500}        # points of the jobs of these users of the log
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from windrow.errors import UserError
from windrow.formats.disk import AnyPath, read_toml
from windrow.formats.tables import BadKeyError, TomlFile, as_type
from windrow.sim.settings import REQUESTS, ClusterSettings, choice

_Weights = Annotated[
    str | dict[str, Any] | None, Meta(description="the name of a priority, or a table of weights")
]
_CHECKED = ("policy", "priority", "events", "placement", "cap")


class _RulesTable(msgspec.Struct, forbid_unknown_fields=True):
    policy: str | None = None
    priority: _Weights = None
    requests: str | None = None
    events: str | None = None
    placement: str | None = None
    cap: int | None = None


def read_rules(path: AnyPath) -> dict[str, Any]:
    """What the file says, by the names of the options. InputError with the line if it cannot be
    used."""
    file = TomlFile(path, *read_toml(path))
    try:
        told = as_type(_RulesTable, file.values)
    except BadKeyError as error:
        raise file.fault(str(error), key=error.key) from None
    given = {name: getattr(told, name) for name in told.__struct_fields__}
    given = {name: value for name, value in given.items() if value is not None}
    try:
        if isinstance(told.priority, dict):
            given["priority"] = ",".join(_weights(told.priority))
        choice("kind of requests", given.get("requests", "actual"), REQUESTS)
    except UserError as error:
        raise file.fault(str(error), table="priority") from None
    for name in _CHECKED:
        try:
            ClusterSettings(**{name: given[name]} if name in given else {})
        except UserError as error:
            table = name if isinstance(file.values[name], Mapping) else ""
            raise file.fault(str(error), table=table, key=name) from None
    return given


def _weights(table: Mapping[str, Any]) -> Iterator[str]:
    """As the option has them: `wait=1,nodes^64=10,user:17=500`."""
    for name, value in table.items():
        if name == "users" and isinstance(value, Mapping):
            yield from (f"user:{user}={points}" for user, points in value.items())
        elif isinstance(value, Mapping):
            if sorted(value) != ["cap", "weight"]:
                raise UserError(f"{name} must be a number, or {{weight = ..., cap = ...}}")
            yield f"{name}^{value['cap']}={value['weight']}"
        else:
            yield f"{name}={value}"
