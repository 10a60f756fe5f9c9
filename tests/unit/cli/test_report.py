"""`windrow report` after real runs on a queue of their own."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from windrow.cli.main import main

pytestmark = pytest.mark.usefixtures("home")

WORKFLOW = """
name: two
tasks:
  - id: make
    command: printf some > "a file"
    outputs: ["a file"]
    runtime: 1s
  - id: bad
    command: echo the very last line; exit 4
    inputs: ["a file"]
    runtime: 1s
"""


@pytest.mark.slow
def test_a_failed_run_has_a_page_and_a_crate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("two.yaml").write_text(WORKFLOW)
    assert main(["run", "two.yaml", "--json"]) == 1
    capsys.readouterr()
    assert main(["report"]) == 0
    page = Path(capsys.readouterr().out.strip())
    assert page == tmp_path / ".windrow" / "runs" / "two-1" / "report.html"
    assert "the very last line" in page.read_text()

    assert main(["report", "two-1", "-o", "mine.html", "--crate", "crate", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert (figures["state"], figures["finished"], figures["failed_attempts"]) == ("failed", 1, 1)
    parts = [figures[f"{part}_node_s"] for part in ("used", "idle", "lost")]
    assert figures["allocated_node_s"] == pytest.approx(sum(parts))
    assert min(parts) >= 0
    assert Path(figures["page"]).samefile("mine.html")
    assert Path("crate/two.yaml").read_text() == WORKFLOW
    graph = json.loads(Path("crate/ro-crate-metadata.json").read_text())["@graph"]
    (file,) = [x for x in graph if x.get("name") == "a file"]
    assert (file["sha256"], file["contentSize"]) == (hashlib.sha256(b"some").hexdigest(), "4")

    assert main(["report", "--crate", "crate"]) == 2
    assert "not empty" in capsys.readouterr().err
    Path("two.yaml").write_text("tasks: []\n")
    assert main(["report", "--crate", "later"]) == 0
    assert sorted(p.name for p in Path("later").iterdir()) == [
        "ro-crate-metadata.json",
        "workflow.json",
    ]


def test_without_a_run_it_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report"]) == 2
    assert "windrow run WORKFLOW starts one" in capsys.readouterr().err
