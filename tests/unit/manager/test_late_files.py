"""What agents wrote is seen late, as on file systems that keep what they saw before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.survival.toy import VirtualRun, toy

from windrow.agent import event_file
from windrow.manager.inbox import LATE_FILES_S, PATIENCE_S
from windrow.queues.port import JobState
from windrow.story import events as e


def seen_late(run: VirtualRun, late_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of an events file is seen by managers until this long after the queue calls its job
    over."""
    read = event_file.Tail.read

    def reading(tail: Any) -> list[event_file.Record]:
        placed = {} if run.manager is None else run.manager.placed
        ids = [job.id for job in placed.values() if job.tail is tail]
        if ids and ids[0] is not None:
            status = run.world.queue.jobs[ids[0]].status
            if status.ended_s is None or run.world.now_s < status.ended_s + late_s:
                return []
        return read(tail)

    monkeypatch.setattr(event_file.Tail, "read", reading)


def test_what_is_seen_late_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = toy(tmp_path / "run", "level-by-level")
    run.patience_s = LATE_FILES_S
    seen_late(run, 40, monkeypatch)
    assert run.go_on()
    run.check_complete()
    assert not [r for r in run.records() if isinstance(r.event, e.JobKilled)]
    assert len(run.world.queue.jobs) == 4, "one job for each level"


def test_what_is_seen_too_late_costs_jobs_but_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs for tasks that are done find that out, and end; that was no fault of theirs."""
    run = toy(tmp_path / "run", "level-by-level")
    seen_late(run, 40, monkeypatch)
    monkeypatch.setattr("windrow.trials.virtual.invariants._check_last_words", lambda *_: None)
    run.survive()
    assert set(run.world.started.values()) == {1}


def test_who_has_said_his_last_word_is_not_waited_for(tmp_path: Path) -> None:
    run = toy(tmp_path / "run", "one-job")
    run.patience_s = 10 * LATE_FILES_S
    assert run.go_on()
    assert run.story().last_s == max(job.ended_s or 0.0 for job in run.story().jobs.values())
    assert run.world.now_s - run.story().last_s < PATIENCE_S


def test_on_a_local_disk_a_killed_agent_costs_no_long_wait(tmp_path: Path) -> None:
    run = toy(tmp_path / "run", "one-job", takes_s=lambda _: 30.0)
    manager = run.hire()
    manager.begin()
    while not run.world.agents:
        run.look(manager)
        run.wait(1)
    run.wait(5)
    killed_s = run.world.now_s
    run.world.kill_agent("c1", JobState.ENDED)
    while 0 in manager.placed:
        run.look(manager)
        run.wait(1)
    assert run.world.now_s - killed_s < 2 * PATIENCE_S + 5
