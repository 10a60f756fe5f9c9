"""Agents that keep their nodes for tasks to come."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import ANY

import pytest
from tests.unit.agent.jobs import Run, shell
from tests.waiting import wait_until

from windrow.agent.event_file import AgentLeft, AgentStarted, AttemptFinished
from windrow.agent.folder import RunFolder
from windrow.agent.holds import Hold, write_hold
from windrow.agent.keeping import Keeping
from windrow.deletion import discard
from windrow.model.attempt import DONE


def hold(folder: RunFolder, keep_s: float) -> Path:
    folder.holds.mkdir(parents=True)
    write_hold(folder.holds / "me", Hold("me", keep_s=keep_s), is_first=True)
    return folder.holds / "me"


def test_nodes_are_kept_no_longer_than_is_stated_and_that_is_counted(tmp_path: Path) -> None:
    folder = RunFolder.at(tmp_path)
    keeping = Keeping(folder)
    assert not keeping.lasts(0.0)
    file = hold(folder, keep_s=10)
    assert keeping.lasts(100.0)
    assert keeping.due_s(100.0) == pytest.approx(0.05)
    assert keeping.lasts(109.0)
    assert not keeping.lasts(111.0)
    assert (keeping.kept_s, keeping.due_s(112.0)) == (11.0, None)
    assert keeping.lasts(200.0)
    keeping.over(203.0)  # tasks came
    keeping.over(204.0)
    assert keeping.kept_s == 14.0
    discard(file)
    assert not keeping.lasts(300.0)
    assert keeping.kept_s == 14.0


@pytest.mark.slow
def test_an_agent_of_a_held_run_does_what_joined_and_leaves_when_it_is_closed(run: Run) -> None:
    file = hold(run.folder, keep_s=500)
    run.write(shell(0, "true"))
    with run.begin() as agent:
        wait_until(lambda: run.finished(0) == [0])
        run.write(shell(1, "true"), job=1)
        run.write(shell(2, "true", cores=99), job=2)  # it does not fit
        wait_until(lambda: run.of(AgentLeft, 1))
        assert agent.poll() is None
        discard(file)
        assert agent.wait(200) == 0
    (left,) = run.of(AgentLeft, 0)
    assert (left.why, left.kept_s) == (DONE, ANY)
    assert left.kept_s > 0
    assert run.of(AgentStarted, 1)[0].by_job == 0
    assert [record.task for record in run.of(AttemptFinished, 1)] == [1]
    assert not run.folder.claim(2).exists()


@pytest.mark.slow
def test_an_agent_leaves_when_nothing_comes_or_its_time_is_up(run: Run) -> None:
    hold(run.folder, keep_s=0.5)
    run.write(shell(0, "true"))
    assert run.run(job=0)[0] == 0
    assert run.of(AgentLeft, 0)[0].kept_s >= 0.5
    write_hold(run.folder.holds / "me", Hold("me", keep_s=500), is_first=True)
    run.write(shell(1, "true", expected_s=0.1), job=1, walltime_s=4)
    assert run.run(job=1)[0] == 0
    assert run.of(AgentLeft, 1)[0].why == DONE
