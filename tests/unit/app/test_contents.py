"""Only what changed runs again: by content, wherever the project is, as a slow model says."""

from __future__ import annotations

import os
import random
import shutil
import time
from pathlib import Path

import pytest

import windrow
from windrow.app.continuing import continued_run, standing
from windrow.app.execute import drive, managed
from windrow.app.runs import RunView, latest_of
from windrow.errors import UserError
from windrow.records import contents

TASKS = ("a", "b", "c", "d")
READS = {"a": ("x",), "b": ("x", "y"), "c": ("z",), "d": ()}
AFTER = {"a": (), "b": ("a",), "c": (), "d": ("b", "c")}
WORKFLOW = "tasks:\n" + "".join(
    f'  - {{id: {task}, runtime: 1s, command: "cat {{inputs}} > {task}.out; echo {task} >> ran", '
    f"inputs: [{', '.join([*READS[task], *(f'{up}.out' for up in AFTER[task])])}], "
    f"outputs: {task}.out}}\n"
    for task in TASKS
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    project = tmp_path / "p"
    project.mkdir()
    monkeypatch.chdir(project)
    for name in "xyz":
        (project / name).write_text(f"{name}\n")
    (project / "w.yaml").write_text(WORKFLOW)
    return project


def latest(project: Path) -> RunView:
    told = latest_of(project / "w.yaml", project / ".windrow/runs")
    assert told is not None
    return told


def to_run(told: RunView) -> set[str]:
    """The tasks that would run now."""
    now = standing(told)
    assert now.changes is not None
    ids = now.changes.runnable.workflow.ids
    if now.is_same:
        return {ids[one.maker] for one in now.lost}
    kept = {ids[task] for task in now.changes.kept}
    return set(ids) - kept


def expected(read: dict[str, str], project: Path) -> set[str]:
    """The slow obvious model: a task runs again if a file that it reads holds something else than
    when it read it, or one of its parents runs again."""
    again = set[str]()
    for task in TASKS:
        is_new = any((project / name).read_text() != read[name] for name in READS[task])
        if is_new or again.intersection(AFTER[task]):
            again.add(task)
    return again


def edit(project: Path, chance: random.Random) -> Path:
    """One thing that people do to a project; where it is then."""
    file = project / chance.choice("xyz")
    match chance.randrange(7):
        case 0:
            file.touch()
        case 1:
            file.write_text(f"{chance.choice('uvw')}\n")
        case 2:  # as by unzip or git: another file with the same content
            text = file.read_text()
            file.unlink()
            file.write_text(text)
        case 3:
            os.utime(file, (time.time() + 1e5, time.time() + 1e5))
        case 4:
            os.utime(file, (1e9, 1e9))
        case 5:
            moved = project.with_name(f"{project.name}m")
            project.rename(moved)
            return moved
        case _:
            copied = project.with_name(f"{project.name}c")
            shutil.copytree(project, copied)
            shutil.rmtree(project)
            return copied
    return project


@pytest.mark.slow
def test_200_random_edits_rerun_what_the_obvious_model_says(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(30)
    project = here
    windrow.run("w.yaml", wait=True)
    read = {name: (project / name).read_text() for name in "xyz"}
    reruns = 0
    for _ in range(200):
        project = edit(project, chance)
        if len(project.name) > 40:
            project = project.rename(project.with_name("p"))
        monkeypatch.chdir(project)
        told = latest(project)
        again = expected(read, project)
        assert to_run(told) == again
        told.close()
        if (
            chance.random() < 0.05
        ):  # carried out for real, and again the files are as they were read
            told = latest(project)
            (project / "ran").unlink(missing_ok=True)
            is_same = standing(told).is_same
            told.close()
            if not is_same:
                with_changes(project)
            ran = (project / "ran").read_text().split() if (project / "ran").exists() else []
            assert sorted(ran) == sorted(again)
            read = {name: (project / name).read_text() for name in "xyz"}
            reruns += bool(ran)
    assert reruns >= 3


def with_changes(project: Path) -> None:
    """Continue the latest run by a new one, to its end."""
    told = latest(project)
    paths = continued_run(told, wait_s=60)
    told.close()
    with managed(paths) as manager:
        manager.begin()
        drive(manager)
        assert manager.core.is_complete


@pytest.mark.slow
def test_results_are_taken_as_they_are_if_the_user_accepts_them(here: Path) -> None:
    windrow.run("w.yaml", wait=True)
    (here / "w.yaml").write_text(WORKFLOW.replace("echo b", "echo B"))
    told = latest(here)
    assert to_run(told) == {"b", "d"}
    now = standing(told, ["b"])
    assert now.changes is not None
    assert len(now.changes.kept) == 4
    assert now.changes.accepted == [1]
    with pytest.raises(UserError, match="no task 'nosuch'"):
        standing(told, ["nosuch"])
    continued_run(told, wait_s=60, accept=["b"])
    told.close()
    told = latest(here)
    assert to_run(told) == set()
    told.close()


@pytest.mark.slow
def test_another_time_counts_as_a_change_if_the_content_was_not_recorded(here: Path) -> None:
    run = windrow.run("w.yaml", wait=True)
    (run.folder / "hashes.json").unlink()
    (here / "y").touch()
    told = latest(here)
    now = standing(told)
    told.close()
    assert now.changes is not None
    assert now.changes.again == {
        1: "its input y has another time, and its content was not recorded"
    }


def test_what_changed_between_start_and_end_is_not_recorded(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_text("as it was")
    seen = (file.stat().st_size, file.stat().st_mtime_ns)
    inputs, hashes = tmp_path / "inputs.json", tmp_path / "hashes.json"
    inputs.write_text(f'{{"{file}": [{seen[0]}, {seen[1]}]}}')
    contents.record_small(hashes, {str(file): seen})
    assert contents.hashes_at(hashes)[str(file)][:2] == seen
    recorder = contents.Recorder(inputs, hashes)
    recorder.hear([file])
    assert str(file) in contents.hashes_at(hashes)
    os.utime(file, (1e9, 1e9))
    recorder.hear([file])
    recorder.close(is_over=True)
    assert contents.hashes_at(hashes) == {}


def test_large_files_are_recorded_while_the_run_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"x" * (3 << 20))
    seen = (file.stat().st_size, file.stat().st_mtime_ns)
    inputs, hashes = tmp_path / "inputs.json", tmp_path / "hashes.json"
    inputs.write_text(f'{{"{file}": [{seen[0]}, {seen[1]}]}}')
    contents.record_small(hashes, {str(file): seen})
    assert contents.hashes_at(hashes) == {}
    contents.Recorder(inputs, hashes).close(is_over=True)
    assert contents.hashes_at(hashes)[str(file)][2] == contents.content_hash(str(file))
