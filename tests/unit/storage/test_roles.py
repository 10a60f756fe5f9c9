"""Roles of files, from the graph, and what a workflow file says of files."""

from pathlib import Path

import pytest

from windrow.app.changes import changes
from windrow.errors import InputError
from windrow.formats import read_runnable
from windrow.model import File, Task, Workflow
from windrow.records.runnable_file import runnable_json
from windrow.storage.roles import Role, roles

TASKS = [
    Task("index", 1, "index", inputs=("genome",), outputs=("idx",)),
    *(
        Task(
            f"align-{n}",
            1,
            "align",
            inputs=("genome", "idx", f"reads-{n}"),
            outputs=(f"bam-{n}", f"log-{n}"),
        )
        for n in range(3)
    ),
    *(Task(f"call-{n}", 1, "call", inputs=(f"bam-{n}",), outputs=(f"vcf-{n}",)) for n in range(3)),
    Task("join", 1, "join", inputs=("vcf-0", "vcf-1", "vcf-2"), outputs=("all",)),
]


def test_roles_follow_from_who_writes_and_who_reads() -> None:
    files = [File("vcf-1", keep=True), File("bam-2", role="shared"), File("log-0", role="endpoint")]
    workflow = Workflow.from_tasks("w", TASKS, files)
    found, against = roles(workflow)
    named = {file.id: role for file, role in zip(workflow.files, found, strict=True)}
    assert [named[name] for name in ("genome", "idx", "reads-1")] == [
        Role.BATCH,
        Role.SHARED,
        Role.ENDPOINT,
    ]
    assert [named[name] for name in ("bam-0", "vcf-0", "vcf-1", "all")] == [
        "pipeline",
        "pipeline",
        *["endpoint"] * 2,
    ]
    assert named["bam-2"] == "shared"
    assert named["log-0"] == "endpoint"
    assert against == ["bam-2 is declared as shared, but the workflow uses it as pipeline"]


WORKFLOW = """
defaults: {keep: false}
files:
  genome: {size: 3GB, role: batch}
  "big-*": {size: 2GB}
  kept: {keep: true}
tasks:
  - id: first-{n}
    matrix: {n: 1..2}
    command: cat {inputs} > {outputs}
    inputs: genome
    outputs: {"big-{n}": , "log-{n}": {size: 1kB, keep: false}}
  - {id: second, command: "cat {inputs} > {outputs}", inputs: [big-1, big-2], outputs: kept, keep: false}
  - {id: third, command: "cat {inputs} > {outputs}", inputs: kept, outputs: last}
"""  # noqa: E501


def test_a_workflow_says_what_is_to_be_kept(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(WORKFLOW)
    runnable = read_runnable(tmp_path / "w.yaml")
    files = {file.id: file for file in runnable.workflow.files}
    assert {name: file.keep for name, file in files.items()} == {
        **{
            "genome": None,
            "big-1": False,
            "big-2": False,
            "log-1": False,
            "log-2": False,
            "kept": True,
            "last": None,
        }
    }
    assert files["big-2"].size_bytes == 2_000_000_000
    assert files["genome"].role == "batch"
    assert b'"keep":null' not in runnable_json(runnable)
    assert b'"role":""' not in runnable_json(runnable)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("files: {nothing: {size: 1GB}}", "nothing is described, but no task reads or writes it"),
        ("files: {a: {role: input}}", "role of files a is 'input'"),
        ("files: {a: {keep: maybe}}", "keep of files a is 'maybe'"),
        ("files: [a]", "files is a list"),
        ("defaults: {keep: 3}", "keep is '3'"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "w.yaml").write_text(
        f"{text}\ntasks:\n  - {{id: t, command: 'true', outputs: a}}\n"
    )
    with pytest.raises(InputError, match=problem):
        read_runnable(tmp_path / "w.yaml")


def test_a_file_that_is_not_to_be_kept_any_more_makes_another_run_and_no_task_run_again(
    tmp_path: Path,
) -> None:
    (tmp_path / "w.yaml").write_text(WORKFLOW)
    old = read_runnable(tmp_path / "w.yaml")
    (tmp_path / "w.yaml").write_text(WORKFLOW.replace("kept: {keep: true}", "kept: {keep: false}"))
    found = changes(old, read_runnable(tmp_path / "w.yaml"), lambda _: True, lambda _: None)
    assert not found.is_same
    assert found.to_run == 0
