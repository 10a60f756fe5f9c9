"""`windrow grid`, end to end on files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from windrow.cli.main import main
from windrow_lab.grid.file import read_grid


def told(capsys: pytest.CaptureFixture[str], *argv: str) -> Any:
    """What a command prints as JSON."""
    capsys.readouterr()
    main([*argv, "--json"])
    return json.loads(capsys.readouterr().out)


@pytest.fixture
def files(home: Path) -> Path:
    assert main(["grid", "generate", "big-cluster", "-o", "grid.toml"]) == 0
    assert main(["generate", "eman", "--tasks", "30", "--ccr", "1", "-o", "wf.json"]) == 0
    return home


def test_a_grid_is_generated_and_shown(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["grid", "generate", "list"]) == 0
    assert "many-cluster" in capsys.readouterr().out
    shown = told(capsys, "grid", "show", "grid.toml")
    assert (shown["clusters"], shown["nodes"]) == (4, 212)
    assert [row["speed"] for row in shown["cluster_list"]] == [4.2, 3.0, 2.8, 2.0]


def test_nodes_are_selected_and_written(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "ClusterOf(node)[1:50] { node = [Clock < 4] [Rank = Clock] }"
    assert told(capsys, "grid", "select", "grid.toml", "--describe", text)["selected"] == {
        "c002": 50
    }
    Path("bag.vgdl").write_text(text.replace("1:50", "1:60"))
    assert main(["grid", "select", "grid.toml", "--describe", "bag.vgdl", "-o", "part.json"]) == 0
    assert [(c.name, c.nodes) for c in read_grid("part.json").clusters] == [("c003", 60)]
    assert told(capsys, "grid", "select", "grid.toml", "--fastest", "40")["selected"] == {
        "c001": 38,
        "c002": 2,
    }
    assert told(capsys, "grid", "select", "grid.toml", "--for", "wf.json")["nodes"] > 0
    assert (
        main(["grid", "select", "grid.toml", "--describe", "ClusterOf(n)[1:9] { n = [Clock > 9] }"])
        == 1
    )
    assert "the condition 'Clock > 9' leaves 0 of 212 nodes" in capsys.readouterr().out


def test_a_workflow_is_scheduled(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = told(
        capsys, "grid", "schedule", "grid.toml", "wf.json", "--schedulers", "heft,dsh", "--eacp"
    )
    assert [one["scheduler"] for one in found["schedules"]] == [
        "heft",
        "dsh",
        "eacp+heft",
        "eacp+dsh",
    ]
    for one in found["schedules"]:
        assert one["makespan_s"] == max(row["end_s"] for row in one["rows"])
        assert one["slr"] == pytest.approx(one["makespan_s"] / found["critical_s"])
        assert len(one["rows"]) == 30 + one["copies"]
    part = told(
        capsys, "grid", "schedule", "grid.toml", "wf.json", "--schedulers", "heft", "--fastest", "5"
    )
    assert {(row["cluster"], row["node"]) for row in part["schedules"][0]["rows"]} <= {
        ("c001", n) for n in range(5)
    }
    assert main(["grid", "schedule", "grid.toml", "wf.json", "--html", "page.html"]) == 0
    page = Path("page.html").read_text()
    assert page.count('<svg viewBox="0 0 960') == 4
    assert "classesbymra_00001 on c001" in page


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["schedule", "grid.toml", "wf.json", "--schedulers", "heff"], "did you mean heft"),
        (
            [
                "schedule",
                "grid.toml",
                "wf.json",
                "--describe",
                "ClusterOf(n)[99:99] { n = [Clock > 0] }",
            ],
            "largest has 88",
        ),
        (
            ["select", "grid.toml", "--describe", "ClusterOf(n)[1:2] { n = [Clok > 0] }"],
            "did you mean clock",
        ),
        (["generate", "big-cluster"], "name the file to write"),
        (["generate", "big-clusters", "-o", "x.json"], "did you mean big-cluster"),
    ],
)
def test_mistakes_are_named(
    argv: list[str], words: str, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["grid", *argv]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.slow
def test_the_first_scheduler_does_not_pay_for_what_all_use(files: Path) -> None:
    """In a process of its own, which has loaded nothing yet; compiled code is there, or compiled
    before."""
    assert main(["generate", "eman", "--tasks", "400", "--ccr", "1", "-o", "large.json"]) == 0
    command = [
        str(Path(sys.executable).with_name("windrow")),
        "grid",
        "schedule",
        "grid.toml",
        "large.json",
        "--json",
        "--schedulers",
    ]
    for order in ("heft,eacp+heft", "eacp+heft,heft"):
        out = subprocess.run([*command, order], stdout=subprocess.PIPE, check=True).stdout
        first, second = (one["planning_s"] for one in json.loads(out)["schedules"])
        assert first < 0.2 + 5 * second
