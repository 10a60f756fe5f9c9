"""Grid files, TOML or JSON: clusters with their nodes and speeds, and what is between and inside them.

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
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any

import numpy as np

from windrow.errors import STEERING, InputError, UserError, unknown_name
from windrow.formats.disk import AnyPath, format_suffix, read_text, replace_bytes
from windrow.formats.json_source import JsonSource
from windrow.grid.clusters import Cluster, Floats, Grid, GridError
from windrow.model.size import parse_size

_KEYS = ("clusters", "links", "latency_s", "bandwidth_bytes_s", "inside", "reference_speed")
_LINK = {"latency_s": 0.0, "bandwidth_bytes_s": 125e6}
_TOML_LINE = re.compile(r" \(at line (\d+), column (\d+)\)")


def read_grid(path: AnyPath) -> Grid:
    """The grid in a `.toml` or `.json` file, packed or not. InputError where there is none."""
    if format_suffix(path) == ".json":
        source = JsonSource(path)
        content = source.decode(object)
        if not isinstance(content, dict):
            raise InputError(path, "a grid is one JSON object", line=1, fix='begin with { "clusters": [')
        return _Reader(path, source.data.decode(), content).grid()
    if format_suffix(path) != ".toml":
        raise UserError(f"{path}: a grid has a name that ends in .toml or .json (or that and .gz); rename it")
    text = read_text(path)
    try:
        return _Reader(path, text, tomllib.loads(text)).grid()
    except tomllib.TOMLDecodeError as error:
        place = _TOML_LINE.search(str(error))
        problem = _TOML_LINE.sub("", str(error))
        raise InputError(path, problem, line=int(place[1]) if place else None, fix="fix the TOML there") from None


def write_grid(grid: Grid, path: AnyPath) -> None:
    """Write the grid as `.toml` or `.json`. The file appears complete or not at all."""
    if format_suffix(path) not in (".toml", ".json"):
        raise UserError(f"{path}: a grid to write has a name that ends in .toml or .json (or that and .gz); rename it")
    links = {"latency_s": grid.latency_s.tolist(), "bandwidth_bytes_s": grid.bandwidth_bytes_s.tolist()}
    top = {"reference_speed": grid.reference_speed, **links}
    rows = [{"name": c.name, "nodes": c.nodes, "speed": c.speed, **c.attributes} for c in grid.clusters]
    if format_suffix(path) == ".json":
        lines = [f"  {json.dumps(name)}: {json.dumps(value)}," for name, value in top.items()]
        shown = ",\n    ".join(json.dumps(row) for row in rows)
        text = "\n".join(["{", *lines, f'  "clusters": [\n    {shown}\n  ]', "}"])
    else:  # a text, a number and a list are written alike in both
        blocks = ["\n".join(f"{name} = {json.dumps(value)}" for name, value in top.items())]
        for row in rows:
            blocks.append("\n".join(["[[clusters]]", *(f"{_key(k)} = {json.dumps(v)}" for k, v in row.items())]))
        text = "\n\n".join(blocks)
    with replace_bytes(path) as stream:
        stream.write(f"{text}\n".encode())


def _key(name: str) -> str:
    """As TOML wants it: bare where that is allowed."""
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else json.dumps(name)


class _Reader:
    """What a file says, and where it says it."""

    def __init__(self, path: AnyPath, text: str, content: Mapping[str, Any]) -> None:
        self._path, self._text, self._content = path, text, content
        self._names: list[str] = []

    def grid(self) -> Grid:
        """All of it."""
        for key in self._content:
            if key not in _KEYS:
                raise self._fault(str(unknown_name("key", key, _KEYS)), key)
        clusters = tuple(self._cluster(i, said) for i, said in enumerate(self._tables("clusters")))
        if not clusters:
            raise InputError(self._path, "there are no clusters", fix="describe each in a [[clusters]] of its own")
        links = {name: self._matrix(name, default) for name, default in _LINK.items()}
        for i, link in enumerate(self._tables("links")):
            self._link(i, link, links)
        reference = self._number(self._content, "reference_speed", 0.0)
        try:
            return Grid(clusters, links["latency_s"], links["bandwidth_bytes_s"], reference)
        except GridError as error:
            raise self._fault(str(error), str(error).split()[0]) from None  # it begins with the key

    def _tables(self, key: str) -> list[dict[str, Any]]:
        found = self._content.get(key, [])
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            raise self._fault(f"{key} must be a list of tables", key, f"write each as a [[{key}]] of its own")
        return found

    def _cluster(self, number: int, said: dict[str, Any]) -> Cluster:
        rest = {key: value for key, value in said.items() if key not in ("name", "nodes", "speed")}
        name, nodes, speed = (said.get(key) for key in ("name", "nodes", "speed"))
        problem, fix = "", "correct it"
        if not isinstance(name, str) or not name or STEERING.search(name):
            problem, fix = "a cluster needs a name", 'write name = "ada"'
        elif name in self._names:
            problem, fix = f"two clusters are called {name!r}", "rename one"
        elif not isinstance(nodes, int) or isinstance(nodes, bool):
            problem, fix = f"cluster {name} needs nodes, a whole number", "write nodes = 8"
        elif not isinstance(speed, int | float) or isinstance(speed, bool):
            problem, fix = f"cluster {name} needs a speed, a number", "write speed = 2.2"
        elif bad := [key for key, value in rest.items() if not isinstance(value, int | float | str)]:
            problem, fix = f"{bad[0]} of cluster {name} must be a number or a text", "write it as one value"
        else:
            self._names.append(name)
            try:
                return Cluster(name, nodes, float(speed), rest)
            except (GridError, OverflowError) as error:
                problem = str(error)
        raise InputError(self._path, problem, line=self._line_of(number), fix=fix)

    def _matrix(self, name: str, default: float) -> Floats:
        n = len(self._names)
        given = self._content.get(name, default)
        if isinstance(given, list):
            try:
                matrix = np.array(given, dtype=np.float64)
            except (ValueError, TypeError):
                matrix = np.zeros(0)
            if matrix.shape != (n, n):
                raise self._fault(f"{name} must be a number, or have {n} rows of {n} numbers", name)
            return matrix
        inside = self._content.get("inside", {})
        if not isinstance(inside, dict) or any(key not in _LINK for key in inside):
            raise self._fault(f"inside may have {' and '.join(_LINK)}, no more", "inside")
        matrix = np.full((n, n), self._number(self._content, name, default))
        np.fill_diagonal(matrix, self._number(inside, name, default))
        return matrix

    def _link(self, number: int, link: dict[str, Any], links: dict[str, Floats]) -> None:
        between = link.get("between")
        known = isinstance(between, list) and len(between) == 2 and all(one in self._names for one in between)
        if not known or any(key not in ("between", *_LINK) for key in link):
            line = self._line_of(number, "between")
            fix = 'write between = ["a", "b"] with names of clusters, and latency_s, bandwidth_bytes_s or both'
            raise InputError(self._path, f"links[{number}] cannot be used", line=line, fix=fix)
        assert isinstance(between, list)
        a, b = (self._names.index(name) for name in between)
        for name, matrix in links.items():
            matrix[a, b] = matrix[b, a] = self._number(link, name, matrix[a, b])

    def _number(self, table: Mapping[str, Any], key: str, default: float) -> float:
        value = table.get(key, default)
        try:
            if isinstance(value, str):
                return float(parse_size(value))
            if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= float(value) < np.inf:
                return float(value)
        except (UserError, OverflowError):
            pass
        raise self._fault(f"{key} must be a number from 0 on{' or a size such as 100MB' * key.startswith('b')}", key)

    def _line_of(self, number: int, key: str = "name") -> int | None:
        """The line of the key in the table of that number; None where it cannot be told."""
        found = [match.start() for match in re.finditer(rf"\b{key}\b[\"']?\s*[:=]", self._text)]
        tables = len(self._content.get("links" if key == "between" else "clusters", []))
        return self._text.count("\n", 0, found[number]) + 1 if len(found) == tables else None

    def _fault(self, problem: str, key: str, fix: str = "correct it") -> InputError:
        found = self._text.find(key)
        line = self._text.count("\n", 0, found) + 1 if found >= 0 else None
        return InputError(self._path, problem, line=line, fix=fix)
