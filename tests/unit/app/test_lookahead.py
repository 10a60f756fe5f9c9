"""What looks ahead promise, and how tasks err: heard from what happens in a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from windrow.app.learning import FirstPromise, TaskErrors, earlier_errors, expected_s
from windrow.forecast.ledger import Promise, promised_too_much
from windrow.forecast.runtimes import PastRun, RunTimes, fill
from windrow.foresight.course import Course, CourseEnd, Sampling
from windrow.foresight.strategy import Foresight
from windrow.manager.core import Core
from windrow.manager.terms import Terms
from windrow.model import Runnable, Task, Workflow
from windrow.model.attempt import Attempt
from windrow.model.runnable import Step
from windrow.model.site import Site
from windrow.story import events as e
from windrow.story.journal import Record
from windrow.strategies import Decision, JobPlan, Work
from windrow.strategies.base import Candidate

DAY_S = 86_400.0


def finished(task: int, begun_s: float, at_s: float) -> Record:
    return Record(e.TaskFinished(int(at_s), task), None, at_s, Attempt(task, begun=begun_s))


def planned(at_s: float, makespan_s: int, *, is_played: bool) -> Record:
    seen = (Candidate("all levels", 1, 0, 10, 0, makespan_s),)
    decision = Decision((JobPlan((0,), 1, 10, 60),), seen, is_played=is_played)
    return Record(e.JobsPlanned(int(at_s), decision), at_s=at_s)


def test_errors_are_those_of_earlier_runs_until_five_tasks_are_done() -> None:
    errors = TaskErrors({"": np.array([10] * 6)}, [1.0, 1.5])
    for task in range(4):
        errors.hear([finished(task, 0.0, 20.2)])
    found = errors()
    assert found is not None
    assert found.tolist() == [1.0, 1.5]
    errors.hear([finished(4, 0.0, 5.4), planned(9.0, 3, is_played=True)])
    found = errors()
    assert found is not None
    assert found.tolist() == [2.0] * 4 + [0.5]
    assert TaskErrors({"": np.array([10])})() is None


def test_what_was_learnt_tells_how_far_it_is_off(tmp_path: Path) -> None:
    """Nine runs of 1 to 9 s; a risk of 0.1 expects the longest. Times that the workflow states tell
    nothing."""
    history = RunTimes(tmp_path / "history.sqlite")
    history.record(PastRun("w", "blast", float(s), float(s)) for s in range(1, 10))
    history.record(PastRun("w", "stated", 100.0, float(s)) for s in range(9))
    tasks = [
        Task("a", 0.0, kind="blast"),
        Task("b", 0.0, kind="blast"),
        Task("c", 50.0, kind="stated"),
    ]
    steps = (
        Step(("a",), "/", runtime_known=False),
        Step(("b",), "/", runtime_known=False),
        Step(("c",), "/"),
    )
    runnable, times = fill(Runnable(Workflow.from_tasks("w", tasks), steps), history, 60.0)
    assert earlier_errors(runnable, times, lambda: history) == pytest.approx(
        [s / 9 for s in range(1, 10)]
    )


def test_the_first_promise_and_what_came_of_it() -> None:
    promise = FirstPromise()
    promise.hear([planned(100.0, 50, is_played=True), planned(120.0, 10, is_played=True)])
    promise.hear([finished(0, 110.0, 130.0), finished(1, 110.0, 190.5)])
    assert promise.kept() == Promise(100.0, 50.0, 90.5)


def test_a_plain_decision_promises_nothing() -> None:
    promise = FirstPromise()
    promise.hear([planned(100.0, 50, is_played=False), finished(0, 110.0, 130.0)])
    assert promise.kept() is None


class Same:
    """Futures in which every course takes 77 s."""

    waiting: tuple[JobPlan, ...] = ()
    others_waiting, is_exact = 0, True

    def late_s(self, job: JobPlan) -> int:
        del job
        return 0

    def play(self, course: Course, future: int, within_s: int | None = None) -> CourseEnd:
        del course, future, within_s
        return CourseEnd(77, 100)


def test_a_decision_of_foresight_is_told_from_a_plain_one() -> None:
    workflow = Workflow.from_tasks("one", [Task("a", 10.0)])
    core = Core(Work(workflow, np.array([10]), Site.of(4)), Terms())
    plain_view = core.view(0, lambda nodes, _: nodes)

    def futures(sampling: Sampling) -> Same:
        del sampling
        return Same()

    assert expected_s(Foresight().decide(replace(plain_view, futures=futures))) == 77.0
    plain = Foresight().decide(plain_view)
    assert plain.jobs
    assert expected_s(plain) == 0.0


def test_who_promised_too_much_of_late_is_not_believed_for_a_week() -> None:
    bad = [Promise(DAY_S * day, 100.0, 160.0) for day in range(5)]
    assert promised_too_much(bad, 5 * DAY_S)
    assert not promised_too_much(bad[1:], 5 * DAY_S)  # four are too few
    assert not promised_too_much([Promise(p.at_s, 100.0, 140.0) for p in bad], 5 * DAY_S)
    assert not promised_too_much(bad, 8 * DAY_S)  # the first one is forgotten by then
    fine = [Promise(DAY_S * 4 + hour, 100.0, 20.0) for hour in range(6)]
    assert not promised_too_much([*bad, *fine], 5 * DAY_S)
