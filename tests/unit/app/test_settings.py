"""`windrow.toml`: where it is found, and what is wrong with it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from windrow.app.queues import open_queue
from windrow.app.settings import LocalTable, find_settings, read_once, read_settings, settings_of
from windrow.cli.main import main
from windrow.errors import InputError, UserError
from windrow.formats.tables import Seconds
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
    assert read_settings(path).tables == {"big": LocalTable(kind="local", nodes=3)}
    assert open_queue("big").limits().nodes == 3


def test_sites_that_are_alike_have_queues_of_their_own(tmp_path: Path) -> None:
    write(
        tmp_path,
        "".join(f'[sites.{name}]\nqueue = "local"\nnodes = 3\n' for name in ("east", "west")),
    )
    east, west = (open_queue(name) for name in ("east", "west"))
    assert isinstance(east, LocalQueue)
    assert isinstance(west, LocalQueue)
    assert east.folder != west.folder


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("queues = 3", "queues are tables"),
        ("[other]", "unknown table 'other'; known: queues, sites, data"),
        ("[site.x]", "did you mean sites"),
        ("[queues.local]\nnodes", "not TOML"),
        ("[queues.local]\nnodes = 'two'", r"\[queues.local\] nodes must be a whole number"),
        ("[queues.local]\nnode = 2", "did you mean nodes"),
        ("[queues.local]\nsped = 2", "did you mean speed"),
        ("[sites.local]\nqueue = 'slrm'", "unknown queue 'slrm'; did you mean slurm"),
        (
            "[queues.local]\nnodes = 1\ncores = 99999999999999999999",
            "a node has 1 to 1,000,000 cores",
        ),
        ("[queues.local]\nnodes = 99999999999999999999", "a queue has 1 to 10,000,000 nodes"),
        ("[queues.local]\nmemory = '4 bags'", "is not a size"),
        ("[sites.local]\nspeed = 0", r"\[sites.local\] speed must be a number above 0, not 0"),
        ("[sites.local]\nprice = -1", "price must be a number of at least 0"),
        ("[sites.local]\nmax_node_hours = nan", "max_node_hours must be a number"),
        *(
            (
                f"[sites.local]\nmax_preemptions = {value}",
                "max_preemptions must be a whole number of at least 1",
            )
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
        (
            "[sites.here]",
            "'here' is what shares_files_with calls the folder from which a run is started",
        ),
        ("[queues.'a,b']", "'a,b' has a comma"),
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
    settings = read_settings(path)
    assert settings.of("west").kind == "slurm"
    assert [settings.files_of(name) for name in settings.tables] == ["west", "west", "", ""]
    assert settings.of("west").speed == 2.0
    assert settings.of("other").speed == 1.0


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (
            "[data]\nlimmit = 5",
            2,
            r"\[data\] unknown key 'limmit'; did you mean limit\? known: limit, folder, scratch, "
            "keep, share, late",
        ),
        ("[data]\nlimit = 5", 2, r"limit must be text in quotes: a size such as \"2TB\", not 5"),
        ("[data]\nlimit = '2 bags'", 2, "limit: '2 bags' is not a size"),
        ("[data]\n\nkeep = '*.bam'", 3, r"keep must be a list of patterns .*, not '\*.bam'"),
        ("[data]\nkeep = [1]", 2, r"keep must be a list of patterns .*, not \[1\]"),
        ("[data]\nshare = 3", 2, 'share must be "peer", "sbcast" or "copy", not 3'),
        (
            "[data]\nscratch = '/tmp'\nshare = 'torrent'",
            3,
            'share must be "peer", "sbcast" or "copy", not \'torrent\'',
        ),
        ("[data]\nshare = 'peer'", 2, "share needs scratch"),
        ("[data]\nlate = true", 2, "late must be text in quotes: a duration"),
        ("[data]\nlate = 'soon'", 2, "late: 'soon' is not a duration"),
        ("data = 3", 1, "data is a table; write"),
        ("[queues.far]\nkind = 'slurm'\npartion = 'x'", 3, "did you mean partition"),
        ("[queues.far]\nkind = 'slurm'\npartition = 3", 3, "partition must be text in quotes"),
        ("[queues.far]\nkind = 'slurm'\nextra = '--x'", 3, "extra must be a list of options"),
        ("[queues.far]\nkind = 'pbs'\nqeue = 'x'", 3, "did you mean queue"),
        ("[queues.far]\nkind = 'pbs'\naccount = 3", 3, "account must be text in quotes"),
        ("[sites.far]\nqueue = 'pbs'\nkeep = []", 3, r"\[sites.far\] unknown key 'keep'"),
        ("[sites.far]\nqueue = 'slrm'", 2, "did you mean slurm"),
        ("[sites.'f.r']\nqueue = 'local'\nnodes = 1.5", 3, "nodes must be a whole number, not 1.5"),
        ("[sites]\nfar = {queue = 'local', nods = 1}", None, "did you mean nodes"),
    ],
)
def test_a_mistake_anywhere_is_one_message_with_file_and_line(
    tmp_path: Path, text: str, line: int | None, words: str
) -> None:
    path = write(tmp_path, f"{text}\n")
    with pytest.raises(InputError, match=words) as caught:
        open_queue("local")
    assert Path(caught.value.file) == path
    assert caught.value.line == line


def test_how_late_files_may_be_seen(tmp_path: Path) -> None:
    assert read_settings(None).data.late is None
    assert read_settings(write(tmp_path, '[data]\nlimit = "2TB"\n')).data.late is None
    assert read_settings(write(tmp_path, '[data]\nlate = "2m"\n')).data.late == Seconds(120)


def test_a_misspelled_key_stops_a_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, "[data]\nlimmit = 5\n")
    (tmp_path / "w.yaml").write_text("tasks:\n  - id: a\n    command: 'true'\n")
    for command in ("run -n w.yaml", "run w.yaml", "sites", "plan w.yaml --on local"):
        assert main(command.split()) == 2
        err = capsys.readouterr().err
        assert f"{tmp_path}/windrow.toml:2: [data] unknown key 'limmit'; did you mean limit?" in err
        assert len(err.splitlines()) <= 3


def test_settings_are_read_once_in_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "windrow.toml"
    file.write_text('[sites.a]\nqueue = "local"\nspeed = 2.0\n')
    with read_once():
        first = settings_of()
        file.write_text('[sites.a]\nqueue = "local"\nspeed = 3.0\n')
        assert settings_of() is first
        assert settings_of(tmp_path) is first
        with read_once():
            assert settings_of() is first
        assert settings_of() is first
    assert settings_of().of("a").speed == 3.0
