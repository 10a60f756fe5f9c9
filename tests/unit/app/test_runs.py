"""Where runs are kept, and finding them again."""

from __future__ import annotations

import os
import stat
import time
from contextlib import closing
from pathlib import Path

import pytest

from windrow.app.ownership import refuse_foreign
from windrow.app.runs import (
    RunPaths,
    all_runs,
    find_own_run,
    find_run,
    new_run,
    past_predictions,
    past_promises,
)
from windrow.errors import OutsideError, UserError
from windrow.model import Runnable, Task, Workflow
from windrow.records.runnable_file import write_runnable
from windrow.story.journal import RunJournal


def made(name: str, root: Path, created_s: float = 1.0) -> RunPaths:
    """A run as a command leaves it before it submits anything."""

    def fill(paths: RunPaths) -> None:
        runnable = Runnable.of(
            Workflow.from_tasks(name, [Task("t", 1.0, command=("true",))]), str(root)
        )
        write_runnable(paths.workflow, runnable)
        RunJournal.create(paths.journal, {"created_s": created_s}).close()

    return new_run(name, root, fill)


@pytest.mark.parametrize(
    ("name", "run"), [("ü", "u-1"), ("Größe 7", "Grosse-7-1"), ("日本", "run-1"), ("a b", "a-b-1")]
)
def test_runs_are_named_after_their_workflow(name: str, run: str, tmp_path: Path) -> None:
    assert made(name, tmp_path / ".windrow" / "runs").name == run


def test_who_writes_a_journal_notices_that_it_is_gone(tmp_path: Path) -> None:
    paths = made("w", tmp_path / ".windrow" / "runs")
    with closing(RunJournal.open(paths.journal, writable=True)) as journal:
        journal.set_fact("space", 1)
        paths.journal.unlink()
        with pytest.raises(OutsideError, match="deleted or replaced"):
            journal.set_fact("space", 2)
        paths.journal.touch()
        with pytest.raises(OutsideError, match="deleted or replaced"):
            journal.set_fact("space", 2)


def test_runs_are_numbered_and_private(tmp_path: Path) -> None:
    root = tmp_path / ".windrow" / "runs"
    was = os.umask(0o002)
    try:
        runs = [made("a b/c", root) for _ in range(3)]
    finally:
        os.umask(was)
    assert [run.name for run in runs] == ["a-b-c-1", "a-b-c-2", "a-b-c-3"]
    for path in (root.parent, root, runs[0].folder.path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    for path in (runs[0].journal, runs[0].workflow):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_run_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    root = tmp_path / "runs"

    def die(paths: RunPaths) -> None:
        paths.workflow.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        new_run("w", root, die)
    assert list(root.iterdir()) == []
    made("w", root)
    (root / ".new-1234").mkdir()  # of one that was killed where it stood
    (root / "w-7").mkdir()  # of one that an older version made, killed before it had a journal
    assert [run.name for run in all_runs(root)] == ["w-1"]
    assert made("w", root).name == "w-8"
    assert find_run(None, root).name == "w-8"


def test_two_who_start_at_once_get_two_names(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    names: list[str] = []

    def other_first(paths: RunPaths) -> None:
        names.append(made("w", root).name)
        RunJournal.create(paths.journal, {"created_s": 2.0}).close()

    names.append(new_run("w", root, other_first).name)
    assert sorted(names) == ["w-1", "w-2"]


def test_long_names_are_cut(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    assert made("n" * 300, root).name == "n" * 100 + "-1"
    with pytest.raises(UserError, match="unknown run"):
        find_run("n" * 5000, root)
    with pytest.raises(UserError, match="unknown run"):
        find_run("n\0n", root)


def test_the_latest_run_is_meant_where_none_is_named(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    with pytest.raises(UserError, match="windrow run WORKFLOW starts one"):
        find_run(None, root)
    made("old", root, 1.0)
    made("new", root, 3.0)
    made("middle", root, 2.0)
    assert find_run(None, root).name == "new-1"
    assert find_run("old-1", root).name == "old-1"
    assert find_run(str(root / "middle-1"), root).name == "middle-1"
    assert {run.name for run in all_runs(root)} == {"old-1", "new-1", "middle-1"}
    with pytest.raises(UserError, match="did you mean old-1"):
        find_run("old", root)


@pytest.mark.parametrize("how", ["broken", "empty", "gone", "no workflow"])
def test_a_damaged_latest_run_is_an_error_not_the_one_before(how: str, tmp_path: Path) -> None:
    root = tmp_path / "runs"
    made("good", root, time.time() - 100)
    bad = made("bad", root, time.time())
    (bad.folder.path / "jobs").mkdir()
    if how == "gone":
        bad.journal.unlink()
    elif how == "no workflow":
        bad.workflow.unlink()
    else:
        bad.journal.write_bytes(b"not a journal at all" * 100 if how == "broken" else b"")
    with pytest.raises(
        UserError, match=r"the latest run, bad-1, cannot be read .* move .*bad-1 away"
    ) as caught:
        find_run(None, root)
    assert caught.value.exit_code == 2
    assert find_run("good-1", root).name == "good-1"
    assert find_run("bad-1", root).name == "bad-1"
    assert [run.name for run in all_runs(root)] == ["good-1", "bad-1"]
    assert past_predictions(root) == []
    assert past_promises(root) == []
    made("new", root, time.time() + 1)
    assert find_run(None, root).name == "new-1"  # it does not block what comes after it


def test_runs_are_found_from_a_folder_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made("w", tmp_path / ".windrow" / "runs")
    (tmp_path / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a" / "b")
    assert find_run(None).folder.path == tmp_path / ".windrow" / "runs" / "w-1"


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@as_root
def test_the_way_up_ends_where_another_owner_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made("w", tmp_path / ".windrow" / "runs")
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 65534, -1)
    monkeypatch.chdir(tmp_path / "theirs")
    with pytest.raises(UserError, match="no runs"):
        find_run(None)


@as_root
@pytest.mark.parametrize(
    "what", [".windrow", ".windrow/runs", "run", "journal.sqlite", "workflow.json"]
)
def test_what_others_own_is_read_but_not_executed(what: str, tmp_path: Path) -> None:
    root = tmp_path / ".windrow" / "runs"
    run = made("w", root)
    path = (
        tmp_path / what
        if what.startswith(".")
        else run.folder.path / ("" if what == "run" else what)
    )
    os.chown(path, 65534, -1)
    assert find_run(None, root).name == "w-1"
    with pytest.raises(UserError, match=r"belongs to nobody, not to you \(root\).*chown -R root"):
        find_own_run(None, root)
    if what.startswith("."):
        with pytest.raises(UserError, match="belongs to nobody"):
            made("w", root)


def test_what_others_may_write_is_not_executed(tmp_path: Path) -> None:
    root = tmp_path / ".windrow" / "runs"
    run = made("w", root)
    assert find_own_run(None, root).name == "w-1"
    for folder in (root.parent, root, run.folder.path):
        folder.chmod(0o770)
        with pytest.raises(UserError, match=r"can be written by other users.*chmod -R go-w"):
            find_own_run(None, root)
        folder.chmod(0o700)
    root.parent.chmod(0o777)
    with pytest.raises(UserError, match="can be written by other users"):
        made("w", root)


def test_a_link_to_what_others_own_is_theirs(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/proc/1" if os.geteuid() else tmp_path)
    if os.geteuid() == 0:
        os.chown(tmp_path, 65534, -1)
    with pytest.raises(UserError, match="belongs to"):
        refuse_foreign(tmp_path / "link")
    refuse_foreign(tmp_path / "nothing")
