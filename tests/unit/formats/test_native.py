from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.steps import steps

from windrow.errors import InputError
from windrow.formats import read_runnable, read_workflow, write_workflow
from windrow.formats.native import yaml_source as native_yaml
from windrow.formats.native.reader import DEFAULT_RUNTIME_S
from windrow.model import Runnable, Step, Task, Workflow

STRICT = ("/bin/bash", "-euo", "pipefail", "-c")


def load(folder: Path, text: str) -> Runnable:
    """The workflow in this text; its first line is the file's first."""
    (folder / "wf.yaml").write_text(text.removeprefix("\n"))
    return read_runnable(folder / "wf.yaml")


def parents(runnable: Runnable) -> dict[str, set[str]]:
    return {task.id: set(task.parents) for task in runnable.workflow}


def test_every_key(tmp_path: Path) -> None:
    found = load(
        tmp_path,
        """
name: all of it
defaults: {cores: 2, retries: 1, memory: 1GB, env: {A: 1, B: x}}
tasks:
  - id: one
    command: [prog, --flag, "a b", ""]
    inputs: /data/in
    outputs: [x, ./sub//y]
    cores: 4
    nodes: 2
    memory: 1.5GiB
    runtime: 5m
    retries: 3
    env: {B: y, C: on}
    kind: special
  - {id: two, command: echo $HOME, after: one}
""",
    )
    assert found.workflow.name == "all of it"
    assert list(found.workflow) == [
        Task(
            "one",
            300,
            "special",
            (),
            ("/data/in",),
            ("x", "sub/y"),
            4,
            2,
            1610612736,
            ("prog", "--flag", "a b", ""),
        ),
        Task(
            "two", 60, "two", ("one",), cores=2, memory_bytes=10**9, command=(*STRICT, "echo $HOME")
        ),
    ]
    assert found.steps == (
        Step(
            ("prog", "--flag", "a b", ""), str(tmp_path), (("A", "1"), ("B", "y"), ("C", "on")), 3
        ),
        Step(
            (*STRICT, "echo $HOME"), str(tmp_path), (("A", "1"), ("B", "x")), 1, runtime_known=False
        ),
    )


def test_readers_come_after_writers_and_each_edge_counts_once(tmp_path: Path) -> None:
    found = load(
        tmp_path,
        """
tasks:
  - {id: last, command: "true", inputs: [a, b, ./c/../a], after: [left]}
  - {id: left, command: "true", inputs: raw, outputs: a}
  - {id: right, command: "true", inputs: a, outputs: b}
""",
    )
    assert parents(found) == {"last": {"left", "right"}, "left": set(), "right": {"left"}}
    assert found.workflow.name == "wf"
    assert found.workflow.task(0).inputs == ("a", "b")
    assert found.workflow.runtime_s.tolist() == [DEFAULT_RUNTIME_S] * 3


def test_who_reads_a_file_in_a_folder_comes_after_who_writes_the_folder(tmp_path: Path) -> None:
    found = load(
        tmp_path,
        """
tasks:
  - {id: unpack, command: "true", outputs: data/raw/}
  - {id: use, command: "true", inputs: data/raw/deep/x}
  - {id: other, command: "true", inputs: [data/rawer, /data/raw/x]}
""",
    )
    assert parents(found) == {"unpack": set(), "use": {"unpack"}, "other": set()}


def test_kinds(tmp_path: Path) -> None:
    found = load(
        tmp_path,
        """
tasks:
  - {id: lone-, command: x}
  - {id: "fam-{a}.x", matrix: {a: [1]}, command: x}
  - {id: "{a}-tail", matrix: {a: [1]}, command: x}
  - {id: "{a}", matrix: {a: [1]}, command: x}
  - {id: said, kind: special, command: x}
""",
    )
    assert found.workflow.kinds == ("lone-", "fam", "tail", "task", "special")


@pytest.mark.parametrize("loader", ["SafeLoader", "CSafeLoader"])
def test_both_parsers_of_the_library_will_do(
    loader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not hasattr(yaml, loader):
        pytest.skip("this PyYAML was built without its C parser")
    monkeypatch.setattr(native_yaml, "_LOADER", getattr(yaml, loader))
    text = (
        "tasks:\n- id: 'a {x}'\n  matrix: {x: [01, \"\\u00e9 b\", no]}\n  command: |\n    "
        "one\n    two\n"
    )
    found = load(tmp_path, text)
    assert found.workflow.ids == ("a 01", "a é b", "a no")
    assert found.steps[0].command == (*STRICT, "one\ntwo\n")
    with pytest.raises(InputError, match=r"wf\.yaml:2: a character that YAML does not allow"):
        load(tmp_path, "name: ok\ntitle: \x01")
    with pytest.raises(InputError, match=r"wf\.yaml:2: not YAML"):
        load(tmp_path, "name: ok\ntitle: }")
    with pytest.raises(InputError, match=r"nested more than"):
        load(tmp_path, "name: " + "[" * 10_000)


@pytest.mark.slow
def test_a_thousand_similar_tasks_in_three_lines(tmp_path: Path) -> None:
    found = load(
        tmp_path,
        """
tasks:
  - id: sim
    matrix: {seed: 1..1000}
    command: [simulate, "--seed={seed}"]
""",
    )
    assert len(found.workflow) == 1000
    assert found.workflow.ids[-1] == "sim-1000"
    assert found.steps[499].command == ("simulate", "--seed=500")
    assert set(found.workflow.kinds) == {"sim"}


def test_matrix_product_exclude_ranges_and_leading_zeros(tmp_path: Path) -> None:
    found = load(
        tmp_path,
        """
tasks:
  - id: t-{a}-{b}-{c}
    matrix:
      a: [x, 01]
      b: {range: [0, 4, 2]}
      c: 08..10
      exclude: [{a: x, b: 2}, {a: 01, c: 10}]
    command: [p, "{a}{b}{c}", "{{a}}", "${a}", "{a,b}"]
""",
    )
    wanted = [
        f"t-{a}-{b}-{c}"
        for a in ("x", "01")
        for b in (0, 2, 4)
        for c in ("08", "09", "10")
        if not (a == "x" and b == 2) and not (a == "01" and c == "10")
    ]
    assert list(found.workflow.ids) == wanted
    assert found.steps[0].command == ("p", "x008", "{a}", "${a}", "{a,b}")


def test_families_and_patterns(tmp_path: Path) -> None:
    found = load(
        tmp_path,
        """
tasks:
  - {id: "align-{s}", matrix: {s: [a, b]}, command: "true", outputs: "bam/{s}.bam"}
  - {id: index, matrix: {s: [a, b]}, command: "true", after: "align-{s}", outputs: "bam/sub/{s}.bam"}
  - {id: by-family, command: "true", after: [align]}
  - {id: by-pattern, command: "true", after: ["index-*"]}
  - {id: by-files, command: [merge, "{inputs}", -o, "{outputs}"], inputs: bam/*.bam, outputs: all.bam}
""",  # noqa: E501
    )
    assert parents(found) == {
        "align-a": set(),
        "align-b": set(),
        "index-a": {"align-a"},
        "index-b": {"align-b"},
        "by-family": {"align-a", "align-b"},
        "by-pattern": {"index-a", "index-b"},
        "by-files": {"align-a", "align-b"},  # a star does not reach into folders
    }
    assert found.steps[-1].command == ("merge", "bam/a.bam", "bam/b.bam", "-o", "all.bam")


def test_files_are_the_same_file_from_any_folder(tmp_path: Path) -> None:
    found = load(
        tmp_path,
        """
tasks:
  - {id: make, workdir: deep/down, command: "echo > {outputs}", outputs: x}
  - {id: use, command: "cat {inputs}", inputs: deep/down/x}
""",
    )
    assert parents(found)["use"] == {"make"}
    whole = tmp_path / "deep" / "down" / "x"
    assert found.workflow.task(0).outputs == found.workflow.task(1).inputs == (str(whole),)
    assert [step.workdir for step in found.steps] == [str(whole.parent), str(tmp_path)]
    whole.parent.mkdir(parents=True)
    for step in found.steps:  # the names work from where each task runs
        subprocess.run(step.command, cwd=step.workdir, check=True, capture_output=True)


def test_the_folder_of_a_relative_path_is_made_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(tmp_path, "tasks: [{id: a, command: [x]}]")
    monkeypatch.chdir(tmp_path)
    assert read_runnable("wf.yaml").steps[0].workdir == os.fspath(tmp_path)


@pytest.mark.slow
def test_reading_costs_the_same_for_each_task(tmp_path: Path) -> None:
    text = """
tasks:
  - {id: split, command: "true", outputs: in}
  - id: "map-{a}-{b}"
    matrix: {a: 1..COUNT, b: 1..20}
    command: "work {a} < {inputs} > {outputs}"
    inputs: in
    outputs: "out/{a}/{b}"
  - {id: reduce, matrix: {a: 1..COUNT}, command: "cat out/{a}/* > r", inputs: "out/{a}/*"}
"""

    def reading(count: int) -> int:
        (tmp_path / "wf.yaml").write_text(text.replace("COUNT", str(count)))
        return steps(lambda: read_runnable(tmp_path / "wf.yaml"))

    few = reading(10)
    assert reading(40) < 4.1 * few
    found = read_runnable(tmp_path / "wf.yaml")
    assert len(found.workflow) == 841
    assert found.workflow.parents.edges == 1600


def test_show_reads_native_files(tmp_path: Path) -> None:
    load(tmp_path, "tasks: [{id: a, command: [x]}, {id: b, command: [x], after: a}]")
    assert read_workflow(tmp_path / "wf.yaml").depth == 2


def test_other_formats_run_in_their_folder(tmp_path: Path) -> None:
    with_commands = Workflow.from_tasks(
        "w", [Task("a", 5, command=("true",)), Task("b", 0, command=("echo", "x y"))]
    )
    write_workflow(with_commands, tmp_path / "w.json")
    assert read_runnable(tmp_path / "w.json").steps == (
        Step(("true",), str(tmp_path)),
        Step(("echo", "x y"), str(tmp_path), runtime_known=False),
    )
    write_workflow(Workflow.from_tasks("w", [Task("a", 5)]), tmp_path / "none.json")
    with pytest.raises(
        InputError, match=r"none\.json: tasks without a command cannot run: a; add commands"
    ):
        read_runnable(tmp_path / "none.json")


@pytest.mark.slow
def test_the_hash_seed_changes_nothing(tmp_path: Path) -> None:
    text = """
tasks:
  - {id: "a-{x}", matrix: {x: [c, b, a]}, command: "true", outputs: ["o/{x}", "p/{x}"], env: {Z: 1, Y: 2}}
  - {id: z, command: "cat {inputs}", inputs: ["p/*", "o/*"], after: a}
"""  # noqa: E501
    load(tmp_path, text)
    code = (
        "import sys; from windrow.formats import read_runnable as r; x = r(sys.argv[1]); "
        "print(x.steps, *x.workflow)"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "wf.yaml")],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(answers) == 1
