"""Real agents: one whose job was given up, and one of a job that has the same tasks."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.agent.jobs import Run, shell

from windrow.agent.claim import fence, is_fenced
from windrow.agent.desk import Elsewhere
from windrow.agent.event_file import (
    AgentLeft,
    AttemptFinished,
    AttemptStarted,
    OutputsCommitted,
    TaskDeclined,
    Writer,
)
from windrow.agent.job_file import read_job
from windrow.model.attempt import DONE, Attempt

pytestmark = pytest.mark.slow


def test_what_runs_may_end_and_nothing_more_begins(run: Run, tmp_path: Path) -> None:
    go = tmp_path / "go"
    run.write(
        shell(0, f"until [ -e '{go}' ]; do sleep 0.02; done", children=(1,)),
        shell(1, "true", parents=(0,)),
        shell(2, "true", cores=2),
    )
    with run.begin() as agent:
        run.wait_for_start(0)
        assert not is_fenced(run.folder, 0)
        fence(run.folder, 0)
        fence(run.folder, 0)
        go.touch()
        agent.communicate(timeout=60)
    assert agent.returncode == 0
    assert [event.task for event in run.of(AttemptStarted)] == run.finished() == [0]
    assert sorted(event.task for event in run.of(TaskDeclined)) == [1, 2]
    assert run.of(AgentLeft)[-1].why == DONE


def test_a_job_that_starts_after_it_was_given_up_does_nothing(run: Run) -> None:
    run.write(shell(0, "true"))
    fence(run.folder, 0)
    code, printed = run.run()
    assert (code, printed) == (0, "job 0 was given up by its run; nothing to do here\n")
    assert not run.folder.claim(0).exists()


def test_what_a_given_up_job_finishes_is_not_run_again(run: Run, tmp_path: Path) -> None:
    """Task 0 was done before the new job began, task 2 is done while task 1 runs; task 4 shows that
    this was heard."""
    go, log = tmp_path / "go", tmp_path / "log"
    run.folder.make(0)
    old = Writer(run.folder.events(0))
    old.add(AttemptFinished(1.0, Attempt(0, 1, begun=0.0)))
    old.flush()
    mark = f"echo $WINDROW_TASK >> '{log}'"
    run.write(
        shell(0, mark, children=(1,)),
        shell(
            1,
            f"{mark}; until [ -e '{go}' ]; do sleep 0.02; done",
            parents=(0,),
            children=(3,),
            cores=2,
        ),
        shell(2, mark, children=(3,), expected_s=0.5, cores=2),
        shell(3, mark, parents=(1, 2)),
        shell(4, "true", parents=(99,)),
        job=1,
        given_up=(0,),
        cores=3,
    )
    with run.begin(1) as agent:
        run.wait_for_start(1, job=1)
        old.add(AttemptFinished(2.0, Attempt(2, 1, begun=1.0)))
        old.add(AttemptFinished(2.0, Attempt(99, 1, begun=1.0)))
        old.close()
        run.wait_for_start(4, job=1)
        go.touch()
        agent.communicate(timeout=60)
    assert log.read_text().split() == ["t1", "t3"]
    assert run.of(AgentLeft, 1)[-1].why == DONE


def test_what_a_given_up_job_had_on_its_nodes_does_not_count_when_it_is_committed(run: Run) -> None:
    """For the run it was undone when the job was given up: an agent that started readers of it
    would be alone."""
    run.folder.make(0)
    old = Writer(run.folder.events(0))
    old.add(AttemptFinished(1.0, Attempt(0, 1, begun=0.0, local=("a",))))
    old.add(OutputsCommitted(2.0, 0, ("a",)))
    old.add(AttemptFinished(3.0, Attempt(2, 1, begun=0.0)))
    old.flush()
    run.write(shell(1, "true", parents=(0, 2), inputs=("a",)), job=1, given_up=(0,))
    assert Elsewhere(run.folder, read_job(run.folder.job_file(1))).look() == [(2, "")]
    run.write(shell(3, "true", parents=(0, 2), inputs=("a",)), job=2)
    assert Elsewhere(run.folder, read_job(run.folder.job_file(2))).look() == [(0, ""), (2, "")]
