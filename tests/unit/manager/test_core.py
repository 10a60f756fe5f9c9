"""The core, event by event: what it asks for, and in which order."""

from __future__ import annotations

import numpy as np
import pytest

from windrow.errors import UserError
from windrow.manager.actions import Decide, StartTask, StopJob, SubmitJob
from windrow.manager.core import Core, Terms
from windrow.manager.events import JobEnded, JobKilled, JobsPlanned, JobStarted, RunBegan, TaskFailed, TaskFinished
from windrow.model import NodeShape, Task, Workflow
from windrow.strategies import Decision, JobPlan, Work

A, B, C, D = range(4)


def diamond(cap: int = 4) -> Core:
    """a, then b (20 s) and c (30 s), then d."""
    tasks = [
        Task("a", 10),
        Task("b", 20, parents=("a",)),
        Task("c", 30, parents=("a",)),
        Task("d", 5, parents=("b", "c")),
    ]
    workflow = Workflow.from_tasks("diamond", tasks)
    work = Work(workflow, workflow.runtime_s.astype(np.int64), NodeShape(), 8)
    return Core(work, Terms(8, cap=cap, margin=1.0, round_s=1))


def planned(at_s: int, *jobs: JobPlan) -> JobsPlanned:
    return JobsPlanned(at_s, Decision(jobs))


FIRST, REST = JobPlan((A,), 1, 10, 10), JobPlan((B, C, D), 2, 35, 40)


def test_a_run_in_two_jobs() -> None:
    core = diamond()
    assert core.handle(RunBegan(0)) == [Decide()]
    assert core.handle(planned(0, FIRST)) == [SubmitJob(0, FIRST)]
    assert core.handle(JobStarted(5, 0)) == [StartTask(0, A, (0,)), Decide()]
    assert core.handle(planned(5, REST)) == [SubmitJob(1, REST)]
    assert core.handle(JobStarted(8, 1)) == []  # it waits inside its allocation
    assert core.handle(TaskFinished(15, A)) == [StartTask(1, C, (0,)), StartTask(1, B, (1,)), StopJob(0)]
    assert core.handle(JobEnded(15, 0)) == []
    assert core.handle(TaskFinished(35, B)) == []
    assert core.handle(TaskFinished(45, C)) == [StartTask(1, D, (0,))]
    core.check()
    assert core.handle(TaskFinished(50, D)) == [StopJob(1)]
    assert core.is_finished


def test_how_long_the_running_jobs_will_need() -> None:
    core = diamond()
    core.handle(planned(0, FIRST))
    core.handle(JobStarted(5, 0))
    core.handle(planned(5, REST))
    core.handle(JobStarted(8, 1))
    assert (
        core.view(8, lambda nodes, _: nodes).busy_s == (5 + 10 - 8) + 35
    )  # its tasks begin when the first job is done


def test_a_failed_task_starts_again_where_it_was() -> None:
    core = diamond()
    core.handle(planned(0, FIRST))
    core.handle(JobStarted(0, 0))
    assert core.handle(TaskFailed(7, A)) == [StartTask(0, A, (0,))]
    core.check()
    assert core.handle(TaskFinished(17, A))[-1] == Decide()


def test_a_killed_job_takes_back_what_waits_for_it() -> None:
    core = diamond()
    core.handle(planned(0, FIRST))
    core.handle(JobStarted(0, 0))
    core.handle(planned(0, REST))
    assert core.handle(JobKilled(10, 0)) == [StopJob(1)]  # no decision yet: job 1 is about to give tasks back
    assert core.handle(JobEnded(10, 1)) == [Decide()]
    core.check()
    view = core.view(10, lambda nodes, _: nodes)
    assert (bool(view.left.all()), view.ready, view.jobs) == (True, (A,), 0)
    assert core.work.expected_s[A] == 20  # ten seconds were not enough


def test_a_killed_job_leaves_those_alone_that_do_not_wait_for_it() -> None:
    core = diamond()
    core.handle(planned(0, FIRST))
    core.handle(JobStarted(0, 0))
    core.handle(TaskFinished(10, A))
    core.handle(JobEnded(10, 0))
    core.handle(planned(10, JobPlan((B,), 1, 20, 20), JobPlan((C,), 1, 30, 30)))
    core.handle(JobStarted(10, 1))
    assert core.handle(JobKilled(30, 1)) == [Decide()]
    assert set(core.jobs) == {2}


def test_no_decision_is_due_at_the_cap() -> None:
    core = diamond(cap=1)
    core.handle(planned(0, FIRST))
    assert core.handle(JobStarted(0, 0)) == [StartTask(0, A, (0,))]
    assert core.handle(TaskFinished(10, A)) == [StopJob(0)]
    assert core.handle(JobEnded(10, 0)) == [Decide()]


def test_going_individual_is_remembered() -> None:
    core = diamond()
    core.handle(JobsPlanned(0, Decision((FIRST,), individually=True)))
    core.handle(JobStarted(0, 0))
    core.handle(planned(0, REST))
    assert core.view(0, lambda nodes, _: nodes).individually


@pytest.mark.parametrize(("run_s", "requested_s"), [(1, 60), (54, 60), (55, 120), (600, 660), (0, 60)])
def test_requests_have_a_margin_and_are_whole_minutes(run_s: int, requested_s: int) -> None:
    assert Terms(8).request_s(run_s) == requested_s


def test_terms_are_checked() -> None:
    for wrong in ({"cap": 0}, {"margin": 0.9}, {"round_s": 0}):
        with pytest.raises(UserError, match="a run needs"):
            Terms(8, **wrong)
