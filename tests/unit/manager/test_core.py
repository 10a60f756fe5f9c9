"""The core, event by event: what it asks for, and in which order."""

from __future__ import annotations

import numpy as np
import pytest

from windrow.errors import UserError
from windrow.manager.core import Core
from windrow.manager.terms import Terms
from windrow.model import Task, Workflow
from windrow.model.cause import Cause
from windrow.model.site import Site
from windrow.story import events as e
from windrow.story.events import (
    Abandon,
    Decide,
    JobEnded,
    JobKilled,
    JobRejected,
    JobsPlanned,
    JobStarted,
    RunBegan,
    RunStopped,
    StopJob,
    SubmitJob,
    TaskDropped,
    TaskFailed,
    TaskFinished,
    TaskStarted,
)
from windrow.strategies import Decision, JobPlan, Work, whole_seconds

A, B, C, D = range(4)


def diamond(cap: int = 4, patience: dict[Cause, int] | None = None) -> Core:
    """a, then b (20 s) and c (30 s), then d."""
    tasks = [
        Task("a", 10),
        Task("b", 20, parents=("a",)),
        Task("c", 30, parents=("a",)),
        Task("d", 5, parents=("b", "c")),
    ]
    workflow = Workflow.from_tasks("diamond", tasks)
    work = Work(workflow, workflow.runtime_s.astype(np.int64), Site.of(8, cap=cap))
    return Core(work, Terms(margin=1.0, round_s=1, patience=patience))


def planned(at_s: int, *jobs: JobPlan) -> JobsPlanned:
    return JobsPlanned(at_s, Decision(jobs))


FIRST, REST = JobPlan((A,), 1, 10, 10), JobPlan((B, C, D), 2, 35, 40)


def test_a_run_in_two_jobs() -> None:
    core = diamond()
    assert core.handle(RunBegan(0)) == [Decide()]
    assert core.handle(planned(0, FIRST)) == [SubmitJob(0, FIRST)]
    assert core.handle(JobStarted(5, 0)) == [Decide()]
    core.handle(TaskStarted(5, 0, A))
    assert core.handle(planned(5, REST)) == [SubmitJob(1, REST)]
    assert core.handle(JobStarted(8, 1)) == []  # it waits inside its allocation
    assert [member.open_parents for member in core.members(1).values()] == [1, 1, 2]
    assert core.handle(TaskFinished(15, A)) == []
    assert core.handle(JobEnded(15, 0)) == []
    assert core.handle(TaskFinished(35, B)) == []
    assert core.handle(TaskFinished(45, C)) == []
    core.check()
    assert core.handle(TaskFinished(50, D)) == []
    assert core.is_complete
    assert core.handle(JobEnded(50, 1)) == []
    assert core.is_over


def test_who_reads_what_is_on_nodes_of_a_job_is_not_planned_before_it_is_there() -> None:
    """Nor is what waits for it; and a decision is due when it is there."""
    core = diamond()
    core.handle(planned(0, FIRST))
    core.handle(JobStarted(5, 0))
    core.handle(TaskFinished(15, A))
    core.held_up = lambda: [A, B]
    assert core.view(15, lambda nodes, _: nodes).left.nonzero()[0].tolist() == [C]
    core.held_up = lambda: ()
    moved = e.FilesMoved(20, ("b",), e.job_place(0), "", 0, 0.0, 0)
    assert core.handle(moved) == [Decide()]
    assert core.view(20, lambda nodes, _: nodes).left.nonzero()[0].tolist() == [B, C, D]


def test_how_long_the_running_jobs_will_need() -> None:
    core = diamond()
    core.handle(planned(0, FIRST))
    core.handle(JobStarted(5, 0))
    core.handle(planned(5, REST))
    core.handle(JobStarted(8, 1))
    assert (
        core.view(8, lambda nodes, _: nodes).busy_s == (5 + 10 - 8) + 35
    )  # its tasks begin when the first job is done


def test_a_failed_task_blocks_its_descendants_alone() -> None:
    core = diamond()
    core.handle(planned(0, FIRST))
    core.handle(JobStarted(0, 0))
    core.handle(TaskFinished(10, A))
    core.handle(JobEnded(10, 0))
    core.handle(planned(10, JobPlan((B, D), 1, 25, 30), JobPlan((C,), 1, 30, 30)))
    core.handle(JobStarted(10, 1))
    assert core.handle(TaskFailed(15, B)) == [Abandon((B, D))]
    assert core.handle(TaskDropped(15, 1, D)) == []
    assert core.handle(JobEnded(15, 1)) == []
    core.check()
    assert not core.is_over
    core.handle(JobStarted(20, 2))
    core.handle(TaskFinished(50, C))
    core.handle(JobEnded(50, 2))
    assert (core.is_over, core.is_complete, core.failed, core.blocked) == (True, False, {B}, {D})
    assert core.handle(RunBegan(99)) == [Decide()]  # the user has mended it
    assert core.view(99, lambda nodes, _: nodes).ready == (B,)
    core.check()


def test_what_was_blocked_or_failed_and_is_done_after_all_is_neither() -> None:
    """A job that was given up has done what it needed, which another job failed to do again."""
    core = diamond()
    core.handle(planned(0, JobPlan((A, B), 1, 25, 30)))
    core.handle(JobStarted(0, 0))
    core.handle(TaskFailed(10, A))
    core.handle(TaskFinished(20, B))
    core.handle(TaskFinished(20, A))
    core.check()
    assert (core.failed, core.blocked) == (set(), {C, D})
    core.handle(JobEnded(20, 0))
    assert core.is_over
    assert core.handle(RunBegan(99)) == [Decide()]
    assert core.view(99, lambda nodes, _: nodes).ready == (C,)


def test_a_waiting_job_of_blocked_tasks_goes() -> None:
    core = diamond()
    core.handle(planned(0, FIRST, REST))
    core.handle(JobStarted(0, 0))
    assert core.handle(TaskFailed(5, A)) == [Abandon((A, B, C, D)), StopJob(1)]
    core.handle(JobEnded(5, 0))
    core.handle(JobEnded(6, 1))
    core.check()
    assert core.is_over


def test_a_task_that_a_job_has_no_time_for_is_left_again() -> None:
    core = diamond()
    core.handle(planned(0, FIRST))
    core.handle(JobStarted(0, 0))
    core.handle(TaskFinished(10, A))
    core.handle(JobEnded(10, 0))
    core.handle(planned(10, REST))
    core.handle(JobStarted(10, 1))
    core.handle(TaskFinished(40, C))
    assert core.handle(TaskDropped(40, 1, B)) == [Decide()]
    core.check()
    assert core.handle(TaskDropped(40, 1, D)) == [Decide()]
    assert core.handle(JobEnded(41, 1)) == [Decide()]
    assert core.view(41, lambda nodes, _: nodes).ready == (B,)


def test_a_job_that_starts_too_early_gives_its_tasks_back_together_and_is_no_loss() -> None:
    core = diamond(patience={Cause.AGENT: 1})
    core.handle(RunBegan(0))
    core.handle(planned(0, JobPlan((A, C), 1, 40, 60)))
    core.handle(JobStarted(0, 0))
    core.handle(TaskStarted(0, 0, A))
    core.handle(planned(0, JobPlan((B, D), 2, 25, 25)))
    core.handle(JobStarted(0, 1))
    assert core.handle(TaskDropped(6, 1, B)) == [StopJob(1)], (
        "even if a ends now, b and then d have no time"
    )
    assert core.handle(TaskDropped(7, 1, D)) == [Decide()]
    assert core.handle(JobEnded(7, 1)) == [Decide()]
    core.check()
    assert not core.trouble, "it had time for its tasks"
    assert core.view(7, lambda nodes, _: nodes).left.tolist() == [False, True, False, True]


def test_a_job_that_waits_for_a_task_that_takes_long_is_no_loss() -> None:
    """Its agent needs some time to leave, and drops the task a little before the last moment."""
    core = diamond(patience={Cause.AGENT: 1})
    core.handle(RunBegan(0))
    core.handle(planned(0, JobPlan((A, C, D), 1, 40, 90)))
    core.handle(JobStarted(0, 0))
    core.handle(TaskStarted(0, 0, A))
    core.handle(planned(50, JobPlan((B,), 1, 20, 30)))
    core.handle(JobStarted(50, 1))
    core.handle(TaskDropped(60, 1, B))
    core.handle(JobEnded(60, 1))
    assert not core.trouble
    assert core.jobs[0].expected_end_s == 120, "it is overdue, and may take as long again"


def test_a_job_whose_parents_may_yet_be_done_in_time_stays() -> None:
    core = diamond()
    core.handle(planned(0, JobPlan((A,), 1, 10, 10)))
    core.handle(JobStarted(0, 0))
    core.handle(TaskStarted(0, 0, A))
    core.handle(planned(0, JobPlan((B, C, D), 2, 35, 35)))
    core.handle(JobStarted(0, 1))
    assert core.handle(TaskDropped(6, 1, C)) == [Decide()], "a should end at 10, and then b at 30"
    core.handle(TaskFinished(10, A))
    core.handle(TaskStarted(10, 1, B))
    core.handle(TaskFinished(30, B))
    core.check()


def test_what_is_kept_of_a_task_is_not_expected_again() -> None:
    """Its pieces count when it leaves a job; a job that kept something was of use; lost files bring
    the time back."""
    core = diamond(patience={Cause.AGENT: 2})
    core.handle(RunBegan(0))
    # job, what is done, pieces without a checkpoint, what is left
    told = [(0, 4, 0, 6), (1, 3, 0, 7), (2, 9, 0, 1), (3, 9, 1, 20)]
    for job, done_s, idle, left_s in told:
        core.handle(planned(100 * job, FIRST))
        core.handle(JobStarted(100 * job, job))
        core.handle(TaskStarted(100 * job, job, A))
        core.handle(e.TaskCheckpointed(100 * job + 5, job, A, done_s, ended=True, idle=idle))
        assert core.members(job)[A].expected_s == ([10] + [left for *_, left in told])[job], (
            "not before it leaves"
        )
        if idle:
            core.handle(e.TaskCheckpointed(100 * job + 10, job, A, done_s, ended=True, idle=idle))
        core.handle(TaskDropped(100 * job + 10, job, A))
        assert core.work.expected_s[A] == left_s
        assert core.pieces.saved[A] == (done_s, idle)
        core.handle(JobEnded(100 * job + 10, job))
        core.check()
        assert not core.trouble, (
            "the second and the last one were of no use, and another in between"
        )


def test_a_run_that_is_stopped_goes_on_where_it_was() -> None:
    core = diamond()
    core.handle(planned(0, FIRST, REST))
    core.handle(JobStarted(0, 0))
    core.handle(TaskFinished(10, A))
    assert core.handle(RunStopped(11)) == [
        StopJob(1)
    ]  # the first has nothing left to do, and goes by itself
    assert core.handle(JobEnded(12, 0)) == core.handle(JobEnded(12, 1)) == []
    assert (core.is_over, core.is_complete) == (True, False)
    assert core.handle(RunBegan(99)) == [Decide()]
    assert core.view(99, lambda nodes, _: nodes).ready == (C, B)


def test_a_rejected_job_ends_the_run() -> None:
    core = diamond()
    core.handle(planned(0, FIRST, REST))
    assert core.handle(JobRejected(1, 0, "too many nodes")) == [StopJob(1)]
    core.handle(JobEnded(2, 1))
    assert (core.is_over, core.trouble) == (True, "too many nodes")
    core.check()


def test_jobs_that_die_again_and_again_end_the_run() -> None:
    core = diamond(patience={Cause.LOST: 2})
    core.handle(planned(0, FIRST))
    core.handle(JobStarted(0, 0))
    assert core.handle(JobKilled(1, 0, Cause.LOST, "no python")) == [Decide()]
    core.handle(planned(2, FIRST))
    core.handle(JobStarted(2, 1))
    assert core.handle(JobKilled(3, 1, Cause.LOST, "no python")) == []
    assert core.is_over
    assert "2 jobs in a row" in core.trouble
    assert core.work.expected_s[A] == 10  # its time was not the trouble


def test_a_task_done_by_a_job_that_was_given_up_for_lost_counts() -> None:
    core = diamond()
    core.handle(planned(0, FIRST))
    core.handle(JobStarted(0, 0))
    core.handle(JobKilled(11, 0, Cause.LOST))
    assert core.handle(TaskFinished(12, A)) == [Decide()]
    assert core.handle(TaskFinished(12, A)) == []
    core.check()
    assert core.view(12, lambda nodes, _: nodes).ready == (C, B)


def test_a_killed_job_takes_back_what_waits_for_it() -> None:
    core = diamond()
    core.handle(planned(0, FIRST))
    core.handle(JobStarted(0, 0))
    core.handle(TaskStarted(0, 0, A))
    core.handle(planned(0, REST))
    assert core.handle(JobKilled(10, 0, Cause.TIME_LIMIT)) == [
        StopJob(1)
    ]  # no decision yet: job 1 is about to give tasks back
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
    assert core.handle(JobKilled(30, 1, Cause.TIME_LIMIT)) == [Decide()]
    assert set(core.jobs) == {2}


def test_no_decision_is_due_at_the_cap() -> None:
    core = diamond(cap=1)
    core.handle(planned(0, FIRST))
    assert core.handle(JobStarted(0, 0)) == []
    assert core.handle(TaskFinished(10, A)) == []
    assert core.handle(JobEnded(10, 0)) == [Decide()]


def test_going_individual_is_remembered() -> None:
    core = diamond()
    core.handle(JobsPlanned(0, Decision((FIRST,), individually=True)))
    core.handle(JobStarted(0, 0))
    core.handle(planned(0, REST))
    assert core.view(0, lambda nodes, _: nodes).individually


@pytest.mark.parametrize(
    ("run_s", "requested_s"), [(1, 60), (54, 60), (55, 120), (600, 660), (0, 60)]
)
def test_requests_have_a_margin_and_are_whole_minutes(run_s: int, requested_s: int) -> None:
    assert Terms().requests(Site.of(8)).request_s(run_s) == requested_s


def test_terms_are_checked() -> None:
    for wrong in ({"margin": 0.9}, {"round_s": 0}):
        with pytest.raises(UserError, match="a run needs"):
            Terms(**wrong)
    for limits in ({"cap": 0}, {"speed": 0}):
        with pytest.raises(UserError, match="a site needs"):
            Site.of(8, None, **limits)


def test_who_reads_what_is_made_again_is_called_back_from_jobs_that_have_it() -> None:
    """Else an agent that was told before would start it on what its maker is half through with."""
    core = diamond(patience={Cause.AGENT: 1})
    core.handle(RunBegan(0))
    core.handle(planned(0, FIRST))
    core.handle(JobStarted(0, 0))
    core.handle(TaskFinished(10, A))
    core.handle(JobEnded(10, 0))
    core.handle(planned(10, JobPlan((B,), 1, 20, 40), JobPlan((C,), 1, 30, 40)))
    core.handle(JobStarted(11, 1))
    undone = core.handle(e.TaskUndone(12, A))
    assert Abandon((B, C), again=True) in undone
    assert StopJob(2) in undone, "it waits in the queue, and has nothing else to do"
    assert core.called_back() == (B, C)
    core.handle(TaskDropped(13, 1, B))
    core.handle(JobEnded(13, 1))
    core.handle(JobEnded(13, 2))
    core.check()
    assert not core.called_back()
    assert not core.trouble, "these were no losses"
    assert core.view(14, lambda nodes, _: nodes).ready == (A,)


def test_a_job_with_more_to_do_keeps_its_place_in_the_queue() -> None:
    tasks = [Task("a", 9), Task("b", 9, parents=("a",)), Task("c", 9, parents=("b",)), Task("d", 9)]
    workflow = Workflow.from_tasks("four", tasks)
    core = Core(Work(workflow, whole_seconds(workflow), Site.of(2)), Terms())
    core.handle(TaskFinished(0, A))
    core.handle(planned(0, JobPlan((B, C, D), 1, 9, 9)))
    actions = core.handle(e.TaskUndone(1, A))
    assert actions == [Abandon((B, C), again=True), Decide()]


def test_what_was_cancelled_runs_again_when_the_attempt_that_ran_has_ended() -> None:
    core = diamond()
    core.handle(RunBegan(0))
    core.handle(planned(0, FIRST))
    core.handle(JobStarted(0, 0))
    core.handle(TaskStarted(0, 0, A))
    core.handle(e.TasksCancelled(1, (A,)))
    core.handle(e.TaskUndone(1, A))
    assert not core.view(1, lambda nodes, _: nodes).ready
    assert Decide() in core.handle(TaskDropped(3, 0, A))
    assert core.view(3, lambda nodes, _: nodes).ready == (A,)


def test_what_a_given_up_job_has_done_runs_again_when_its_replacement_has_ended() -> None:
    """Both would write the same files in place."""
    core = diamond()
    core.handle(planned(0, FIRST))
    core.handle(JobStarted(0, 0))
    core.handle(JobKilled(1, 0, Cause.LOST))
    core.handle(planned(1, FIRST))
    core.handle(JobStarted(1, 1))
    core.handle(TaskStarted(1, 1, A))
    core.handle(TaskFinished(9, A, by=0))
    core.handle(e.TaskUndone(10, A))
    assert not core.view(10, lambda nodes, _: nodes).ready
    assert Decide() in core.handle(JobKilled(11, 1, Cause.LOST))
    assert core.view(11, lambda nodes, _: nodes).ready == (A,)
    core.check()


def test_what_came_back_too_early_twice_waits_without_a_job() -> None:
    core = diamond()
    core.handle(RunBegan(0))
    core.handle(planned(0, JobPlan((A, C), 1, 40, 60)))
    core.handle(JobStarted(0, 0))
    core.handle(TaskStarted(0, 0, A))
    for number in (1, 2):
        assert B in core.view(0, lambda nodes, _: nodes).left.nonzero()[0]
        core.handle(planned(0, JobPlan((B,), 2, 25, 25)))
        core.handle(JobStarted(0, number))
        core.handle(TaskDropped(6, number, B))
        core.handle(JobEnded(7, number))
    assert B not in core.view(7, lambda nodes, _: nodes).left.nonzero()[0]
    assert Decide() in core.handle(TaskFinished(10, A))
    assert core.view(10, lambda nodes, _: nodes).ready == (B,)


def test_a_failed_task_stays_failed_when_its_parent_runs_again() -> None:
    """The output of a finished parent was lost, and the task that read it failed; only a resumed
    run tries it again."""
    workflow = Workflow.from_tasks(
        "two", [Task("a", 3), Task("b", 3, parents=("a",)), Task("c", 3)]
    )
    core = Core(Work(workflow, whole_seconds(workflow), Site.of(2)), Terms())
    for event in (
        e.RunBegan(0),
        e.TaskFinished(1, 0),
        e.TaskUndone(2, 0),
        e.TaskFailed(3, 1),
        e.TaskFinished(4, 0),
    ):
        core.handle(event)
        core.check()
    assert core.view(5, lambda nodes, _: nodes * 0).ready == (2,)


def test_a_task_that_failed_is_not_blocked_as_well() -> None:
    """Nor does a run go on for ever because its tasks are counted twice."""
    workflow = Workflow.from_tasks(
        "two", [Task("a", 3), Task("b", 3, parents=("a",)), Task("c", 3, parents=("b",))]
    )
    core = Core(Work(workflow, whole_seconds(workflow), Site.of(2)), Terms())
    for event in (
        e.RunBegan(0),
        e.TaskFinished(1, 0),
        e.TaskUndone(2, 0),
        e.TaskFailed(3, 1),
        e.TaskFailed(4, 0),
    ):
        core.handle(event)
        core.check()
    assert (core.is_over, core.failed, core.blocked) == (True, {0, 1}, {2})


def test_what_is_to_run_again_behind_a_failed_task_is_blocked() -> None:
    """It was done when the task failed before it; without this the run cut it into a job again and
    again."""
    tasks = [Task("a", 3), Task("b", 3, parents=("a",)), Task("c", 3, parents=("b",)), Task("d", 3)]
    workflow = Workflow.from_tasks("four", tasks)
    core = Core(Work(workflow, whole_seconds(workflow), Site.of(2)), Terms())
    for finished in (e.TaskFinished(1, 0), e.TaskFinished(2, 1), e.TaskFinished(2, 3)):
        core.handle(finished)
    for event in (e.TaskUndone(3, 0), e.TaskFailed(4, 0), e.TaskUndone(5, 1)):
        core.handle(event)
        core.check()
    assert (core.is_over, core.failed, core.blocked) == (True, {0}, {1, 2})
    core.handle(e.RunBegan(6))  # resumed: all of it is tried again
    core.check()
    assert (core.is_over, core.failed, core.blocked) == (False, set(), set())


def test_a_job_that_has_ended_is_not_asked_to_stop() -> None:
    """The third job in a row that did nothing ends the run; there is nothing left of it to be
    stopped."""
    core = diamond(patience={Cause.AGENT: 3})
    for number in range(3):
        core.handle(planned(0, FIRST))
        core.handle(JobStarted(1, number))
        stops = [
            action for action in core.handle(JobEnded(2, number)) if isinstance(action, StopJob)
        ]
        assert not stops
    assert core.trouble
