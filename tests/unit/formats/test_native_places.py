"""What a workflow file may not name as something that its tasks write."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from windrow.errors import InputError
from windrow.formats import read_addition, read_runnable
from windrow.formats.native.reader import read_native


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    (tmp_path / "project/out").symlink_to("../elsewhere")
    (tmp_path / "project/own").symlink_to(".windrow")
    (tmp_path / "elsewhere").mkdir()
    return tmp_path / "project"


def _write(project: Path, says: str) -> Path:
    file = project / "w.yaml"
    file.write_text(f"tasks:\n  - id: a\n    command: x\n    {says}\n")
    return file


RESERVED = {
    ".": "a folder with the workflow file in it",
    "..": "a folder with the workflow file in it",
    "sub/..": "a folder with the workflow file in it",
    "w.yaml": "the workflow file itself",
    "./sub/../w.yaml": "the workflow file itself",
    "windrow.toml": "the settings",
    ".windrow": "a file or folder of Windrow itself",
    ".windrow/runs": "a file or folder of Windrow itself",
    "own/runs/x": "a file or folder of Windrow itself",
    "res/.windrow-a.txt.1": "a file or folder of Windrow itself",
    "res/.a.txt.windrow-old": "a file or folder of Windrow itself",
}
OUTSIDE = ("../x", "/etc/passwd", "/etc", "out/x", "out/deep/er/x")


@pytest.mark.parametrize("path", [*RESERVED])
@pytest.mark.parametrize(
    "key", ["outputs: {}", "outputs: {{{}: 3MB}}", "outside: true\n    outputs: [ok, {}]"]
)
def test_what_windrow_needs_is_no_output(project: Path, key: str, path: str) -> None:
    with pytest.raises(
        InputError, match=rf"w.yaml:[45]: a writes .*, which is {RESERVED[path]}.*; give it another"
    ):
        read_native(_write(project, key.format(path)))


@pytest.mark.parametrize("path", ["w.yaml", ".windrow/x", "../x", "windrow.toml"])
def test_nor_is_it_what_a_task_extracts(project: Path, path: str) -> None:
    file = project / "w.yaml"
    file.write_text(
        "volumes: {v: {scratch: 1MB}}\ntasks:\n"
        f"  - id: a\n    command: echo 1 > /data/x\n    mounts: {{/data: v}}\n    extract: "
        f"{{/data/x: {path}}}\n"
    )
    with pytest.raises(
        InputError, match=r"w.yaml:6: a writes .*; (give it another|keep it in there)"
    ):
        read_native(file)


@pytest.mark.parametrize("path", OUTSIDE)
def test_outside_is_only_what_says_so(project: Path, path: str) -> None:
    with pytest.raises(InputError, match=r"w.yaml:4: a writes .* outside of .*outside: true"):
        read_native(_write(project, f"outputs: {path}"))
    found = read_native(_write(project, f"outputs: {path}\n    outside: true"))
    assert len(found.workflow.files) == 1


def test_a_link_in_the_folder_that_stays_in_it_is_fine(project: Path) -> None:
    (project / "real").mkdir()
    (project / "link").symlink_to("real")
    read_native(_write(project, "outputs: [link/x, real/y, new/z, .hidden/file]"))


def test_a_project_may_be_reached_through_a_link_and_be_called_like_something_of_ours(
    tmp_path: Path,
) -> None:
    (tmp_path / ".windrow-old/project").mkdir(parents=True)
    (tmp_path / "way").symlink_to(".windrow-old/project")
    read_native(_write(tmp_path / "way", "outputs: sub/x"))
    read_native(_write(tmp_path / ".windrow-old/project", "outputs: sub/x"))


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        ("w.yaml", "the workflow file"),
        ("*.yaml", "the workflow file"),
        ("w*", "the workflow file"),
        ("*.toml", "the settings"),
        (".windrow/*", "files of Windrow"),
        (".w*/x", "files of Windrow"),
        (".windrow-x/*", "files of Windrow"),
    ],
)
def test_no_checkpoint_may_be_what_windrow_needs(project: Path, pattern: str, what: str) -> None:
    with pytest.raises(InputError, match=rf"w.yaml:4: the checkpoint files .* of a may be {what}"):
        read_native(_write(project, f'checkpoint: {{files: "{pattern}"}}'))


def test_tasks_that_join_a_run_are_held_to_the_same(project: Path) -> None:
    run = read_native(_write(project, "outputs: o"))
    more = project / "more.yaml"
    more.write_text("tasks:\n  - id: b\n    command: x\n    outputs: more.yaml\n")
    with pytest.raises(
        InputError, match=r"more.yaml:4: b writes more.yaml, which is the workflow file itself"
    ):
        read_addition(more, run)
    more.write_text(
        "tasks:\n  - id: b\n    command: x\n    outputs: "
        f"{os.path.relpath('/etc/passwd', project)}\n"
    )
    with pytest.raises(InputError, match=r"more.yaml:4: b writes .*outside: true"):
        read_addition(more, run)


@pytest.mark.parametrize("where", ["runs-of-anna", "deep/runs-of-anna"])
def test_another_folder_for_runs_is_as_untouchable(
    project: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDROW_DIR", str(project / where))
    for path in (where, f"{where}/x", where.partition("/")[0]):
        with pytest.raises(InputError, match=r"a writes .*, which is the folder for runs"):
            read_native(_write(project, f"outputs: {path}"))
        with pytest.raises(InputError, match=r"the checkpoint files .* may be files of Windrow"):
            read_native(_write(project, f'checkpoint: {{files: "{path}"}}'))
    with pytest.raises(InputError, match=r"the checkpoint files .* may be files of Windrow"):
        read_native(_write(project, f'checkpoint: {{files: "{"*/" * where.count("/")}r*/x"}}'))
    read_native(_write(project, "outputs: runs-of-bert"))


@pytest.mark.parametrize("path", ["w.json", "../x", ".windrow/x"])
def test_files_of_other_formats_are_held_to_the_same(project: Path, path: str) -> None:
    tasks = [{"id": "a", "name": "a", "parents": [], "children": [], "outputFiles": ["o"]}]
    files = [{"id": "o", "sizeInBytes": 1}]
    runs = [{"id": "a", "command": {"program": "true", "arguments": []}, "runtimeInSeconds": 1}]
    whole = {
        "name": "w",
        "schemaVersion": "1.5",
        "workflow": {
            "specification": {"tasks": tasks, "files": files},
            "execution": {"makespanInSeconds": 1, "executedAt": "x", "tasks": runs},
        },
    }
    file = project / "w.json"
    file.write_text(json.dumps(whole))
    read_runnable(file)
    file.write_text(json.dumps(whole).replace('"o"', json.dumps(path)))
    with pytest.raises(InputError, match=f"a writes {path}, which is "):
        read_runnable(file)
