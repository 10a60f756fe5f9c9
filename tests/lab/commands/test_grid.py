"""`windrow grid`, end to end on files."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.lab.grid.test_schedulers import RUN_S, topcuoglu

from windrow.cli.main import main
from windrow.errors import InputError
from windrow.formats import write_workflow
from windrow.model import Task, Workflow
from windrow_lab.grid.clusters import Grid, GridCluster
from windrow_lab.grid.file import read_grid
from windrow_lab.grid.run_times import read_run_times


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
        assert one["makespan_s"] == max(row["end_at"] for row in one["rows"])
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


TEN = """
inside = { latency_s = 0, bandwidth_bytes_s = 1 }
bandwidth_bytes_s = 1
clusters = [
    { name = "p1", nodes = 1, speed = 1 },
    { name = "p2", nodes = 1, speed = 1 },
    { name = "p3", nodes = 1, speed = 1 },
]
"""


def test_the_ten_tasks_of_topcuoglu_from_files(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Published: HEFT takes 80, CPoP 86; ranks are a mean over the matrix of run times."""
    write_workflow(topcuoglu().workflow, "ten.json")
    Path("three.toml").write_text(TEN)
    rows = [f"{i + 1},{','.join(row.split())}" for i, row in enumerate(RUN_S.split("/"))]
    Path("times.csv").write_text("\n".join(["task,p1,p2,p3", *rows]))
    given = ("grid", "schedule", "three.toml", "ten.json", "--run-times", "times.csv")
    found = told(capsys, *given, "--schedulers", "heft,cpop,hhs,dsh")
    assert [one["makespan_s"] for one in found["schedules"]] == [80, 86, 80, 73]
    assert found["critical_s"] == 108


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("task,c001\n", "times.csv:1: the first line must be task and the clusters"),
        ("task,a,b\nx,1,2\n", "times.csv:2: wf has no task 'x'"),
        ("task,b,a\nt,1,2\nt,1,2\n", "times.csv:3: t is there twice"),
        ("task,a,b\nt,1,-2\n", "times.csv:2: a line is a task and its seconds"),
        ("task,a,b\nt,1\n", "times.csv:2: a line is a task and its seconds"),
        ("task,a,b\n", "no run times of t; 1 tasks lack a row"),
    ],
)
def test_run_times_that_cannot_be_used(tmp_path: Path, text: str, hint: str) -> None:
    one = np.ones((2, 2))
    grid = Grid((GridCluster("a", 1, 1), GridCluster("b", 1, 1)), 0 * one, one)
    path = tmp_path / "times.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=re.escape(hint)):
        read_run_times(path, Workflow.from_tasks("wf", [Task("t", 1.0)]), grid)


def test_the_columns_of_run_times_stand_in_any_order(tmp_path: Path) -> None:
    one = np.ones((2, 2))
    grid = Grid((GridCluster("a", 1, 1), GridCluster("b", 1, 1)), 0 * one, one)
    path = tmp_path / "times.csv"
    path.write_text("task,b,a\n\nu,3,4\nt,1,2\n")
    workflow = Workflow.from_tasks("wf", [Task("t", 1.0), Task("u", 1.0)])
    assert read_run_times(path, workflow, grid).tolist() == [[2, 1], [4, 3]]
