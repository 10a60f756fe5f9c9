"""The schema for editors and the reader say the same of every file, as far as a schema can."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.docs.pages import blocks

from windrow.errors import InputError
from windrow.formats.native import schema
from windrow.formats.native.json_schema import native_schema, written
from windrow.formats.native.schema import DEFAULT_KEYS, SCHEMA_PATH, TASK_KEYS, read_form
from windrow.formats.native.yaml_source import Items, Node, Scalar, read_yaml

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = json.loads(SCHEMA_PATH.read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def as_json(node: Node) -> Any:
    """What a program sees that loads the file by YAML's core schema."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Items):
        return [as_json(item) for item in node.items]
    return {key.text: as_json(value) for key, value in node.entries}


def verdicts(path: Path) -> tuple[bool, bool]:
    """Whether the schema accepts the file, and whether the reader does."""
    root = read_yaml(path)
    try:
        read_form(path, root)
    except InputError:
        return VALIDATOR.is_valid(as_json(root)), False
    return VALIDATOR.is_valid(as_json(root)), True


def test_the_schema_is_a_schema_and_knows_the_same_keys() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert set(SCHEMA["$defs"]["task"]["properties"]) == set(TASK_KEYS)
    assert set(SCHEMA["$defs"]["defaults"]["properties"]) == set(DEFAULT_KEYS)


def test_the_schema_that_is_shipped_is_made_from_the_reader() -> None:
    """`python -m windrow.formats.native.json_schema > FILE` makes it again."""
    assert SCHEMA_PATH.read_text() == written()


def test_a_key_that_the_reader_learns_is_in_the_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(schema.COUNTS, "cores", (2, 7))
    assert native_schema()["$defs"]["cores"]["maximum"] == 7
    monkeypatch.setattr(schema, "WAYS", {**schema.WAYS, "new": "count"})
    with pytest.raises(KeyError, match="new"):
        native_schema()  # without a meaning for users


GOOD = {
    "id": ["a", "5", "true", "'a b'", "'{{x}}'"],
    "command": ["x", "[x]", "[x, 1, true, '']", "|\n      a\n      b"],
    "shell": ["strict", "bash", "sh", "[bash, -c]", "[python3, -c]", "[x, 1, '']"],
    "inputs": ["a", "[]", "[a, b]", "5"],
    "expands": ["a.yaml"],
    "after": ["a", "[]", "{a: any, b: ok}", "{a: failed}"],
    "at-end": ["false"],
    "on-fail": ["stop", "continue"],
    "takes": ["x", "[x, y]", "{x: 2}"],
    "priority": ["5", "-3"],
    "time-limit": ["5m", "[5m, 10m]"],
    "cores": ["1", "4.0", "1000000"],
    "nodes": ["0", "8"],
    "memory": ["[4GiB, 8GiB]", "4GiB", "500MB", "1.5 G", "'1B'", "10K", "1kB", "0.5TiB", "4gb"],
    "gpus": ["0", "2", "1000000", "a100:2", "'3g.20gb:1'"],
    "disk": ["4GiB", "500MB"],
    "resources": ["{}", "{matlab: 1, a_2: 0}"],
    "runtime": ["90", "1.5", "1e3", "5m", "'90'", "1.5 h", "2w", "0.5", "2D"],
    "retries": ["0", "100"],
    "replicas": ["1"],
    "env": ["{}", "{A: 1, B: '', C: true}"],
    "workdir": ["a/b", "5"],
    "kind": ["a", "5"],
    "site": ["west", "5"],
    "where": ["gpus >= 1", "'!(site == west) && memory >= 4GiB'"],
    "checkpoint": [
        *(
            "{files: state-*}",
            "{files: [a, 'b/c-*'], signal: USR1, notice: 120s, every: 30m}",
            "{files: '{id}.*'}",
        ),
        *("{files: 5, notice: 1.5}", "{files: '*.ckpt', signal: TERM}", "{files: ./a}"),
    ],
    "matrix": [
        *(
            "{a: [1, 2]}",
            "{a: 1..9}",
            "{a: 001..100}",
            "{a: {range: [1, 9]}}",
            "{a: {range: [1, 9, 2]}}",
        ),
        *("{a: [x], exclude: []}", "{a: [x, y], exclude: [{a: x}]}", "{_a1: ['']}"),
    ],
    "mounts": ["{/db: genome, /a/b: 5}", "{}", "[a, b]", "a", "{/..a: b}"],
    "extract": ["{/tmp/best: 'best-{n}'}", "{}", "{a/b: 5}"],
}
BAD = {
    "id": ["~", "''", "' '", "[a]", "{a: b}"],
    "command": ["[]", "''", "['']", "{a: b}", "[x, [y]]", "[x, ~]", "~"],
    "shell": ["zsh", "~", "''", "[]", "[sh]", "['', -c]", "[bash, ~]", "{a: b}", "true"],
    "inputs": ["~", "''", "[a, '']", "[[a]]", "{a: []}", "{a b: c}", "{a: {b: c}}", "{a: ''}"],
    "code": ["~", "''", "[a, '']", "[[a]]", "{a: b}"],
    "expands": ["~", "''", "[a.yaml]", "{a: b}"],
    "after": ["~", "{a: b}", "{a: [any]}"],
    "at-end": ["1", "'true'", "~"],
    "on-fail": ["halt", "~", "true"],
    "takes": ["~", "[]", "{x: 0}", "{a b: 1}", "{x: y}"],
    "priority": ["1.5", "'1'", "1000001", "~"],
    "time-limit": ["0", "[]", "[5m, 0]", "[[5m]]"],
    "cores": ["0", "-1", "1.5", "'2'", "true", "~", "[1]", "1000001", "two"],
    "nodes": ["-1", "0.5", "''"],
    "memory": [
        *(
            "4",
            "4.5",
            "GB",
            "0GB",
            "0.0 MiB",
            "'4GiB '",
            "1e3GB",
            "-4GB",
            "~",
            "[]",
            "[4GB, 4]",
            "4XB",
            "0B",
        ),
    ],
    "gpus": ["-1", "'1'", "1.5", "~", "1000001", "a100", "a100:0", "a100:1000001", "a:b:1"],
    "disk": ["4", "0GB", "~"],
    "resources": [
        "~",
        "[a]",
        "{gpus: 1}",
        "{memory: 1}",
        "{a-b: 1}",
        "{a: -1}",
        "{a: x}",
        "{a: ~}",
        "{'': 1}",
    ],
    "runtime": [
        "0",
        "0s",
        "'0.00 h'",
        "-5",
        "5 min",
        "soon",
        "true",
        "~",
        "[5]",
        "1e10",
        "1h30m",
        "''",
    ],
    "retries": ["101", "-1", "'1'"],
    "replicas": ["0", "4", "'2'"],
    "env": ["[A]", "{A: ~}", "{A: [1]}", "{'': 1}", "{A=B: 1}", "x"],
    "workdir": ["~", "''", "[a]"],
    "kind": ["~", "''", "[a]"],
    "site": ["~", "''", "[a]", '"a\'b"', "'a,b'"],
    "where": ["~", "''", "[a]"],
    "checkpoint": [
        *(
            "~",
            "x",
            "[a]",
            "{}",
            "{signal: USR1}",
            "{files: ''}",
            "{files: /a}",
            "{files: '*'}",
            "{files: ../a}",
        ),
        *(
            "{files: a/../b}",
            "{files: a/..}",
            "{files: a, signal: KILL}",
            "{files: a, signal: 10}",
            "{files: []}",
        ),
        *(
            "{files: a, every: 5m}",
            "{files: a, notice: 0}",
            "{files: a, signal: USR1, every: soon}",
            "{files: a, b: 1}",
        ),
        *("{files: ./}", "{files: [a, ~]}"),
    ],
    "matrix": [
        *(
            "{}",
            "[a]",
            "a",
            "{a: []}",
            "{a: [[1]]}",
            "{a: [~]}",
            "{a: [1, 1]}",
            "{a: 1-9}",
            "{a: {range: 5}}",
            "~",
        ),
        *(
            "{a: {range: [1]}}",
            "{a: {range: [1, 9, 0]}}",
            "{a: {range: [1, 1.5]}}",
            "{a: {range: [1, 2, 3, 4]}}",
        ),
        *(
            "{a: {rang: [1, 2]}}",
            "{exclude: []}",
            "{a-b: [1]}",
            "{id: [1]}",
            "{inputs: [1]}",
            "{range: [1, 2]}",
        ),
        *("{a: [x], exclude: {a: x}}", "{a: [x], exclude: [{}]}"),
    ],
    "mounts": [
        "~",
        "{db: a}",
        "{/: a}",
        "{/..: a}",
        "{'/{n}': a}",
        "{/a: ''}",
        "{/a: [b]}",
        "[~]",
        "''",
    ],
    "extract": ["~", "x", "[a]", "{'': a}", "{/a: ~}", "{/a: ''}", "{/a: [b]}"],
}
CASES = [
    (key, value, good)
    for good, side in ((True, GOOD), (False, BAD))
    for key in side
    for value in side[key]
]


@pytest.mark.parametrize(
    ("key", "value", "good"), CASES, ids=[f"{key}: {value}" for key, value, _ in CASES]
)
def test_reader_and_schema_agree_on_values(
    key: str, value: str, good: bool, tmp_path: Path
) -> None:
    given = {"id": "t", "command": "[x]", key: value}
    path = tmp_path / "wf.yaml"
    path.write_text(
        "tasks:\n  - " + "\n    ".join(f"{name}: {text}" for name, text in given.items()) + "\n"
    )
    assert verdicts(path) == (good, good)


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("tasks: [{id: a, command: x}]", True),
        ("name: 5\ndefaults: {}\ntasks: [{id: a, command: x}]", True),
        (
            "defaults: {cores: 2, env: {A: 1}, workdir: d, runtime: 5m}\ntasks: [{id: a, "
            "command: x}]",
            True,
        ),
        ("defaults: {id: 2}\ntasks: [{id: a, command: x}]", False),
        ("defaults: []\ntasks: [{id: a, command: x}]", False),
        ("name: ''\ntasks: [{id: a, command: x}]", False),
        ("version: 1\ntasks: [{id: a, command: x}]", False),
        (
            "home: /x\nvolumes: {a: {from: b, size: 1GB, policy: lru}}\ntasks: [{id: a, command: "
            "x}]",
            True,
        ),
        (
            "volumes: {a: {scratch: 1GB}, b: {scratch: 1GB, per: '{n}'}}\ntasks: [{id: a, "
            "command: x}]",
            True,
        ),
        ("home: ''\ntasks: [{id: a, command: x}]", False),
        ("volumes: [a]\ntasks: [{id: a, command: x}]", False),
        ("volumes: {a: {from: b}}\ntasks: [{id: a, command: x}]", False),
        ("volumes: {a: {scratch: 1GB, size: 1GB}}\ntasks: [{id: a, command: x}]", False),
        ("volumes: {a: {from: b, size: 1GB, policy: x}}\ntasks: [{id: a, command: x}]", False),
        ("volumes: {a-b: {scratch: 1GB}}\ntasks: [{id: a, command: x}]", False),
        ("volumes: {a: {scratch: 1}}\ntasks: [{id: a, command: x}]", False),
        ("tasks: [{id: a}]", False),
        ("tasks: [{id: a, command: 'date > {outputs}', outputs: [x.txt], replicas: 3}]", True),
        ("tasks: [{command: a}]", False),
        ("tasks: [{id: a, command: x, extra: 1}]", False),
        ("tasks: []", False),
        ("tasks: {a: {command: x}}", False),
        ("tasks: [a]", False),
        ("name: x", False),
        ("[]", False),
        ("x", False),
    ],
)
def test_reader_and_schema_agree_on_files(text: str, good: bool, tmp_path: Path) -> None:
    (tmp_path / "wf.yaml").write_text(text)
    assert verdicts(tmp_path / "wf.yaml") == (good, good)


@pytest.mark.slow
@given(
    key=st.sampled_from(["memory", "runtime", "cores", "retries"]),
    number=st.from_regex(r"\A[-+]?[0-9]{1,4}(\.[0-9]{0,3})?(e[0-9])?\Z"),
    unit=st.sampled_from(
        [
            "",
            " ",
            "s",
            "m",
            " h",
            "d",
            "w",
            "B",
            "k",
            "K",
            "kB",
            "KiB",
            "M",
            "MB",
            " GiB",
            "T",
            "Ti",
            "iB",
            "x",
        ]
    ),
    quote=st.sampled_from(["", "'"]),
)
def test_reader_and_schema_agree_on_numbers(
    tmp_path_factory: pytest.TempPathFactory, key: str, number: str, unit: str, quote: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "numbers.yaml"
    path.write_text(f"tasks:\n  - id: a\n    command: x\n    {key}: {quote}{number}{unit}{quote}\n")
    by_schema, by_reader = verdicts(path)
    assert by_schema == by_reader


PAGES = [
    ROOT / "docs" / "reference" / "native-workflows.md",
    ROOT / "docs" / "how-to" / "write-a-workflow.md",
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_example_of_the_pages_is_a_workflow(page: Path, tmp_path: Path) -> None:
    from windrow.formats import read_runnable

    shown = list(blocks(page))
    assert any(block.language == "yaml" for block in shown)
    for number, block in enumerate(shown):
        if block.prepares:  # patterns mean files that exist
            block.set_up(tmp_path)
        if block.language == "yaml":
            path = tmp_path / f"{number}.yaml"
            path.write_text(block.text)
            assert verdicts(path) == (True, True), block
            assert len(read_runnable(path).steps) > 0
