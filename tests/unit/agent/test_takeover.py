"""A real agent that has nodes takes over a job that has none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.agent.jobs import Run, shell

from windrow.agent.claim import fence
from windrow.agent.core import AgentCore
from windrow.agent.event_file import AgentLeft, AgentStarted, TaskDeclined
from windrow.agent.job_file import JobFile, TaskSpec
from windrow.model.attempt import DONE, Attempt


def write_both(run: Run, first: tuple[TaskSpec, ...] = (), **more: Any) -> None:
    """Job 0 has tasks 0 and 1, job 1 has task 2, which waits for both."""
    run.write(*(first or (shell(0, "true", children=(2,)), shell(1, "true", children=(2,)))), job=0)
    run.write(shell(2, "true", parents=(0, 1)), job=1, takeover_s=0.2, **more)


@pytest.mark.slow
def test_an_idle_job_takes_over_the_one_that_it_waits_for(run: Run) -> None:
    run.extra_env |= {"WINDROW_QUEUE": "local", "WINDROW_JOB_ID": "7"}
    write_both(run)
    assert run.run(job=1) == (0, "")
    assert sorted(run.finished(0)) == [0, 1]
    assert run.finished(1) == [2]
    (started,) = run.of(AgentStarted, 0)
    assert (started.by_job, started.queue_id) == (1, "7")
    assert run.of(AgentStarted, 1)[0].by_job is None
    assert run.of(AgentLeft, 0)[-1].why == run.of(AgentLeft, 1)[-1].why == DONE
    assert json.loads(run.folder.claim(0).read_text())["by_job"] == 1
    code, printed = run.run(job=0)
    assert code == 0
    assert "was already started by queue job 7" in printed
    assert sorted(run.finished(0)) == [0, 1]


@pytest.mark.slow
@pytest.mark.parametrize("why", ["claimed", "given up", "over", "too large", "too long"])
def test_what_is_not_taken_over(run: Run, why: str) -> None:
    """The agent goes on waiting, until its time is up."""
    large = (
        shell(0, "true", cores=64 if why == "too large" else 1, expected_s=99.0),
        shell(1, "true"),
    )
    write_both(
        run,
        large if why.startswith("too") else (),
        walltime_s=4.0,
        over=(0,) if why == "over" else (),
    )
    if why == "claimed":
        run.folder.claim(0).touch()
    if why == "given up":
        fence(run.folder, 0)
    assert run.run(job=1)[0] == 0
    assert not run.folder.events(0).exists()
    assert [event.task for event in run.of(TaskDeclined, 1)] == [2]


def job(number: int, *tasks: TaskSpec) -> JobFile:
    return JobFile("r", number, 2, 2, None, 100.0, tasks)


def test_tasks_that_were_adopted_know_what_was_done_here() -> None:
    """Job 1 has done task 0, and dropped task 1 for want of time. Of job 0, which waits for them,
    one task can run."""
    core = AgentCore(
        job(1, shell(0, "", children=(5,)), shell(1, "", expected_s=999.0, children=(6,))), 0.0
    )
    (start,) = core.start(0.0)
    assert start.spec.task == 0
    core.ended(Attempt(0, 1, 0, None, ""), 1.0)
    taken = job(
        0, shell(5, "", parents=(0,)), shell(6, "", parents=(1,)), shell(7, "", parents=(80,))
    )
    assert core.can_adopt(taken, (), 1.0)
    core.adopt(taken, 1.0)
    assert [start.spec.task for start in core.start(1.0)] == [5]
    assert [core.home_of(task, 1) for task in (0, 5, 6, None)] == [1, 0, 0, 1]
    dropped = [record.task for record in core.take_records() if isinstance(record, TaskDeclined)]
    assert dropped == [1, 6]
    core.ended(Attempt(5, 1, 0, None, ""), 2.0)
    assert not core.is_closed(0)
    core.drain("given up", 3.0, job=0)
    assert core.is_closed(0)
    assert core.is_done


def test_a_task_that_was_here_already_is_not_taken_over() -> None:
    """It was given back, since someone cancelled or changed it, or is to run once more: whoever
    claimed its job would have nothing to do, and the next job would be offered at once."""
    core = AgentCore(job(1, shell(0, ""), shell(1, "")), 0.0)
    core.start(0.0)
    core.ended(Attempt(0, 1, 0, None, ""), 1.0)
    assert not core.can_adopt(job(2, shell(0, "")), (), 1.0)
    assert not core.can_adopt(job(2, shell(1, ""), shell(5, "")), (), 1.0)
    assert core.can_adopt(job(2, shell(5, "")), (), 1.0)


@pytest.mark.slow
def test_who_is_done_takes_the_tasks_of_a_job_that_has_not_started(run: Run) -> None:
    for job, task in ((1, 1), (2, 2)):
        run.write(shell(task, "true"), job=job, takes=True)
    run.write(shell(3, "true"), job=3, takes=True, nodes=1, cores=2)
    run.folder.claim(3).write_text("")  # which has started
    assert run.run(shell(0, "true"), takes=True) == (0, "")
    assert [run.finished(job) for job in (0, 1, 2, 3)] == [[0], [1], [2], []]


@pytest.mark.slow
def test_who_is_done_leaves_a_job_for_which_there_is_no_time(run: Run) -> None:
    run.write(shell(1, "true", expected_s=900.0), job=1, takes=True)
    assert run.run(shell(0, "true"), takes=True) == (0, "")
    assert not run.folder.claim(1).exists()


@pytest.mark.slow
def test_a_job_of_another_kind_takes_nothing(run: Run) -> None:
    run.write(shell(1, "true"), job=1)
    assert run.run(shell(0, "true")) == (0, "")
    assert not run.folder.claim(1).exists()
