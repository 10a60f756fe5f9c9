"""`windrow traces`: the table, a file's description, and a download that needs none or cannot
be."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from windrow.cli.main import main
from windrow.formats.archive import ARCHIVE


def test_the_list_has_every_log(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["traces", "list"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert [row[:3] for row in rows] == [
        [log.name, f"{log.jobs:,}", f"{log.processors:,}"] for log in ARCHIVE
    ]


def test_a_name_is_described(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["traces", "describe", "kth-sp2"]) == 0
    assert "recorded: 28,476 jobs" in capsys.readouterr().out


def test_offline_is_said_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")  # nobody listens on the discard port
    monkeypatch.delenv("no_proxy", raising=False)
    assert main(["traces", "fetch", "KTH-SP2", "--to", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("windrow: error: ")
    assert "cannot be reached" in error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_what_is_there_is_verified_and_not_fetched(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    name = "KTH-SP2-1996-2.1-cln.swf.gz"
    shutil.copy(logs / name, tmp_path / name)
    assert main(["traces", "fetch", "KTH-SP2", "--to", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path / name}: checksum verified\n"
    assert main(["traces", "describe", str(tmp_path / name)]) == 0
    assert "usable: 28,467 jobs" in capsys.readouterr().out
