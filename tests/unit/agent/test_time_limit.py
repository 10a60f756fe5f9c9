"""Tasks that run for longer than they may."""

from __future__ import annotations

import pytest
from tests.unit.agent.jobs import Run, shell

from windrow.agent.core import AgentCore
from windrow.agent.event_file import AttemptFailed, AttemptFinished
from windrow.agent.job_file import JobFile
from windrow.model.attempt import Attempt
from windrow.model.cause import Cause

IGNORES = "trap '' TERM; while :; do sleep 0.1; done"


@pytest.mark.slow
def test_what_runs_for_too_long_is_ended_and_tried_again_as_often_as_it_may(run: Run) -> None:
    """Also if it ignores the first signal. Others go on."""
    limited = shell(0, IGNORES, limit_s=0.5, retries=1, expected_s=0.1)
    assert run.run(limited, shell(1, "true", limit_s=500.0), shell(2, "true"))[0] == 0
    failed = run.of(AttemptFailed, 0)
    assert [one.of.number for one in failed] == [1, 2]
    assert {one.of.cause for one in failed} == {Cause.TIME_LIMIT}
    assert failed[0].of.why == "it ran for longer than its time limit of 0.5 s"
    assert [one.final for one in failed] == [False, True]
    assert sorted(one.task for one in run.of(AttemptFinished, 0)) == [1, 2]


def test_one_that_succeeds_all_the_same_has_finished() -> None:
    spec = shell(0, "true", limit_s=10.0)
    core = AgentCore(JobFile("r", 0, 1, 1, None, 100.0, (spec,)), 0.0)
    core.start(5.0)
    assert core.end_overdue(6.0) == 9.0
    assert not core.overdue
    core.end_overdue(15.0)
    assert core.overdue == {0}
    core.ended(Attempt(0), 16.0)
    assert core.is_done
    assert not core.overdue
    assert isinstance(core.take_records()[-1], AttemptFinished)
