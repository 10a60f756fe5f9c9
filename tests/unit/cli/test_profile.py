"""`windrow profile`: commands and tasks traced for true, shown again, drawn, and merged into
workflows."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from windrow.cli.main import main
from windrow.errors import OutsideError
from windrow.formats import read_workflow
from windrow.model.trace import Files, Records, Stage, Trace
from windrow.profile import tracers
from windrow.profile.measures import Measures
from windrow.profile.stored import Profile, write_profile
from windrow.recipes.workflows.applications import application_trace

WORKFLOW = """\
tasks:
  - id: make
    command: cat seed table > middle
    inputs: [seed]
    outputs: [middle]
  - id: use
    command: sort middle > result; date > note
    inputs: [middle]
    outputs: [result]
"""


def told(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> dict[str, Any]:
    assert main(["profile", "--json", *words]) == code
    return dict(json.loads(capsys.readouterr().out))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("seed", "table", "in-1", "in-2"):
        (tmp_path / name).write_text(f"{name}\n" * 100)
    return tmp_path


@pytest.mark.parametrize("detail", tracers.DETAILS)
def test_two_instances_tell_batch_from_endpoint(
    detail: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if (detail == "bytes" and not tracers.strace_options()) or (
        detail == "files" and tracers.listener_fault()
    ):
        pytest.skip(f"{detail} cannot be traced here")
    command = ("sh", "-c", 'cat table "$0" > "$1"; echo hello', "in-1", "out-1")
    found = told(
        capsys, "--detail", detail, "--again", "in-2 out-2", "-o", "x.profile", "--", *command
    )
    roles = {
        Path(file["path"]).name: file["role"]
        for file in found["files"]
        if file["path"].startswith(str(here))
    }
    assert roles == {
        "table": "batch",
        **dict.fromkeys(("in-1", "in-2", "out-1", "out-2"), "endpoint"),
    }
    assert found["verdicts"][0].startswith("A batch-pipeline workload: 2 instances")
    assert found["detail"] == detail
    assert any("mapped into memory" in note for note in found["warnings"]) == (detail == "bytes")
    assert main(["profile", "show", "x", "--html", "x.html"]) == 0
    assert "Volume by role" in capsys.readouterr().out
    assert ("Caches" in (here / "x.html").read_text()) == (detail == "bytes")


@pytest.mark.skipif(
    not tracers.strace_options(),
    reason="strace is not installed or not allowed: apt install strace",
)
def test_tasks_of_a_workflow_are_stages_and_sizes_go_into_it(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("w.yaml").write_text(WORKFLOW)
    found = told(capsys, "w.yaml", "--tasks", "use,make", "-o", "w.profile", "--into", "w.yaml")
    assert [(stage["name"], stage["pipeline"]) for stage in found["stages"]] == [
        ("make", 1),
        ("use", 1),
    ]
    files = {Path(file["path"]).name: file for file in found["files"]}
    assert (files["middle"]["role"], files["middle"]["static_bytes"]) == ("pipeline", 1100)
    assert {line for line in found["warnings"] if "not declared" in line} == {
        f"make reads {here}/table, which is not declared",
        f"use writes {here}/note, which is not declared",
    }
    sizes = {file.id: (file.size_bytes, file.role) for file in read_workflow("w.yaml").files}
    assert sizes == {"seed": (500, ""), "middle": (1100, "pipeline"), "result": (1100, "endpoint")}
    before = Path("w.yaml").read_text()
    assert before.startswith(WORKFLOW)
    assert main(["profile", "show", "w.profile", "--into", "w.yaml"]) == 0
    assert Path("w.yaml").read_text() == before  # what is said stays


@pytest.mark.usefixtures("here")
def test_applications_are_told_as_their_table_has_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = np.zeros(0, dtype=np.int64)
    monkeypatch.setattr(
        Measures, "cache_curve", lambda *_: (nothing, nothing)
    )  # tested elsewhere, and takes its time
    write_profile(Profile(application_trace("blast"), "/pipeline-1"), "blast.profile")
    found = told(capsys, "show", "blast.profile")
    row = found["stages"][0]
    assert row["cpu_io"] == pytest.approx(37, abs=0.1)
    assert row["instr_per_op"] / 1000 == pytest.approx(144.5, abs=0.6)
    nodes = {(row["discipline"], row["time"]): row["nodes"] for row in found["scalability"]}
    assert nodes["endpoint only", "cpu"]["wide area"] == pytest.approx(51, abs=0.5)
    assert nodes["endpoint only", "real"]["local network"] == pytest.approx(26420, rel=0.001)
    assert nodes["all", "cpu"]["storage centre"] == pytest.approx(28, abs=0.5)
    assert "All: data-intensive" in " ".join(found["verdicts"])
    pytest.importorskip("pyarrow")
    from pyarrow import parquet

    assert main(["profile", "show", "blast.profile", "--parquet", "rows.parquet"]) == 0
    assert parquet.read_table("rows.parquet").num_rows == row["operations"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["show", "in-1"], "in-1: this is not a profile"),
        (["show", "broken"], "broken: this is not a profile"),
        (["show", "none"], "none.profile: no such file"),
        (["w.yaml", "--tasks", "none"], "unknown task 'none'"),
        (["--again", "a b", "--", "true"], "--again a b: give"),
        (["--", "no-such-command"], "there is no command 'no-such-command'"),
        (["--", "./in-1"], "there is no command './in-1'"),
        (["show", "b.profile", "--into", "in-1"], "native workflows only"),
    ],
)
def test_mistakes_are_explained(
    words: list[str], message: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("w.yaml").write_text(WORKFLOW)
    write_profile(Profile(Trace.of(Records(), [Stage("none")], Files()), "/"), "b.profile")
    records = Records()
    records.begin()
    records.add(0.0, 1, 3, 7, 0, 9)  # a file that there is not
    write_profile(Profile(Trace.of(records, [Stage("none")], Files()), "/"), "broken")
    assert main(["profile", *words]) == 2
    assert message in capsys.readouterr().err


def test_without_a_tracer_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracers, "strace_options", tuple)
    monkeypatch.setattr(tracers, "listener_fault", lambda: "Operation not permitted")
    for wanted in (None, *tracers.DETAILS):
        with pytest.raises(OutsideError, match=r"bytes cannot be traced|files cannot be traced"):
            tracers.chosen_detail(wanted)


def test_a_command_that_fails_is_told(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if tracers.listener_fault():
        pytest.skip("no listening to calls here")
    Path("fail").write_text("#!/bin/sh\nexit 3\n")
    Path("fail").chmod(0o755)
    assert main(["profile", "--detail", "files", "--", "./fail"]) == 1
    assert "ended with exit code 3" in capsys.readouterr().err


@pytest.mark.parametrize("detail", tracers.DETAILS)
def test_processes_left_behind_and_names_that_are_no_text(
    detail: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if (detail == "bytes" and not tracers.strace_options()) or (
        detail == "files" and tracers.listener_fault()
    ):
        pytest.skip(f"{detail} cannot be traced here")
    found = told(
        capsys,
        "--detail",
        detail,
        "--",
        "sh",
        "-c",
        r"""(sleep 0.1; echo > late) & echo > "$(printf 'a\377')" """,
    )
    assert {Path(file["path"]).name for file in found["files"] if file["is_new"]} == {"late", "a?"}
