"""The `matrix` of a task: names with lists of values, and every combination of them.

Law: combinations come in the order of the file, the last name running fastest; `exclude` takes some
out. Values are text as written: `01` stays `01`.
"""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from windrow.errors import InputError
from windrow.formats.disk import AnyPath
from windrow.formats.native.places import files_like
from windrow.formats.native.yaml_source import Items, Node, Scalar, YamlTable, fault_at

COMBINATIONS_MAX = 1_000_000
"""How many tasks one matrix may stand for."""

RESERVED = frozenset(("id", "inputs", "outputs", "cores", "exclude", "range"))
"""Names that a matrix cannot give, since they mean something already."""

TABLE = "table"
"""Names a file whose rows are combinations."""
_TABLES = (".csv", ".tsv")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RANGE = re.compile(r"([0-9]{1,12})\.\.([0-9]{1,12})")


@dataclass(frozen=True, slots=True)
class Matrix:
    """Names, the values of each, and the combinations left out (each a set of (name's place,
    value))."""

    names: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    exclude: tuple[tuple[tuple[int, str], ...], ...] = ()
    rows: tuple[tuple[str, ...], ...] | None = None
    """Of a table: values of the first names, which belong together."""

    def combinations(self) -> Iterator[dict[str, str]]:
        """Each combination that is not excluded: a value for every name."""
        if self.rows is None:
            every: Iterator[tuple[str, ...]] = product(*self.values)
        else:
            others = self.values[len(self.rows[0]) :]
            every = ((*row, *rest) for row in self.rows for rest in product(*others))
        for chosen in every:
            if not any(
                all(chosen[place] == value for place, value in pairs) for pairs in self.exclude
            ):
                yield dict(zip(self.names, chosen, strict=True))


class MatrixReader:
    """Turns a part of a file into a matrix. InputError with the line where it describes none."""

    def __init__(self, path: AnyPath) -> None:
        self._path = path

    def read(self, node: Node) -> Matrix:
        """The matrix that this part describes."""
        if isinstance(node, Scalar) and node.text.endswith(_TABLES):
            node = YamlTable(((Scalar(TABLE, False, node.line), node),), node.line)
        if not isinstance(node, YamlTable):
            raise self._fault(
                node, "matrix is not a mapping", "write names with lists: matrix: {sample: [a, b]}"
            )
        tables = [value for key, value in node.entries if key.text == TABLE]
        names, rows = self._table(tables[0]) if tables else ((), None)
        lists = dict(zip(names, zip(*rows or (), strict=True), strict=True))
        for key, value in node.entries:
            if key.text in (TABLE, "exclude"):
                continue
            if key.text in lists:
                raise self._fault(key, f"{key.text} is in the table, too", "rename one of them")
            lists[key.text] = self._values(key, value)
        if not lists:
            raise self._fault(
                node, "a matrix without names", "give it one: matrix: {sample: [a, b]}"
            )
        others = list(lists.values())[len(names) :]
        self._check_size(node, math.prod(map(len, others)) * (len(rows) if rows else 1))
        excludes = [value for key, value in node.entries if key.text == "exclude"]
        exclude = self._exclude(excludes[0], lists) if excludes else ()
        return Matrix(tuple(lists), tuple(lists.values()), exclude, rows)

    def _table(self, node: Node) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
        """The names in the first line of a table, and its rows."""
        if not isinstance(node, Scalar) or not node.text.endswith(_TABLES):
            fix = "write table: samples.csv, a file whose first line has the names"
            raise self._fault(node, "table is not a file that ends in .csv or .tsv", fix)
        path = Path(self._path).absolute().parent / node.text
        try:
            with open(path, newline="", encoding="utf-8-sig") as file:  # noqa: PTH123
                delimiter = "\t" if node.text.endswith(".tsv") else ","
                lines = [row for row in csv.reader(file, delimiter=delimiter) if any(row)]
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise self._fault(
                node, f"{node.text} cannot be read ({error})", "correct its name"
            ) from None
        if len(lines) < 2:
            raise self._fault(node, f"{node.text} has no rows", "write names, then values below")
        names = tuple(name.strip() for name in lines[0])
        for name in names:
            self._refuse_name(node, name)
        if len(set(names)) < len(names):
            raise self._fault(node, f"{node.text} has a name twice", "rename one of its columns")
        return names, self._rows(node, names, lines[1:])

    def _rows(
        self, node: Scalar, names: tuple[str, ...], lines: list[list[str]]
    ) -> tuple[tuple[str, ...], ...]:
        for number, row in enumerate(lines, 2):
            if len(row) != len(names):
                problem = f"row {number} of {node.text} has {len(row)} values, not {len(names)}"
                raise self._fault(node, problem, "give each row a value for every name")
            if "\0" in "".join(row):
                raise self._fault(
                    node, f"row {number} of {node.text} has a NUL character", "remove it"
                )
        rows = tuple(tuple(value.strip() for value in row) for row in lines)
        if len(rows) > COMBINATIONS_MAX:
            raise self._fault(node, f"{node.text} has {len(rows):,} rows", "make it smaller")
        if len(set(rows)) < len(rows):
            twice = Counter(rows).most_common(1)[0][0]
            raise self._fault(node, f"{node.text} has the row {','.join(twice)} twice", "keep one")
        return rows

    def _refuse_name(self, node: Node, name: str) -> None:
        if not _NAME.fullmatch(name):
            problem = f"the matrix name {name!r}"
            raise self._fault(node, problem, "use letters, digits and _, a letter or _ first")
        if name in RESERVED:
            raise self._fault(node, f"the matrix name {name!r} is reserved", "use another name")

    def _check_size(self, node: Node, size: int) -> None:
        if size > COMBINATIONS_MAX:
            problem = f"the matrix has {size:,} combinations, more than {COMBINATIONS_MAX:,}"
            raise self._fault(node, problem, "make it smaller")

    def _values(self, key: Scalar, node: Node) -> tuple[str, ...]:
        self._refuse_name(key, key.text)
        match node:
            case Items():
                values = tuple(self._text(item) for item in node.items)
            case Scalar():
                values = self._text_range(node)
            case YamlTable():
                values = self._table_range(key, node)
        self._check_values(key, node, values)
        return values

    def _check_values(self, key: Scalar, node: Node, values: Sequence[str]) -> None:
        """There are some, and none is there twice."""
        if not values:
            raise self._fault(
                node, f"the matrix list {key.text} is empty", "give it at least one value"
            )
        if len(set(values)) < len(values):
            twice = Counter(values).most_common(1)[0][0]
            raise self._fault(
                node, f"the matrix list {key.text} has {twice!r} twice", "keep one of them"
            )

    def _text(self, node: Node) -> str:
        if not isinstance(node, Scalar) or node.value is None:
            raise self._fault(
                node, "a matrix value that is not text or a number", "write text or a number"
            )
        if "\0" in node.text:
            raise self._fault(node, "a matrix value with a NUL character", "remove it")
        return node.text

    def _text_range(self, node: Scalar) -> tuple[str, ...]:
        """`1..1000`, both ends included; with leading zeros, all are as long as the first:
        `001..100`."""
        if "{" in node.text:
            return self._files(node)
        found = _RANGE.fullmatch(node.text)
        if found is None:
            raise self._fault(
                node,
                f"{node.text!r} is not a list of values",
                "write [a, b, c], a range like 1..1000, or a pattern of files like reads/{}.fq",
            )
        if found[1].startswith("0"):
            width = len(found[1])
        else:
            width = 0
        numbers = self._numbers(node, int(found[1]), int(found[2]), 1)
        return tuple(str(number).zfill(width) for number in numbers)

    def _files(self, node: Scalar) -> tuple[str, ...]:
        """`reads/{}_R1.fq`: what stands for the braces in the names of files that exist."""
        before, braces, after = node.text.partition("{}")
        if not braces or any(character in before + after for character in "{}*"):
            fix = "write {} once, where the value stands: reads/{}_R1.fq"
            raise self._fault(node, f"{node.text!r} is not a pattern of files", fix)
        folder = str(Path(self._path).absolute().parent)
        names = files_like(folder, f"{before}*{after}")
        values = tuple(name[len(before) : len(name) - len(after)] for name in names)
        if not values:
            fix = "correct the pattern, or put the files there first"
            raise self._fault(node, f"no file is like {node.text} in {folder}", fix)
        return values

    def _table_range(self, key: Scalar, node: YamlTable) -> tuple[str, ...]:
        fix = f"write {key.text}: {{range: [1, 1000]}} or {key.text}: {{range: [0, 100, 10]}}"
        if len(node.entries) != 1 or node.entries[0][0].text != "range":
            raise self._fault(
                node, f"the matrix list {key.text} is a mapping, but not a range", fix
            )
        ends = node.entries[0][1]
        return tuple(map(str, self._numbers(ends, *self._ends(ends, fix))))

    def _ends(self, ends: Node, fix: str) -> tuple[int, int, int]:
        """The first and the last number of a range, and the step."""
        if not isinstance(ends, Items) or len(ends.items) not in (2, 3):
            raise self._fault(
                ends, "a range has a first number, a last one, and optionally a step", fix
            )
        numbers = [_short_number(item) for item in ends.items]
        first, last, step = [*numbers, 1][:3]
        if first is None or last is None or step is None or step < 1:
            raise self._fault(
                ends, "a range is made of whole numbers, with a step of at least 1", fix
            )
        return first, last, step

    def _numbers(self, node: Node, first: int, last: int, step: int) -> range:
        numbers = range(first, last + 1, step)
        if not numbers:
            raise self._fault(
                node, f"the range from {first} to {last} is empty", "begin with the smaller number"
            )
        if (last - first) // step >= COMBINATIONS_MAX:
            problem = f"the range from {first} to {last} has more than {COMBINATIONS_MAX:,} numbers"
            raise self._fault(node, problem, "make it smaller")
        return numbers

    def _exclude(
        self, node: Node, lists: dict[str, tuple[str, ...]]
    ) -> tuple[tuple[tuple[int, str], ...], ...]:
        fix = "write exclude: [{name: value, ...}, ...] with names and values of this matrix"
        if not isinstance(node, Items):
            raise self._fault(node, "exclude is not a list", fix)
        places = {name: place for place, name in enumerate(lists)}
        found = []
        for entry in node.items:
            if not isinstance(entry, YamlTable) or not entry.entries:
                raise self._fault(entry, "exclude lists something that is not a combination", fix)
            for key, value in entry.entries:
                if key.text not in lists or self._text(value) not in lists[key.text]:
                    text = value.text if isinstance(value, Scalar) else ""
                    problem = f"exclude names {key.text}: {text}, which the matrix does not have"
                    raise self._fault(key, problem, fix)
            found.append(
                tuple((places[key.text], self._text(value)) for key, value in entry.entries)
            )
        return tuple(found)

    def _fault(self, node: Node, problem: str, fix: str) -> InputError:
        return fault_at(self._path, node.line, problem, fix)


def _short_number(node: Node) -> int | None:
    """A whole number of which a message can be made."""
    number = node.whole if isinstance(node, Scalar) else None
    if number is None or abs(number) >= 10**15:
        return None
    return number
