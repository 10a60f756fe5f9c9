"""One command as a workflow, a first project, records that go, and word at the end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.waiting import wait_until

from windrow.app.notifying import is_address
from windrow.app.once import commands_of
from windrow.app.removing import older_than
from windrow.app.runs import all_runs
from windrow.app.settings import read_settings
from windrow.cli.main import main
from windrow.errors import UserError


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "commands"),
    [
        ("x a", ["x a"]),
        ("x --seed {} ::: 1 2", ["x --seed 1", "x --seed 2"]),
        ("x ::: {08..10}", ["x 08", "x 09", "x 10"]),
        ("x {2}-{1} ::: a b ::: c", ["x c-a", "x c-b"]),
        ("x {} ::: {a,b}", ["x a", "x b"]),
        ("x {y} ${z} ::: 1", ["x {y} ${z} 1"]),
    ],
)
def test_commands_that_words_mean(words: str, commands: list[str]) -> None:
    assert [" ".join(one) for one in commands_of(words.split())] == commands


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ([], "after -- comes a program"),
        (["x", ":::"], "after ::: come values"),
        (["x", "{2}", ":::", "a"], "{2} stands for nothing: there is 1 :::"),
        (["x", ":::", "{1..9999999}"], "more than 1,000,000 numbers"),
        (["x", ":::", "{1..9999}", ":::", "{1..9999}"], "99,980,001 commands, more than"),
    ],
)
def test_words_that_mean_no_command(words: list[str], wanted: str) -> None:
    with pytest.raises(UserError) as caught:
        commands_of(words)
    assert wanted in str(caught.value)


@pytest.mark.slow
def test_commands_run_as_they_are_typed_each_time(here: Path) -> None:
    code = 'echo "$1 {x} {{y}}" >> "out $1"'
    words = ["run", "--", "sh", "-c", code, "sh", ":::", "a b", "c"]
    assert main(words) == 0
    assert main(words) == 0
    assert (here / "out a b").read_text() == "a b {x} {{y}}\n" * 2
    assert len(all_runs()) == 2
    assert main(["run", "w.yaml", "--", "true"]) == 2
    assert main(["run", "--", "false"]) == 1


@pytest.mark.slow
def test_a_first_project_runs(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "new"]) == 0
    assert main(["init", "new"]) == 2
    assert "exist; nothing was written" in capsys.readouterr().err
    (here / "new/windrow.toml").unlink()
    assert main(["init", "new"]) == 0
    assert main(["run", "new/first.yaml", "--on", "local"]) == 0
    assert (here / "new/sum.txt").read_text()


@pytest.mark.slow
def test_records_go_and_what_tasks_made_stays(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "w.yaml").write_text("tasks: [{id: a, command: echo 1 > a, outputs: a, runtime: 1s}]\n")
    for _ in range(3):
        assert main(["run", "w.yaml", "--again"]) == 0
    assert main(["rm", "w-1", "nosuch"]) == 2
    assert len(all_runs()) == 3, "all of them or none"
    assert main(["rm", "w-1"]) == 0
    assert "deleted 1 run" in capsys.readouterr().err
    wait_until(lambda: len(older_than(1.0)) == 1)
    assert main(["clean", "--older", "1s", "-n"]) == 0
    assert [run.name for run in all_runs()] == ["w-2", "w-3"]
    assert main(["clean", "--older", "1s"]) == 0
    assert [run.name for run in all_runs()] == ["w-3"]
    assert main(["clean"]) == 0
    assert (here / "a").read_text() == "1\n"


@pytest.mark.slow
def test_a_run_that_is_managed_is_not_removed(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "w.yaml").write_text("tasks: [{id: a, command: sleep 60, runtime: 60s}]\n")
    assert main(["run", "w.yaml", "--detach"]) == 0
    assert main(["rm", "w-1"]) == 2
    assert "w-1 is not over" in capsys.readouterr().err
    assert main(["cancel", "w-1"]) == 0
    assert main(["rm", "w-1"]) == 0


@pytest.mark.slow
def test_the_user_is_notified_at_the_end(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    how = "echo $WINDROW_RUN $WINDROW_STATE $WINDROW_DONE of $WINDROW_TASKS > note"
    assert main(["run", "--notify", how, "--", "true"]) == 0
    assert (here / "note").read_text() == "true-1 complete 1 of 1\n"
    assert main(["run", "--notify", how, "--", "false"]) == 1
    assert (here / "note").read_text() == "false-1 failed 0 of 1\n"
    assert main(["run", "--notify", "exit 3", "--", "true"]) == 0
    assert "ended with 3" in capsys.readouterr().err


def test_addresses_and_commands() -> None:
    assert is_address("me@host.example")
    assert not is_address("mail me@host")
    assert not is_address("./tell")


def test_first_settings_say_what_was_found(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a Slurm that does not answer, too: its programs are here, and say that they cannot."""
    programs = home / "programs"
    programs.mkdir()
    for name in ("sinfo", "scontrol", "squeue", "sbatch", "sacct"):
        (programs / name).write_text("#!/bin/sh\necho 'no controller' >&2; exit 1\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.chdir(home)
    assert main(["init", "new"]) == 0
    text = Path("new/windrow.toml").read_text()
    local, slurm = text.split("[queues.slurm]")
    assert "# queue: 1 node of " in local
    assert "no controller" in slurm
    assert '# on = "slurm"' in slurm
    assert read_settings(Path("new/windrow.toml")).run.on is None
