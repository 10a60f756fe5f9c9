"""Databases: what cannot be used is named, with what to do about it; a user's files are where they
always were."""

from __future__ import annotations

import multiprocessing
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from windrow.errors import OutsideError, UserError
from windrow.places import NoHome, user_folder
from windrow.queues.port import QueueError
from windrow.records import database
from windrow.records.database import Database, is_broken


def test_a_transaction_is_all_or_nothing(tmp_path: Path) -> None:
    file = Database(tmp_path / "d.sqlite", "the store")
    with file.visit(writes=True) as db:
        db.execute("CREATE TABLE t (x)")
    with (
        pytest.raises(OutsideError, match="the store cannot be used"),
        file.visit(writes=True) as db,
    ):
        db.executemany("INSERT INTO t VALUES (?)", [(1,), (object(),)])
    with file.visit() as db:
        assert db.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_visits_of_a_thread_share_a_connection_while_nobody_else_writes(tmp_path: Path) -> None:
    file = Database(tmp_path / "d.sqlite", "the store")
    with file.visit(writes=True) as first:
        first.execute("CREATE TABLE t (x)")
    with file.visit() as again, Database(file.path, "the store").visit() as inner:
        assert again is first
        assert inner is not first, "it is in use"
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(_is_visited_by, file, again).result() is False
    with closing(sqlite3.connect(file.path)) as other, other:
        other.execute("INSERT INTO t VALUES (1)")
    with file.visit() as db:
        assert db is not first
        assert db.execute("SELECT count(*) FROM t").fetchone() == (1,)
    with multiprocessing.get_context("fork").Pool(1) as forked:
        assert forked.apply(_count, (file.path,)) == 1
    with file.visit() as db:
        assert db.execute("SELECT count(*) FROM t").fetchone() == (1,)
    file.path.unlink()
    with file.visit() as db:
        assert db.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)


def _is_visited_by(file: Database, known: sqlite3.Connection) -> bool:
    with file.visit() as db:
        return db is known


def _count(path: Path) -> int:
    with Database(path, "the store").visit() as db:
        return int(db.execute("SELECT count(*) FROM t").fetchone()[0])


def test_what_is_wrong_is_said_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "d.sqlite"
    file = Database(path, "the store", "move it away", QueueError)
    with pytest.raises(
        QueueError, match=r"d\.sqlite: the store cannot be used: .*; check the permissions"
    ):
        file.connect("mode=ro").execute("SELECT 1")
    path.write_bytes(b"not a database, but long enough to be looked at" * 100)
    with (
        pytest.raises(QueueError, match="not a database; move it away") as raised,
        file.visit() as db,
    ):
        db.execute("SELECT * FROM sqlite_master")
    assert is_broken(raised.value.__cause__)
    path.unlink()
    monkeypatch.setattr(database, "PATIENCE_S", 0.01)
    with closing(file.connect()) as other:
        other.execute("BEGIN IMMEDIATE")
        with (
            pytest.raises(QueueError, match="locked; another process is using it; try again"),
            file.visit(writes=True),
        ):
            pass
    with (
        pytest.raises(sqlite3.IntegrityError),
        file.explained(),
    ):  # what was asked for cannot be: the caller's to tell
        raise sqlite3.IntegrityError


def test_tables_of_others_are_left_alone(tmp_path: Path) -> None:
    file = Database(tmp_path / "d.sqlite", "the store")
    with file.visit(writes=True) as db:
        assert file.is_new(db, 1, "")
        db.execute("CREATE TABLE mine (x)")
    with (
        pytest.raises(UserError, match=r"d\.sqlite: a database of another program .*; do this"),
        file.visit() as db,
    ):
        file.is_new(db, 1, "do this")
    with file.visit(writes=True) as db:
        db.execute("PRAGMA user_version = 1")
        assert not file.is_new(db, 1, "")


def test_a_folder_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutsideError, match=r"file/d\.sqlite: cannot be created: .*; set X"):
        Database(tmp_path / "file" / "d.sqlite", "the store").make_folder("set X")


@pytest.mark.parametrize(
    ("kind", "home"),
    [
        ("cache", ".cache"),
        ("config", ".config"),
        ("data", ".local/share"),
        ("state", ".local/state"),
    ],
)
def test_user_folders(kind: str, home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    variable = f"XDG_{kind.upper()}_HOME"
    assert (
        user_folder(kind, {})
        == user_folder(kind, {variable: ""})
        == Path("/home/me", home, "windrow")
    )
    assert user_folder(kind, {variable: "/elsewhere"}) == Path("/elsewhere/windrow")
    assert user_folder(kind, {variable: "not/whole"}) == Path("/home/me", home, "windrow")


def test_a_user_without_a_home_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError

    monkeypatch.setattr(Path, "home", nowhere)
    with pytest.raises(NoHome, match="set HOME or XDG_DATA_HOME"):
        user_folder("data", {})
