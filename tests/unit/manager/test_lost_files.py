"""Finished tasks whose outputs are gone: which run again, and that a run with them comes to its
end."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.report.told_runs import recorded

from windrow.manager.core import Core
from windrow.manager.terms import Terms
from windrow.model import Runnable, Task, Workflow
from windrow.model.site import Site
from windrow.report.run.explanation import explain_task
from windrow.story import events as e
from windrow.story.journal import Record
from windrow.story.lost_files import LostFile, is_gone_from, lost_files
from windrow.story.states import TaskState
from windrow.story.story import Kept, RunStory
from windrow.strategies import Decision, JobPlan, Work


def drawn(chance: random.Random) -> Workflow:
    """Up to nine tasks, each with one or two outputs; each reads some files of earlier ones."""
    files: list[str] = []
    tasks: list[Task] = []
    for number in range(chance.randint(1, 9)):
        read = sorted(chance.sample(files, chance.randint(0, min(3, len(files)))))
        makers = sorted({f"t{name[1:].partition('.')[0]}" for name in read})
        made = [f"f{number}.{i}" for i in range(chance.randint(1, 2))]
        tasks.append(
            Task(
                f"t{number}",
                5,
                parents=tuple(makers),
                inputs=tuple(read),
                outputs=tuple(made),
                command=("x",),
            )
        )
        files += made
    return Workflow.from_tasks("drawn", tasks)


def closed_below(workflow: Workflow, chance: random.Random) -> set[int]:
    """Tasks that may be done: with each, all that it needs."""
    done: set[int] = set()
    for task in range(len(workflow)):
        if chance.random() < 0.7 and done.issuperset(workflow.parents.of(task).tolist()):
            done.add(task)
    return done


@pytest.mark.slow
@given(st.randoms(use_true_random=False))
def test_exactly_what_is_needed_runs_again(chance: random.Random) -> None:
    """By the definition: the least set that holds every finished maker of a lost file which a task
    that runs reads."""
    workflow = drawn(chance)
    done = closed_below(workflow, chance)
    gone = {file.id for file in workflow.files if chance.random() < 0.4}
    left = [task for task in range(len(workflow)) if task not in done]
    found = lost_files(
        Runnable.of(workflow, "/w"), left, done.__contains__, lambda _, name: name in gone
    )
    expected: set[int] = set()
    for _ in range(len(workflow)):
        runs = expected.union(left)
        read = {name for task in runs for name in workflow.task(task).inputs} & gone
        expected = {task for task in done if read.intersection(workflow.task(task).outputs)}
    assert [lost.maker for lost in found] == sorted(expected)
    for lost in found:
        assert lost.reader is not None
        assert lost.file in gone
        assert lost.file in workflow.task(lost.maker).outputs
        assert lost.file in workflow.task(lost.reader).inputs
        assert lost.reader in expected.union(left)


@pytest.mark.slow
@given(st.randoms(use_true_random=False))
def test_of_a_complete_run_results_are_made_again(chance: random.Random) -> None:
    """The least set of makers of lost files which are results, or which a task of the set reads."""
    workflow = drawn(chance)
    gone = {file.id for file in workflow.files if chance.random() < 0.4}
    runnable = Runnable.of(workflow, "/w")
    found = lost_files(runnable, [], lambda _: True, lambda _, name: name in gone, results=True)
    read = {name for task in range(len(workflow)) for name in workflow.task(task).inputs}
    wanted = gone - read
    expected: set[int] = set()
    for _ in range(len(workflow) + 1):
        expected = {
            task
            for task in range(len(workflow))
            if wanted.intersection(workflow.task(task).outputs)
        }
        wanted |= {name for task in expected for name in workflow.task(task).inputs} & gone
    assert [lost.maker for lost in found] == sorted(expected)
    assert all(
        lost.file in workflow.task(lost.maker).outputs and lost.file in gone for lost in found
    )


class Driver:
    """Runs tasks one by one, each in a job of its own, and notes how often."""

    def __init__(self, workflow: Workflow, chance: random.Random) -> None:
        work = Work(workflow, np.full(len(workflow), 5, dtype=np.int64), Site.of(4))
        self.core = Core(work, Terms())
        self.workflow, self.chance, self.ran = workflow, chance, Counter[int]()
        self.core.handle(e.RunBegan(0))

    @property
    def ready(self) -> tuple[int, ...]:
        return self.core.view(0, lambda nodes, _: nodes).ready

    def step(self, *, fails: bool = False) -> None:
        task = self.chance.choice(self.ready)
        assert all(self.core.is_done(parent) for parent in self.workflow.parents.of(task).tolist())
        number = self.core.submitted
        end = e.TaskFailed(0, task) if fails else e.TaskFinished(0, task)
        plan = e.JobsPlanned(0, Decision((JobPlan((task,), 1, 5, 60),)))
        for event in (
            plan,
            e.JobStarted(0, number),
            e.TaskStarted(0, number, task),
            end,
            e.JobEnded(0, number),
        ):
            self.core.handle(event)
            self.core.check()
        self.ran[task] += 1


@pytest.mark.slow
@given(st.randoms(use_true_random=False), st.booleans())
def test_a_run_with_undone_tasks_comes_to_its_end(chance: random.Random, fails: bool) -> None:
    workflow = drawn(chance)
    driver = Driver(workflow, chance)
    core = driver.core
    for _ in range(chance.randint(1, len(workflow))):
        if driver.ready:
            driver.step()
    undone = [task for task in sorted(driver.ran) if chance.random() < 0.5]
    for task in undone:
        core.handle(e.TaskUndone(1, task))
        core.check()
    if fails and driver.ready:
        driver.step(fails=True)
    while driver.ready:
        driver.step()
    assert core.is_over
    assert core.is_complete or core.failed
    expected = Counter(range(len(workflow))) + Counter(undone)
    if core.is_complete:
        assert driver.ran == expected
    for task in core.blocked:
        assert not core.is_done(task)
    assert len(core.blocked) + len(core.failed) == sum(
        not core.is_done(task) for task in range(len(workflow))
    )


@pytest.mark.slow
@given(st.randoms(use_true_random=False))
def test_one_failed_task_is_tried_again_and_no_other(chance: random.Random) -> None:
    """Two tasks failed; one is tried again: what the other blocks stays blocked, everything else
    comes to its end."""
    workflow = drawn(chance)
    driver = Driver(workflow, chance)
    core = driver.core
    while driver.ready:
        driver.step(fails=chance.random() < 0.3)
    if not core.failed:
        return
    again = chance.choice(sorted(core.failed))
    others = core.failed - {again}
    story = RunStory.of(workflow, [Record(e.TaskFailed(0, task)) for task in sorted(core.failed)])
    core.handle(e.TaskUndone(1, again))
    story.hear(Record(e.TaskUndone(1, again), {"maker": again}))
    core.check()
    assert core.failed == others
    while driver.ready:
        driver.step()
    assert core.is_over
    assert core.failed == others
    blocked = {task for task in range(len(workflow)) if story.tasks[task].state == "blocked"}
    assert core.blocked == {task for task in blocked if not core.is_done(task)}


def test_what_was_kept_is_done_without_an_attempt() -> None:
    workflow = Workflow.from_tasks("w", [Task("a", 1), Task("b", 1, parents=("a",))])
    driver = Driver(workflow, random.Random(1))
    kept = Record(
        e.TaskKept(0, 0), {"run": "w-1", "started_s": 1.0, "ended_s": 2.0, "hosts": ["n1"]}
    )
    story = RunStory.of(workflow, [kept])
    driver.core.handle(kept.event)
    assert driver.ready == (1,)
    assert story.tasks[0].state == "finished"
    assert story.tasks[0].kept == Kept("w-1", 1.0, 2.0, ("n1",))
    assert "kept from w-1" in explain_task(recorded(story), 0)[1]
    driver.step()
    assert driver.core.is_complete


def test_undoing_what_is_not_done_changes_nothing() -> None:
    driver = Driver(Workflow.from_tasks("one", [Task("t", 5)]), random.Random(1))
    assert driver.core.handle(e.TaskUndone(0, 0)) == []
    assert driver.ready == (0,)


def test_what_can_be_said_to_be_gone(tmp_path: Path) -> None:
    (tmp_path / "there").touch()
    assert not is_gone_from(str(tmp_path), "there")
    assert is_gone_from(str(tmp_path), "gone")
    assert is_gone_from(str(tmp_path), "no/folder/either")
    assert is_gone_from("/", str(tmp_path / "gone"))
    assert not is_gone_from(str(tmp_path / "unmounted"), "gone")
    assert not is_gone_from(str(tmp_path), "x" * 5000)  # no name that the system could look for


@pytest.mark.parametrize("kind", ["dangling", "folder"])
def test_links_and_folders_count_as_what_they_lead_to(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "made"
    if kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "nothing")
    assert is_gone_from(str(tmp_path), "made") == (kind == "dangling")


def test_the_story_tells_why_a_task_runs_again() -> None:
    made = Task("maker", 1, outputs=("f",))
    workflow = Workflow.from_tasks(
        "w", [made, Task("reader", 1, parents=("maker",), inputs=("f",))]
    )
    plan = e.JobsPlanned(0, Decision((JobPlan((0,), 1, 5, 60),)))
    lost = {"maker": 0, "file": "f", "reader": 1}
    before = [
        Record(event)
        for event in (e.RunBegan(0), plan, e.TaskStarted(1, 0, 0), e.TaskFinished(2, 0))
    ]
    story = RunStory.of(
        workflow, [*before, Record(e.JobEnded(3, 0)), Record(e.TaskUndone(9, 0), lost)]
    )
    assert (story.tasks[0].state, story.count(TaskState.FINISHED)) == ("pending", 0)
    assert story.tasks[0].undone == [(9.0, LostFile(0, "f", 1))]
    assert any(
        "task maker runs again: its output f is gone, and reader needs it" in line
        for line in explain_task(recorded(story), 0)
    )
