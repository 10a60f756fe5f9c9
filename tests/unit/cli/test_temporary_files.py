"""Temporary files go when nothing needs them: those that a task of the run made, and no others."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from windrow.cli.main import main

pytestmark = pytest.mark.slow


@pytest.fixture
def here(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (home / "p").mkdir()
    monkeypatch.chdir(home / "p")
    return home / "p"


def write(*tasks: str) -> None:
    head = "name: t\ndefaults: {keep: false, runtime: 1s}\ntasks:\n"
    Path("w.yaml").write_text(head + "".join(f"  - {{{task}}}\n" for task in tasks))


def test_what_took_the_place_of_a_temporary_file_stays(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(
        "id: a, command: 'echo a > {outputs}', outputs: a.x",
        "id: b, command: 'cp a.x b; rm a.x; echo mine > a.x', inputs: a.x, outputs: b, keep: true",
    )
    assert main(["run", "w.yaml"]) == 0
    assert (here / "a.x").read_text() == "mine\n"
    stays = f"warning: {here}/a.x is no longer needed, but was changed since its task made it"
    assert stays in capsys.readouterr().out
    assert main(["status"]) == 0
    assert stays in capsys.readouterr().out


def test_files_of_others_in_a_temporary_folder_stay(here: Path) -> None:
    command = "cat d/x > b; echo mine > d/mine; mkdir d/deep; echo mine > d/deep/mine"
    write(
        "id: a, command: 'mkdir d; echo a > d/x', outputs: d",
        f"id: b, command: '{command}', inputs: d, outputs: b, keep: true",
    )
    assert main(["run", "w.yaml"]) == 0
    left = sorted(str(path.relative_to(here)) for path in (here / "d").rglob("*"))
    assert left == ["d/deep", "d/deep/mine", "d/mine"]


def test_what_has_the_name_of_a_deleted_file_stays_when_the_run_continues(here: Path) -> None:
    write(
        "id: a, command: 'echo a > {outputs}', outputs: a.x",
        "id: b, command: 'cat a.x > b', inputs: a.x, outputs: b, keep: true",
        "id: c, command: 'test -e go', inputs: b",
    )
    assert main(["run", "w.yaml"]) == 1
    assert not (here / "a.x").exists()
    (here / "a.x").write_text("mine\n")
    (here / "go").touch()
    assert main(["resume"]) == 0
    assert (here / "a.x").read_text() == "mine\n"


def test_a_file_may_become_temporary_when_it_has_been_made(here: Path) -> None:
    lasting = "id: a, command: 'echo a > {outputs}', outputs: a.x, keep: true"
    reader = "id: b, command: 'cat a.x > b', inputs: a.x, outputs: b, keep: true"
    write(lasting, reader)
    assert main(["run", "w.yaml"]) == 0
    assert (here / "a.x").exists()
    write(lasting.replace("true", "false"), reader)
    assert main(["resume"]) == 0
    assert not (here / "a.x").exists()


def test_what_was_there_before_a_temporary_file_is_kept(here: Path) -> None:
    (here / "a.x").write_text("mine\n")
    write(
        "id: a, command: 'echo a > {outputs}', outputs: a.x",
        "id: b, command: 'cat a.x > b', inputs: a.x, outputs: b, keep: true",
    )
    for again in ([], ["--again"]):
        assert main(["run", "w.yaml", *again]) == 0
        assert not (here / "a.x").exists()
        assert (here / "a.x.before-1").read_text() == "mine\n"
        assert not (here / "a.x.before-2").exists()


def test_a_run_says_beforehand_what_is_kept_beside_its_outputs(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also outputs of earlier runs, if the records of these are gone."""
    write("id: a, command: 'echo a > {outputs}', outputs: a.x")
    run = ["run", "w.yaml", "--again"]
    for _ in range(2):
        assert main(run) == 0
        assert "before-1" not in capsys.readouterr().err
    shutil.rmtree(here / ".windrow")
    assert main(run) == 0
    told = "1 file in the place of outputs will be kept as NAME.before-1, since no run in "
    assert told in (words := capsys.readouterr().err)
    assert words.splitlines()[0].endswith(": a.x")
    assert sorted(path.name for path in here.glob("a.x*")) == ["a.x", "a.x.before-1"]
    assert main(run) == 0
    assert "before-1" not in capsys.readouterr().err


def test_a_run_says_what_earlier_outputs_take_beside_its_limit(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write("id: a, command: 'head -c 9000 /dev/zero > {outputs}', outputs: {a.x: 9kB}")
    run = ["run", "w.yaml", "--again", "--space", "10kB"]
    assert main(run) == 0
    assert "earlier outputs" not in capsys.readouterr().err
    assert main(run) == 0
    assert "earlier outputs take 9 kB beside the limit of 10 kB" in capsys.readouterr().err
