"""Values as JSON without what says nothing: a field that is as its class gives it is left out.

A reader that decodes the JSON as that class gets the same value. Most tasks have few of the fields
that a task can have, and a run writes all of its tasks down.
"""

from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from operator import attrgetter
from pathlib import PurePath
from typing import Any

import msgspec

from windrow.errors import UserError


def as_json(value: object) -> bytes:
    """As JSON. UserError if a text in it is not valid: names of files may be any bytes."""
    try:
        return msgspec.json.encode(compact(value), enc_hook=_plain)
    except UnicodeEncodeError as error:
        raise UserError(
            f"{error.object!a} has bytes that are not UTF-8; rename it, or run it from elsewhere"
        ) from None


def compact(value: object) -> object:
    """The same without such fields, as dicts and lists."""
    kind = type(value)
    if is_dataclass(kind):
        return _fields_of(kind)(value)
    if isinstance(value, msgspec.Struct):
        return {name: compact(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, tuple | list) and value and _may_shrink(value[0]):
        return [compact(one) for one in value]
    return value


def _may_shrink(value: object) -> bool:
    return is_dataclass(type(value)) or isinstance(value, msgspec.Struct | tuple | list)


@cache
def _fields_of(kind: type[Any]) -> Callable[[object], dict[str, object]]:
    """What makes a dict of an object of this dataclass."""
    names = [field.name for field in fields(kind)]
    usual = [
        field.default if field.default_factory is MISSING else field.default_factory()
        for field in fields(kind)
    ]
    if len(names) == 1:
        (name,) = names
        return lambda value: {name: compact(getattr(value, name))}
    values_of = attrgetter(*names)

    def kept(value: object) -> dict[str, object]:
        return {
            name: compact(found)
            for name, found, default in zip(names, values_of(value), usual, strict=True)
            if found is not default and found != default
        }

    return kept


def _plain(value: object) -> object:
    """Strategies calculate with numpy, whose numbers JSON does not know; paths are text."""
    if isinstance(value, PurePath):
        return str(value)
    if hasattr(value, "item"):
        return value.item()
    raise NotImplementedError(f"{type(value).__name__} cannot be written down")
