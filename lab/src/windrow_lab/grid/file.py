"""Grid files, TOML or JSON: clusters with their nodes and speeds, and what is between and inside
them.

    latency_s = 0.05                 # between clusters: a number, or a row for each cluster; default 0
    bandwidth_bytes_s = "12.5MB"     # likewise; default 125MB
    inside = { latency_s = 0.0001, bandwidth_bytes_s = "1.25GB" }    # between nodes of one cluster; default 0 and 125MB

    [[clusters]]
    name = "ada"
    nodes = 8
    speed = 2.2                      # GHz, or any other unit that all share
    processor = "OPTERON"            # whatever else is said of a cluster is an attribute that descriptions may name

    [[links]]                        # what differs from the above; a cluster twice: inside it
    between = ["ada", "rtc"]
    latency_s = 0.002
    bandwidth_bytes_s = 5e6

Rule: an error names the file, the line and the fix.
"""  # noqa: E501

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta, Struct

from windrow.errors import STEERING, InputError, UserError
from windrow.formats.disk import AnyPath, format_suffix, read_toml, replace_text
from windrow.formats.json_source import JsonSource
from windrow.formats.tables import in_words
from windrow.model.bounds import NODES_MAX, SIZE_BYTES_MAX
from windrow.model.size import parse_size
from windrow_lab.grid.clusters import Floats, Grid, GridCluster

_Number = Annotated[float, Meta(ge=0)]
_Rows = list[list[_Number]]
_INSIDE = {"latency_s": 0.0, "bandwidth_bytes_s": 125e6}
_ITEM = re.compile(r"\$\.(\w+)(?:\[(\d+)\])?|unknown field `(\w+)`")


class _Cluster(Struct):
    name: Annotated[str, Meta(min_length=1)]
    nodes: Annotated[int, Meta(ge=1, le=NODES_MAX)]
    speed: Annotated[float, Meta(gt=0)]


class _GridLink(Struct, forbid_unknown_fields=True, frozen=True):
    between: tuple[str, str] = ("", "")
    latency_s: _Number | None = None
    bandwidth_bytes_s: _Number | str | None = None


class _GridFile(Struct, forbid_unknown_fields=True):
    clusters: Annotated[list[_Cluster], Meta(min_length=1)]
    links: list[_GridLink] = []
    latency_s: _Number | _Rows = 0.0
    bandwidth_bytes_s: _Number | str | _Rows = 125e6
    inside: _GridLink = _GridLink()
    reference_speed: _Number = 0.0


def read_grid(path: AnyPath) -> Grid:
    """The grid in a `.toml` or `.json` file, packed or not. InputError if there is none."""
    text, content = read_tables(path, "a grid")
    with explained(path, text, content, _GridFile):
        return _grid(msgspec.convert(content, _GridFile), content)


def read_tables(path: AnyPath, what: str) -> tuple[str, Any]:
    """The text of a `.toml` or `.json` file, and what is in it."""
    if format_suffix(path) == ".json":
        source = JsonSource(path)
        content: Any = source.decode(object)
        return source.data.decode(), content
    if format_suffix(path) == ".toml":
        return read_toml(path, "fix the TOML there")
    raise UserError(
        f"{path}: {what} has a name that ends in .toml or .json (or that and .gz); rename it"
    )


@contextmanager
def explained(path: AnyPath, text: str, content: Any, kind: type[Struct]) -> Iterator[None]:
    """What is wrong with the tables, with the line where it is."""
    try:
        yield
    except (msgspec.ValidationError, UserError, OverflowError) as error:
        place = _ITEM.search(str(error))
        line = _line(text, content, place[1] or place[3], int(place[2] or 0)) if place else None
        raise InputError(path, in_words(error, kind), line=line, fix="correct it there") from None


def _line(text: str, content: Any, key: str, number: int) -> int | None:
    """The line of a key of the file, or of a table of that number: of what names it, or else of
    where it begins."""
    at = re.search(rf"\b{key}\b[\"']?\s*[]:=]", text)
    if at and (mark := {"clusters": "name", "links": "between"}.get(key)):
        found = [*re.finditer(rf"\b{mark}\b[\"']?\s*[:=]", text)]
        if len(found) != len(content[key]):
            begins = re.compile(rf"\[\[\s*{key}\s*\]\]|\{{[^{{}}]*\}}")
            found = [*begins.finditer(text, text.rfind("\n", 0, at.start()) + 1)]
        if number < len(found):
            at = found[number]
    return at and text.count("\n", 0, at.start()) + 1


def _grid(file: _GridFile, content: dict[str, Any]) -> Grid:
    clusters: dict[str, GridCluster] = {}
    for i, (said, table) in enumerate(zip(file.clusters, content["clusters"], strict=True)):
        if said.name in clusters or STEERING.search(said.name):
            raise UserError(
                f"the name {said.name!r} is taken, or cannot be printed - at `$.clusters[{i}]`"
            )
        attributes = {k: v for k, v in table.items() if k not in said.__struct_fields__}
        for key, value in attributes.items():
            if not isinstance(value, int | float | str):
                raise UserError(f"`{key}` must be a number or a text - at `$.clusters[{i}]`")
        clusters[said.name] = GridCluster(said.name, said.nodes, said.speed, attributes)
    links = _links(file, list(clusters))
    return Grid(tuple(clusters.values()), **links, reference_speed=file.reference_speed)


def _links(file: _GridFile, names: list[str]) -> dict[str, Floats]:
    """The properties of all links."""
    found = {key: _matrix(file, key, len(names)) for key in ("latency_s", "bandwidth_bytes_s")}
    for i, link in enumerate(file.links):
        if not {*link.between} <= {*names}:
            raise UserError(f"between must have names of two clusters - at `$.links[{i}]`")
        a, b = (names.index(name) for name in link.between)
        for key, matrix in found.items():
            value = getattr(link, key)
            if value is not None:
                matrix[a, b] = amount(value, key)
            matrix[b, a] = matrix[a, b]
    return found


def _matrix(file: _GridFile, key: str, n: int) -> Floats:
    given = getattr(file, key)
    inside = getattr(file.inside, key)
    if isinstance(given, list):
        if [len(row) for row in given] != [n] * n:
            raise UserError(f"must be a number, or have {n} rows of {n} numbers - at `$.{key}`")
        return np.array(given, dtype=np.float64)
    matrix = np.full((n, n), amount(given, key))
    if inside is None:
        inside = _INSIDE[key]
    np.fill_diagonal(matrix, amount(inside, key))
    return matrix


def amount(value: float | str, key: str) -> float:
    """A number, or a size as people write it."""
    try:
        if isinstance(value, str):
            return float(parse_size(value))
        if value > SIZE_BYTES_MAX:
            raise UserError(f"{value:g} is too large; the most is {SIZE_BYTES_MAX:,} (9 PB)")
        return value
    except UserError as error:
        raise UserError(f"{error} - at `$.{key}`") from None


def write_grid(grid: Grid, path: AnyPath) -> None:
    """Write the grid as `.toml` or `.json`. The file appears complete or not at all."""
    rows = [cluster.table() for cluster in grid.clusters]
    top = {
        "reference_speed": grid.reference_speed,
        "latency_s": grid.latency_s.tolist(),
        "bandwidth_bytes_s": grid.bandwidth_bytes_s.tolist(),
    }
    if format_suffix(path) == ".json":
        text = _as_json(top, rows)
    elif format_suffix(path) == ".toml":
        text = _as_toml(top, rows)
    else:
        raise UserError(
            f"{path}: a grid to write has a name that ends in .toml or .json (or that and .gz); "
            "rename it"
        )
    replace_text(path, f"{text}\n")


def _as_json(top: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """A cluster a line."""
    text = json.dumps({**top, "clusters": rows})
    return text.replace(', "clusters"', ',\n"clusters"').replace('{"name"', '\n{"name"')


def _as_toml(top: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """A text, a number and a list are written as in JSON."""
    tables = [("", top), *(("\n[[clusters]]\n", row) for row in rows)]
    return "".join(
        head + "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())
        for head, table in tables
    )
