"""Tasks that join a run: the workflow, its record, core and story."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.manager.core import Core
from windrow.manager.terms import Terms
from windrow.model import File, NodeShape, Runnable, Step, Task, Workflow, WorkflowError
from windrow.model.site import Site
from windrow.records.runnable_file import RunnableRecord
from windrow.story import events as e
from windrow.story.events import Decide
from windrow.story.journal import Record, RunJournal
from windrow.story.states import TaskState
from windrow.story.story import RunStory
from windrow.strategies import Decision, JobPlan, Work, whole_seconds

A, B = Task("a", 5, outputs=("a.txt",)), Task("b", 7, parents=("a",), inputs=("a.txt",), cores=2)
BASE = Workflow.from_tasks("base", [A, B], [File("a.txt", 10)])
NEW = (
    Task("d", 3, parents=("c", "b")),
    Task("c", 2, parents=("a",), inputs=("a.txt",), outputs=("c.txt",)),
)


def added(*tasks: Task, at_s: int = 50, name: str = "1") -> e.TasksAdded:
    return e.TasksAdded(at_s, name, RunnableRecord("more", list(tasks), [], []))


def core_of(workflow: Workflow) -> Core:
    return Core(Work(workflow, whole_seconds(workflow), Site.of(4, NodeShape(2))), Terms())


def test_old_tasks_keep_their_numbers_and_new_ones_follow() -> None:
    grown = BASE.extended(NEW, [File("a.txt", 99), File("c.txt", 4)])
    assert grown.ids == ("a", "b", "d", "c")
    assert [grown.task(i) for i in range(2)] == [A, B]
    assert tuple(grown)[2:] == NEW
    assert grown.files == (File("a.txt", 10), File("c.txt", 4))
    assert grown.levels.tolist() == [0, 1, 2, 1]


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (Task("a", 1), "given more than once: a"),
        (Task("c", 1, parents=("x",)), "task c has unknown parents: x"),
        (Task("c", 1, outputs=("a.txt",)), "c writes a.txt, and so does a"),
        (Task("c", 1, parents=("d",)), "cycle: c -> d"),
        (
            Task("c", 1, parents=("b",), outputs=("a.txt/x/y",)),
            "c writes a.txt/x/y in a.txt, which a makes, but is not",
        ),
    ],
)
def test_what_does_not_go_with_a_workflow_is_refused(task: Task, words: str) -> None:
    with pytest.raises(WorkflowError, match=words):
        BASE.extended([task, Task("d", 1, parents=("c",))])


def test_where_tasks_run_in_different_folders_files_get_their_whole_paths() -> None:
    run = Runnable(BASE, (Step(("true",), "/one"), Step(("true",), "/one")))
    reads = Task("c", 1, parents=("a",), inputs=("../one/a.txt",), outputs=("c.txt",))
    grown, folder = run.extended([reads], [File("c.txt", 5)], [Step(("true",), "/two")])
    assert (folder, grown.workflow.task(1).inputs) == ("/one", ("/one/a.txt",))
    assert grown.workflow.task(2).inputs == ("/one/a.txt",)
    assert grown.workflow.files == (File("/one/a.txt", 10), File("/two/c.txt", 5))
    assert run.extended([Task("c", 1)], [], [Step(("true",), "/one")])[1] == ""


def test_the_record_says_it_all(tmp_path: Path) -> None:
    steps = [Step(("sh", "-c", "true"), "/one", (("K", "v"),), retries=2, runtime_known=False)] * 2
    event = e.TasksAdded(
        5, "abc", RunnableRecord("more", list(NEW), [File("c.txt", 4)], steps), "/one"
    )
    journal = RunJournal.create(tmp_path / "journal.sqlite", {})
    journal.append([Record(event, at_s=5.25)])
    ((_, record),) = journal.records()
    journal.close()
    assert record == Record(event, None, 5.25)
    assert tuple(record.event.added.tasks) == NEW  # type: ignore[union-attr]


def test_what_is_ready_what_waits_and_what_is_blocked() -> None:
    core = core_of(BASE)
    core.handle(e.RunBegan(0))
    core.handle(e.JobsPlanned(1, Decision((JobPlan((0, 1), 1, 12, 60),))))
    core.handle(e.JobStarted(2, 0))
    core.handle(e.TaskStarted(2, 0, 0))
    core.handle(e.TaskFinished(7, 0))
    assert core.handle(added(*NEW)) == [Decide()]
    core.check()
    view = core.view(50, lambda nodes, _: nodes)
    assert (view.ready, view.left.tolist()) == ((3,), [False, False, True, True])
    assert view.work.expected_s.tolist() == [5, 7, 3, 2]
    core.handle(e.TaskFailed(60, 1))
    assert core.blocked == {2}
    assert core.handle(added(Task("e", 1, parents=("d",)), Task("f", 1), name="2")) == [Decide()]
    core.check()
    assert core.blocked == {2, 4}
    assert core.view(61, lambda nodes, _: nodes).ready == (3, 5)
    assert core.additions == {"1", "2"}


def test_a_complete_run_is_open_again() -> None:
    core = core_of(BASE)
    story = RunStory.of(BASE, ())
    events: list[e.Event] = [e.RunBegan(0), e.TaskKept(0, 0), e.TaskKept(0, 1)]
    for event in events:
        core.handle(event)
        story.take_in(
            event,
            0.0,
            {"run": "r", "started_s": 0.0, "ended_s": 0.0} if isinstance(event, e.TaskKept) else {},
        )
    assert (core.is_complete, core.is_over, story.is_complete) == (True, True, True)
    assert core.handle(added(Task("c", 1, parents=("b",)))) == [Decide()]
    story.take_in(added(Task("c", 1, parents=("b",))), 50.0)
    assert (core.is_complete, core.is_over, story.is_complete) == (False, False, False)
    assert (story.additions[0].first, story.additions[0].count) == (2, 1)


Kind = type[e.TaskFinished] | type[e.TaskFailed] | type[e.TaskUndone]


def could_happen(kind: type[e.Event], task: int, story: RunStory) -> bool:
    states = [told.state for told in story.tasks]
    if kind is e.TaskUndone:
        below = {states[child] for child in story.workflow.children.of(task).tolist()}
        is_harmless = not below & {TaskState.FAILED, TaskState.BLOCKED}
        return states[task] is TaskState.FAILED or (
            states[task] is TaskState.FINISHED and is_harmless
        )
    above = {states[parent] for parent in story.workflow.parents.of(task).tolist()}
    return states[task] is TaskState.PENDING and above <= {TaskState.FINISHED}


@given(st.data())
def test_core_and_story_agree_and_growing_is_as_good_as_having_had_it(data: st.DataObject) -> None:
    """Additions at random places among random events, against a run that had all tasks from the
    beginning."""
    count = data.draw(st.integers(3, 12))
    parents = [
        data.draw(st.sets(st.integers(0, i - 1), max_size=3)) if i else set() for i in range(count)
    ]
    tasks = [
        Task(f"t{i}", 1 + i, parents=tuple(f"t{p}" for p in sorted(parents[i])))
        for i in range(count)
    ]
    known = data.draw(st.integers(1, count))
    core, whole = (
        core_of(Workflow.from_tasks("w", tasks[:known])),
        core_of(Workflow.from_tasks("w", tasks)),
    )
    story = RunStory.of(core.work.workflow, ())
    for step in range(3 * count):
        if known < count and data.draw(st.booleans()):
            more = data.draw(st.integers(1, count - known))
            event: e.Event = added(*reversed(tasks[known : known + more]), name=str(step))
            tasks[known : known + more] = reversed(tasks[known : known + more])
            known += more
        else:
            task = data.draw(st.integers(0, known - 1))
            kinds: tuple[Kind, ...] = (e.TaskFinished, e.TaskFailed, e.TaskUndone)
            kind = data.draw(st.sampled_from(kinds))
            if not could_happen(kind, task, story):
                continue
            event = kind(step, task)
        core.handle(event)
        story.take_in(event, float(step), {"maker": 0} if isinstance(event, e.TaskUndone) else {})
        if not isinstance(event, e.TasksAdded):
            whole.handle(kind(step, whole.work.workflow.number(tasks[task].id)))
        core.check()
        assert {
            n for n, t in enumerate(story.tasks) if t.state is TaskState.BLOCKED
        } == core.blocked
        assert {n for n, t in enumerate(story.tasks) if t.state is TaskState.FINISHED} == set(
            core.done().nonzero()[0]
        )
    ids = [task.id for task in tasks]
    numbers = [whole.work.workflow.number(name) for name in ids[:known]]
    ready = set(core.view(0, lambda nodes, _: nodes).ready)
    assert {ids[n] for n in ready} == {
        f"t{n}" for n in whole.view(0, lambda nodes, _: nodes).ready if n in numbers
    }
    assert not story.strays
