"""Every fault of a native file is one message with the line and what to do."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import InputError
from windrow.formats.native.reader import read_native
from windrow.formats.native.yaml_source import REPEATED_MAX


def fault(folder: Path, text: str | bytes) -> str:
    """The message for this text, without the file's folder."""
    (folder / "wf.yaml").write_bytes(
        text if isinstance(text, bytes) else text.removeprefix("\n").encode()
    )
    with pytest.raises(InputError) as caught:
        read_native(folder / "wf.yaml")
    assert caught.value.fix, f"no fix in: {caught.value}"
    return str(caught.value).replace(str(folder) + "/", "")


TASK = "tasks:\n  - id: a\n    command: [x]\n"

FAULTS = [
    (
        "tasks:\n  - id: a\n    commnad: [x]\n",
        r"wf.yaml:3: a task has no key 'commnad'; did you mean command\?",
    ),
    ("taks: []\n", r"wf.yaml:1: a workflow has no key 'taks'; did you mean tasks\?"),
    ("name: x\n", "wf.yaml:1: a workflow without tasks"),
    ("- a\n", "wf.yaml:1: not a workflow"),
    ("tasks: []\n", "wf.yaml:1: the list of tasks is empty; write at least one task"),
    ("tasks: 3\n", "wf.yaml:1: tasks is '3', not a list of tasks"),
    ("tasks:\n  - a\n", "wf.yaml:2: a task is not a mapping"),
    ("tasks:\n  - command: [x]\n", "wf.yaml:2: a task without id"),
    ("tasks:\n  - id: a\n", "wf.yaml:2: a task without command"),
    ("defaults: {id: x}\n" + TASK, "wf.yaml:1: defaults has no key 'id'"),
    (TASK + "    cores: 0\n", "wf.yaml:4: cores is '0'; write a number from 1"),
    (TASK + "    cores: '2'\n", "wf.yaml:4: cores is '2'; write a whole number, without quotes"),
    (TASK + "    cores: yes\n", "wf.yaml:4: cores is 'yes'"),
    (TASK + "    cores: 1.5\n", "wf.yaml:4: cores is '1.5'"),
    (TASK + "    nodes: -1\n", "wf.yaml:4: nodes is '-1'"),
    (TASK + "    retries: 1000\n", "wf.yaml:4: retries is '1000'"),
    (TASK + "    replicas: 4\n", "wf.yaml:4: replicas is '4'; write a number from 1 to 3"),
    (
        TASK + "    replicas: 2\n",
        "wf.yaml:2: task a has replicas, but no outputs that can be kept apart; name them by",
    ),
    (
        TASK + "    replicas: 2\n    checkpoint: {files: s}\n",
        "wf.yaml:2: task a has replicas, but no checkpoints that can be kept apart; leave one of "
        "them out",
    ),
    (TASK + "    checkpoint: state\n", "wf.yaml:4: checkpoint is 'state'; write {files: \"state-"),
    (
        TASK + "    checkpoint: {signal: USR1}\n",
        "wf.yaml:4: a checkpoint without files; name those that it writes",
    ),
    (
        TASK + "    checkpoint: {files: ../s}\n",
        "wf.yaml:4: files of checkpoint cannot be '../s'; name some in the folder",
    ),
    (
        TASK + "    checkpoint: {files: s, signal: KILL}\n",
        "wf.yaml:4: signal of checkpoint is 'KILL'; write one of",
    ),
    (
        TASK + "    checkpoint: {files: s, every: 1m}\n",
        "wf.yaml:4: every of checkpoint without a signal; name",
    ),
    (
        TASK + "    checkpoint: {files: s, notise: 1m}\n",
        "wf.yaml:4: checkpoint has no key 'notise'; did you mean",
    ),
    (
        TASK + "    checkpoint: {files: s, notice: 0}\n",
        "wf.yaml:4: notice of checkpoint is '0'; write a time above 0",
    ),
    (TASK + "    checkpoint: {files: '{b}'}\n", "wf.yaml:4: {b} stands for nothing here"),
    (
        TASK + "    outputs: s-1\n    checkpoint: {files: s-*}\n",
        r"wf.yaml:5: the checkpoint files s-\* of a may be a file that a task reads or writes; give them a name",  # noqa: E501
    ),
    (
        TASK
        + "    checkpoint: {files: s-*}\n  - {id: b, command: x, checkpoint: {files: s-b-*}}\n",
        r"wf.yaml:5: the checkpoint files s-b-\* of b may be those of a; put the task into their name",  # noqa: E501
    ),
    (
        TASK + "    matrix: {x: [., ..]}\n    checkpoint: {files: '{x}/s'}\n",
        "wf.yaml:5: checkpoint files of a-.. cannot be ../s; keep them in its folder",
    ),
    (TASK + "    memory: 4\n", "wf.yaml:4: memory is '4'; write a size with its unit"),
    (TASK + "    memory: 1000000TiB\n", "wf.yaml:4: memory is '1000000TiB'; write at most 8192TiB"),
    (TASK + "    memory: [4GB, 2GB]\n", "wf.yaml:4: memory becomes less; give each try"),
    (TASK + "    runtime: soon\n", "wf.yaml:4: runtime is 'soon'; write a time above 0"),
    (
        TASK + "    runtime: 99999999999999d\n",
        "wf.yaml:4: runtime is '99999999999999d'; write at most 11,574d",
    ),
    (TASK + "    gpu: 1\n", "wf.yaml:4: a task has no key 'gpu'; write gpus: with a number"),
    (TASK + "    gpus: many\n", "wf.yaml:4: gpus is 'many'; write a whole number without quotes"),
    (
        TASK + "    takes: net\n",
        "wf.yaml:4: takes has net, which is not a limit; write limits",
    ),
    (
        "limits: {net: 1}\n" + TASK + "    takes: nett\n",
        "wf.yaml:5: takes has nett, which is not a limit; did you mean net?",
    ),
    (
        "limits: {net: 1}\n" + TASK + "    takes: {net: 2}\n",
        "wf.yaml:5: a takes 2 of net, of which there is 1; take less",
    ),
    ("limits: [net]\n" + TASK, "wf.yaml:1: limits is not a mapping; write names with numbers: l"),
    ("limits: {net: 0}\n" + TASK, "wf.yaml:1: limits is '0'; write a number from 1"),
    (TASK + "    takes: []\n", "wf.yaml:4: takes is an empty list; write something"),
    (TASK + "    priority: high\n", "wf.yaml:4: priority is 'high'; write a whole number"),
    (TASK + "    on-fail: halt\n", "wf.yaml:4: on-fail has 'halt'; write one of continue, stop"),
    (
        TASK + "    expands: more.json\n",
        "wf.yaml:4: a expands more.json, which is not a workflow file by its name; name one: exp",
    ),
    (TASK + "    expands: ../b.yaml\n", "wf.yaml:4: a writes ../b.yaml, which is outside"),
    (TASK + "    expands: wf.yaml\n", "wf.yaml:4: a writes wf.yaml, "),
    ("sites: [x]\n" + TASK, "wf.yaml:1: sites is a list; write sites with values: sites: {west"),
    (
        "sites: {x: {venv: y}}\n" + TASK,
        "wf.yaml:1: site x has no key 'venv'; the keys are setup, m",
    ),
    (TASK + "    at-end: yes\n", "wf.yaml:4: at-end is 'yes'; write true or false"),
    (
        TASK + "    after: {b: maybe}\n",
        "wf.yaml:4: after b has 'maybe'; write one of ok, any, failed",
    ),
    (TASK + "    after: {a: any}\n", "wf.yaml:2: a comes after itself"),
    (TASK + "    time-limit: [5m, 3m]\n", "wf.yaml:4: time-limit becomes less; give each try"),
    (
        TASK + "    outputs: o\n  - {id: b, command: x, inputs: o, after: {a: any}}\n",
        "wf.yaml:5: b comes after a, whatever becomes of it, and needs it to succeed; write ok",
    ),
    (
        TASK + "    at-end: true\n  - {id: b, command: x, after: a}\n",
        "wf.yaml:5: b comes after a, which runs at the end; write at-end: true for it, too",
    ),
    (
        TASK + "    disk: 5\n",
        "wf.yaml:4: disk is '5'; write a size with its unit, like 500MB or 4GiB",
    ),
    (
        TASK + "    resources: 5\n",
        "wf.yaml:4: resources is not a mapping; write names with numbers",
    ),
    (
        TASK + "    resources: {gpus: 1}\n",
        "wf.yaml:4: the resource 'gpus'; write gpus, disk, memory, cores and nodes beside it",
    ),
    (
        TASK + "    inputs: [x, {s}]\n",
        "wf.yaml:4: inputs is a mapping, .*; put text that begins with a brace in quotes",
    ),
    (TASK + "    runtime: 0\n", "wf.yaml:4: runtime is '0'"),
    (TASK + "    runtime: 1e999\n", "wf.yaml:4: runtime is '1e999'"),
    (TASK + "    env: [A]\n", "wf.yaml:4: env is not a mapping"),
    (TASK + "    env: {A=B: 1}\n", "wf.yaml:4: the variable 'A=B'"),
    (TASK + "    env: {A: ~}\n", "wf.yaml:4: env A is nothing, not text"),
    (TASK + "    inputs:\n", "wf.yaml:4: inputs is nothing"),
    (TASK + "    inputs: ['']\n", "wf.yaml:4: inputs is empty"),
    (TASK + '    inputs: "a\\0b"\n', "wf.yaml:4: inputs has a NUL character"),
    (TASK + "    after: b\n", "wf.yaml:4: a comes after b, which is not a task"),
    (TASK + "    after: a\n", "wf.yaml:2: a comes after itself"),
    (TASK + "    inputs: f\n    outputs: [f]\n", "wf.yaml:2: a reads a file that it writes"),
    (TASK + "    inputs: f*\n", r"wf.yaml:4: a reads f\*, but no task writes such a file"),
    (TASK + "    code: '{s}'\n", r"wf.yaml:4: \{s\} stands for nothing here; name it in matrix"),
    (
        TASK + "    outputs: '{s}'\n",
        r"wf.yaml:4: \{s\} stands for nothing here; name it in matrix, or write \{\{s\}\}",
    ),
    (TASK + "    kind: '{s}'\n", r"wf.yaml:4: kind has the placeholder \{s\}"),
    (
        TASK + "  - {id: a, command: [x]}\n",
        r"wf.yaml:4: the task id 'a' is given twice \(first in line 2\); rename",
    ),
    (
        TASK + "    outputs: f\n  - {id: b, command: [x], outputs: ./f}\n",
        r"wf.yaml:5: b writes f, and so does a \(line 2",
    ),
    (
        TASK + "    after: b\n  - {id: b, command: [x], after: a}\n",
        "wf.yaml:2: tasks depend on each other in a cycle",
    ),
    (
        TASK + "    matrix: {s: [1], t: [1, 2]}\n  - {id: b, command: [x], after: aa}\n",
        r"wf.yaml:5: .*did you mean a",
    ),
    (
        "tasks: [{id: 'a{s}', matrix: {s: [1], t: [1, 2]}, command: x}]",
        "wf.yaml:1: .* twice .*put every name of the",
    ),
    (TASK + "    matrix: [s]\n", "wf.yaml:4: matrix is not a mapping"),
    (TASK + "    matrix: {}\n", "wf.yaml:4: a matrix without names"),
    (TASK + "    matrix: {s: []}\n", "wf.yaml:4: the matrix list s is empty"),
    (TASK + "    matrix: {s: [1, 2, 1]}\n", "wf.yaml:4: the matrix list s has '1' twice"),
    (TASK + "    matrix: {s: [[1]]}\n", "wf.yaml:4: a matrix value that is not text"),
    (TASK + "    matrix: {s: 5..1}\n", "wf.yaml:4: the range from 5 to 1 is empty"),
    (TASK + "    matrix: {s: 1..999999999999}\n", "wf.yaml:4: the range .* more than 1,000,000"),
    (
        TASK + "    matrix: {s: 1..9999, t: 1..9999}\n",
        "wf.yaml:4: the matrix has 99,980,001 combinations",
    ),
    (TASK + "    matrix: {s: {range: [1, 2, 0]}}\n", "wf.yaml:4: a range is made of whole numbers"),
    (TASK + "    matrix: {inputs: [1]}\n", "wf.yaml:4: the matrix name 'inputs' is reserved"),
    (TASK + "    matrix: {a-b: [1]}\n", "wf.yaml:4: the matrix name 'a-b'"),
    (
        TASK + "    matrix: {s: [1], exclude: [{s: 2}]}\n",
        "wf.yaml:4: exclude names s: 2, which the matrix does not",
    ),
    (TASK + "    matrix: {s: [1], exclude: [{t: 1}]}\n", "wf.yaml:4: exclude names t: 1"),
    ("tasks: [{id: a, command: []}]", "wf.yaml:1: command is neither"),
    ("tasks: [{id: a, command: [' ', x]}]", "wf.yaml:1: command does not begin with a program"),
    ("tasks: [{id: a, command: ''}]", "wf.yaml:1: command is empty"),
    (
        "tasks: [{id: a, command: [x, '-i{inputs}'], inputs: [p, q]}]",
        r"wf.yaml:1: \{inputs\} stands for 2 files inside",
    ),
    (
        "tasks:\n- {id: m, command: x}\n- {id: m, matrix: {i: [1]}, command: x}\n- {id: z, "
        "command: x, after: m}",
        "wf.yaml:4: m is a task",
    ),
    (TASK + "    outputs: out/*\n", r"wf.yaml:4: a writes out/\*; name outputs one by one"),
    ("name: [1]\n" + TASK, "wf.yaml:1: name is a list"),
]


@pytest.mark.parametrize(("text", "wanted"), FAULTS, ids=range(len(FAULTS)))
def test_faults_of_workflows(text: str, wanted: str, tmp_path: Path) -> None:
    found = fault(tmp_path, text)
    assert re.match(wanted, found), found
    assert "\n" not in found


YAML_FAULTS = [
    ("tasks:\n  - id: a\n    id: b\n", r"wf.yaml:3: 'id' is given twice \(first in line 2\)"),
    ("tasks: [\n", "wf.yaml:2: not YAML"),
    (
        "tasks:\n\t- id: a\n",
        "wf.yaml:2: a tab, which YAML does not allow for indentation; indent with spaces",
    ),
    (
        "a: [reads/{s}.gz, x]\n",
        "wf.yaml:1: not YAML: .*; put text with braces in quotes inside a list",
    ),
    ("a: [{s}.gz, x]\n", "wf.yaml:1: not YAML: .*; put text with braces in quotes inside a list"),
    ("name: x\n---\nname: y\n", "wf.yaml:2: a second document"),
    ("# nothing\n", "wf.yaml: there is no workflow in this file"),
    ("name: !!python/object/apply:os.system [id]\n", "wf.yaml:1: the YAML tag"),
    ("name: !mine x\n", "wf.yaml:1: the YAML tag '!mine'"),
    ("? [a]\n: b\n", "wf.yaml:1: a key that is a list"),
    ("a: &a [*a]\n", r"wf.yaml:1: \*a stands before the end"),
    ("a: *b\n", r"wf.yaml:1: \*b stands before the end"),
    ("a: " + "[" * 100_000, "wf.yaml:1: nested more than 20 deep"),
    ("name: x\ntitle: \x01\n", "wf.yaml:2: a character that YAML does not allow"),
    (b"name: ok\ntasks: caf\xe9\n", "wf.yaml:2: not UTF-8 text"),
    (b"", "wf.yaml: the file is empty"),
]


@pytest.mark.parametrize(("text", "wanted"), YAML_FAULTS, ids=range(len(YAML_FAULTS)))
def test_faults_of_yaml(text: str | bytes, wanted: str, tmp_path: Path) -> None:
    found = fault(tmp_path, text)
    assert re.match(wanted, found), found


def test_a_billion_laughs_are_refused_at_once(tmp_path: Path) -> None:
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    assert f"aliases repeat more than {REPEATED_MAX:,} values" in fault(tmp_path, "\n".join(lines))


def test_aliases_within_reason_are_fine(tmp_path: Path) -> None:
    text = "tasks: [{id: a, command: x, env: &e {A: 1}}, {id: b, command: x, env: *e}]"
    (tmp_path / "wf.yaml").write_text(text)
    assert [step.env for step in read_native(tmp_path / "wf.yaml").steps] == [(("A", "1"),)] * 2


def test_commands_that_linux_cannot_start_are_refused_when_read(tmp_path: Path) -> None:
    text = """
tasks:
  - {id: p, matrix: {i: 1..9999}, command: "true", outputs: "folder/part-{i}.txt"}
  - {id: all, command: "cat {inputs}", inputs: folder/part-*.txt}
"""
    assert re.match(
        r"wf.yaml:3: the command of all has 2\d\d,\d{3} bytes, more than Linux",
        fault(tmp_path, text),
    )


@pytest.mark.slow
def test_too_many_dependencies_are_refused(tmp_path: Path) -> None:
    text = """
tasks:
  - {id: p, matrix: {i: 1..4000}, command: "true"}
  - {id: q, matrix: {i: 1..4000}, command: "true", after: p}
"""
    assert re.match(
        r"wf.yaml:3: more than 10,000,000 dependencies; put a task between", fault(tmp_path, text)
    )


WORDS = st.sampled_from(
    [
        "tasks",
        "id",
        "command",
        "matrix",
        "after",
        "{x}",
        "*",
        "&a",
        "*a",
        "[",
        "]",
        "{",
        "}",
        ":",
        "-",
        "\n",
        "  ",
        ",",
        "1..3",
    ]
)


@pytest.mark.slow
@given(st.one_of(st.lists(WORDS).map(" ".join), st.text()))
def test_any_text_is_read_or_refused_with_one_message(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with suppress(InputError):  # anything else would be a fault of ours
        read_native(path)
