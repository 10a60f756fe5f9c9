"""The manager between core, journal and queue, step by step in virtual time."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.survival.toy import BEGIN_S, Fate, VirtualRun, abandoned, braid, toy

from windrow.errors import OutsideError
from windrow.manager.inbox import FORGOTTEN_S, POLL_S, SLOWEST_POLL_S, PollTimes
from windrow.model.cause import Cause
from windrow.queues.port import JobSpec, JobState, SpecError
from windrow.queues.simulated import Mood
from windrow.story.events import (
    Abandon,
    Event,
    JobKilled,
    JobsPlanned,
    JobStarted,
    JobSubmitted,
    RunBegan,
    TaskDropped,
    TaskFinished,
    TaskStarted,
)
from windrow.story.journal import Record, RunJournal
from windrow.story.states import TaskState
from windrow.strategies import Decision, JobPlan


@pytest.fixture
def run(tmp_path: Path) -> VirtualRun:
    return toy(tmp_path / "run")


def test_a_pace_slows_down_and_hurries() -> None:
    pace, now, gaps = PollTimes(), 0.0, []
    assert pace.is_due(now)
    for _ in range(12):
        pace.asked(now)
        gaps.append(pace.gap_s)
        assert not pace.is_due(now + pace.gap_s - 0.01)
        now += pace.gap_s
        assert pace.is_due(now)
    assert gaps == sorted(gaps)
    assert (gaps[0], gaps[-1]) == (POLL_S, SLOWEST_POLL_S)
    pace.hurry()
    assert pace.gap_s == POLL_S


def test_a_decision_is_journaled_before_anything_is_submitted(run: VirtualRun) -> None:
    seen: list[list[str]] = []
    submit = run.world.queue.submit_array

    def spying(specs: list[JobSpec]) -> list[str]:
        seen.append([type(record.event).__name__ for record in run.records()])
        return submit(specs)

    run.world.queue.submit_array = spying  # type: ignore[method-assign, assignment]
    assert run.go_on()
    for kinds in seen:
        planned = sum(
            len(r.event.decision.jobs) for r in run.records() if isinstance(r.event, JobsPlanned)
        )
        assert "JobsPlanned" in kinds
        assert kinds.count("JobSubmitted") < planned


def test_alike_jobs_go_out_as_arrays(run: VirtualRun) -> None:
    sizes: list[int] = []
    submit = run.world.queue.submit_array

    def counting(specs: list[JobSpec]) -> list[str]:
        sizes.append(len(specs))
        return submit(specs)

    run.world.queue.submit_array = counting  # type: ignore[method-assign, assignment]
    assert run.go_on()
    assert 3 in sizes
    run.check_complete()


def test_a_queue_that_will_never_take_a_job_ends_the_run(run: VirtualRun) -> None:
    def refusing(_: list[JobSpec]) -> list[str]:
        raise SpecError("no such account")

    run.world.queue.submit_array = refusing  # type: ignore[method-assign, assignment]
    assert run.go_on()
    assert run.story().trouble == "no such account"
    assert run.manager is not None
    assert run.manager.core.trouble == "no such account"


def test_a_queue_that_is_away_is_asked_again_and_again(run: VirtualRun) -> None:
    away_until = run.world.now_s + 100
    calls: list[float] = []

    def mood(call: str) -> Mood:
        calls.append(run.world.now_s)
        return Mood.DOWN if run.world.now_s < away_until else Mood.GOOD

    run.world.mood = mood
    assert run.go_on()
    run.check_complete()
    tries = [at_s for at_s in calls if at_s < away_until]
    assert 5 < len(tries) < 25  # ever more rarely


def test_a_submission_without_an_answer_is_looked_for(run: VirtualRun) -> None:
    answers = iter([Mood.SILENT, Mood.DEAF])
    run.world.mood = lambda call: next(answers, Mood.GOOD) if call == "submit" else Mood.GOOD
    assert run.go_on()
    run.check_complete()
    found = [
        r
        for r in run.records()
        if isinstance(r.event, JobSubmitted) and r.detail == {"found": True}
    ]
    assert len(found) == 1  # the first was taken, the second was not and went out once more


def submitted_twice(run: VirtualRun) -> None:
    """The first submission gets no answer, cannot be found, and arrives before the second one after
    all."""
    answers = iter([Mood.LATE])
    run.world.mood = lambda call: next(answers, Mood.GOOD) if call == "submit" else Mood.GOOD
    run.world.queue.late_s = 3  # the second one is submitted after 2 s
    run.strategy, run.runnable = "one-job", braid(1, 30)
    run.world.takes_s = lambda _: 30.0


def test_a_job_that_the_queue_has_twice_does_its_work_once(run: VirtualRun) -> None:
    submitted_twice(run)
    run.world.queue.holds = lambda _: run.world.now_s < BEGIN_S + 5
    run.world.dues = [(BEGIN_S + 5, run.world.queue.release)]
    assert run.go_on()
    assert run.world.turned_away == ["c2"]
    run.check_complete()
    assert set(run.world.started.values()) == {1}
    assert run.story().jobs[0].id == "c1"


def test_a_job_that_the_queue_has_twice_is_stopped_where_it_runs(run: VirtualRun) -> None:
    submitted_twice(run)
    run.world.queue.holds = lambda job: job == "c1"  # which the second submission is
    manager = run.hire()
    manager.begin()
    for _ in range(10):
        run.look(manager)
        run.wait(1)
    assert run.world.queue.running == ["c2"]
    manager.stop()
    run.drive(manager)
    assert not run.world.queue.left
    assert run.world.queue.jobs["c2"].status.state is JobState.CANCELLED


def test_a_submission_that_arrives_after_its_job_was_given_up_begins_nothing(
    run: VirtualRun,
) -> None:
    """It got no answer, could not be found, and the run was stopped before it was submitted
    again."""
    answers = iter([Mood.LATE])
    run.world.mood = lambda call: next(answers, Mood.GOOD) if call == "submit" else Mood.GOOD
    run.world.queue.late_s = 100
    manager = run.hire()
    manager.begin()
    manager.stop()
    run.drive(manager)
    assert not run.world.queue.jobs
    run.wait(200)
    assert run.world.turned_away == ["c1"]
    assert not run.world.starts
    assert run.go_on()
    run.check_complete()


def test_nothing_is_decided_after_a_stop(run: VirtualRun) -> None:
    """A decision was due while the queue put jobs off; when it listens again, nobody wants them any
    more."""
    run.runnable = braid(9)
    calls = 0

    def mood(call: str) -> Mood:
        nonlocal calls
        calls += call == "submit"
        return Mood.DOWN if call == "submit" and calls > 2 else Mood.GOOD

    run.world.mood = mood
    manager = run.hire()
    manager.begin()
    for _ in range(40):
        run.look(manager)
        run.wait(1)
    assert len(manager.core.jobs) == 6  # of which the queue has none
    before = len([r for r in run.records() if isinstance(r.event, JobsPlanned)])
    manager.stop()
    run.world.mood = lambda _: Mood.GOOD
    run.drive(manager)
    assert len([r for r in run.records() if isinstance(r.event, JobsPlanned)]) == before
    run.check_nothing_twice()


def test_after_a_refusal_nothing_else_is_submitted(run: VirtualRun) -> None:
    run.runnable = braid(9)
    submit, refused = run.world.queue.submit_array, list[int]()

    def choosy(specs: list[JobSpec]) -> list[str]:
        if not run.world.queue.jobs:
            return submit(specs)
        refused.append(len(specs))
        raise SpecError("no such account")

    run.world.queue.submit_array = choosy  # type: ignore[method-assign, assignment]
    assert run.go_on()
    assert refused == [3]
    run.check_nothing_twice()


def test_a_job_that_is_put_off_is_foretold_once(run: VirtualRun) -> None:
    full_until = run.world.now_s + 60
    run.world.mood = lambda call: (
        Mood.DOWN if call == "submit" and run.world.now_s < full_until else Mood.GOOD
    )
    assert run.go_on()
    journal = RunJournal.open(run.path / "journal.sqlite")
    said = [(prediction.job, prediction.source) for prediction in journal.predictions()]
    journal.close()
    assert sorted(said) == [(job, "at once") for job in range(8)]


def test_a_job_that_the_queue_forgets_is_given_up_after_a_while(run: VirtualRun) -> None:
    lost_at = 0.0

    def lose() -> None:
        nonlocal lost_at
        if run.world.queue.running and not lost_at:
            (job,), lost_at = run.world.queue.running, run.world.now_s
            run.world.forget(job, lives=False)

    run.each_look = lose
    assert run.go_on()
    assert run.story().is_complete
    (killed,) = [r.event for r in run.records() if isinstance(r.event, JobKilled)]
    assert killed.why == "the queue no longer knows it"
    assert killed.at_s > lost_at + FORGOTTEN_S


@pytest.mark.slow
def test_a_forgotten_job_is_heard_before_it_is_given_up(tmp_path: Path) -> None:
    """Where more jobs wait than are listened to, and the queue forgot one that has done its
    work."""
    run = toy(tmp_path / "run", runnable=braid(width=60), nodes=50)
    assert not run.go_on(Fate(100))
    run.wait(400)
    run.world.queue.memory_s = 10.0
    assert run.go_on()
    run.check_complete()


@pytest.mark.parametrize("step_s", [-86_400, 86_400])
def test_a_clock_that_was_set_does_not_make_a_task_long(run: VirtualRun, step_s: int) -> None:
    """A job expired, and by the clock of whoever noticed it had lasted a day, or less than
    nothing."""
    core = run.fresh()
    plan = JobPlan((0,), 1, 3, 12)
    core.handle(RunBegan(1000))
    core.handle(JobsPlanned(1000, Decision((plan,))))
    core.handle(JobStarted(1001, 0))
    core.handle(TaskStarted(1001, 0, 0))
    core.handle(JobKilled(1012 + step_s, 0, Cause.TIME_LIMIT))
    assert core.work.expected_s[0] == (24 if step_s > 0 else 3)


def test_a_job_whose_work_was_done_by_a_lost_one_is_stopped_after_a_restart(
    run: VirtualRun,
) -> None:
    """Job 0 was given up, job 1 was submitted in its place, and then it came to light that job 0
    had done it all."""
    plan = Decision((JobPlan((0,), 1, 3, 12),))
    lost: list[Event] = [
        JobsPlanned(2, plan),
        JobSubmitted(3, 0, "a"),
        JobStarted(4, 0),
        JobKilled(9, 0, Cause.LOST, "lost"),
    ]
    again: list[Event] = [JobsPlanned(10, plan), JobSubmitted(11, 1, "b"), TaskFinished(12, 0)]
    run.hire().journal.append([Record(event) for event in (RunBegan(1), *lost, *again)])
    manager = run.hire()
    assert manager.outposts[0].wants_stop == [1]


def test_tasks_that_cannot_run_are_abandoned_once(run: VirtualRun) -> None:
    run.strategy = "one-job"
    run.world.failure = lambda task: "exit code 1" if task == 1 else ""
    assert run.go_on()
    assert abandoned(run.path / "abandoned") == [1, 4, 7]
    assert [task.state for task in run.story().tasks].count(TaskState.FINISHED) == 5
    run.world.failure = lambda _: ""
    before = len([r for r in run.records() if isinstance(r.event, TaskDropped)])
    run.strategy = "individual"
    assert run.go_on()
    run.check_complete()
    assert len([r for r in run.records() if isinstance(r.event, TaskDropped)]) == before


def test_a_folder_that_cannot_be_written_is_named(run: VirtualRun) -> None:
    dispatch = run.hire().dispatch
    dispatch.abandon(Abandon(()))
    assert not (run.path / "abandoned").exists()
    (run.path / "abandoned").mkdir()
    with pytest.raises(OutsideError, match=r"abandoned cannot be written: Is a directory"):
        dispatch.abandon(Abandon((1,)))


@pytest.mark.parametrize("deadly", range(4, 40, 3))
def test_what_failed_while_nobody_listened_is_tried_by_the_first_resume(
    tmp_path: Path, deadly: int
) -> None:
    """`up-0` fails after its manager has died; the cause is removed; whoever comes next tries it
    again."""
    run = toy(tmp_path / "run", "one-job", failure=lambda task: "exit code 1" if task == 1 else "")
    if run.go_on(Fate(deadly)):
        return  # it died not, and had failed before
    run.wait(100)
    run.world.failure = lambda _: ""
    assert run.go_on()
    run.check_complete()
