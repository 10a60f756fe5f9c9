"""Limits, loose ends, priorities, later tries and stops: core and story, event by event."""

from __future__ import annotations

from tests.unit.manager.test_growth import core_of

from windrow.manager.core import Core
from windrow.model import Task, Workflow
from windrow.model.cause import Cause
from windrow.model.rules import Rules, Take
from windrow.records.runnable_file import RunnableRecord
from windrow.story import events as e
from windrow.story.events import Decide
from windrow.story.story import RunStory
from windrow.strategies import Decision, JobPlan

ONE = Rules(takes=(Take("net", 1, 2),))
GIB = 1 << 30


def both(workflow: Workflow, *events: e.Event) -> tuple[Core, RunStory]:
    core = core_of(workflow)
    story = RunStory.of(workflow, ())
    hear(core, story, *events)
    return core, story


def hear(core: Core, story: RunStory, *events: e.Event) -> list[object]:
    actions: list[object] = []
    for event in events:
        actions += core.handle(event)
        core.check()
        lost = {"maker": event.task} if isinstance(event, e.TaskUndone) else None
        story.take_in(event, float(event.at_s), lost)
    return actions


def states(story: RunStory) -> str:
    return "".join(task.state[0] for task in story.tasks)


def plans(*jobs: tuple[int, ...]) -> Decision:
    return Decision(tuple(JobPlan(job, 1, 10, 60) for job in jobs))


def visible(core: Core) -> list[int]:
    return core.view(0, lambda nodes, _: nodes * 0).left.nonzero()[0].tolist()


def test_jobs_get_shares_of_a_limit_and_tasks_without_one_wait() -> None:
    tasks = [Task(f"t{n}", 5, rules=ONE) for n in range(5)] + [Task("after", 5, parents=("t4",))]
    workflow = Workflow.from_tasks("w", tasks)
    core, story = both(workflow, e.RunBegan(0))
    decided = core.fitted(plans((0,), (1, 2), (3, 4, 5)))
    assert [job.tasks for job in decided.jobs] == [(0,), (1, 2)]
    hear(core, story, e.JobsPlanned(1, decided))
    assert [job.shares for job in core.jobs.values()] == [{"net": 1}, {"net": 1}]
    assert visible(core) == []  # nor what comes after them
    hear(core, story, e.JobStarted(2, 0), e.TaskStarted(2, 0, 0))
    assert Decide() in hear(core, story, e.TaskFinished(7, 0))
    assert visible(core) == [3, 4, 5]


def test_a_job_within_a_share_asks_for_the_time_that_its_tasks_need_one_after_another() -> None:
    workflow = Workflow.from_tasks("w", [Task(f"t{n}", 30, rules=ONE) for n in range(8)])
    core, _ = both(workflow, e.RunBegan(0))
    (job,) = core.fitted(Decision((JobPlan(tuple(range(8)), 8, 30, 60),))).jobs
    assert job.run_s == 120
    assert job.requested_s >= 120


LOOSE = Workflow.from_tasks(
    "loose",
    [
        Task("a", 5),
        Task("b", 5, parents=("a",)),
        Task("tidy", 5, parents=("a", "b"), rules=Rules(loose=("a", "b"))),
        Task("then", 5, parents=("tidy",)),
    ],
)
BEGUN = (
    e.RunBegan(0),
    e.JobsPlanned(1, plans((0, 1, 2, 3))),
    e.JobStarted(2, 0),
    e.TaskStarted(2, 0, 0),
)


def test_a_loose_end_waits_for_its_parent_and_runs_if_that_fails() -> None:
    core, story = both(LOOSE, *BEGUN)
    assert core.open_parents(2) == {0, 1}
    hear(core, story, e.TaskFailed(5, 0))
    assert states(story) == "fbss"
    hear(core, story, e.TaskDropped(5, 0, 1), e.TaskDropped(5, 0, 2), e.TaskDropped(5, 0, 3))
    hear(core, story, e.JobEnded(6, 0))
    assert visible(core) == [2, 3]
    assert core.open_parents(2) == set()
    assert [task for *_, task in core._ready] == [2]
    again = (e.JobsPlanned(7, plans((2, 3))), e.JobStarted(8, 1), e.TaskStarted(8, 1, 2))
    hear(core, story, *again, e.TaskFinished(9, 2), e.TaskStarted(9, 1, 3), e.TaskFinished(9, 3))
    hear(core, story, e.JobEnded(9, 1))
    assert core.is_over
    assert not core.is_complete


def test_a_loose_end_waits_again_if_what_failed_is_tried_again() -> None:
    core, story = both(LOOSE, *BEGUN, e.TaskFailed(5, 0))
    hear(core, story, e.TaskDropped(5, 0, 2), e.TaskDropped(5, 0, 3), e.JobEnded(6, 0))
    assert [task for *_, task in core._ready] == [2]
    hear(core, story, e.RunBegan(9))
    assert [task for *_, task in core._ready] == [0]
    assert core.open_parents(2) == {0, 1}
    assert visible(core) == [0, 1, 2, 3]


def test_the_most_urgent_tasks_are_the_first_to_be_planned() -> None:
    tasks = [Task("a", 5), Task("b", 50), Task("c", 1, rules=Rules(priority=2))]
    core, _ = both(Workflow.from_tasks("w", tasks), e.RunBegan(0))
    assert core.view(0, lambda nodes, _: nodes * 0).ready == (2, 1, 0)


def test_another_try_is_to_have_more_and_retries_are_counted_over_jobs() -> None:
    rules = Rules(memories=(GIB, 2 * GIB, 4 * GIB))
    workflow = Workflow.from_tasks("w", [Task("a", 5, memory_bytes=GIB, rules=rules)])
    core, story = both(workflow, e.RunBegan(0), e.JobsPlanned(1, plans((0,))), e.JobStarted(1, 0))
    hear(core, story, e.TaskStarted(1, 0, 0), e.TaskRetried(2, 0, 0), e.TaskDropped(2, 0, 0))
    assert core.tries[0] == 1
    assert core.work.workflow.task(0).memory_bytes == 2 * GIB
    hear(core, story, e.JobEnded(3, 0), e.JobsPlanned(4, plans((0,))), e.JobStarted(4, 1))
    hear(core, story, e.TaskStarted(4, 1, 0), e.TaskFailed(5, 0), e.JobEnded(5, 1), e.RunBegan(9))
    assert core.tries[0] == 0


def test_a_failure_that_stops_the_run_lets_only_loose_ends_start() -> None:
    tasks = [
        Task("fatal", 5, rules=Rules(stops=True)),
        Task("runs", 5),
        Task("waits", 5),
        Task("tidy", 5, parents=("fatal",), rules=Rules(loose=("fatal",))),
    ]
    core, story = both(Workflow.from_tasks("w", tasks), *BEGUN, e.TaskStarted(2, 0, 1))
    hear(core, story, e.TaskFailed(4, 0))
    assert states(story) == "frbs"
    assert core.blocked == {2}
    more = e.TasksAdded(5, "x", RunnableRecord("w", [Task("new", 5)], [], []))
    hear(core, story, more)
    assert states(story) == "frbsb"
    assert core.blocked == {2, 4}
    hear(core, story, e.RunBegan(9))
    assert core.blocked == set()


FAILING = Workflow.from_tasks(
    "failing",
    [
        Task("a", 5),
        Task("mail", 5, parents=("a",), rules=Rules(loose=("a",), if_failed=("a",))),
        Task("sent", 5, parents=("mail",)),
        Task("tidy", 5, parents=("sent",), rules=Rules(loose=("sent",))),
        Task("again", 5, parents=("mail",), rules=Rules(loose=("mail",), if_failed=("mail",))),
    ],
)
A_RUNS = (
    e.RunBegan(0),
    e.JobsPlanned(1, plans((0,))),
    e.JobStarted(2, 0),
    e.TaskStarted(2, 0, 0),
)


def test_what_is_for_a_failure_is_skipped_with_what_needs_it_if_none_comes() -> None:
    core, story = both(FAILING, *A_RUNS)
    assert visible(core) == []
    hear(core, story, e.TaskFinished(7, 0), e.JobEnded(8, 0))
    assert story.strays == []
    assert [task.state for task in story.tasks] == [
        *("finished", "skipped", "skipped", "pending", "skipped")
    ]
    assert visible(core) == [3]
    hear(core, story, e.JobsPlanned(9, plans((3,))), e.JobStarted(9, 1), e.TaskStarted(9, 1, 3))
    hear(core, story, e.TaskFinished(12, 3), e.JobEnded(13, 1))
    assert (core.is_complete, core.is_over, story.is_complete) == (True, True, True)
    # ... which may come after all
    hear(core, story, e.TaskUndone(20, 0))
    assert visible(core) == [0]
    assert [task.state for task in story.tasks] == [*["pending"] * 3, "finished", "pending"]
    hear(core, story, e.JobsPlanned(21, plans((0,))), e.JobStarted(22, 2), e.TaskStarted(22, 2, 0))
    hear(core, story, e.TaskFailed(23, 0), e.JobEnded(24, 2))
    assert visible(core) == [1, 2]
    assert story.strays == []


def test_what_is_for_a_failure_runs_when_it_comes() -> None:
    core, story = both(FAILING, *A_RUNS)
    assert Decide() in hear(core, story, e.TaskFailed(7, 0), e.JobEnded(8, 0))
    assert visible(core) == [1, 2, 3]
    hear(core, story, e.JobsPlanned(9, plans((1, 2, 3))), e.JobStarted(9, 1))
    for task in (1, 2, 3):
        hear(core, story, e.TaskStarted(9, 1, task), e.TaskFinished(12, task))
    hear(core, story, e.JobEnded(13, 1))
    assert (core.is_complete, core.is_over, story.is_complete) == (False, True, False)
    assert [task.state for task in story.tasks] == ["failed", *["finished"] * 3, "skipped"]
    # Another try succeeds: what had been done for the failure stays done.
    hear(core, story, e.RunBegan(20), e.JobsPlanned(21, plans((0,))), e.JobStarted(22, 2))
    hear(core, story, e.TaskStarted(22, 2, 0), e.TaskFinished(23, 0), e.JobEnded(24, 2))
    assert (core.is_complete, story.is_complete) == (True, True)
    assert story.strays == []


def test_a_run_that_begins_again_still_skips() -> None:
    core, story = both(FAILING, *A_RUNS)
    hear(core, story, e.TaskFinished(7, 0), e.JobEnded(8, 0), e.RunBegan(10))
    assert visible(core) == [3]
    assert [task.state for task in story.tasks][1:] == [*["skipped"] * 2, "pending", "skipped"]


def test_what_is_undone_does_not_start_after_a_failure_that_stops_the_run() -> None:
    tasks = [Task("bad", 5, rules=Rules(stops=True)), Task("made", 5), Task("other", 5)]
    core, story = both(
        Workflow.from_tasks("w", tasks), e.RunBegan(0), e.JobsPlanned(1, plans((0, 1)))
    )
    hear(core, story, e.JobStarted(2, 0), e.TaskStarted(2, 0, 1), e.TaskFinished(3, 1))
    hear(core, story, e.TaskStarted(3, 0, 0), e.TaskFailed(4, 0), e.JobEnded(5, 0))
    hear(core, story, e.TaskUndone(6, 1))
    assert visible(core) == []
    assert states(story) == "fbb"
    assert core.is_over
    hear(core, story, e.RunBegan(7))
    assert visible(core) == [0, 1, 2]
    assert states(story) == "ppp"


def test_what_is_lost_does_not_start_again_after_a_failure_that_stops_the_run() -> None:
    tasks = [Task("bad", 5, rules=Rules(stops=True)), Task("runs", 50)]
    core, story = both(
        Workflow.from_tasks("w", tasks), e.RunBegan(0), e.JobsPlanned(1, plans((0, 1)))
    )
    hear(core, story, e.JobStarted(2, 0), e.TaskStarted(2, 0, 0), e.TaskStarted(2, 0, 1))
    hear(core, story, e.TaskFailed(4, 0), e.JobKilled(5, 0, Cause.LOST))
    assert visible(core) == []
    assert states(story) == "fb"
    assert core.is_over


def test_what_needs_something_that_a_stop_blocks_is_blocked_though_it_is_loose_elsewhere() -> None:
    tasks = [
        Task("bad", 5, rules=Rules(stops=True)),
        Task("never", 5),
        Task("both", 5, parents=("bad", "never"), rules=Rules(loose=("bad",))),
        Task("tidy", 5, parents=("bad",), rules=Rules(loose=("bad",))),
    ]
    core, story = both(
        Workflow.from_tasks("w", tasks), e.RunBegan(0), e.JobsPlanned(1, plans((0,)))
    )
    hear(core, story, e.JobStarted(2, 0), e.TaskStarted(2, 0, 0), e.TaskFailed(4, 0))
    hear(core, story, e.JobEnded(5, 0))
    assert visible(core) == [3]
    assert states(story) == "fbbp"
