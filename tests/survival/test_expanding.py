"""Tasks that say what comes after them: their tasks join the run once, wherever a manager dies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.examples import FUZZ
from tests.survival.toy import Fate, VirtualRun, braid, toy

from windrow.errors import UserError
from windrow.model import Runnable, Step, Task, Workflow
from windrow.model.rules import Rules
from windrow.records.runnable_file import RunnableRecord
from windrow.story.events import EXPANDS, TasksAdded
from windrow.story.states import TaskState
from windrow.trials.virtual import shell


def said(maker: str, *names: str, expands: str = "") -> TasksAdded:
    """What this task says: these tasks, of which the first may say more."""
    tasks = [Task(name, 3, parents=(maker,)) for name in names]
    if expands:
        tasks[0] = replace(tasks[0], rules=Rules(expands=expands))
    record = RunnableRecord("more", tasks, [], [Step(("true",), "/")] * len(tasks))
    return TasksAdded(0, f"{EXPANDS}{maker}", record, maker=maker)


def expanding(path: Path, *, has_more: bool = True) -> VirtualRun:
    """A braid of which one task says that two more come, of which one says that a third comes; and
    one that nothing does."""
    plain = braid()
    makers = ("up-1", "down-0") if has_more else ("down-0",)
    tasks = [
        replace(task, rules=Rules(expands=f"{task.id}.yaml")) if task.id in makers else task
        for task in plain.workflow
    ]
    run = toy(path, runnable=Runnable(Workflow.from_tasks("braid", tasks), plain.steps))
    run.expansions = {
        "up-1": said("up-1", "more-1", "more-2", expands="more-1.yaml"),
        "more-1": said("more-1", "last-of-all"),
        "down-0": said("down-0"),
    }
    if not has_more:
        run.expansions = {"down-0": said("down-0")}
    return run


def test_what_tasks_say_joins_the_run_and_belongs_to_them(folder: Path) -> None:
    run = expanding(folder / "run")
    assert run.go_on()
    run.check_complete()
    story = run.story()
    assert story.workflow.ids[-3:] == ("more-1", "more-2", "last-of-all")
    assert [one.event.maker for one in story.additions if one.count] == ["up-1", "more-1"]
    assert [one.count for one in story.belonging_to("down-0")] == [0]
    assert story.unread_makers == []
    assert story.strays == []


def test_a_run_is_not_over_while_nobody_has_read_what_is_said(folder: Path) -> None:
    run = expanding(folder / "run", has_more=False)
    seen = []
    run.each_look = lambda: seen.append(run.manager is not None and run.manager.expanding is None)
    assert run.go_on()
    assert seen[0]
    assert not seen[-1]
    assert [one.count for one in run.story().additions] == [0]


def test_a_file_that_cannot_be_used_fails_its_task(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_self: shell.Said, _task: int) -> TasksAdded:
        raise UserError("more.yaml:1: a task without id; add id: align")

    run = expanding(folder / "run", has_more=False)
    monkeypatch.setattr(shell.Said, "read", refuse)
    assert run.go_on()
    story = run.story()
    task = story.tasks[story.workflow.number("down-0")]
    assert task.state is TaskState.FAILED
    assert task.last is not None
    assert task.last.why == "more.yaml:1: a task without id; add id: align"
    assert story.tasks[story.workflow.number("last")].state is TaskState.BLOCKED


def test_a_task_that_runs_again_must_say_the_same(folder: Path) -> None:
    run = expanding(folder / "run")
    assert run.go_on()
    maker = run.story().workflow.number("up-1")
    run.world.wishes.repeated.add(maker)
    assert run._managed(None, lambda manager: manager.begin([maker]))
    run.check_complete()
    assert len(run.story().additions) == 3
    other = replace(run.expansions["up-1"], id=f"{EXPANDS}other")
    run.expansions = {**run.expansions, "up-1": other}
    assert run._managed(None, lambda manager: manager.begin([maker]))
    last = run.story().tasks[maker].last
    assert last is not None
    assert "up-1 has run again and its file says something else now: windrow resume" in last.why


@pytest.mark.slow
def test_at_every_place(folder: Path) -> None:
    whole = expanding(folder / "whole")
    fate = Fate()
    assert whole.go_on(fate)
    for deadly in range(0, fate.passed, 1 if FUZZ else 7):
        run = expanding(folder / str(deadly))
        assert not run.go_on(Fate(deadly))
        run.survive()
        assert run.story().workflow.ids == whole.story().workflow.ids
        assert set(run.world.started.values()) == {1}, f"died at place {deadly}"
