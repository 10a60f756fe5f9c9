"""Tasks that are cancelled or changed while their run goes on: core and story."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.manager.test_growth import core_of

from windrow.errors import UserError
from windrow.manager.core import Core
from windrow.model import Task, Workflow, WorkflowError
from windrow.records.runnable_file import RunnableRecord
from windrow.story import events as e
from windrow.story.events import Abandon, Decide, StopJob
from windrow.story.states import TaskState
from windrow.story.story import RunStory
from windrow.strategies import Decision, JobPlan

CHAIN = Workflow.from_tasks(
    "chain",
    [Task("a", 5), Task("b", 5, parents=("a",)), Task("c", 5, parents=("b",)), Task("d", 5)],
)


def amended(*tasks: Task, name: str = "1") -> e.TasksAmended:
    return e.TasksAmended(9, name, RunnableRecord("w", list(tasks), [], []))


def both(*events: e.Event) -> tuple[Core, RunStory]:
    core = core_of(CHAIN)
    story = RunStory.of(CHAIN, ())
    for event in events:
        core.handle(event)
        core.check()
        story.take_in(event, float(event.at_s), {} if isinstance(event, e.TaskUndone) else None)
    return core, story


def states(story: RunStory) -> str:
    return "".join(task.state[0] for task in story.tasks)


PLANNED = (
    e.RunBegan(0),
    e.JobsPlanned(1, Decision((JobPlan((0, 1, 2, 3), 1, 12, 60),))),
    e.JobStarted(2, 0),
    e.TaskStarted(2, 0, 0),
)


def test_a_cancelled_task_that_ends_with_a_checkpoint_stays_cancelled() -> None:
    _, story = both(*PLANNED, e.TasksCancelled(3, (0,)), e.TaskCheckpointed(4, 0, 0, 2, ended=True))
    assert (states(story), story.strays) == ("cbbs", [])


def test_a_task_that_runs_is_cancelled_and_what_needs_it_is_blocked() -> None:
    core, story = both(*PLANNED)
    actions = core.handle(e.TasksCancelled(3, (0,)))
    assert Abandon((0,), ends=True) in actions
    assert Abandon((1, 2)) in [Abandon(a.tasks) for a in actions if isinstance(a, Abandon)] or (
        Abandon((0, 1, 2)) in actions
    )
    core.check()
    story.take_in(e.TasksCancelled(3, (0,)), 3.0)
    assert states(story) == "cbbs"
    assert (core.cancelled, core.blocked, core.recalled) == ({0}, {1, 2}, {0: {0}})
    core.handle(e.TaskDropped(4, 0, 0))
    story.take_in(e.TaskDropped(4, 0, 0), 4.0)
    assert (core.recalled[0], states(story)) == (set(), "cbbs")
    for event in (e.TaskFinished(9, 3), e.JobEnded(9, 0)):
        core.handle(event)
        story.take_in(event, 9.0)
    assert (core.is_over, core.is_complete, story.has_open) == (True, False, False)
    core.handle(e.RunBegan(10))
    story.take_in(e.RunBegan(10), 10.0)
    assert (core.is_over, states(story)) == (True, "cbbf"), "a cancelled task is not retried"
    assert core.handle(e.TaskUndone(11, 0)) == [Decide()], "unless the user says so"
    core.check()
    assert (core.cancelled, core.blocked, core.is_over) == (set(), set(), False)


def test_one_that_finished_before_it_could_be_ended_blocks_nothing() -> None:
    core, story = both(*PLANNED, e.TasksCancelled(3, (0,)), e.TaskFinished(3, 0))
    assert (core.cancelled, core.failed, core.blocked, core.recalled) == (set(), set(), set(), {})
    assert states(story) == "fpps"
    core.check()


def test_to_be_changed_a_task_leaves_a_job_that_waits() -> None:
    core, story = both(*PLANNED[:2])
    assert StopJob(0) in core.handle(e.TasksCancelled(3, (1,), to_amend=True))
    core.check()
    story.take_in(e.TasksCancelled(3, (1,), to_amend=True), 3.0)
    assert core.recalled == {1: {0}}
    core.handle(e.JobEnded(4, 0))
    story.take_in(e.JobEnded(4, 0), 4.0)
    assert core.recalled == {1: set()}
    change = amended(Task("b", 50, parents=("a", "d"), cores=2))
    assert Decide() in core.handle(change)
    core.check()
    story.take_in(change, 9.0)
    assert states(story) == "pppp"
    view = core.view(9, lambda nodes, _: nodes)
    assert (view.ready, view.work.expected_s.tolist()) == ((0, 3), [5, 50, 5, 5])
    assert view.work.workflow.task(1) == Task("b", 50, parents=("a", "d"), cores=2)
    core.handle(e.TaskFinished(10, 0))
    assert not core.is_ready(1)
    core.handle(e.TaskFinished(11, 3))
    assert core.is_ready(1)


def test_a_failed_task_that_is_changed_runs_again_and_one_behind_a_failed_one_does_not() -> None:
    core, story = both(e.RunBegan(0), e.TaskFailed(1, 3))
    change = amended(Task("a", 5, parents=("d",)), name="1")
    core.handle(change)
    story.take_in(change, 2.0)
    core.check()
    assert (core.blocked, states(story)) == ({0, 1, 2}, "bbbf")
    change = amended(Task("d", 5, memory_bytes=100), name="2")
    assert Decide() in core.handle(change)
    story.take_in(change, 3.0)
    core.check()
    assert (core.blocked, core.failed, states(story)) == (set(), set(), "pppp")


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (Task("x", 1), "there is no task x"),
        (Task("a", 1, outputs=("f",)), "a must write what it wrote"),
        (Task("a", 1, parents=("c",)), "cycle"),
        (Task("a", 1, parents=("nothere",)), "unknown parents"),
        (Task("a", 1, cores=99), "a node has 2"),
    ],
)
def test_what_does_not_go_with_the_run_is_refused(task: Task, words: str) -> None:
    core, _ = both(e.RunBegan(0))
    with pytest.raises((WorkflowError, UserError), match=words):
        core.amended(amended(task))
    core.check()


@given(st.data())
def test_core_and_story_agree_on_cancelled_and_changed_tasks(data: st.DataObject) -> None:
    count = data.draw(st.integers(2, 8))
    parents = [
        data.draw(st.sets(st.integers(0, i - 1), max_size=2)) if i else set() for i in range(count)
    ]
    workflow = Workflow.from_tasks(
        "w",
        [
            Task(f"t{i}", 5, parents=tuple(f"t{p}" for p in sorted(parents[i])))
            for i in range(count)
        ],
    )
    core = core_of(workflow)
    story = RunStory.of(workflow, ())
    events: list[e.Event] = [e.RunBegan(0)]
    for n in range(data.draw(st.integers(1, 12))):
        task = data.draw(st.integers(0, count - 1))
        state = story.tasks[task].state
        kind = data.draw(st.sampled_from(["cancel", "amend", "finish", "fail", "retry", "begin"]))
        if kind == "cancel" and state is not TaskState.FINISHED:
            events.append(e.TasksCancelled(n, (task,)))
        elif kind == "amend" and state is not TaskState.FINISHED:
            above = data.draw(st.sets(st.integers(0, task - 1), max_size=2)) if task else set()
            now = Task(f"t{task}", 7, parents=tuple(f"t{p}" for p in sorted(above)))
            events.append(e.TasksAmended(n, str(n), RunnableRecord("w", [now], [], [])))
        elif (
            kind == "finish"
            and core.is_ready(task)
            and state
            in (
                TaskState.PENDING,
                TaskState.CANCELLED,
            )
        ):
            events.append(e.TaskFinished(n, task))
        elif kind == "fail" and core.is_ready(task) and state is TaskState.PENDING:
            events.append(e.TaskFailed(n, task))
        elif kind == "retry" and state in (TaskState.FAILED, TaskState.CANCELLED):
            events.append(e.TaskUndone(n, task))
        elif kind == "begin":
            events.append(e.RunBegan(n))
        for event in events:
            core.handle(event)
            detail = {"maker": task} if isinstance(event, e.TaskUndone) else None
            story.take_in(event, float(n), detail)
        events = []
        core.check()
        told = {
            state: {n for n, one in enumerate(story.tasks) if one.state is state}
            for state in TaskState
        }
        assert told[TaskState.CANCELLED] == core.cancelled
        assert told[TaskState.FAILED] == core.failed - core.cancelled
        assert told[TaskState.BLOCKED] == core.blocked
        ready = set(core.view(n, lambda nodes, _: nodes).ready)
        done = told[TaskState.FINISHED]
        waits_for = core.work.workflow.parents
        assert ready == {
            t for t in told[TaskState.PENDING] if set(waits_for.of(t).tolist()) <= done
        }
    assert not story.strays
