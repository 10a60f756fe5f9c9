"""What the queue and the agents say, as events of the run."""

from __future__ import annotations

import pytest

from windrow.agent import event_file as agent
from windrow.model.attempt import DONE, OUT_OF_TIME, Attempt, Leave, Leaving
from windrow.model.cause import Cause
from windrow.queues.port import JobState, JobStatus
from windrow.story import events as e
from windrow.story.journal import Record
from windrow.story.translate import end_s, ending, from_agent


def test_words_of_agents() -> None:
    """Times keep their fractions beside the whole seconds of the core."""
    assert from_agent(4, agent.AttemptStarted(7.9, Attempt(2, 1, nodes=(0,)))) == Record(
        e.TaskStarted(7, 4, 2), None, 7.9, Attempt(2, 1, nodes=(0,))
    )
    usage = Attempt(2, 1, begun=7.9, cpu_s=0.1, peak_bytes=99)
    finished = from_agent(4, agent.AttemptFinished(8.5, usage))
    assert finished is not None
    assert (finished.event, finished.at_s) == (e.TaskFinished(8, 2), 8.5)
    assert finished.attempt == usage
    failures = [
        agent.AttemptFailed(9.0, Attempt(2, 1, begun=8.0, exit=1, why="exit code 1"), final)
        for final in (False, True)
    ]
    assert [r.event for word in failures if (r := from_agent(4, word))] == [
        e.TaskRetried(9, 4, 2),
        e.TaskFailed(9, 2),
    ]
    dropped = from_agent(4, agent.TaskDeclined(9.0, 3, "no time"))
    assert dropped is not None
    assert dropped == Record(e.TaskDropped(9, 4, 3), None, 9.0, Attempt(3, why="no time"))
    assert from_agent(4, agent.AttemptLost(9.0, 2, "stopped")) is None
    assert from_agent(4, agent.AgentLeft(9.0, DONE)) is None


_STOPPED = Leaving(Leave.SIGNAL, "SIGTERM")


def over(state: JobState, code: int | None = None, reason: str = "") -> JobStatus:
    return JobStatus("17", state, 1.0, 2.0, 30.5, code, reason)


@pytest.mark.parametrize(
    ("status", "was_asked", "last_word", "expected"),
    [
        (over(JobState.ENDED, 0), False, DONE, e.JobEnded(30, 3)),
        (over(JobState.ENDED, 0), False, None, e.JobEnded(30, 3)),
        (over(JobState.ENDED, None), False, DONE, e.JobEnded(30, 3)),
        (
            over(JobState.ENDED, 1),
            False,
            None,
            e.JobKilled(30, 3, Cause.AGENT, "its agent ended with code 1"),
        ),
        (
            over(JobState.ENDED, 0),
            False,
            OUT_OF_TIME,
            e.JobKilled(30, 3, Cause.TIME_LIMIT, "its time was up"),
        ),
        (
            over(JobState.TIMED_OUT),
            False,
            None,
            e.JobKilled(30, 3, Cause.TIME_LIMIT, "its time was up"),
        ),
        (
            over(JobState.TIMED_OUT),
            True,
            None,
            e.JobKilled(30, 3, Cause.TIME_LIMIT, "its time was up"),
        ),
        (over(JobState.CANCELLED), True, None, e.JobEnded(30, 3)),
        (
            over(JobState.ENDED, 1),
            True,
            Leaving(Leave.TROUBLE, "no disk"),
            e.JobKilled(30, 3, Cause.AGENT, "its agent ended with code 1: no disk"),
        ),
        (over(JobState.ENDED, 143), True, _STOPPED, e.JobEnded(30, 3)),
        (over(JobState.ENDED, 1), True, None, e.JobEnded(30, 3)),
        (
            over(JobState.CANCELLED),
            False,
            None,
            e.JobKilled(30, 3, Cause.CANCELLED, "it was cancelled by someone else"),
        ),
        (
            over(JobState.NODE_FAILED),
            False,
            None,
            e.JobKilled(30, 3, Cause.NODE_FAILED, "a node failed"),
        ),
        (
            over(JobState.KILLED, 137, "OOM"),
            False,
            None,
            e.JobKilled(30, 3, Cause.CANCELLED, "the queue killed it (OOM)"),
        ),
        (None, False, DONE, e.JobEnded(20, 3)),
        (None, True, None, e.JobEnded(20, 3)),
        (None, False, None, e.JobKilled(20, 3, Cause.LOST, "the queue no longer knows it")),
        (
            None,
            False,
            OUT_OF_TIME,
            e.JobKilled(20, 3, Cause.TIME_LIMIT, "the queue no longer knows it"),
        ),
    ],
)
def test_how_a_job_ended(
    status: JobStatus | None, was_asked: bool, last_word: Leaving | None, expected: e.Event
) -> None:
    found = ending(3, status, 20.25, was_asked=was_asked, last_word=last_word)
    assert found.event == expected
    assert found.at_s == (20.25 if status is None else 30.5)
    assert found.detail is not None
    assert found.detail["agent"] == last_word


@pytest.mark.parametrize(
    ("ended_s", "alive_s", "expected"),
    [
        (None, 20.5, 20.5),  # no accounts: it was last heard of then
        (30.0, 20.5, 30.0),
        (30.0, 30.7, 30.7),  # accounts in whole seconds
        (30.0, 45.0, 30.0),  # an agent that lived on had no nodes any more
    ],
)
def test_when_a_job_ended(ended_s: float | None, alive_s: float, expected: float) -> None:
    assert end_s(ended_s, alive_s) == expected
