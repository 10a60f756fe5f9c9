"""Histories that cannot be used: everything goes on without them, and it is said once."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from windrow.errors import OutsideError, UserError
from windrow.forecast.base import UNKNOWN_S, Ints
from windrow.forecast.best_effort import Remembered, filled, past_waits
from windrow.forecast.runtimes import PastRun, RunTimes, TimeSource
from windrow.forecast.waits import FromHistory, History
from windrow.model import Runnable, Step, Task, Workflow


def a_runnable() -> Runnable:
    workflow = Workflow.from_tasks(
        "w", [Task("stated", 5.0, kind="k"), Task("unstated", 0.0, kind="k")]
    )
    return Runnable(workflow, (Step(("true",), "/"), Step(("true",), "/", runtime_known=False)))


def of_another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE bookmarks (url TEXT)")
        database.commit()


def test_what_cannot_be_kept_is_said_once_and_not_tried_again() -> None:
    tried: list[Sequence[int]] = []
    said: list[str] = []

    def record(values: Sequence[int]) -> None:
        tried.append(values)
        if 3 in values:
            raise OutsideError("the disk is full")

    memory = Remembered(record, "numbers", said.append)
    for values in ([1], [], [2, 3], [4], [3]):
        memory.keep(values)
    assert tried == [[1], [2, 3]]
    assert said == ["numbers are not remembered: the disk is full"]


def test_what_is_no_fault_of_the_world_is_not_hidden() -> None:
    def record(_: Sequence[int]) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Remembered(record, "numbers", print).keep([1])


def test_run_times_are_guessed_where_the_history_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "h.sqlite"
    monkeypatch.setenv("WINDROW_HISTORY", str(path))
    RunTimes().record([PastRun("w", "k", 7.0, 0.0)])
    said: list[str] = []
    assert [t.source for t in filled(a_runnable(), 60.0, say=said.append)[1]] == [
        TimeSource.KNOWN,
        TimeSource.LEARNED,
    ]
    assert said == []
    path.unlink()
    of_another_program(path)
    before = path.read_bytes()
    runnable, times = filled(a_runnable(), 60.0, say=said.append)
    assert [(t.source, t.runtime_s) for t in times] == [
        (TimeSource.KNOWN, 5.0),
        (TimeSource.GUESS, 60.0),
    ]
    assert runnable.workflow.runtime_s.tolist() == [5.0, 60.0]
    (words,) = said
    assert words.startswith(
        f"run times of earlier runs are not used: {path}: a database of another program"
    )
    assert path.read_bytes() == before
    with pytest.raises(UserError, match="between 0 and 1"):
        filled(a_runnable(), 60.0, risk=2.0, say=said.append)


def test_past_waits_are_none_where_they_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    path = tmp_path / "waits.sqlite"
    monkeypatch.setenv("WINDROW_WAITS", str(path))
    assert past_waits(said.append) is not None
    assert said == []
    path.write_text("buy milk\n" * 200)
    assert past_waits(said.append) is None
    (words,) = said
    assert words.startswith(
        f"waits of earlier jobs are neither used nor remembered: {path}: the history of waits "
        "cannot be used"
    )


class Nobody:
    """A fallback with one answer."""

    name = "nobody"

    def waits_s(self, nodes: Ints, requested_s: Ints) -> Ints:
        return np.full(np.broadcast(nodes, requested_s).shape, 12_345, dtype=np.int64)


def test_a_history_that_breaks_later_leaves_it_to_the_fallback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    history = History(tmp_path / "waits.sqlite")
    source = FromHistory(history, "q", lambda: 0.0, Nobody())
    history.path.write_text("buy milk\n" * 200)
    for _ in range(3):
        assert source.known_s(np.array([1, 2]), np.array([60, 60])).tolist() == [UNKNOWN_S] * 2
        assert source.waits_s(np.array([1, 2]), np.array([60, 60])).tolist() == [12_345] * 2
    assert [r.getMessage().partition(": ")[0] for r in caplog.records] == [
        "waits of earlier jobs are not used"
    ]
