"""`windrow reproduce zhang` from end to end, and what it refuses. (Those of glume are in tests/unit/lab.)"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from windrow.cli.main import main
from windrow.lab import zhang


@pytest.mark.parametrize("option", [["--policy", "easy"], ["--placement", "count"], ["--as-thesis"]])
def test_options_of_glume_are_refused(option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "zhang", *option]) == 2
    assert f"{option[0]} is for glume only" in capsys.readouterr().err


def test_the_option_of_zhang_is_refused_for_glume(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "glume", "--data", str(tmp_path), "--cap", "16"]) == 2
    assert "--cap is for zhang only" in capsys.readouterr().err


def test_a_folder_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "zhang", "--data", str(tmp_path / "no")]) == 2
    assert "give the one that holds the logs" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--policy", "--placement"])
def test_an_unknown_policy_of_glume_is_named(option: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["reproduce", "glume", "--data", str(tmp_path), option, "nonsense"]) == 2
    assert "nonsense" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_runs_from_end_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(zhang, "_QUICK_TIMES", 1)
    out = tmp_path / "out"
    arguments = ["reproduce", "zhang", "--data", str(tmp_path), "--out", str(out), "--workers", "1"]
    assert main(arguments) == 0
    shown = capsys.readouterr()
    assert "private" in shown.err
    assert f"page: {out / 'zhang.html'}" in shown.out
    numbers = json.loads((out / "zhang.json").read_text())
    assert (numbers["failed"], numbers["trials"]) == (0, 5 * 3 * 10 * 1 * 3)
    first = {p: p.stat().st_mtime_ns for p in (out / "chunks").iterdir()}
    assert main(arguments) == 0
    assert {p: p.stat().st_mtime_ns for p in (out / "chunks").iterdir()} == first
