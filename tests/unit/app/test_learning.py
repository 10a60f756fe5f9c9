"""What a run leaves for others, where it can and where it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from windrow.agent.folder import RunFolder
from windrow.app.learning import Learning, LearningPlace
from windrow.forecast.failures import Lives
from windrow.forecast.runtimes import RunTimes
from windrow.forecast.waits import History
from windrow.manager.dispatch import Dispatch
from windrow.model import Runnable, Step, Task, Workflow
from windrow.model.attempt import Attempt
from windrow.model.cause import Cause
from windrow.story.events import (
    JobEnded,
    JobKilled,
    JobsPlanned,
    JobStarted,
    JobSubmitted,
    TaskFinished,
)
from windrow.story.journal import Record
from windrow.strategies import Decision, JobPlan


def a_dispatch() -> Dispatch:
    runnable = Runnable(
        Workflow.from_tasks("w", [Task("t", 1.0, kind="k")]), (Step(("true",), "/"),)
    )
    return Dispatch(RunFolder(Path("nowhere")), runnable, "u", "w-1")


def records(job: int) -> list[Record]:
    """One job of one task, from its plan to its work."""
    return [
        Record(JobsPlanned(0, Decision((JobPlan((0,), 1, 50, 60),)))),
        Record(JobSubmitted(10, job, "q")),
        Record(JobStarted(40, job)),
        Record(TaskFinished(50, 0), attempt=Attempt(0, begun=42.0, peak_bytes=7)),
        Record(JobKilled(60, job, cause=Cause.PREEMPTED) if job % 2 else JobEnded(60, job)),
    ]


def test_times_and_waits_are_there_for_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDROW_HISTORY", str(tmp_path / "h.sqlite"))
    waits = History(tmp_path / "w.sqlite")
    learning = Learning(a_dispatch(), {"": LearningPlace("here")}, (), waits)
    for job in range(6):
        learning(records(job))
    expected = RunTimes().expect("w", "k")
    assert (expected.runtime_s, expected.runs) == (8.0, 6)
    (bound,) = waits.bounds("here", [(1, 60)], 10.0)
    assert bound is not None
    assert (bound.wait_s, bound.jobs) == (30, 6)
    lives = Lives(waits.path).past("here", 0)
    assert [life.run_s for life in lives] == [20] * 6
    assert [life.cause for life in lives] == [None, Cause.PREEMPTED] * 3


def test_histories_that_cannot_be_written_stop_nothing_and_are_named_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("WINDROW_HISTORY", str(tmp_path / "file" / "h.sqlite"))
    waits = History(tmp_path / "w.sqlite")
    learning = Learning(a_dispatch(), {"": LearningPlace("here")}, (), waits)
    waits.path.write_text("buy milk\n" * 200)
    for job in range(3):
        learning(records(job))
    said = [record.getMessage().partition(": ")[0] for record in caplog.records]
    assert said == [
        "run times are not remembered",
        "waits are not remembered",
        "losses are not remembered",
    ]


def test_one_history_does_without_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDROW_HISTORY", str(tmp_path / "h.sqlite"))
    learning = Learning(a_dispatch(), {"": LearningPlace("here")}, (), None)
    learning(records(0))
    assert RunTimes().expect("w", "k").runs == 1
