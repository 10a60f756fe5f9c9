"""Where runs are kept, and finding them again."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from windrow.app.runs import all_runs, find_run, new_run, past_predictions, past_promises
from windrow.errors import UserError
from windrow.manager.journal import Journal


def make(name: str, root: Path, created_s: float) -> None:
    Journal.create(new_run(name, root).journal, {"created_s": created_s}).close()


def test_runs_are_numbered_and_private(tmp_path: Path) -> None:
    root = tmp_path / ".windrow" / "runs"
    names = [new_run("a b/c", root).name for _ in range(3)]
    assert names == ["a-b-c-1", "a-b-c-2", "a-b-c-3"]
    for path in (root.parent, root / names[0]):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_the_latest_run_is_meant_where_none_is_named(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    with pytest.raises(UserError, match="windrow run WORKFLOW starts one"):
        find_run(None, root)
    make("old", root, 1.0)
    make("new", root, 3.0)
    make("middle", root, 2.0)
    assert find_run(None, root).name == "new-1"
    assert find_run("old-1", root).name == "old-1"
    assert find_run(str(root / "middle-1"), root).name == "middle-1"
    assert {run.name for run in all_runs(root)} == {"old-1", "new-1", "middle-1"}
    with pytest.raises(UserError, match="did you mean old-1"):
        find_run("old", root)


def test_a_damaged_run_hides_no_other(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    make("good", root, 1.0)
    make("bad", root, 2.0)
    (root / "bad-1" / find_run("bad-1", root).journal.name).write_bytes(b"not a journal at all" * 100)
    assert find_run(None, root).name == "good-1"
    assert find_run("bad-1", root).name == "bad-1"
    assert past_predictions(root) == []
    assert past_promises(root) == []
