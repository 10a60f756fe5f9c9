"""A journal that lost its last events: what the run's folder knows is taken from there."""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path

import pytest

from windrow.cli.main import main

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kept", [0, 1, 2, 4])
def test_the_first_resume_goes_on(
    kept: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("WINDROW_HISTORY", str(tmp_path / "history"))
    tasks = [
        f'  - {{id: t{i}, command: "echo t{i} >> ran; echo > t{i}.x", outputs: t{i}.x}}'
        for i in range(3)
    ]
    tasks += [
        '  - {id: bad, command: "test -e ok"}',
        "  - {id: last, command: echo last >> ran, after: bad}",
    ]
    Path("w.yaml").write_text(
        "\n".join(["name: w", "defaults: {runtime: 1s}", "tasks:", *tasks, ""])
    )
    assert main(["run", "w.yaml"]) == 1
    with sqlite3.connect(".windrow/runs/w-1/journal.sqlite") as db:
        db.execute("DELETE FROM events WHERE seq > ?", (kept,))
        db.execute("DELETE FROM offsets")
    db.close()
    Path("ok").touch()
    assert main(["resume"]) == 0
    assert Counter(Path("ran").read_text().split()) == {"t0": 1, "t1": 1, "t2": 1, "last": 1}
    assert main(["resume"]) == 0
