"""Tasks in several jobs: who is the member, who wins, what is left when jobs go. Core and story,
event by event."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.manager.test_core import A, B, C, D, diamond, planned

from windrow.manager.core import Core
from windrow.manager.terms import Terms
from windrow.model import Task, Workflow
from windrow.model.attempt import Attempt
from windrow.model.cause import Cause
from windrow.model.site import Site
from windrow.story import events as e
from windrow.story.events import Abandon, Decide, StopJob
from windrow.story.figures import RecordedRun, node_time
from windrow.story.journal import Record, RunJournal
from windrow.story.states import AttemptState, TaskState
from windrow.story.story import RunStory
from windrow.strategies import Decision, JobPlan, View, Work, whole_seconds
from windrow.strategies.copied import WithCopies
from windrow.strategies.individual import Individual

ALL = (A, B, C, D)
MEMBER, TWIN = JobPlan(ALL, 2, 50, 60), JobPlan((), 2, 50, 60, copies=ALL)


def racing(*events: e.Event) -> Core:
    """Two jobs with the same tasks, the first of them running."""
    core = diamond()
    for event in (e.RunBegan(0), planned(0, MEMBER, TWIN), e.JobStarted(1, 0), *events):
        core.handle(event)
        core.check()
    return core


def test_the_first_to_finish_ends_the_task_in_all_jobs() -> None:
    core = racing(e.JobStarted(2, 1), e.TaskStarted(2, 0, A), e.TaskStarted(2, 1, A))
    assert core.job_of == [0, 0, 0, 0]
    assert not core._left.any()
    assert core.handle(e.TaskFinished(9, A)) == []
    assert [job.running_since_s for job in core.jobs.values()] == [{}, {}]
    for task in (B, C):
        assert core.handle(e.TaskFinished(9, task)) == []
    assert set(core.handle(e.TaskFinished(9, D))) == {StopJob(0), StopJob(1)}
    core.handle(e.JobEnded(9, 0))
    core.handle(e.JobEnded(9, 1))
    assert core.is_over
    assert core.is_complete


def test_when_the_member_is_lost_the_copy_takes_its_place() -> None:
    core = racing(e.JobStarted(2, 1), e.TaskStarted(2, 1, A))
    assert (
        core.handle(e.JobKilled(5, 0, cause=Cause.NODE_FAILED)) == []
    )  # nothing is left, nothing is cut again
    assert core.job_of == [1, 1, 1, 1]
    assert core.jobs[1].running_since_s == {A: 2}
    core.check()
    assert core.handle(e.JobKilled(6, 1, cause=Cause.NODE_FAILED)) == [Decide()]
    assert core._left.all()


def test_a_copy_that_is_lost_is_no_loss() -> None:
    core = racing(e.JobStarted(2, 1))
    for at_s in range(3, 9):
        core.handle(e.JobKilled(at_s, core.submitted - 1, cause=Cause.LOST))
        core.handle(planned(at_s, TWIN))
        core.check()
    assert not core.trouble
    assert core.job_of == [0, 0, 0, 0]


def test_the_member_is_where_it_runs_first() -> None:
    core = diamond()
    for event in (e.RunBegan(0), planned(0, MEMBER, TWIN), e.JobStarted(1, 1)):
        core.handle(event)
        core.check()
    assert core.job_of == [1, 1, 1, 1]
    view = core.view(1, lambda nodes, _: nodes)
    assert (view.jobs_waiting, view.jobs_running, view.cap) == (
        0,
        1,
        3,
    )  # a spare job takes a place, and is not shown
    assert list(core.own_jobs()) == [1]
    assert core.handle(e.JobKilled(5, 1, cause=Cause.LOST)) == []
    assert core.job_of == [0, 0, 0, 0]


def test_a_copy_in_a_job_that_is_to_go_comes_back_with_it() -> None:
    core = racing(e.JobStarted(2, 1))
    core.jobs[1].is_stopping = True
    assert core.handle(e.JobKilled(5, 0, cause=Cause.LOST)) == []
    core.check()
    assert core.handle(e.JobEnded(6, 1)) == [Decide()]
    assert core._left.all()


def test_a_task_fails_when_its_last_attempt_has() -> None:
    core = racing(e.JobStarted(2, 1), e.TaskStarted(2, 0, A), e.TaskStarted(2, 1, A))
    assert core.handle(e.CopyFailed(5, 0, A)) == []
    assert core.job_of[A] == 1
    core.check()
    assert core.handle(e.CopyFailed(6, 1, A)) == [Abandon((A, B, C, D))]
    assert core.failed == {A}
    assert core.blocked == {B, C, D}


def test_what_a_job_drops_goes_on_in_another() -> None:
    core = racing(e.JobStarted(2, 1), e.TaskDropped(3, 0, D), e.TaskDropped(3, 1, C))
    assert core.job_of == [0, 0, 0, 1]
    assert core.handle(e.TaskDropped(4, 1, D)) == [Decide()]
    assert core._left.tolist() == [False, False, False, True]


def test_the_journal_of_a_run_without_copies_is_as_it_was(tmp_path: Path) -> None:
    journal = RunJournal.create(tmp_path / "j", {})
    journal.append([Record(planned(0, JobPlan((A,), 1, 10, 10))), Record(planned(0, TWIN))])
    plain, copied = (row[0] for row in journal._db.execute("SELECT body FROM events"))
    assert b"copies" not in plain
    assert b'"copies":[0,1,2,3]' in copied
    assert [record.event for _, record in journal.records()][1] == planned(0, TWIN)
    journal.close()


Told = tuple[e.Event, Attempt | None]


def story_of(*events: Told) -> RunStory:
    first: list[e.Event] = [
        e.RunBegan(0),
        planned(0, MEMBER, TWIN),
        e.JobStarted(1, 0),
        e.JobStarted(1, 1),
    ]
    heard: list[Told] = [*((event, None) for event in first), *events]
    return RunStory.of(
        diamond().work.workflow, [Record(event, attempt=told) for event, told in heard]
    )


STARTS: tuple[Told, Told] = (
    (e.TaskStarted(2, 0, A), Attempt(A, 1)),
    (e.TaskStarted(3, 1, A), Attempt(A, 2)),
)


def test_a_story_with_two_attempts_at_the_same_time() -> None:
    beaten = Attempt(A, cause="superseded", why="another attempt finished first")
    done: Told = (e.TaskFinished(9, A), Attempt(A, 1, begun=2.0))
    story = story_of(*STARTS, done, (e.TaskDropped(11, 1, A), beaten))
    first, second = story.tasks[A].attempts
    assert (first.outcome, first.ended_s) == (AttemptState.FINISHED, 9)
    assert (second.outcome, second.ended_s, second.why) == (
        AttemptState.SUPERSEDED,
        11,
        beaten.why,
    )
    assert story.tasks[A].last is first
    run = RecordedRun("r", "running", "giant", "local", story, (), 20)
    assert node_time(run, 1).lost_s == 8
    assert not story.strays


def test_a_story_of_a_job_that_was_stopped_because_another_won() -> None:
    story = story_of(*STARTS, (e.TaskFinished(9, A), Attempt(A, 2)), (e.JobEnded(10, 0), None))
    assert [a.outcome for a in story.tasks[A].attempts] == [
        AttemptState.SUPERSEDED,
        AttemptState.FINISHED,
    ]
    assert story.tasks[B].job == 1
    assert story.tasks[B].state is TaskState.SUBMITTED


def test_a_story_of_a_task_that_failed_in_one_job() -> None:
    failed: tuple[Told, Told] = (
        (e.TaskRetried(5, 0, A), Attempt(A, 1)),
        (e.CopyFailed(5, 0, A), None),
    )
    story = story_of(*STARTS, *failed)
    assert story.tasks[A].state is TaskState.RUNNING
    story = story_of(
        *STARTS, *failed, (e.TaskRetried(6, 1, A), Attempt(A, 2)), (e.CopyFailed(6, 1, A), None)
    )
    assert [task.state for task in story.tasks] == [TaskState.FAILED, *[TaskState.BLOCKED] * 3]
    story = story_of(
        *STARTS[::-1],
        *failed,
        (e.TaskRetried(6, 1, A), Attempt(A, 2)),
        (e.CopyFailed(6, 1, A), None),
    )
    assert story.tasks[A].state is TaskState.FAILED
    assert not story.strays


def test_copies_are_submitted_within_the_cap() -> None:
    tasks = [Task(f"t{i}", 10) for i in range(5)]
    workflow = Workflow.from_tasks("bag", tasks)
    strategy = WithCopies(Individual(), 2, lambda task: task != 1)

    def view(cap: int) -> View:
        core = Core(Work(workflow, whole_seconds(workflow), Site.of(8, cap=cap)), Terms())
        return core.view(0, lambda nodes, _: nodes)

    def plans(cap: int) -> Sequence[tuple[tuple[int, ...], tuple[int, ...]]]:
        return [(plan.tasks, plan.copies) for plan in strategy.decide(view(cap)).jobs]

    assert plans(1) == [((0,), ())]
    assert plans(4) == [((0,), ()), ((1,), ()), ((), (0,))]
    assert len(plans(16)) == 5 + 4
    assert strategy.decide(view(4)).why.endswith("2 jobs run the same tasks (--copies)")


@given(st.integers(0, 10**9))
def test_random_copies_random_deaths(seed: int) -> None:
    """Whatever happens to jobs and copies: no task is lost, none is in two jobs, and all are done
    in the end."""
    chance = random.Random(seed)
    parents = {
        t: [p for p in range(t) if chance.random() < 0.3] for t in range(chance.randrange(1, 8))
    }
    tasks = [
        Task(f"t{t}", 5, parents=tuple(f"t{p}" for p in above)) for t, above in parents.items()
    ]
    workflow = Workflow.from_tasks("w", tasks)
    core = Core(
        Work(workflow, whole_seconds(workflow), Site.of(4, cap=chance.randrange(1, 6))),
        Terms(patience=None),
    )
    records: list[e.Event] = []

    def happens(event: e.Event) -> None:
        records.append(event)
        core.handle(event)
        core.check()

    happens(e.RunBegan(0))
    for at_s in range(1, 400):
        if core.is_complete and not core.jobs:
            break
        happens(_any_event(core, chance, parents, at_s))
    else:
        raise AssertionError("it does not end")
    again = Core(core.work, core.terms)
    for event in records:
        again.handle(event)
    assert again.is_complete
    story = RunStory.of(workflow, map(Record, records))
    assert story.is_complete
    assert not story.strays


def _any_event(
    core: Core, chance: random.Random, parents: dict[int, list[int]], at_s: int
) -> e.Event:
    """Something that could happen now, and the more likely something good the longer it lasts."""
    room = core.work.site.cap - len(core.jobs)
    left = [task for task in parents if core._left[task]]
    placed = [task for task in parents if core.job_of[task] is not None]
    if room and left and chance.random() < 0.6:
        mine = tuple(chance.sample(left, chance.randrange(1, len(left) + 1)))
        others = JobPlan(
            (), 1, 5, 10, copies=tuple(t for t in (*placed, *mine) if chance.random() < 0.6)
        )
        return planned(
            at_s, JobPlan(mine, 1, 5, 10), *[others] * (room > 1 and bool(others.copies))
        )
    if not core.jobs:
        return planned(at_s, JobPlan(tuple(left), 1, 5, 10))
    number = chance.choice(list(core.jobs))
    job = core.jobs[number]
    ready = [
        t for t in sorted(job.open_tasks | job.copies) if all(core.is_done(p) for p in parents[t])
    ]
    running = [t for t in ready if t in job.running_since_s]
    if not job.is_running:
        return (
            e.JobKilled(at_s, number, cause=Cause.LOST)
            if chance.random() < 0.1
            else e.JobStarted(at_s, number)
        )
    if job.is_empty or chance.random() < 0.1:
        is_killed = chance.random() < 0.5
        return (
            e.JobKilled(at_s, number, cause=Cause.NODE_FAILED)
            if is_killed
            else e.JobEnded(at_s, number)
        )
    if running and chance.random() < 0.7:
        return e.TaskFinished(at_s, chance.choice(running))
    if ready and not running:
        return e.TaskStarted(at_s, number, chance.choice(ready))
    if job.open_tasks | job.copies and chance.random() < 0.2:
        return e.TaskDropped(at_s, number, chance.choice(sorted(job.open_tasks | job.copies)))
    return planned(at_s)


def test_a_decision_with_copies_of_tasks_that_are_done_by_now() -> None:
    core = racing(e.JobStarted(2, 1), e.TaskFinished(3, A))
    core.handle(e.JobsPlanned(4, Decision((TWIN,))))
    core.check()
    assert core.jobs[2].copies == {B, C, D}
