"""Bad inputs by kind: one for each option and each field of a format. A kind draws as many cases as
are asked for.

A case is a command line in a folder with the files that it needs. `is_bad` says that it must be
refused; where a drawn file may happen to be in order (a few bytes of it were changed), only the
manner of the answer is judged.
"""

from __future__ import annotations

import gzip
import json
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.hostile.case import Case, Kind
from tests.hostile.options import LOG, OPTIONS, PLACES, TWICE, WORKFLOW, Draw
from tests.hostile.queues import kinds_of_queues, toml
from tests.hostile.workflows import kinds_of_workflows

from windrow.app.settings import SiteTable


def _option(before: tuple[str, ...], option: str, value: Callable[[Draw], str]) -> Kind:
    def make(draw: Draw, _folder: Path) -> Case:
        return Case((*before, f"{option}={value(draw)}"))

    return Kind(f"{before[0]} {option}" + (" (log)" if before[1:2] == ("log",) else ""), make)


def _place(command: str, value: Callable[[Draw], str]) -> Kind:
    def make(draw: Draw, _folder: Path) -> Case:
        name, *options = command.split()
        ends = [] if name == "run" else ["--"]  # what follows it is a command there
        return Case((name, *options, *ends, value(draw)))

    return Kind(f"{command} of what is not there", make)


# Files that are none, or not what their names say.


def _fifo(path: Path, _draw: Draw) -> None:
    os.mkfifo(path)


def _device(path: Path, draw: Draw) -> None:
    path.symlink_to(
        draw.choice(["/dev/zero", "/dev/urandom", "/dev/null", "/dev/tty", "/dev/stdin"])
    )


def _socket(path: Path, _draw: Draw) -> None:
    with socket.socket(socket.AF_UNIX) as door:
        here = Path.cwd()
        os.chdir(path.parent)  # a socket's path is short
        door.bind(path.name)
        os.chdir(here)


def _bomb(path: Path, draw: Draw) -> None:
    path.write_bytes(
        gzip.compress(draw.choice([b"\0", b"[", b" ", b";", b"1 "]) * (80 << 20), compresslevel=1)
    )


def _cut(path: Path, draw: Draw) -> None:
    whole = gzip.compress(draw.randbytes(2000))
    path.write_bytes(whole[: draw.randint(3, len(whole) - 1)])


STRANGE: dict[str, Callable[[Path, Draw], Any]] = {
    "a named pipe": _fifo,
    "a device": _device,
    "a socket": _socket,
    "a folder": lambda path, _: path.mkdir(),
    "an empty file": lambda path, _: path.touch(),
    "NULs": lambda path, draw: path.write_bytes(b"\0" * draw.randint(1, 5000)),
    "noise": lambda path, draw: path.write_bytes(draw.randbytes(draw.randint(1, 3000))),
    "a gzip bomb": _bomb,
    "a cut gzip": _cut,
    "deep nesting": lambda path, draw: path.write_text(
        draw.choice(["[", "{", "<a>", "- "]) * 100_000
    ),
    "another format": lambda path, draw: path.write_text(
        draw.choice(['{"a": [1]}', "<a/>", "a: 1", "1 2 3\n", "[x]\n"])
    ),
    "one long line": lambda path, draw: path.write_text(
        draw.choice(["x", "1", '"', ";"]) * 2_000_000
    ),
}
_READERS = (
    ("simulate", ".swf"),
    ("show", ".json"),
    ("show", ".dax"),
    ("show", ".yaml"),
    ("lab", ".toml"),
    ("run", ".yaml"),
)


def _strange(what: str, put: Callable[[Path, Draw], Any]) -> Kind:
    def make(draw: Draw, folder: Path) -> Case:
        command, suffix = draw.choice(_READERS)
        put(folder / f"strange{suffix}", draw)
        return Case((command, f"strange{suffix}"))

    return Kind(f"{what} for a file", make)


# Fields of formats: a good file with one field replaced.

JUNK: tuple[Any, ...] = (
    *(
        None,
        "",
        "x",
        [],
        {},
        [[]],
        {"a": {}},
        -1,
        0,
        1.5,
        2**31,
        2**63,
        2**64,
        10**30,
        1e300,
        -1e300,
        True,
        "nan",
        "1e999",
    ),
    *(
        "\x1b[31m",
        "a\nb",
        "\u202e",
        "x" * 5000,
        "../../etc",
        "*",
        "{x}",
        ["a", "a"],
        [None],
        {"id": 1},
    ),
)


def _with_field(document: Any, draw: Draw) -> Any:
    """The document with one of its values replaced, or left out."""
    place = draw.choice(list(_places(document)))
    *way, last = place
    parent = document
    for step in way:
        parent = parent[step]
    if draw.random() < 0.15:
        del parent[last]
    else:
        parent[last] = draw.choice(JUNK)
    return document


def _places(document: Any) -> Iterator[tuple[Any, ...]]:
    items = (
        document.items()
        if isinstance(document, dict)
        else enumerate(document)
        if isinstance(document, list)
        else ()
    )
    for key, value in items:
        yield (key,)
        yield from ((key, *rest) for rest in _places(value))


def _wfformat(draw: Draw, folder: Path) -> Case:
    document = json.loads((folder / WORKFLOW).read_text())
    (folder / "field.json").write_text(json.dumps(_with_field(document, draw)))
    return Case(("show", "field.json"), is_bad=False)


NATIVE: dict[str, Any] = {
    "name": "n",
    "defaults": {"cores": 1, "env": {"A": "b"}, "gpus": 1, "disk": "1GB", "resources": {"x": 1}},
    "tasks": [
        {
            "id": "a",
            "command": "true",
            "outputs": {"f": "1GB"},
            "runtime": "1m",
            "memory": "1GB",
            "retries": 1,
            "checkpoint": {"files": "s-*", "signal": "USR1", "notice": "1m"},
        },
        {
            "id": "b-{i}",
            "matrix": {"i": [1, 2]},
            "command": "echo {i}",
            "inputs": ["f"],
            "nodes": 1,
            "kind": "b",
        },
        {"id": "c", "command": "true", "after": ["b"], "workdir": "w", "env": {"X": "1"}},
        {"id": "d", "command": "true", "site": "local", "where": "cores >= 1 && !(memory < 1GB)"},
        {
            "id": "e",
            "command": "true",
            "mounts": {"/v/g": "g", "/v/w": "w"},
            "extract": {"/v/w/x": "r/x"},
        },
        {"id": "f", "command": "true", "mounts": ["w"], "after": "e"},
    ],
    "stays": {"f": "local"},
    "home": "h",
    "volumes": {
        "g": {"from": "g", "size": "1GB", "policy": "lru"},
        "w": {"scratch": "1GB", "per": "x"},
    },
}


def _native(draw: Draw, folder: Path) -> Case:
    document = _with_field(json.loads(json.dumps(NATIVE)), draw)
    (folder / "field.yaml").write_text(json.dumps(document))  # JSON is YAML
    return Case(("show", "field.yaml"), is_bad=False)


def _dax(draw: Draw, folder: Path) -> Case:
    junk = draw.choice(
        [
            "",
            "x",
            "-1",
            "nan",
            "1e300",
            "-61",
            "9" * 400,
            "&amp;",
            "&#27;[31m",
            "a&#10;b",
            "A",
            "none",
        ]
    )
    fields = ["id", "name", "runtime", "file", "link", "size", "ref", "key", "cores", "parent"]
    value = dict(
        zip(fields, ["A", "k", "3", "f", "output", "7", "B", "cores", "1", "A"], strict=True)
    )
    value[draw.choice(fields)] = junk
    text = """<adag name="n"><job id="{id}" name="{name}" runtime="{runtime}"><argument>-x</argument>
<uses file="{file}" link="{link}" size="{size}"/><profile namespace="pegasus" key="{key}">{cores}</profile></job>
<job id="B" name="k" runtime="1"/><child ref="{ref}"><parent ref="{parent}"/></child></adag>"""  # noqa: E501
    (folder / "field.dax").write_text(text.format(**value))
    return Case(("show", "field.dax"), is_bad=False)


def _swf_column(column: int) -> Kind:
    def make(draw: Draw, folder: Path) -> Case:
        cells = [
            "1",
            "0",
            "5",
            "100",
            "4",
            "-1",
            "-1",
            "4",
            "200",
            "-1",
            "1",
            "1",
            "1",
            "1",
            "1",
            "1",
            "-1",
            "-1",
        ]
        junk = ["x", "nan", "1e300", str(2**63), "9" * 400, "1_0", "½", "0x1", "", "1 2"]
        cells[column - 1] = draw.choice(
            junk if column in (1, 2, 4, 5, 8, 9, 12) else ["x", "nan", "½", "", "1 2"]
        )
        (folder / "column.swf").write_text("; MaxNodes: 8\n" + " ".join(cells) + "\n")
        return Case(("simulate", "column.swf"))

    return Kind(f"SWF column {column}", make)


def _swf_header(draw: Draw, folder: Path) -> Case:
    value = draw.choice(
        ["", "x", "0", "-3", "1000000000000", "9" * 300, str(2**63), "nan", "10000001"]
    )
    label = draw.choice(["MaxNodes", "MaxProcs"])
    (folder / "header.swf").write_text(
        f"; {label}: {value}\n1 0 5 100 4 -1 -1 4 200 -1 1 1 1 1 1 1 -1 -1\n"
    )
    return Case(("simulate", "header.swf"))


def _settings(draw: Draw, folder: Path) -> Case:
    value = draw.choice(
        [
            "0",
            "-1",
            "1e300",
            str(2**62),
            '"x"',
            "[]",
            "{}",
            "true",
            '"999999TiB"',
            '"\\u001b"',
            "nan",
        ]
    )
    key = draw.choice(["nodes", "cores", "memory", "disk", "policy", "kind", "nosuch"])
    (folder / "windrow.toml").write_text(
        draw.choice([f"[queues.local]\n{key} = {value}\n", f"{key} = {value}\n", "[["])
    )
    return Case(("plan", "ok.yaml", "--on", "local"))


def _site_settings(draw: Draw, folder: Path) -> Case:
    value = draw.choice(
        [
            "0",
            "-1",
            "1e300",
            '"x"',
            '["x"]',
            '["here"]',
            "[3]",
            "{}",
            "{a = []}",
            "true",
            "nan",
            "inf",
        ]
    )
    key = draw.choice([*SiteTable.__struct_fields__, "queue", "kind", "cluster"])
    (folder / "windrow.toml").write_text(
        draw.choice(["[sites.local]", "[queues.local]"]) + f"\n{key} = {value}\n"
    )
    return Case(
        (
            "plan",
            "ok.yaml",
            "--on",
            draw.choice(["local", "local,local", "local,,x", ",", "local,west"]),
        ),
        is_bad=False,
    )


def _strange_settings(draw: Draw, folder: Path) -> Case:
    STRANGE[
        draw.choice(
            [
                "a named pipe",
                "a device",
                "a socket",
                "a folder",
                "NULs",
                "a gzip bomb",
                "a cut gzip",
            ]
        )
    ](folder / "windrow.toml", draw)
    return Case(("run", "-n", "ok.yaml"))


CAMPAIGN: dict[str, Any] = {
    "name": "c",
    "submit": ["1d"],
    "margins": [1.1],
    "noise": [0.0],
    "failures": ["nodes=30d"],
    "caps": [16],
    "seeds": [0],
    "requests": ["actual"],
    "logs": [{"file": LOG, "nodes": 64}],
    "workflows": [{"recipe": "montage", "tasks": 30, "work": "1h", "seed": 1}],
    "strategies": [{"strategy": "glume"}],
    "policies": [{"policy": "easy", "priority": "arrival"}],
}


def _campaign(draw: Draw, folder: Path) -> Case:
    document = json.loads(json.dumps(CAMPAIGN))
    key = draw.choice(list(document))
    bad = [
        -1,
        0.5,
        1e300,
        2**62,
        True,
        {"x": 1},
        [],
        [[]],
        ["x\x1b"],
        "nosuch",
        [2**62],
        ["1e300d"],
        [{"nosuch": 1}],
    ]
    inner = (
        document[key][0]
        if isinstance(document[key], list) and isinstance(document[key][0], dict)
        else None
    )
    if inner and draw.random() < 0.7:
        inner[draw.choice(list(inner))] = draw.choice([*bad[:4], True, {"x": 1}, []])
    else:
        document[key] = draw.choice(bad)
    (folder / "field.toml").write_text("".join(f"{k} = {toml(v)}\n" for k, v in document.items()))
    return Case(
        ("lab", "field.toml", "-o", "out", "--workers", "1"), is_bad=False
    )  # some are good by chance


def _flipped(draw: Draw, folder: Path) -> Case:
    command, name = draw.choice([("show", WORKFLOW), ("simulate", LOG), ("show", "ok.yaml")])
    data = bytearray((folder / name).read_bytes())
    for _ in range(draw.randint(1, 4)):
        data[draw.randrange(len(data))] = draw.randrange(256)
    (folder / f"flipped-{name}").write_bytes(
        bytes(data[: draw.choice([len(data), len(data) // 2])])
    )
    return Case((command, f"flipped-{name}"), is_bad=False)


def _command(draw: Draw, _folder: Path) -> Case:
    return Case(
        (draw.choice(["nosuch", "rnu", "help me", "x" * 5000, "\x1b[2J", "", "--nosuch", "-z"]),)
    )


def kinds() -> list[Kind]:
    """Every kind of bad input, in an order that never changes."""
    options = [
        _option(before, name, value)
        for before, given in OPTIONS.items()
        for name, value in given.items()
    ]
    places = [_place(command, value) for command, value in PLACES.items()]
    strange = [_strange(what, put) for what, put in STRANGE.items()]
    columns = [_swf_column(column) for column in range(1, 19)]
    twice = Kind("an option given twice", lambda draw, _: Case(draw.choice(TWICE)))
    fields = {
        "WfFormat field": _wfformat,
        "native field": _native,
        "DAX field": _dax,
        "SWF header": _swf_header,
        "windrow.toml": _settings,
        "sites of windrow.toml": _site_settings,
        "windrow.toml that is none": _strange_settings,
        "campaign field": _campaign,
        "flipped bytes": _flipped,
        "unknown command": _command,
    }
    return [
        *options,
        *places,
        *strange,
        *columns,
        twice,
        *(Kind(name, make) for name, make in fields.items()),
        *kinds_of_workflows(),
        *kinds_of_queues(),
    ]
