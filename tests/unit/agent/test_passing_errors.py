"""Errors that file systems across a network give now and then: tried again, and never a task's own
failure."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest

from windrow.agent.order import Order
from windrow.agent.runner import Runner
from windrow.files import PASSING, is_of_disk, patiently
from windrow.model.attempt import Attempt
from windrow.model.cause import Cause


def result_of(
    folder: Path,
    command: tuple[str, ...] = ("/bin/sh", "-c", "echo new > out"),
    elsewhere: tuple[tuple[int, int, int], ...] = (),
    out: str = "out",
) -> Attempt:
    """How a task ends that replaces an output which was there before."""
    (folder / out).write_text("old")
    runner = Runner(os.environ)
    outputs = (f"{folder}/{out}",)
    printed = f"{folder}/printed"
    runner.start(
        Order(0, 1, command, str(folder), {}, printed, outputs=outputs, elsewhere=elsewhere)
    )
    until = time.monotonic() + 60
    while not (results := runner.collect()) and time.monotonic() < until:
        os.sched_yield()
    (result,) = results
    return result


@pytest.mark.parametrize("number", PASSING)
@pytest.mark.parametrize("times", [2, 99])
@pytest.mark.slow
def test_a_task_is_not_blamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, times: int
) -> None:
    rename, left = os.replace, [number] * times

    def interrupted(source: str, target: str) -> None:
        if left:
            raise OSError(left.pop(), os.strerror(number), source)
        rename(source, target)

    for name in ("rename", "replace"):
        monkeypatch.setattr(os, name, interrupted)
    result = result_of(tmp_path)
    if times == 2:
        assert (result.why, (tmp_path / "out").read_text()) == ("", "new\n")
    else:
        assert result.cause == Cause.SPACE
        assert os.strerror(number) in result.why
        assert (tmp_path / "out").read_text() == "old"


def test_what_was_done_though_its_answer_was_lost_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename, done = os.replace, list[str]()

    def unheard(source: str, target: str) -> None:
        rename(source, target)
        if source not in done:
            done.append(source)
            raise OSError(errno.ECONNABORTED, "no answer", source)

    for name in ("rename", "replace"):
        monkeypatch.setattr(os, name, unheard)
    result = result_of(tmp_path)
    assert (result.why, (tmp_path / "out").read_text()) == ("", "new\n")


OPERATIONS = (
    *("open", "mkdir", "rename", "replace", "unlink", "rmdir", "stat", "lstat", "listdir"),
    *("chdir", "symlink", "readlink"),
)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("elsewhere", [(), ((2, 0, 0),)])
def test_whatever_is_done_with_files_may_be_interrupted_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    operation: str,
    elsewhere: tuple[tuple[int, int, int], ...],
) -> None:
    """Each operation on each file, the first time, for outputs in place and in a hidden folder."""
    (tmp_path / "new.txt").write_text("new")
    do = getattr(os, operation)
    met = set[str]()

    def interrupted(path: object, *more: object, **named: object) -> object:
        if isinstance(path, str) and path.startswith(str(tmp_path)) and path not in met:
            met.add(path)
            raise OSError(errno.EINTR, os.strerror(errno.EINTR), path)
        return do(path, *more, **named)

    with monkeypatch.context() as patch:
        patch.setattr("windrow.files._PAUSES_S", (0.0,) * 8)
        patch.setattr(os, operation, interrupted)
        result = result_of(tmp_path, ("/bin/cp", "new.txt", "out.txt"), elsewhere, "out.txt")
    assert (result.why, (tmp_path / "out.txt").read_text()) == ("", "new")


def test_other_errors_are_not_tried_again() -> None:
    tried = []

    def refused() -> None:
        tried.append(1)
        raise PermissionError(errno.EACCES, "no")

    with pytest.raises(PermissionError):
        patiently(refused)
    assert len(tried) == 1
    assert not is_of_disk(errno.EACCES)
    assert all(map(is_of_disk, PASSING))
