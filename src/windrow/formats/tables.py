"""Tables of TOML files as types. Whatever is wrong becomes one message with file, line, key and
what is allowed.

A type is a msgspec `Struct`; its fields are the keys that there are. What a value must be is said
in words by its type, or by `Meta(description=...)` of the field, which completes "KEY must be ...".
The standard parser forgets lines, so they are looked up again in the text when a fault is
reported: the line of the key, else that of its table's header.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from windrow.errors import InputError, UserError, unknown_name
from windrow.formats.disk import AnyPath
from windrow.model.duration import parse_duration
from windrow.model.size import parse_size

T = TypeVar("T", bound=msgspec.Struct)

_HEADER = re.compile(r"\s*\[\[?\s*([^\[\]#]+?)\s*\]\]?\s*(?:#.*)?$")
_QUOTES = re.compile(r"[\"'\s]")
_KEY = re.compile(r"`\$\.(\w+)")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*?)`( - at `.*`)?", re.DOTALL)
_STEP = re.compile(r"\.(\w+)")
_SHOWN = 60


class Size(int):
    """Bytes, written as a text with a unit."""


class Seconds(float):
    """A duration, written as a text with a unit."""


_WORDS: Mapping[object, str] = {
    str: "text in quotes",
    Size: 'text in quotes: a size such as "2TB"',
    Seconds: 'text in quotes: a duration such as "90s" or "12h"',
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    dict: "a table",
    Mapping: "a table",
    tuple: "a list",
    list: "a list",
}


class BadKeyError(UserError):
    """What a table says under this key cannot be used."""

    def __init__(self, key: str, problem: str) -> None:
        self.key = key
        super().__init__(problem)


def as_type(kind: type[T], table: Mapping[str, Any], known: tuple[str, ...] = ()) -> T:
    """What the table says. BadKeyError if it has keys of which the type has no field, or values
    that these do not take.

    `known`: the keys as users write them, if these are not the fields.
    """
    names = known or kind.__struct_fields__
    for key in table:
        if key not in names:
            raise BadKeyError(key, str(unknown_name("key", key, names)))
    try:
        return msgspec.convert(table, kind, dec_hook=_value)
    except msgspec.ValidationError as error:
        at = _KEY.search(str(error))
        if at is None:
            raise UserError(str(error)) from None
        key = at[1]
        if isinstance(error.__cause__, UserError | ValueError):
            raise BadKeyError(key, f"{key}: {error.__cause__}") from None
        problem = f"{key} must be {_wanted(kind, key)}, not {shown(table[key])}"
        raise BadKeyError(key, problem) from None


def in_words(error: Exception, kind: type[msgspec.Struct]) -> str:
    """What msgspec says of nested tables; of a key that it does not know, with those there are."""
    found = _UNKNOWN.fullmatch(str(error))
    if found is None:
        return str(error).replace("$.", "")
    for name in _STEP.findall(found[2] or ""):
        kind = next(_structs(get_type_hints(kind)[name]))
    place = (found[2] or "").replace("$.", "")
    return f"{unknown_name('key', found[1], kind.__struct_fields__)}{place}"


def _structs(hint: object) -> Iterator[type[msgspec.Struct]]:
    """The types of tables in a hint."""
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        yield hint
    for part in get_args(hint):
        yield from _structs(part)


def shown(value: object) -> str:
    """A value for a message."""
    if not isinstance(value, str | int | float | bool | list):
        return f"a {type(value).__name__}"
    if len(words := repr(value)) > _SHOWN:
        return f"{words[:_SHOWN]}..."
    return words


def _value(kind: type[Any], said: object) -> object:
    """A size or duration. TypeError if it is not a text, ValueError if it is none."""
    if not isinstance(said, str):
        raise TypeError
    try:
        return kind(parse_size(said) if kind is Size else parse_duration(said))
    except UserError as error:
        raise ValueError(str(error)) from None


def _wanted(kind: type[msgspec.Struct], key: str) -> str:
    """What the field takes, in words."""
    hint = get_type_hints(kind, include_extras=True)[key]
    if get_origin(hint) is Annotated:
        for meta in hint.__metadata__:
            if isinstance(meta, msgspec.Meta) and meta.description:
                return meta.description
        hint = get_args(hint)[0]
    if isinstance(hint, UnionType):
        hint = get_args(hint)[0]
    return _WORDS[get_origin(hint) or hint]


@dataclass(frozen=True)
class TomlFile:
    """A file that was read: its path, its text and what the text says."""

    path: AnyPath
    text: str
    values: Mapping[str, Any]

    def fault(
        self, problem: str, *, table: str = "", index: int = 0, key: str = "", fix: str = ""
    ) -> InputError:
        """The error for something in it; `table` and `index` (from 0) say in which `[[table]]`, ""
        is the top."""
        return InputError(self.path, problem, line=self._line(table, index, key), fix=fix)

    def _line(self, table: str, index: int, key: str) -> int | None:
        here = ""
        seen = -1
        fallback = None
        for number, line in enumerate(self.text.split("\n"), start=1):
            header = _HEADER.match(line)
            if header:
                here = _QUOTES.sub("", header[1])
                seen += here == table
            is_here = here == table and (not table or seen == index)
            if is_here and key and _names(line, key):
                return number
            if (is_here and header) or (here == "" and table and _names(line, table)):
                fallback = fallback or number
        return fallback


def _names(line: str, key: str) -> bool:
    return re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=", line) is not None
