"""What lists of sites and runs say, and their exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from windrow.cli.main import main

Told = pytest.CaptureFixture[str]


@pytest.mark.parametrize("command", ["sites", "doctor"])
def test_a_site_that_cannot_be_used_is_no_success(command: str, home: Path, capsys: Told) -> None:
    assert main([command, "--on", "nowhere"]) == 1
    assert main([command, "--on", "nowhere", "--json"]) == 1
    told = capsys.readouterr().out
    assert "unknown queue 'nowhere'" in told
    assert "correct windrow.toml" not in told, "there is none"
    (home / "windrow.toml").write_text('[sites.nowhere]\nqueue = "nosuch"\n')
    assert main(["sites", "--on", "nowhere"]) == 2
    assert main(["sites", "--on", "local"]) == 2, "settings are right as a whole, or not at all"
    assert "[sites.nowhere] unknown queue 'nosuch'" in capsys.readouterr().err
    assert main(["doctor", "--on", "nowhere"]) == 1
    assert f"fix: correct {home}/windrow.toml" in capsys.readouterr().out


def test_settings_of_thousands_of_brackets_are_refused(home: Path, capsys: Told) -> None:
    (home / "windrow.toml").write_text("a=" + "[" * 5000)
    assert main(["sites"]) == 2
    assert "windrow.toml: brackets are nested too deeply" in capsys.readouterr().err


def test_the_help_of_grids_says_what_schedulers_do(capsys: Told) -> None:
    with pytest.raises(SystemExit):
        main(["grid", "schedule", "--help"])
    told = capsys.readouterr().out
    assert re.search(r"heft +by upward rank", told)
    assert "lhbs:" not in told


@pytest.mark.slow
def test_runs_have_names_and_sizes(home: Path, capsys: Told) -> None:
    (home / "w.yaml").write_text('name: "Größe"\ntasks:\n  - {id: a, command: "true"}\n')
    assert main(["run", "w.yaml"]) == 0
    assert "for an HTML report" not in capsys.readouterr().err, "nobody watches"
    assert main(["runs"]) == 0
    heads, row = capsys.readouterr().out.splitlines()
    assert heads.split()[-1] == "size"
    assert row.split()[0] == "Grosse-1"
    assert re.search(r"\d+(\.\d+)? [kM]?B$", row)
    assert main(["runs", "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["runs"]
    assert told["size_bytes"] > 1000


@pytest.mark.slow
def test_explain_says_how_many_more_tasks_hold_one_up(home: Path, capsys: Told) -> None:
    (home / "w.yaml").write_text(
        "tasks:\n"
        "  - {id: 'b{i}', matrix: {i: 1..8}, command: 'false', outputs: 'b{i}'}\n"
        "  - {id: fin, command: 'true', inputs: 'b*'}\n"
    )
    assert main(["run", "w.yaml"]) == 1
    capsys.readouterr()
    assert main(["explain", "fin"]) == 0
    assert "because of b1, b2, b3, b4, b5 and 3 more" in capsys.readouterr().out
    assert main(["show", "w.yaml"]) == 0
    told = capsys.readouterr().out
    assert re.search(r"files +8, none of known size", told)
    assert "CCR" not in told


def test_a_disk_that_takes_no_run_starts_nothing(
    home: Path, capsys: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "w.yaml").write_text("tasks:\n  - {id: a, command: 'true'}\n")
    monkeypatch.setenv("WINDROW_DIR", "/proc/none")
    assert main(["run", "w.yaml"]) == 2
    assert "cannot create a folder for the run" in capsys.readouterr().err
