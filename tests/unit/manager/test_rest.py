"""What is left of a run, played forwards by hand: when its last task ends."""

from __future__ import annotations

from math import inf

import pytest

from windrow.model import Task, Workflow
from windrow.story.rest import JobsToCome, JobThere, Manner, Rest, end_of

HERE = JobThere(nodes=2, begin_s=100)
NOW_S = 100
ALL_IN_ONE = dict.fromkeys(range(6), 0)


def diamond() -> Workflow:
    """One, then four, then one, ten seconds each."""
    middle = [Task(f"m{n}", 10, parents=("a",)) for n in range(4)]
    last = Task("z", 10, parents=tuple(task.id for task in middle))
    return Workflow.from_tasks("diamond", [Task("a", 10), *middle, last])


def left_s(
    manner: Manner,
    homes: dict[int, int] | None = None,
    there: JobThere = HERE,
    takes_s: tuple[float, ...] = (10,) * 6,
    limit: float | None = None,
) -> float:
    """How long it takes in jobs of two nodes that start three seconds later than they could."""
    to_come = JobsToCome(manner, 3, 2, limit)
    rest = Rest(diamond(), homes or {}, {0: there} if homes else {}, to_come, cores=1)
    return end_of(rest, dict(enumerate(takes_s)), NOW_S) - NOW_S


@pytest.mark.parametrize("manner", list(Manner))
def test_two_nodes_take_four_tasks_in_two_turns(manner: Manner) -> None:
    assert left_s(manner) == 3 + 10 + 3 + 20 + 3 + 10


def test_a_job_that_is_there_needs_no_gaps() -> None:
    assert left_s(Manner.ALL, ALL_IN_ONE) == 40
    assert left_s(Manner.ALL, ALL_IN_ONE, JobThere(4, 107)) == 37


def test_what_a_job_does_not_get_done_starts_again_in_the_next() -> None:
    """The limit is in the middle of the last task."""
    assert left_s(Manner.ALL, ALL_IN_ONE, JobThere(2, 100, 135)) == 35 + 3 + 10


def test_levels_wait_for_the_longest_task_and_others_do_not() -> None:
    takes_s = (10.0, 10.0, 10.0, 10.0, 25.0, 10.0)
    assert left_s(Manner.LEVELS, takes_s=takes_s) == 3 + 10 + 3 + 10 + 25 + 3 + 10
    chains = [Task("a", 10), Task("b", 10), Task("c", 10, parents=("a",))]
    flow = Workflow.from_tasks("chains", [*chains, Task("d", 10, parents=("b",))])
    ends = {}
    for manner in (Manner.LEVELS, Manner.ALL):
        rest = Rest(flow, {}, {}, JobsToCome(manner, 0, 2, None), cores=1)
        ends[manner] = end_of(rest, {0: 10, 1: 30, 2: 30, 3: 10}, 0)
    assert ends == {Manner.LEVELS: 60, Manner.ALL: 40}


def test_a_task_over_its_jobs_limit_costs_the_limit_and_all_of_itself_again() -> None:
    takes_s = (15.0, 10.0, 10.0, 10.0, 10.0, 10.0)
    assert left_s(Manner.TASKS, takes_s=takes_s, limit=1.2) == 3 + 12 + 3 + 15 + 3 + 20 + 3 + 10
    assert left_s(Manner.TASKS, takes_s=takes_s, limit=inf) == 3 + 15 + 3 + 20 + 3 + 10


def test_cores_of_a_node_are_shared_and_whole_nodes_are_not() -> None:
    tasks = [Task(f"t{n}", 10, cores=2) for n in range(4)]
    flow = Workflow.from_tasks("needs", [*tasks, Task("wide", 10, nodes=2)])
    to_come = JobsToCome(Manner.ALL, 0, 2, None)
    rest = Rest(flow, dict.fromkeys(range(5), 0), {0: JobThere(2, 0)}, to_come, 4)
    assert end_of(rest, dict.fromkeys(range(5), 10.0), 0) == 20


def test_nothing_left_ends_now() -> None:
    rest = Rest(diamond(), {}, {}, JobsToCome(Manner.ALL, 3, 2, None), cores=1)
    assert end_of(rest, {}, 55) == 55
