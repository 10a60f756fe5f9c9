"""`windrow.toml`: where it is found, and what is wrong with it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from windrow.app.queues import open_queue
from windrow.app.settings import data_table, find_settings, read_settings, site_fields
from windrow.errors import InputError, UserError
from windrow.queues.local.queue import LocalQueue


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.chdir(tmp_path)


def write(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "windrow.toml").write_text(text)
    return folder / "windrow.toml"


def test_the_nearest_file_counts(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert find_settings(inner) is None
    home = write(tmp_path / "XDG_CONFIG_HOME" / "windrow", "")
    assert find_settings(inner) == home
    outer = write(tmp_path / "a", "")
    assert find_settings(inner) == outer


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    outer = write(tmp_path / "a", '[queues.slurm]\nextra = ["--export=ALL,LD_PRELOAD=e.so"]\n')
    (tmp_path / "a" / "b").mkdir()
    os.chown(outer, 65534, -1)
    with pytest.raises(UserError, match=r"a/windrow.toml belongs to nobody, not to you"):
        find_settings(tmp_path / "a" / "b")


def test_tables_by_name(tmp_path: Path) -> None:
    path = write(tmp_path, '[queues.big]\nkind = "local"\nnodes = 3\n')
    assert read_settings(path) == {"big": {"kind": "local", "nodes": 3}}
    assert open_queue("big").limits().nodes == 3


def test_sites_that_are_alike_have_queues_of_their_own(tmp_path: Path) -> None:
    write(tmp_path, "".join(f'[sites.{name}]\nqueue = "local"\nnodes = 3\n' for name in ("east", "west")))
    east, west = (open_queue(name) for name in ("east", "west"))
    assert isinstance(east, LocalQueue)
    assert isinstance(west, LocalQueue)
    assert east.folder != west.folder


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("queues = 3", "queues are tables"),
        ("[other]", r"unknown table \[other\]"),
        ("[queues.local]\nnodes", "not TOML"),
        ("[queues.local]\nnodes = 'two'", r"\[queues.local\] nodes must be a whole number"),
        ("[queues.local]\nnode = 2", "did you mean nodes"),
        ("[queues.local]\nsped = 2", "did you mean speed"),
        ("[sites.local]\nqueue = 'slrm'", "unknown queue 'slrm'; did you mean slurm"),
        ("[queues.local]\nnodes = 1\ncores = 99999999999999999999", "a node has 1 to 1,000,000 cores"),
        ("[queues.local]\nnodes = 99999999999999999999", "a queue has 1 to 10,000,000 nodes"),
        ("[queues.local]\nmemory = '4 bags'", "is not a size"),
        ("[sites.local]\nspeed = 0", r"\[sites.local\] speed must be a number above 0, not 0"),
        ("[sites.local]\nprice = -1", "price must be a number of at least 0"),
        ("[sites.local]\nmax_node_hours = nan", "max_node_hours must be a number"),
        *(
            (f"[sites.local]\nmax_preemptions = {value}", "max_preemptions must be a whole number of at least 1")
            for value in ("-1", "0", "1.5", "true")
        ),
        ('[sites.local]\npreempted_every = "often"', "'often' is not a duration"),
        ('[sites.local]\npreempted_every = "0s"', "preempted_every must be above 0"),
        ("[sites.local]\npreempted_every = 7200", "preempted_every must be text in quotes"),
        ("[sites.local]\nfolder = '/scratch'", "folder is for a site with a host"),
        ("[sites.local]\nshares_files_with = ['her']", "did you mean here"),
        ("[sites.local]\nshares_files_with = 3", "must be a list"),
        ("[sites.local]\n[queues.local]", "'local' is described twice"),
        ("[sites.local]\nattributes = {gpu = [1]}", "attributes must be a table such as"),
        ("[sites.here]", "'here' is not a name for a site"),
    ],
)
def test_mistakes_name_the_file(tmp_path: Path, text: str, words: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(InputError, match=words) as caught:
        open_queue("local")
    assert Path(caught.value.file) == path


def test_an_unknown_queue_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    write(tmp_path, '[queues.night]\nkind = "local"\n')
    with pytest.raises(UserError, match="local, slurm, pbs, night"):
        open_queue("day")


def test_sites_that_share_files(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
        [sites.west]
        queue = "slurm"
        host = "login.west"
        folder = "/scratch/me"
        speed = 2
        [sites.coast]
        queue = "slurm"
        host = "login.coast"
        shares_files_with = ["west"]
        [queues.near]
        kind = "local"
        [sites.mounted]
        queue = "slurm"
        host = "login.mounted"
        shares_files_with = ["near"]
        """,
    )
    tables = read_settings(path)
    assert tables["west"]["kind"] == "slurm"
    assert [site_fields(name, tables).get("files", "") for name in tables] == ["west", "west", "", ""]
    assert site_fields("west", tables)["speed"] == 2.0
    assert site_fields("other", tables) == {}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('scratch = "/tmp"\nshare = "torrent"', "share of .data. is 'torrent'"),
        ('share = "peer"', "share of .data. needs scratch"),
        ("share = 3", "takes limit, folder, scratch, keep and share"),
    ],
)
def test_a_bad_way_to_share_is_refused(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        data_table(write(tmp_path, f"[data]\n{text}\n"))
    assert data_table(write(tmp_path, '[data]\nshare = "copy"\n')) == {"share": "copy"}
