"""What files take over time, and what users see of it."""

import json
from pathlib import Path

import pytest

from windrow.cli.main import main
from windrow.storage.sequence import Demand, FileUse
from windrow.storage.timeline import all_at_once, drawn, over_time, peak

TEXT = """
tasks:
  - id: make-{n}
    matrix: {n: 1..4}
    command: cp seed {outputs}
    outputs: {"big-{n}": {size: 10MB, keep: false}}
    runtime: 10s
  - id: use-{n}
    matrix: {n: 1..4}
    command: cp {inputs} {outputs}
    inputs: big-{n}
    outputs: {"small-{n}": 1MB}
    runtime: 30s
"""


def test_space_over_time() -> None:
    files = [
        FileUse("a", 10, 0, (1,), keep=False),
        FileUse("b", 5, 1),
        FileUse("c", 3, 2, (), keep=False),
    ]
    demand = Demand({0: [], 1: [0], 2: []}, files, held=1)
    points = over_time(demand, all_at_once(demand, [4.0, 2.0, 4.0]))
    assert points == [(0.0, 14), (4.0, 16), (6.0, 6)]
    assert peak(points) == 16
    assert drawn(points, 6) == "▇▇▇▇██"
    assert over_time(demand, [(0, 0.0, 4.0)], {"a": 20}) == [(0.0, 21), (4.0, 21)]
    assert drawn([]) == ""


def test_show_and_dry_runs_tell_the_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("w.yaml").write_text(TEXT)
    assert main(["show", "w.yaml"]) == 0
    assert "at most 44 MB, if everything runs that can; 14 MB is enough" in capsys.readouterr().out
    assert main(["show", "w.yaml", "--json"]) == 0
    space = json.loads(capsys.readouterr().out)["space"]
    assert (space["peak"], space["smallest"], space["every"]) == (
        44_000_000,
        14_000_000,
        44_000_000,
    )
    assert space["roles"] == {"pipeline": 40_000_000, "endpoint": 4_000_000}
    assert main(["run", "-n", "w.yaml", "--space", "14MB"]) == 0
    assert (
        "files take at most 14 MB; 14 MB would do (--space), and they may take 14 MB"
        in capsys.readouterr().out
    )
    assert main(["run", "-n", "w.yaml", "--space", "13MB"]) == 2
    assert "need at least 14 MB" in capsys.readouterr().err
