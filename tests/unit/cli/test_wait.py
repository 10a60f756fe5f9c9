"""`windrow wait`, on runs that go on and runs that are over."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import windrow
from windrow.cli.main import main


@pytest.mark.slow
def test_it_waits_for_the_end_and_tells_how_that_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command = "while [ ! -e go ]; do sleep 0.1; done; test -e good"
    (tmp_path / "w.yaml").write_text(f"tasks: [{{id: a, command: '{command}', runtime: 1s}}]\n")
    run = windrow.run("w.yaml")
    with subprocess.Popen(
        [sys.executable, "-m", "windrow.cli.main", "wait", run.name],
        stderr=subprocess.PIPE,
        text=True,
    ) as waiting:
        assert waiting.stderr is not None
        assert waiting.stderr.readline().startswith(f"waiting for {run.name}")
        assert waiting.poll() is None
        (tmp_path / "go").touch()
        assert waiting.wait(200) == 1
    assert main(["wait"]) == 1
    assert f"{run.name}: failed, 0 of 1 tasks are done" in capsys.readouterr().err
    (tmp_path / "good").touch()
    run.retry()
    assert main(["wait", run.name]) == 0
    assert f"{run.name}: complete, 1 of 1 tasks are done" in capsys.readouterr().err
    assert main(["wait", "nosuch"]) == 2
