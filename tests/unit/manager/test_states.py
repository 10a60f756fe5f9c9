"""The tables of states: whole, and without dead ends but those that are meant."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import pytest

from windrow.model import Task, Workflow
from windrow.story import events as e
from windrow.story.states import JOB_MOVES, RUN_MOVES, TASK_MOVES, JobStage, RunState, TaskState
from windrow.story.story import RunStory

TABLES: list[tuple[type[StrEnum], Mapping[Any, tuple[StrEnum, ...]], StrEnum]] = [
    (TaskState, TASK_MOVES, TaskState.PENDING),
    (JobStage, JOB_MOVES, JobStage.PLANNED),
    (RunState, RUN_MOVES, RunState.RUNNING),
]


@pytest.mark.parametrize(("states", "moves", "first"), TABLES)
def test_every_state_is_in_the_table_and_can_be_reached(
    states: type[StrEnum], moves: Mapping[Any, tuple[StrEnum, ...]], first: StrEnum
) -> None:
    assert set(moves) == set(states)
    reached, stack = {first}, [first]
    while stack:
        new = set(moves[stack.pop()]) - reached
        reached |= new
        stack += new
    assert reached == set(states)
    assert all(state not in after for state, after in moves.items())


def test_what_no_table_allows_is_noted_and_stops_nobody() -> None:
    story = RunStory.of(Workflow.from_tasks("w", [Task("a", 1)]), ())
    story.take_in(e.TaskFinished(1, 0), 1.0)
    story.take_in(e.TaskUndone(2, 0), 2.0, {"maker": 0})
    assert not story.strays
    story.tasks[0].state = TaskState.FINISHED
    story._move(story.tasks[0], TaskState.BLOCKED)
    assert story.strays == [("finished", "blocked")]
    assert story.tasks[0].state is TaskState.BLOCKED
