"""Why jobs are lost: each cause has its own limit, and nodes that keep failing are avoided."""

from __future__ import annotations

import pytest
from tests.unit.manager.test_core import FIRST, A, B, C, D, diamond, planned

from windrow.manager.core import Core
from windrow.manager.losses import PATIENCE
from windrow.manager.terms import Terms
from windrow.model.attempt import Leave, Leaving
from windrow.model.cause import Cause
from windrow.queues.port import JobState, JobStatus
from windrow.story.avoidance import FOR_S, WITHIN_S, Avoidance, Avoided
from windrow.story.events import (
    Decide,
    DiskRefused,
    JobEnded,
    JobKilled,
    JobStarted,
    RunBegan,
    TaskFinished,
    TaskStarted,
    TaskUndone,
)
from windrow.story.translate import ending
from windrow.strategies import JobPlan


def lose(core: Core, cause: Cause, times: int, node: str = "") -> int:
    """Lose jobs to this cause until the run gives up; how many it took."""
    for count in range(1, times + 1):
        number = core.submitted
        core.handle(planned(count, FIRST))
        core.handle(JobStarted(count, number))
        actions = core.handle(
            JobKilled(count, number, cause=cause, node=node, why="the queue's words")
        )
        core.check()
        if core.trouble:
            return count
        assert Decide() in actions
    return times


@pytest.mark.parametrize("cause", [cause for cause in Cause if cause in PATIENCE])
def test_each_cause_has_its_limit(cause: Cause) -> None:
    core = diamond(patience=dict(PATIENCE))
    assert lose(core, cause, 99) == PATIENCE[cause]
    assert core.trouble.startswith(f"{PATIENCE[cause]} jobs in a row")
    assert "the queue's words" in core.trouble
    assert core.trouble.endswith("then resume the run")
    first = core.trouble
    lose(core, cause, 1)
    assert core.trouble == first, "what is lost afterwards says nothing new"
    core.handle(RunBegan(500))
    assert lose(core, cause, 99) == PATIENCE[cause]


def test_preemptions_never_end_a_run() -> None:
    core = diamond(patience=dict(PATIENCE))
    lose(core, Cause.PREEMPTED, 100)
    assert core.trouble == ""
    assert core.work.expected_s[A] == 10


def test_causes_are_counted_apart_and_progress_forgives() -> None:
    core = diamond(patience=dict(PATIENCE))
    for cause in (Cause.LOST, Cause.CANCELLED, Cause.AGENT, Cause.MEMORY):
        lose(core, cause, 2)
    assert core.trouble == ""
    core.handle(TaskFinished(50, A))
    for cause in (Cause.LOST, Cause.CANCELLED, Cause.AGENT, Cause.MEMORY):
        assert core.sites[0].losses.add(cause, "") == ""


def test_a_task_whose_output_a_disk_refuses_in_three_jobs_ends_the_run_whatever_else_is_done() -> (
    None
):
    core = diamond(patience=dict(PATIENCE))
    for others in ((B,), (C,), (D,)):
        number = core.submitted
        core.handle(planned(1, JobPlan((A, *others), 1, 10, 10)))
        core.handle(JobStarted(1, number))
        for task in (A, *others):
            core.handle(TaskStarted(1, number, task))
            core.handle(TaskFinished(2, task))
        assert core.trouble == ""
        core.handle(DiskRefused(3, number, A, "its output x: No space left on device"))
        core.handle(DiskRefused(3, number, A, "its output y: No space left on device"))
        core.handle(JobEnded(4, number))
        core.handle(TaskUndone(4, A))
        core.check()
    assert "3 jobs found no room on a disk" in core.trouble
    assert (
        "(last: task a: its output x: No space left on device); make room, then resume the run"
        in core.trouble
    )
    core.handle(RunBegan(10))
    assert core.trouble == ""


def test_an_output_that_can_never_come_to_its_place_fails_its_task() -> None:
    core = diamond(patience=dict(PATIENCE))
    core.handle(planned(1, JobPlan((A, B), 1, 10, 10)))
    core.handle(JobStarted(1, 0))
    core.handle(TaskStarted(1, 0, A))
    core.handle(TaskFinished(2, A))
    core.handle(DiskRefused(3, 0, A, "a socket", is_final=True))
    core.check()
    core.handle(JobEnded(4, 0))
    core.check()
    assert core.is_over
    assert (core.failed, core.blocked) == ({A}, {B, C, D})


@pytest.mark.parametrize("cause", [Cause.CANCELLED, Cause.TIME_LIMIT])
def test_what_is_done_again_and_again_is_no_progress(cause: Cause) -> None:
    """Each job makes what the one before it lost, and is lost itself: without a bound that would
    never end."""
    core = diamond(patience=dict(PATIENCE))
    for jobs in range(1, 99):
        core.handle(planned(1, JobPlan((A, B), 1, 10, 10)))
        core.handle(JobStarted(1, jobs - 1))
        core.handle(TaskStarted(1, jobs - 1, A))
        core.handle(TaskFinished(2, A))
        core.handle(JobKilled(3, jobs - 1, cause=cause))
        core.handle(TaskUndone(4, A))
        core.check()
        if core.trouble:
            break
    assert jobs == PATIENCE[cause] + 2


HOSTS = ("n3", "n4")
_STOPPED = Leaving(Leave.SIGNAL, "SIGTERM")


@pytest.mark.parametrize(
    ("state", "code", "last_word", "hosts", "cause", "node"),
    [
        (JobState.PREEMPTED, 0, _STOPPED, HOSTS, Cause.PREEMPTED, ""),
        (JobState.OUT_OF_MEMORY, 137, None, HOSTS, Cause.MEMORY, ""),
        (JobState.NODE_FAILED, None, None, HOSTS, Cause.NODE_FAILED, "n3"),
        (JobState.NODE_FAILED, None, _STOPPED, HOSTS, Cause.NODE_FAILED, "n4"),
        (
            JobState.NODE_FAILED,
            None,
            _STOPPED,
            (*HOSTS, "n5"),
            Cause.NODE_FAILED,
            "",
        ),
        (JobState.NODE_FAILED, None, None, (), Cause.NODE_FAILED, ""),
        (JobState.ENDED, 0, Leaving(Leave.NODE_LOST, "n4"), HOSTS, Cause.NODE_FAILED, "n4"),
        (JobState.ENDED, 127, None, HOSTS, Cause.AGENT, "n3"),
        (JobState.ENDED, 1, Leaving(Leave.TROUBLE, "the disk is full"), HOSTS, Cause.AGENT, ""),
    ],
)
def test_who_is_to_blame(
    state: JobState,
    code: int | None,
    last_word: Leaving | None,
    hosts: tuple[str, ...],
    cause: Cause,
    node: str,
) -> None:
    status = JobStatus("17", state, 1.0, 2.0, 30.5, code, hosts=hosts)
    event = ending(3, status, 50.0, was_asked=False, last_word=last_word).event
    assert isinstance(event, JobKilled)
    assert (event.cause, event.node) == (cause, node)
    assert last_word is None or cause is not Cause.AGENT or last_word.words in event.why


def test_a_node_that_keeps_failing_is_avoided_for_a_while() -> None:
    nodes = Avoidance()
    nodes.failed("n3", 100)
    assert nodes.at(101) == ()
    nodes.failed("n3", 100 + WITHIN_S)  # too long after the first
    assert nodes.at(100 + WITHIN_S) == ()
    nodes.failed("n3", 200 + WITHIN_S)
    until_s = 200 + WITHIN_S + FOR_S
    assert nodes.at(until_s - 1) == (Avoided("n3", "2 jobs failed on it", until_s),)
    assert nodes.at(until_s) == ()


def test_avoided_nodes_are_excluded_and_not_planned_with() -> None:
    core = diamond()
    core = Core(core.work, Terms(round_s=1, patience=PATIENCE))
    lose(core, Cause.NODE_FAILED, 2, node="n3")
    lose(core, Cause.NODE_FAILED, 2, node="n1")
    assert core.view(10, lambda nodes, _: nodes).work.cluster_nodes == 6
    assert core.view(10 + FOR_S, lambda nodes, _: nodes).work.cluster_nodes == 8
    assert core.sites[0].avoidance.names(10.0, spare=4) == ("n1", "n3")
    assert len(core.sites[0].avoidance.names(10.0, spare=1)) == 1, (
        "the job could not start without the other"
    )
    assert (
        core.sites[0].avoidance.names(10.0, spare=0)
        == core.sites[0].avoidance.names(10.0 + FOR_S, spare=4)
        == ()
    )
