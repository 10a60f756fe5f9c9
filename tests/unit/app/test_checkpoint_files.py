"""Checkpoint patterns and the files of the user, with real runs on this machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from windrow.cli.main import main

pytestmark = pytest.mark.slow


Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """`windrow run` in the project, and what it says."""
    monkeypatch.chdir(project)
    monkeypatch.setenv("XDG_DATA_HOME", str(project.parent / "data"))

    def told(*more: str) -> tuple[int, str]:
        code = main(["run", "w.yaml", *more])
        said = capfd.readouterr()
        return code, said.out + said.err

    return told


def _tree(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if not {".windrow", "data"} & {*path.parts})
    return {
        str(path.relative_to(folder)): path.read_text() if path.is_file() else "" for path in files
    }


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Files of a user: in the folder, below it, and behind a link."""
    (tmp_path / "real").mkdir()
    (tmp_path / "real/thesis.txt").write_text("thesis")
    (tmp_path / "p/sub").mkdir(parents=True)
    (tmp_path / "p/l").symlink_to("../real")
    (tmp_path / "p/mydata.dat").write_text("a")
    (tmp_path / "p/sub/x.dat").write_text("c")
    return tmp_path / "p"


def _write(project: Path, pattern: str, command: str = "true", more: str = "") -> None:
    (project / "w.yaml").write_text(
        f"name: c\ntasks:\n  - id: a\n    command: |\n      {command}\n"
        f'    checkpoint: {{files: "{pattern}"{more}}}\n    runtime: 1s\n'
    )


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        (
            "*.dat",
            "w.yaml: the checkpoint files of a would be mixed with files that no run made: "
            "mydata.dat; move them",
        ),
        ("sub/*", "no run made: sub/x.dat"),
        ("s*", "no run made: sub/x.dat"),
        ("l/*", "are behind the link l"),
        ("l", "no run made: l;"),
        ("w.yaml", "w.yaml:6: the checkpoint files w.yaml of a may be the workflow file"),
        (".windrow/*", "may be files of Windrow itself"),
    ],
)
def test_files_of_the_user_are_refused_by_name(
    project: Path, run: Run, pattern: str, says: str
) -> None:
    _write(project, pattern)
    before = _tree(project.parent)
    for option in ((), ("-n",)):
        code, said = run(*option)
        assert (code, says in said) == (2, True), said
    assert _tree(project.parent) == before


def test_what_a_run_left_is_deleted_by_the_next_and_what_was_put_there_since_is_refused(
    project: Path,
    run: Run,
) -> None:
    _write(project, "*.chk", "echo state > one.chk; exit 3")
    assert run()[0] == 1
    assert (project / "one.chk").read_text() == "state\n"
    (project / "two.chk").write_text("of the user")
    code, said = run("--again")
    assert (code, "no run made: two.chk;" in said) == (2, True), said
    (project / "two.chk").rename(project / "two")
    (project / "one.chk").write_text("state, edited")
    assert run("--again")[0] == 2
    (project / "one.chk").unlink()
    assert run("--again")[0] == 1
    _write(project, "*.chk", "test ! -e one.chk; echo state > new.chk")
    assert run("--again")[0] == 0
    assert sorted(path.name for path in project.glob("*.chk")) == []
    assert (project / "two").read_text() == "of the user"


def test_a_task_may_start_from_what_is_there_and_leaves_it(project: Path, run: Run) -> None:
    _write(
        project,
        "*.dat",
        "cat mydata.dat > next.dat; ln mydata.dat hard.dat",
        ", keep_existing: true",
    )
    before = _tree(project.parent)
    assert run()[0] == 0
    assert _tree(project.parent) == before | {
        "p/hard.dat": "a"
    }  # another name of a file of the user


def test_what_the_user_adds_while_the_task_runs_through_a_link_stays(
    project: Path, run: Run
) -> None:
    """A program may make links in its folder: they go, and what they lead to stays."""
    _write(
        project,
        "state*",
        "mkdir state; ln -s ../../real state/out; ln -s ../real state2; echo 1 > state/file",
    )
    assert run()[0] == 0
    assert not list(project.glob("state*"))
    assert (project.parent / "real/thesis.txt").read_text() == "thesis"
