"""Which shell runs a text, and which commands may write their outputs elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from windrow.errors import InputError
from windrow.formats.native import commands as native_commands
from windrow.formats.native.reader import read_native
from windrow.model import Step
from windrow.records.runnable_file import read_runnable, write_runnable

STRICT = ("/bin/bash", "-euo", "pipefail", "-c")


def step(folder: Path, task: str, defaults: str = "{}") -> Step:
    (folder / "wf.yaml").write_text(f"defaults: {defaults}\ntasks:\n  - {{id: t, {task}}}\n")
    return read_native(folder / "wf.yaml").steps[0]


@pytest.mark.parametrize(
    ("task", "defaults", "shell"),
    [
        ("command: x", "{}", STRICT),
        ("command: x", "{shell: sh}", ("/bin/sh", "-c")),
        ("command: x, shell: strict", "{shell: sh}", STRICT),
        ("command: x, shell: bash", "{}", ("/bin/bash", "-c")),
        ("command: x, shell: [python3, -I, -c]", "{}", ("python3", "-I", "-c")),
    ],
)
def test_a_text_is_run_by_the_shell_that_was_said(
    tmp_path: Path, task: str, defaults: str, shell: tuple[str, ...]
) -> None:
    assert step(tmp_path, task, defaults).command == (*shell, "x")


def test_a_list_meets_no_shell(tmp_path: Path) -> None:
    assert step(tmp_path, "command: [x, y]", "{shell: bash}").command == ("x", "y")


def test_without_bash_the_strictest_sh_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_commands, "Path", lambda _: Path("/none"))
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert step(tmp_path, "command: x").command == ("/bin/sh", "-eu", "-c", "x")
    with pytest.raises(
        InputError,
        match=r"wf.yaml:3: there is no bash on this machine; install bash, or write shell: sh",
    ):
        step(tmp_path, "command: x, shell: bash")


def test_a_run_keeps_the_shell_and_the_places_that_it_began_with(tmp_path: Path) -> None:
    (tmp_path / "wf.yaml").write_text(
        "tasks: [{id: t, command: 'x > {outputs}', outputs: [d/a.txt, b.txt], shell: sh}]"
    )
    runnable = read_native(tmp_path / "wf.yaml")
    write_runnable(tmp_path / "workflow.json", runnable)
    assert read_runnable(tmp_path / "workflow.json").steps == runnable.steps
    assert runnable.steps[0].command[:2] == ("/bin/sh", "-c")
    assert runnable.steps[0].elsewhere == ((-1, 6, 0), (-1, 12, 1))


def test_a_workflow_kept_by_an_older_version_is_read(tmp_path: Path) -> None:
    text = (
        '{"name": "w", "tasks": [{"id": "t", "runtime_s": 1, "outputs": ["a.txt"]}], "files": '
        '[{"id": "a.txt"}],'
        ' "steps": [{"command": ["/bin/sh", "-c", "x > a.txt"], "workdir": "/"}]}'
    )
    (tmp_path / "workflow.json").write_text(text)
    (kept,) = read_runnable(tmp_path / "workflow.json").steps
    assert (kept.command, kept.elsewhere) == (("/bin/sh", "-c", "x > a.txt"), ())


@pytest.mark.parametrize(
    ("task", "places"),
    [
        (
            "command: 'wc < {inputs} > {outputs}', inputs: books/emma.txt, outputs: "
            "counts/emma.txt",
            [(-1, 29, 0)],
        ),
        ("command: 'x > \"{outputs}\"', outputs: a.txt", [(-1, 5, 0)]),
        (
            "command: 'x >{outputs}; y {outputs}', outputs: [a.txt, d/b.txt]",
            [(-1, 3, 0), (-1, 11, 1), (-1, 20, 0), (-1, 28, 1)],
        ),
        ("command: 'x {outputs}', outputs: \"it's/a b.txt\"", [(-1, 12, 0)]),
        ("command: [x, '{outputs}', y, '-o={outputs}'], outputs: d/a.txt", [(1, 2, 0), (3, 5, 0)]),
        ("command: [x, '{outputs}'], outputs: [a.txt, d/e/b.txt]", [(1, 0, 0), (2, 4, 1)]),
        (
            'command: \'open("{outputs}", "w")\', shell: [python3, -c], outputs: d/a.txt',
            [(-1, 8, 0)],
        ),
    ],
)
def test_names_that_come_from_the_placeholder_alone_may_be_others(
    tmp_path: Path, task: str, places: list[tuple[int, int, int]]
) -> None:
    assert list(step(tmp_path, task).elsewhere) == places


@pytest.mark.parametrize(
    "task",
    [
        "command: 'x > a.txt', outputs: a.txt",
        "command: 'x > {outputs}; y a.txt', outputs: a.txt",
        "command: 'x > {outputs}; cd d; y a.txt', outputs: d/a.txt",
        "command: 'x --prefix d/a; y {outputs}', outputs: d/a.bed",
        "command: 'wget -q https://host/{outputs}', outputs: a.txt",
        "command: 'x {outputs}.gz', outputs: a.txt",
        "command: 'cat {id}{outputs}', outputs: a.txt",
        "command: [x, 'https://host/{outputs}'], outputs: a.txt",
        "command: [x, '{outputs}.gz'], outputs: a.txt",
        "command: 'python3 -m venv {outputs}', outputs: env",
        "command: 'make {outputs}', outputs: a.txt",
        "command: [/usr/bin/ln, -s, ../x, '{outputs}'], outputs: a.txt",
        "command: 'x {outputs}', outputs: a.txt, env: {OUT: a.txt}",
        "command: 'x {outputs}', outputs: .hidden.txt",
        "command: 'x'",
    ],
)
def test_where_a_name_may_mean_more_it_is_left_alone(tmp_path: Path, task: str) -> None:
    assert step(tmp_path, task).elsewhere == ()
