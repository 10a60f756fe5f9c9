"""What the one module that deletes will delete, and what it leaves."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from windrow.agent.launchers import Launchers
from windrow.deletion import (
    Stamp,
    discard,
    discard_made,
    discard_tree,
    discard_unfinished,
    move,
    stamp_at,
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder of a user, with a link to it beside."""
    (tmp_path / "home/deep").mkdir(parents=True)
    (tmp_path / "home/thesis").write_text("thesis")
    (tmp_path / "home/deep/data").write_text("data")
    return tmp_path / "home"


def _whole(home: Path) -> bool:
    return (home / "thesis").read_text() == "thesis" and (home / "deep/data").read_text() == "data"


def test_a_tree_without_a_proof_is_not_deleted(home: Path) -> None:
    for proof in ({}, {"mark": "journal.sqlite"}, {"made": Stamp(1, -1, 0)}):
        with pytest.raises(ValueError, match="not a folder of Windrow's own"):
            discard_tree(home, **proof)
    assert _whole(home)


@pytest.mark.parametrize(
    "name", [".windrow-a.1", "windrow-0123456789ab-3-0", ".a.windrow-old", ".new-01234567"]
)
def test_links_in_a_tree_of_our_own_go_and_what_they_lead_to_stays(home: Path, name: str) -> None:
    own = home.parent / name
    (own / "sub").mkdir(parents=True)
    (own / "sub/link").symlink_to(home)
    (own / "other").symlink_to(home / "thesis")
    os.link(home / "thesis", own / "hard")
    (own / "sub").chmod(0o500)
    discard_tree(own)
    discard_tree(own)
    assert not own.exists()
    assert _whole(home)


def test_a_link_with_a_name_of_ours_goes_alone(home: Path) -> None:
    (home.parent / ".windrow-a.1").symlink_to(home)
    discard_tree(home.parent / ".windrow-a.1")
    assert not os.path.lexists(home.parent / ".windrow-a.1")
    assert _whole(home)


def test_folders_without_permission_go_too(tmp_path: Path) -> None:
    closed = tmp_path / ".windrow-a.1/closed/more"
    closed.mkdir(parents=True)
    (closed / "file").touch()
    closed.chmod(0)
    closed.parent.chmod(0o500)
    discard_tree(tmp_path / ".windrow-a.1")
    assert list(tmp_path.iterdir()) == []


def test_a_marked_folder_goes_unless_the_mark_is_only_behind_a_link(home: Path) -> None:
    run = home.parent / "run"
    run.mkdir()
    (run / "mark").touch()
    (home.parent / "link").symlink_to(run)
    with pytest.raises(ValueError, match="has no mark"):
        discard_tree(home.parent / "link", mark="mark")
    discard_tree(run, mark="mark")
    assert not run.exists()


def test_a_file_goes_only_as_it_was_recorded(home: Path) -> None:
    made = stamp_at(home / "thesis")
    assert made is not None
    (home / "new").write_text("thesis")
    (home / "new").rename(home / "thesis")
    assert not discard_made(home / "thesis", made)
    assert _whole(home)
    folder = stamp_at(home / "deep")
    assert folder is not None
    assert not discard_made(home / "deep", folder)
    assert _whole(home)
    now = stamp_at(home / "thesis")
    assert now is not None
    assert discard_made(home / "thesis", now)
    assert not discard_made(home / "thesis", now)


def test_nothing_is_taken_for_an_unfinished_output_where_nothing_was_set_aside(home: Path) -> None:
    with pytest.raises(ValueError, match="set aside"):
        discard_unfinished(home / "thesis", home / ".thesis.windrow-old")
    assert _whole(home)


def test_a_folder_is_no_file_and_a_move_replaces_nothing(home: Path) -> None:
    with pytest.raises((IsADirectoryError, PermissionError)):
        discard(home)
    with pytest.raises(FileExistsError):
        move(home / "thesis", home / "deep/data")
    assert _whole(home)


def test_what_launchers_make_on_a_node_may_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    Launchers({})._file("n1\n")
    (made,) = tmp_path.iterdir()
    discard_tree(made)
    assert not list(tmp_path.iterdir())
