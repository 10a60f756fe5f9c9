"""The story of a run, told from records written by hand."""

from __future__ import annotations

from windrow.model import Task, Workflow
from windrow.model.attempt import Attempt
from windrow.model.cause import Cause
from windrow.story import events as e
from windrow.story.journal import Record
from windrow.story.story import RunStory
from windrow.strategies import Decision, JobPlan

CHAIN = Workflow.from_tasks(
    "chain",
    [Task("a", 1), Task("b", 1, parents=("a",)), Task("c", 1, parents=("b",)), Task("free", 1)],
)
A, B, C, FREE = range(4)


def plan(*tasks: int) -> e.JobsPlanned:
    return e.JobsPlanned(10, Decision((JobPlan(tasks, 1, 5, 60),)))


def told(*records: Record | e.Event) -> RunStory:
    return RunStory.of(CHAIN, [r if isinstance(r, Record) else Record(r) for r in records])


def states(story: RunStory) -> list[str]:
    return [task.state for task in story.tasks]


def test_a_run_from_beginning_to_end() -> None:
    story = told(
        e.RunBegan(1),
        Record(plan(A, B, C, FREE), {"forecast": "twin"}, 10.5),
        Record(e.JobSubmitted(11, 0, "77"), None, 11.25),
        Record(e.JobStarted(20, 0), {"hosts": ["n1"]}, 20.0),
        Record(e.TaskStarted(21, 0, A), None, 21.5, Attempt(A, nodes=(0,))),
        Record(e.TaskFinished(22, A), None, 22.75, Attempt(A, begun=21.5, peak_bytes=7, cpu_s=0.5)),
    )
    assert states(story) == ["finished", "submitted", "submitted", "submitted"]
    job = story.jobs[0]
    assert (job.state, job.id, job.submitted_s, job.started_s, job.hosts) == (
        "running",
        "77",
        11.25,
        20.0,
        ("n1",),
    )
    assert story.decisions[0].forecast == "twin"
    (attempt,) = story.tasks[A].attempts
    assert (attempt.started_s, attempt.ended_s, attempt.outcome, attempt.peak_bytes) == (
        21.5,
        22.75,
        "finished",
        7,
    )
    for task in (B, C, FREE):
        story.hear(Record(e.TaskStarted(23, 0, task)))
        story.hear(Record(e.TaskFinished(24, task)))
    story.hear(Record(e.JobEnded(25, 0)))
    assert story.is_complete
    assert (job.state, story.last_s) == ("ended", 25.0)


def test_a_job_found_under_another_id_was_submitted_when_it_first_was() -> None:
    found = Record(e.JobSubmitted(30, 0, "76"), {"found": True})
    job = told(
        e.RunBegan(1), plan(A), e.JobSubmitted(11, 0, "77"), e.JobStarted(20, 0), found
    ).jobs[0]
    assert (job.id, job.submitted_s, job.started_s) == ("76", 11.0, 20.0)


def test_a_job_is_killed_and_what_it_ran_is_lost() -> None:
    started = (
        plan(A, FREE),
        e.JobSubmitted(11, 0, "77"),
        e.JobStarted(20, 0),
        e.TaskStarted(21, 0, A),
    )
    story = told(e.RunBegan(1), *started, e.JobKilled(30, 0, Cause.NODE_FAILED, "a node failed"))
    assert states(story) == ["pending"] * 4
    (attempt,) = story.tasks[A].attempts
    assert (attempt.outcome, attempt.why, attempt.ended_s) == ("lost", "a node failed", 30.0)
    assert (story.jobs[0].outcome, story.jobs[0].why) == ("killed", "a node failed")
    story.hear(Record(plan(A)))
    story.hear(Record(e.TaskStarted(40, 1, A)))
    assert [attempt.job for attempt in story.tasks[A].attempts] == [0, 1]
    assert story.tasks[A].job == 1


def test_failures_block_what_comes_after_until_the_run_goes_on() -> None:
    story = told(
        e.RunBegan(1),
        plan(A, B, C, FREE),
        e.TaskStarted(21, 0, A),
        Record(e.TaskRetried(22, 0, A), attempt=Attempt(A, why="exit code 1", exit=1)),
        e.TaskStarted(23, 0, A),
        Record(e.TaskFailed(24, A), attempt=Attempt(A, why="exit code 2", exit=2, tail="help")),
    )
    assert states(story) == ["failed", "blocked", "blocked", "submitted"]
    assert [(a.outcome, a.exit, a.tail) for a in story.tasks[A].attempts] == [
        ("failed", 1, ""),
        ("failed", 2, "help"),
    ]
    story.hear(Record(e.RunBegan(50)))
    assert states(story) == ["pending", "pending", "pending", "submitted"]
    assert (story.begun_s, story.resumed_s) == (1.0, [50.0])


def test_drops_rejections_and_stops() -> None:
    story = told(
        e.RunBegan(1),
        plan(A, B),
        Record(e.TaskDropped(5, 0, B), attempt=Attempt(B, why="no time left")),
    )
    assert states(story)[B] == "pending"
    assert story.tasks[B].dropped == [(0, "no time left")]
    assert story.jobs[0].state == "planned"
    story.hear(Record(e.JobSubmitted(6, 0, "7")))
    assert story.jobs[0].state == "waiting"
    story.hear(Record(e.RunStopped(7)))
    assert story.is_stopped
    assert story.jobs[0].is_asked_to_stop
    story.hear(Record(e.JobEnded(8, 0)))
    assert story.jobs[0].outcome == "cancelled"
    rejected = told(e.RunBegan(1), plan(A), e.JobRejected(2, 0, "no such account"))
    assert (rejected.trouble, rejected.jobs[0].outcome, states(rejected)[A]) == (
        "no such account",
        "rejected",
        "pending",
    )
