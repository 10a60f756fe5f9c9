"""Why jobs are lost: each cause has its own limit, and nodes that keep failing are avoided."""

from __future__ import annotations

import msgspec
import pytest
from tests.unit.manager.test_core import FIRST, A, diamond, planned

from windrow.manager.core import Core
from windrow.manager.events import Decide, JobKilled, JobStarted, RunBegan, TaskFinished
from windrow.manager.losses import FOR_S, PATIENCE, WITHIN_S, Avoidance, Avoided
from windrow.manager.terms import Terms
from windrow.manager.translate import ending
from windrow.model.cause import Cause
from windrow.queues.port import JobState, JobStatus


def lose(core: Core, cause: Cause, times: int, node: str = "") -> int:
    """Lose jobs to this cause until the run gives up; how many it took."""
    for count in range(1, times + 1):
        number = core.submitted
        core.handle(planned(count, FIRST))
        core.handle(JobStarted(count, number))
        actions = core.handle(JobKilled(count, number, cause=cause, node=node, why="the queue's words"))
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


@pytest.mark.parametrize(
    ("written", "cause"),
    [
        ('{"at_s": 9, "job": 0}', Cause.TIME_LIMIT),
        ('{"at_s": 9, "job": 0, "is_expiry": true, "why": "its time was up"}', Cause.TIME_LIMIT),
        ('{"at_s": 9, "job": 0, "is_expiry": false, "why": "a node failed"}', Cause.NODE_FAILED),
        ('{"at_s": 9, "job": 0, "is_expiry": false, "why": "the queue killed it (PREEMPTED)"}', Cause.PREEMPTED),
        ('{"at_s": 9, "job": 0, "is_expiry": false, "why": "the queue no longer knows it"}', Cause.LOST),
    ],
)
def test_journals_of_older_versions_tell_their_causes(written: str, cause: Cause) -> None:
    event = msgspec.json.decode(written, type=JobKilled)
    assert (event.cause, event.is_expiry) == (cause, cause is Cause.TIME_LIMIT)
    assert msgspec.json.decode(msgspec.json.encode(event), type=JobKilled) == event


HOSTS = ("n3", "n4")


@pytest.mark.parametrize(
    ("state", "code", "last_word", "hosts", "cause", "node"),
    [
        (JobState.PREEMPTED, 0, "stopped by signal SIGTERM", HOSTS, Cause.PREEMPTED, ""),
        (JobState.OUT_OF_MEMORY, 137, None, HOSTS, Cause.MEMORY, ""),
        (JobState.NODE_FAILED, None, None, HOSTS, Cause.NODE_FAILED, "n3"),
        (JobState.NODE_FAILED, None, "stopped by signal SIGTERM", HOSTS, Cause.NODE_FAILED, "n4"),
        (JobState.NODE_FAILED, None, "stopped by signal SIGTERM", (*HOSTS, "n5"), Cause.NODE_FAILED, ""),
        (JobState.NODE_FAILED, None, None, (), Cause.NODE_FAILED, ""),
        (JobState.ENDED, 0, "node n4 was lost", HOSTS, Cause.NODE_FAILED, "n4"),
        (JobState.ENDED, 127, None, HOSTS, Cause.AGENT, "n3"),
        (JobState.ENDED, 1, "the disk is full", HOSTS, Cause.AGENT, ""),
    ],
)
def test_who_is_to_blame(
    state: JobState, code: int | None, last_word: str | None, hosts: tuple[str, ...], cause: Cause, node: str
) -> None:
    status = JobStatus("17", state, 1.0, 2.0, 30.5, code, hosts=hosts)
    event = ending(3, status, 50.0, was_asked=False, last_word=last_word).event
    assert isinstance(event, JobKilled)
    assert (event.cause, event.node) == (cause, node)
    assert last_word is None or cause is not Cause.AGENT or last_word in event.why


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
    assert len(core.sites[0].avoidance.names(10.0, spare=1)) == 1, "the job could not start without the other"
    assert core.sites[0].avoidance.names(10.0, spare=0) == core.sites[0].avoidance.names(10.0 + FOR_S, spare=4) == ()
