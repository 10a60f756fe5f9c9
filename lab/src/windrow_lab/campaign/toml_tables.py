"""TOML tables with typed, checked access: whatever is wrong becomes an InputError with file, line,
key and fix.

Rule: every key is taken, or refused by `finish`.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from windrow.errors import InputError, UserError, unknown_name
from windrow.formats import disk
from windrow.formats.disk import AnyPath
from windrow.formats.tables import TomlFile
from windrow.model import parse_duration
from windrow.model.bounds import COUNT_MAX


def read_toml(path: AnyPath) -> TomlFile:
    """The file's content. InputError with the line where it is not TOML."""
    return TomlFile(
        path, *disk.read_toml(path, "see windrow lab --example for how a campaign is written")
    )


@dataclass
class TomlTable:
    """One table of the file. Values are taken one by one; `finish` refuses what was not taken."""

    file: TomlFile
    values: dict[str, Any]
    name: str = ""
    index: int = 0
    taken: list[str] = field(default_factory=list)

    def fault(self, key: str, problem: str, fix: str = "") -> InputError:
        """The error for the value of a key."""
        if self.name:
            place = f"{key} of {self.name}: "
        else:
            place = f"{key}: "
        return self.file.fault(place + problem, table=self.name, index=self.index, key=key, fix=fix)

    def take(self, key: str, default: Any = None) -> Any:
        """The raw value."""
        self.taken.append(key)
        return self.values.get(key, default)

    def text(self, key: str, default: str = "") -> str:
        """A text."""
        value = self.take(key, default)
        if not isinstance(value, str):
            raise self.fault(
                key, f"must be a string, not {_shown(value)}", 'put it in quotes: "..."'
            )
        return value

    def whole(self, key: str, default: int | None, least: int, most: int = COUNT_MAX) -> int | None:
        """A whole number from `least` to `most`."""
        value = self.take(key, default)
        if value is not default and not (is_whole(value) and least <= value <= most):
            raise self.fault(
                key, f"must be a whole number from {least} to {most:,}, not {_shown(value)}"
            )
        if value is None:
            return None
        return int(value)

    def truth(self, key: str) -> bool:
        """`true` or `false`, the default."""
        value = self.take(key, False)
        if not isinstance(value, bool):
            raise self.fault(key, f"must be true or false, not {_shown(value)}")
        return value

    def duration_s(self, key: str, default: float | None = None) -> float | None:
        """Seconds: a number, or a text with a unit."""
        value = self.take(key, default)
        if value is None:
            return None
        return self.seconds(key, value)

    def seconds(self, key: str, value: object) -> float:
        """What a value of that key means in seconds."""
        if is_number(value) or isinstance(value, str):
            try:
                return parse_duration(str(value))
            except UserError as error:
                raise self.fault(key, str(error)) from None
        raise self.fault(key, f'must be seconds or a string like "4h", not {_shown(value)}')

    def several(self, key: str, default: list[Any]) -> list[Any]:
        """A list; a single value stands for a list of one."""
        value = self.take(key, default)
        if isinstance(value, list):
            listed = value
        else:
            listed = [value]
        if not listed:
            raise self.fault(
                key, "is an empty list", "give at least one value, or leave the key out"
            )
        return listed

    def rest(self) -> dict[str, Any]:
        """Everything that was not taken yet; taken now."""
        left = {key: value for key, value in self.values.items() if key not in self.taken}
        self.taken += left
        return left

    @contextmanager
    def telling(self) -> Iterator[None]:
        """A fault in the body that names no file is told at this table."""
        try:
            yield
        except InputError:
            raise
        except UserError as error:
            place = f"{self.name}: " if self.name else ""
            raise self.file.fault(f"{place}{error}", table=self.name, index=self.index) from None

    def finish(self) -> None:
        """Refuse keys that were not taken: most likely misspelt."""
        for key in self.values:
            if key not in self.taken:
                problem = str(unknown_name("key", key, self.taken))
                raise self.file.fault(problem, table=self.name, index=self.index, key=key)


def tables(file: TomlFile, name: str, values: object, short: str) -> Iterator[TomlTable]:
    """The tables `[[name]]`; a plain text in place of one means a table with just the key
    `short`."""
    if isinstance(values, list):
        listed = values
    else:
        listed = [values]
    for index, value in enumerate(listed):
        if isinstance(value, str):
            yield TomlTable(file, {short: value}, name, index)
        elif isinstance(value, dict):
            yield TomlTable(file, value, name, index)
        else:
            raise file.fault(
                f"{name} must be strings or tables, not {_shown(value)}", table=name, index=index
            )


def variants(table: TomlTable) -> Iterator[tuple[TomlTable, str]]:
    """The table once for each combination of the values of its lists, with words for what makes it
    differ."""
    lists = {key: value for key, value in table.values.items() if isinstance(value, list)}
    for key, value in lists.items():
        if not value:
            raise table.fault(
                key, "is an empty list", "give at least one value, or leave the key out"
            )
    varied = [key for key, value in lists.items() if len(value) > 1 and key != "file"]
    for chosen in product(*lists.values()):
        values = {**table.values, **dict(zip(lists, chosen, strict=True))}
        words = " ".join(f"{key}={_written(values[key])}" for key in varied)
        yield TomlTable(table.file, values, table.name, table.index), words


def is_whole(value: object) -> bool:
    """Whether it is a whole number; true and false are not."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Whether it is a finite number."""
    return is_whole(value) or (isinstance(value, float) and math.isfinite(value))


def as_texts(values: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Parameters as recipes and models take them."""
    return tuple((key, _written(value)) for key, value in values.items())


def joined(words: Iterable[str]) -> str:
    """The words that are not empty, with spaces between."""
    return " ".join(word for word in words if word)


def _written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _shown(value: object) -> str:
    if isinstance(value, str | int | float | bool):
        return repr(value)[:60]
    return f"a {type(value).__name__}"
