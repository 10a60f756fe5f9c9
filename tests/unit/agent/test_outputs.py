"""Outputs of attempts: whole or not at all, whatever fails and wherever an agent dies. Drawn
stories, real files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from windrow import deletion
from windrow.agent import outputs as module
from windrow.agent.order import Order
from windrow.agent.outputs import Outputs, clean_up, shared

NAMES = ("a.txt", "deep/b.txt", "deep/c.dir", "it's odd.txt")
CHANGES = ("rename", "replace", "symlink", "unlink", "mkdir", "makedirs", "rmdir", "chmod")


class Crash(BaseException):
    """The agent is killed at this instant."""


@contextmanager
def dying_at(step: int | None) -> Iterator[None]:
    """Whatever changes a file is a step; die instead of this one. A folder that is being removed is
    left by halves."""
    left = [step]

    def step_or_die() -> None:
        if left[0] is not None:
            left[0] -= 1
            if left[0] < 0:
                raise Crash

    class Dying:
        def __getattr__(self, name: str) -> Any:
            if name in CHANGES:
                step_or_die()
            return getattr(os, name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "os", Dying())
        patch.setattr(deletion, "os", Dying())
        yield


def content(path: Path) -> str | None:
    """What is there: a file's text, or a folder's files with theirs."""
    if path.is_dir():
        return "dir:" + ",".join(f"{p.name}={p.read_text()}" for p in sorted(path.iterdir()))
    return path.read_text() if os.path.lexists(path) else None


def write(path: Path, text: str, *, is_folder: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if is_folder:
        path.mkdir(exist_ok=True)
        (path / "one").write_text(text)
        (path / "two").write_text(text)
    else:
        path.write_text(text)


def whole(text: str, *, is_folder: bool) -> str:
    return f"dir:one={text},two={text}" if is_folder else text


@dataclass(frozen=True)
class Act:
    """One attempt of a story."""

    elsewhere: bool
    succeeds: bool
    is_folder: bool  # whether c.dir is made as one
    leaves_more: bool
    dies_at: int | None


acts = st.builds(
    Act, st.booleans(), st.booleans(), st.booleans(), st.booleans(), st.none() | st.integers(0, 20)
)


def order_for(folder: Path, names: list[str], attempt: int, *, elsewhere: bool) -> Order:
    paths = tuple(str(folder / name) for name in names)
    places = [(1, path.rindex("/") + 1, i) for i, path in enumerate(paths)]
    marks = (
        tuple((number + 1, place, i) for number, (_, place, i) in enumerate(places))
        if elsewhere
        else ()
    )
    command = ("program", *paths)
    return Order(
        1, attempt, command, "/", {}, f"{folder}/runs/1/out/1.1", outputs=paths, elsewhere=marks
    )


def attempt(
    folder: Path, names: list[str], number: int, act: Act, may_be: dict[str, set[str | None]]
) -> None:
    """Act it out. `may_be` learns what may be at each path if it dies."""
    order = order_for(folder, names, number, elsewhere=act.elsewhere)
    outputs = Outputs(order)
    command = outputs.prepare()
    assert command[1:] == outputs.written
    assert all(Path(path).parent.is_dir() for path in outputs.written)
    text = f"attempt {number}" if act.succeeds else "half"
    for name, written in zip(names, outputs.written, strict=True):
        assert not os.path.lexists(written)
        assert Path(written).name == Path(name).name
        write(Path(written), text, is_folder=act.is_folder and name.endswith("dir"))
        if act.leaves_more:
            Path(f"{written}.index").write_text(text)
    if not act.succeeds:
        outputs.discard()
        return
    for name in names:
        may_be[name].add(whole(text, is_folder=act.is_folder and name.endswith("dir")))
    assert outputs.why_not_made(None) == ""
    outputs.keep()
    for name in names:
        may_be[name] = {whole(text, is_folder=act.is_folder and name.endswith("dir"))}
        assert not act.leaves_more or (folder / f"{name}.index").read_text() == text


@pytest.mark.slow
@examples(400)
@given(
    names=st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True),
    before=st.lists(st.sampled_from(("nothing", "file", "folder")), min_size=4, max_size=4),
    story=st.lists(acts, min_size=1, max_size=5),
    cleaning_dies_at=st.none() | st.integers(0, 6),
)
def test_a_path_holds_the_old_or_all_of_the_new(
    names: list[str], before: list[str], story: list[Act], cleaning_dies_at: int | None
) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        may_be: dict[str, set[str | None]] = {}
        for name, kind in zip(names, before, strict=False):
            if kind != "nothing":
                write(folder / name, "old", is_folder=kind == "folder")
            may_be[name] = {content(folder / name)}
        there = {name: was for name in names if (was := content(folder / name)) is not None}
        for number, act in enumerate(story, 1):
            try:
                with dying_at(act.dies_at):
                    attempt(folder, names, number, act, may_be)
            except Crash:
                continue
            for name in names:
                assert content(folder / name) in may_be[name]
                may_be[name] = {content(folder / name)}
        try:
            with dying_at(cleaning_dies_at):
                clean_up([str(folder / name) for name in names], len(story))
        except Crash:
            clean_up([str(folder / name) for name in names], len(story))
        for name in names:
            assert content(folder / name) in may_be[name]
        assert [p for p in folder.rglob("*") if "windrow" in p.name] == []
        for name, was in there.items():
            beside = (folder / name).parent.glob(f"{Path(name).name}.before-*")
            assert was in map(content, (folder / name, *beside)), "it was the user's"


def test_an_attempt_elsewhere_leaves_the_old_file_to_its_readers(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")
    outputs = Outputs(order_for(tmp_path, ["a.txt"], 3, elsewhere=True))
    outputs.prepare()
    assert outputs.written == (f"{tmp_path}/.windrow-a.txt.3/a.txt",)
    assert (tmp_path / "a.txt").read_text() == "old"


def test_names_that_mean_something_to_a_shell_are_not_put_into_a_command(tmp_path: Path) -> None:
    odd = "; touch canary #.txt"
    outputs = Outputs(order_for(tmp_path, [odd], 1, elsewhere=True))
    (_, path) = outputs.prepare()
    name = Path(path).parent.name
    assert name.startswith(".windrow-")
    assert name.removeprefix(".windrow-").removesuffix(".1").isalnum()
    assert Path(path).name == odd


def test_very_long_names_have_room(tmp_path: Path) -> None:
    name = "x" * 251 + ".txt"
    (tmp_path / name).write_text("old")
    for elsewhere in (True, False):
        outputs = Outputs(order_for(tmp_path, [name], 1, elsewhere=elsewhere))
        outputs.prepare()
        outputs.discard()
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_what_is_no_file_or_folder_or_holds_other_things_stays(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "in.txt").write_text("read")
    (tmp_path / "link").symlink_to("/dev/null")
    names = ["pipe.txt", "here", "link", "work", "many"]
    for name in ("work", "many"):
        (tmp_path / name).mkdir()
    paths = tuple(str(tmp_path / name) for name in names)
    inputs = (str(tmp_path / "here" / "in.txt"),)
    work = str(tmp_path / "work" / "deep")
    order = Order(
        1, 1, ("x",), work, {}, "/nowhere", inputs, paths, shared=(str(tmp_path / "many"),)
    )
    outputs = Outputs(order)
    assert outputs.prepare() == ("x",)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(names)
    assert outputs.why_not_made(None) == ""
    outputs.discard()
    assert (tmp_path / "here" / "in.txt").read_text() == "read"


def test_what_a_task_reads_and_writes_must_have_changed(tmp_path: Path) -> None:
    path = tmp_path / "state.txt"
    path.write_text("old")
    os.utime(path, (1e9, 1e9))
    order = Order(1, 1, ("x",), "/", {}, "/nowhere", (str(path),), (str(path),))
    outputs = Outputs(order)
    outputs.prepare()
    assert path.read_text() == "old"
    assert outputs.why_not_made(None) == f"its output {path}, which existed before, was not changed"
    path.write_text("new")
    assert outputs.why_not_made(None) == ""


def test_folders_in_which_nothing_can_be_removed_are(tmp_path: Path) -> None:
    outputs = Outputs(order_for(tmp_path, ["made"], 1, elsewhere=False))
    outputs.prepare()
    (tmp_path / "made" / "locked").mkdir(parents=True)
    (tmp_path / "made" / "locked" / "x").write_text("x")
    (tmp_path / "made" / "locked").chmod(0o500)
    outputs.discard()
    assert list(tmp_path.iterdir()) == []


def test_a_link_that_leads_nowhere_from_its_place_is_no_output(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")
    outputs = Outputs(order_for(tmp_path, ["a.txt"], 1, elsewhere=True))
    outputs.prepare()
    (tmp_path / "target").write_text("x")
    Path(outputs.written[0]).symlink_to("../target")
    with pytest.raises(FileNotFoundError):
        outputs.keep()
    outputs.discard()
    left = sorted(p.name for p in tmp_path.iterdir() if p.name != "runs")
    assert left == ["a.txt", "target"]
    assert (tmp_path / "a.txt").read_text() == "old"


def test_folders_in_which_several_tasks_write_are_known() -> None:
    assert shared(["a", "a/b", "a/b/c/d", "ab", "/x", "/x/y"]) == {"a", "a/b", "/x"}


def _done(
    folder: Path, names: list[str], *, elsewhere: bool, more: str = "", is_folder: bool = False
) -> list[str]:
    """An attempt that succeeds, and what its user is told."""
    outputs = Outputs(order_for(folder, names, 1, elsewhere=elsewhere))
    outputs.prepare()
    for written in outputs.written:
        write(Path(written), "new", is_folder=is_folder)
        if more:
            Path(written).with_name(more).write_text("new")
    return outputs.keep()


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("names", [["a.txt"], ["a.txt", "b.txt"]])
def test_a_file_is_replaced_only_if_a_run_made_it_and_nobody_changed_it(
    tmp_path: Path, names: list[str], *, elsewhere: bool
) -> None:
    (tmp_path / "a.txt").write_text("of the user")
    told = _done(tmp_path, names, elsewhere=elsewhere)
    assert told == [
        f"{tmp_path}/a.txt was not made by a run, or was changed since: it is now "
        f"{tmp_path}/a.txt.before-1"
    ]
    assert (tmp_path / "a.txt").read_text() == "new"
    assert (tmp_path / "a.txt.before-1").read_text() == "of the user"
    assert _done(tmp_path, names, elsewhere=elsewhere) == []
    (tmp_path / "a.txt").write_text("edited")
    assert len(_done(tmp_path, names, elsewhere=elsewhere)) == 1
    assert (tmp_path / "a.txt.before-2").read_text() == "edited"


def test_what_is_left_next_to_outputs_replaces_only_what_a_run_left_there(tmp_path: Path) -> None:
    (tmp_path / "README").write_text("of the user")
    told = _done(tmp_path, ["a.txt"], elsewhere=True, more="README")
    assert (tmp_path / "README").read_text() == "new"
    assert (tmp_path / "README.before-1").read_text() == "of the user"
    assert [f"{tmp_path}/README was not made by a run" in line for line in told] == [True]
    assert _done(tmp_path, ["a.txt"], elsewhere=True, more="README") == []
    (tmp_path / "README").write_text("edited")
    assert len(_done(tmp_path, ["a.txt"], elsewhere=True, more="README")) == 1
    assert (tmp_path / "README.before-2").read_text() == "edited"
    assert (tmp_path / "README.before-1").read_text() == "of the user"


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_folder_is_replaced_only_where_a_run_made_all_that_is_in_it(
    tmp_path: Path, *, elsewhere: bool
) -> None:
    (tmp_path / "res/deep").mkdir(parents=True)
    (tmp_path / "res/deep/notes").write_text("of the user")
    assert len(_done(tmp_path, ["res"], elsewhere=elsewhere, is_folder=True)) == 1
    assert (tmp_path / "res.before-1/deep/notes").read_text() == "of the user"
    assert _done(tmp_path, ["res"], elsewhere=elsewhere, is_folder=True) == []
    assert sorted(p.name for p in tmp_path.glob("res*")) == ["res", "res.before-1"]
    (tmp_path / "res/notes").write_text("of the user, too")
    assert len(_done(tmp_path, ["res"], elsewhere=elsewhere, is_folder=True)) == 1
    assert (tmp_path / "res.before-2/notes").read_text() == "of the user, too"
