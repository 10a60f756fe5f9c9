"""Completion: what a shell is told, and that real shells can use it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from windrow.cli.completion import SCRIPTS
from windrow.cli.main import COMMANDS, main

pytestmark = pytest.mark.usefixtures("home")


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    capsys.readouterr()
    assert main(["__complete", *words]) == 0
    return capsys.readouterr().out.splitlines()


def test_commands_options_and_values(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(COMMANDS) <= set(asked(capsys, ""))
    assert asked(capsys, "repo") == ["report"]
    assert asked(capsys, "report", "--cr") == ["--crate"]
    assert set(asked(capsys, "completion", "")) == set(SCRIPTS)
    assert "foresight" not in asked(capsys, "run", "")
    assert asked(capsys, "nosuch", "") == []
    assert asked(capsys, "status", "") == [], "there are no runs here"


@pytest.mark.slow
def test_runs_and_tasks_of_the_folder(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("first", "second"):
        tasks = f"  - {{id: {name}-a, command: 'true'}}\n  - {{id: {name}-b, command: 'true'}}\n"
        Path(f"{name}.yaml").write_text(f"name: {name}\ntasks:\n{tasks}")
        assert main(["run", f"{name}.yaml"]) == 0
    assert asked(capsys, "status", "") == ["second-1", "first-1"]
    assert asked(capsys, "watch", "f") == ["first-1"]
    assert asked(capsys, "tasks", "--run", "s") == ["second-1"]
    assert asked(capsys, "explain", "second-") == ["second-a", "second-b", "second-1"]
    found = asked(capsys, "logs", "--run", "first-1", "f")
    assert set(found) == {"first-a", "first-b", "first-1"}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_completes_with_it(tmp_path: Path) -> None:
    folder = Path(sys.executable).parent
    script = (
        f'PATH="{folder}:$PATH"; eval "$(windrow completion bash)"\n'
        "COMP_WORDS=(windrow repo); COMP_CWORD=1; _windrow; echo ${COMPREPLY[@]}\n"
        "touch here.yaml; COMP_WORDS=(windrow run he); COMP_CWORD=2; _windrow; echo ${COMPREPLY[@]}"
    )
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.split() == ["report", "here.yaml"]
