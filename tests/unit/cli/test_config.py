"""What a command takes where its line says nothing, and how much it prints."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from windrow.app.settings import RunTable, read_settings
from windrow.cli.main import main
from windrow.cli.usual import USUAL
from windrow.errors import InputError

pytestmark = pytest.mark.usefixtures("home")

SETTINGS = """
[run]
on = "cluster"
cap = 3
strategy = "giant"

[profiles.night]
cap = 5
speculate = true

[queues.cluster]
kind = "local"
nodes = 2
"""


def answer(capsys: pytest.CaptureFixture[str], *command: str) -> str:
    capsys.readouterr()
    assert main([*command]) == 0
    return capsys.readouterr().out


def config(capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, tuple[object, str]]:
    told = json.loads(answer(capsys, "config", *more, "--json"))
    return {one["name"]: (one["value"], one["from"]) for one in told["run"]}


def test_every_key_of_run_is_an_option_of_the_command() -> None:
    assert set(RunTable.__struct_fields__) == USUAL


def test_where_each_value_comes_from(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert config(capsys)["on"] == ("local", "default")
    Path("windrow.toml").write_text(SETTINGS)
    here = Path("windrow.toml").absolute()
    found = config(capsys)
    assert found["on"] == ("cluster", f"[run] of {here}")
    assert found["cap"] == (3, f"[run] of {here}")
    assert found["margin"] == (1.2, "default")
    monkeypatch.setenv("WINDROW_ON", "elsewhere")
    found = config(capsys, "--profile", "night")
    assert found["on"] == ("elsewhere", "WINDROW_ON")
    assert found["cap"] == (5, f"[profiles.night] of {here}")
    assert found["speculate"] == (True, f"[profiles.night] of {here}")
    table = answer(capsys, "config")
    assert str(here) in table
    assert "night" in table


def test_a_plan_for_a_real_queue_takes_them_as_its_run_would(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("windrow.toml").write_text(SETTINGS)
    Path("w.yaml").write_text(
        'tasks: [{id: "a{i}", matrix: {i: 1..4}, command: "true", runtime: 1s}]'
    )

    def told(*more: str) -> tuple[str, int]:
        found = json.loads(answer(capsys, "plan", "w.yaml", "--on", "cluster", *more, "--json"))
        return found["strategy"], len(found["jobs_now"])

    assert told() == ("giant", 1)
    assert told("--strategy", "individual") == ("individual", 3)  # the cap of the table
    assert told("--strategy", "individual", "--cap", "2") == ("individual", 2)


@pytest.mark.slow
def test_a_run_takes_them_and_its_line_wins(capsys: pytest.CaptureFixture[str]) -> None:
    Path("windrow.toml").write_text(SETTINGS)
    Path("w.yaml").write_text('tasks: [{id: a, command: "true", runtime: 1s}]')
    told = json.loads(answer(capsys, "run", "w.yaml", "--strategy", "one-job", "--json"))
    assert (told["queue"], told["strategy"]) == ("cluster", "one-job")
    assert json.loads(answer(capsys, "run", "w.yaml", "-n", "--again", "--json"))


def test_wrong_values_name_their_place(capsys: pytest.CaptureFixture[str]) -> None:
    Path("windrow.toml").write_text('[run]\nobjective = "speed"\n')
    Path("w.yaml").write_text('tasks: [{id: a, command: "true", runtime: 1s}]')
    assert main(["run", "w.yaml"]) == 2
    told = capsys.readouterr().err
    assert f"[run] of {Path('windrow.toml').absolute()}: " in told
    assert "invalid choice: 'speed'" in told
    assert main(["run", "w.yaml", "--objective", "cost", "--profile", "nihgt"]) == 2
    assert "unknown profile 'nihgt'" in capsys.readouterr().err
    for text, problem in (
        ("[run]\nonn = 1\n", "unknown key 'onn'"),
        ("[profiles]\nnight = 1\n", "profiles are tables; write [profiles.NAME]"),
        ('[run]\ncap = "3"\n', "cap must be a whole number, not '3'"),
    ):
        Path("windrow.toml").write_text(text)
        with pytest.raises(InputError, match=r"windrow\.toml:[12]") as found:
            read_settings(Path("windrow.toml"))
        assert problem in str(found.value)


@pytest.mark.slow
def test_quiet_and_colour(capsys: pytest.CaptureFixture[str]) -> None:
    Path("w.yaml").write_text('tasks: [{id: a, command: "exit 3", runtime: 1s}]')
    assert main(["run", "w.yaml", "-q"]) == 1
    assert capsys.readouterr() == ("", "")
    told = answer(capsys, "status", "--color", "always")
    assert "\x1b[" in told
    assert "\x1b[" not in answer(capsys, "status")
    assert main(["logs", "nope", "-q"]) == 2
    assert "nope" in capsys.readouterr().err, "errors are said in any case"
    assert "TERM" not in os.environ or "\x1b[" not in answer(capsys, "status", "--color=never")


@pytest.mark.slow
def test_the_output_of_all_that_failed(capsys: pytest.CaptureFixture[str]) -> None:
    line = '- {id: "a-{i}", matrix: {i: 1..3}, command: "echo said {i}; test {i} = 2", runtime: 1s}'
    Path("w.yaml").write_text(f"name: w\ntasks:\n  {line}\n")
    assert main(["run", "w.yaml", "-q"]) == 1
    for command in (["logs", "--failed"], ["logs", "--failed", "w-1"]):
        assert answer(capsys, *command) == "said 1\nsaid 3\n"
    assert main(["wait", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["state"] == "failed"
    assert json.loads(answer(capsys, "cancel", "w-1", "--json"))["cancelled"] == []
