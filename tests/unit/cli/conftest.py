"""What tests of commands may ask for."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which commands run, with a queue, a history and settings of its own."""
    monkeypatch.chdir(tmp_path)
    for name in ("STATE", "CONFIG", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setenv("WINDROW_HISTORY", str(tmp_path / "history.sqlite"))
    return tmp_path
