"""Two users in one project folder: one has runs there, and the other reads what permissions
allow."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from tests.other_user import NOBODY, as_nobody, python_for_all, python_path

from windrow.cli.main import main

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can start commands as another user"),
]
ASKED = """
import contextlib, io, json, sys
from windrow.cli.main import main
answers = []
for words in json.loads(sys.argv[1]):
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    answers.append((code, *(said.buffer.getvalue().decode() for said in (out, err))))
print(json.dumps(answers))
"""


class Answer(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str


Ask = Callable[..., list[Answer]]
READING = [
    ["status"],
    ["tasks"],
    ["logs", "t"],
    ["explain", "t"],
    ["files"],
    ["runs"],
    ["watch"],
    ["shell", "t", "--print"],
    ["report", "--html", "/dev/null"],
]
EXECUTING = [
    ["resume"],
    ["retry", "t"],
    ["run", "w.yaml", "--resume"],
    ["run", "--add", "w.yaml"],
    ["cancel"],
    ["priority", "5", "t"],
]


@pytest.fixture
def project(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with TemporaryDirectory(dir="/tmp") as home:
        folder = Path(home) / "group"
        folder.mkdir()
        folder.chmod(0o777)
        Path(home).chmod(0o777)
        monkeypatch.chdir(folder)
        monkeypatch.setenv("XDG_STATE_HOME", f"{home}/root")
        monkeypatch.setenv("WINDROW_HISTORY", f"{home}/history")
        monkeypatch.setenv("WINDROW_WAITS", f"{home}/waits")
        Path("w.yaml").write_text(
            'name: w\ntasks:\n  - {id: t, command: "echo hello", runtime: 1s}\n'
        )
        assert main(["run", "w.yaml"]) == 0
        yield folder


@pytest.fixture
def ask(project: Path) -> Ask:
    """Runs commands of Windrow as the other user, one after the other in one process."""
    env = {"PATH": os.environ["PATH"], "HOME": f"{project.parent}/home", **python_path()}
    env |= {"WINDROW_CACHE": f"{project.parent}/home/cache"}
    python = python_for_all(env)

    def told(*commands: list[str], **more: str) -> list[Answer]:
        asked = subprocess.run(
            [*as_nobody(), python, "-P", "-c", ASKED, json.dumps(commands)],
            cwd=project,
            env=env | more,
            capture_output=True,
            text=True,
            timeout=100,
            check=True,
        )
        return [Answer(*answer) for answer in json.loads(asked.stdout)]

    return told


def test_a_colleague_who_may_not_read_is_told_whose_it_is(ask: Ask) -> None:
    commands = [*READING, *EXECUTING, ["run", "w.yaml"]]
    for words, said in zip(commands, ask(*commands), strict=True):
        assert said.code == 2, words
        assert ".windrow" in said.err, words
        assert "belongs to root" in said.err, words
        assert f"export WINDROW_DIR=.windrow.{NOBODY}" in said.err, words
        assert said.err.count("\n") == 1, words


def test_a_colleague_may_read_what_permissions_allow(ask: Ask, project: Path) -> None:
    subprocess.run(["chmod", "-R", "go+rX", ".windrow"], check=True)
    answers = ask(*READING, *EXECUTING)
    for words, said in zip(READING, answers, strict=False):
        assert said.code == 0, (words, said.err)
    assert "hello" in answers[READING.index(["logs", "t"])].out
    for words, said in zip(EXECUTING, answers[len(READING) :], strict=True):
        assert said.code == 2, words
        assert "belongs to root" in said.err, words
    (project / ".windrow/runs/w-1").chmod(0o700)  # one run is private, the folder of all is not
    answers = ask(*READING)
    for words, said in zip(READING, answers, strict=True):
        assert "Permission denied" in said.err or "belongs to root" in said.err, words
    assert "w-1" in answers[READING.index(["runs"])].out


def test_with_a_folder_each_two_people_run_in_one_project(ask: Ask, project: Path) -> None:
    commands = [["runs"], ["run", "w.yaml"], ["status"], ["resume"], ["retry", "t"]]
    none, first, status, *again = ask(*commands, WINDROW_DIR=f".windrow.{NOBODY}")
    assert "no runs" in none.err
    assert first.code == 0, first.err
    assert (project / f".windrow.{NOBODY}" / "runs" / "w-1").is_dir()
    assert "complete" in status.out
    assert [said.code for said in again] == [0, 0]
    assert main(["status"]) == 0, "each has a w-1"
