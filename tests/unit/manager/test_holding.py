"""Runs that are kept open for tasks to come: leases, the core, the story."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.manager.test_growth import BASE, added, core_of

from windrow.agent.holds import Hold, holds_in, keep_s, write_hold
from windrow.manager.holding import Holding
from windrow.model import Task
from windrow.story import events as e
from windrow.story.events import Decide, StopJob
from windrow.story.story import RunStory
from windrow.strategies import Decision, JobPlan


def renew(folder: Path, name: str, beat: int = 0, *, is_first: bool = False, **more: float) -> bool:
    return write_hold(folder / name, Hold(name, beat, **more), is_first=is_first)


def test_a_hold_lasts_while_it_is_renewed(tmp_path: Path) -> None:
    holding = Holding(tmp_path)
    assert holding.look(None, 0, 0.0) is None
    renew(tmp_path, "a", is_first=True, lease_s=30, keep_s=9)
    assert holding.look(None, 1, 0.1) is None, "there was a look just now"
    held = holding.look(None, 1, 1.0)
    assert held == e.RunHeld(1, "a", 9)
    assert holding.look(held, 2, 20.0) is None
    assert renew(tmp_path, "a", 1, lease_s=30, keep_s=9)
    assert holding.look(held, 3, 40.0) is None
    assert holding.look(held, 3, 69.0) is None
    assert holding.look(held, 4, 71.0) == e.RunClosed(4, "a has not been heard of for 30 s")
    assert not renew(tmp_path, "a", 2), "it was sent away"
    assert holds_in(tmp_path) == {}


def test_of_several_holders_the_last_one_closes_the_run(tmp_path: Path) -> None:
    holding = Holding(tmp_path)
    renew(tmp_path, "a", is_first=True, keep_s=5)
    held = holding.look(None, 0, 0.0)
    renew(tmp_path, "b", is_first=True, keep_s=7)
    held = holding.look(held, 1, 1.0)  # type: ignore[arg-type]
    assert held == e.RunHeld(1, "a, b", 7)
    assert keep_s(tmp_path) == 7
    (tmp_path / "b").unlink()
    held = holding.look(held, 2, 2.0)
    assert held == e.RunHeld(2, "a", 5)
    (tmp_path / "a").unlink()
    assert holding.look(held, 3, 3.0) == e.RunClosed(3)
    assert keep_s(tmp_path) == keep_s(tmp_path / "nothere") == 0


def test_a_file_that_says_nothing_yet_is_a_hold_that_must_be_renewed(tmp_path: Path) -> None:
    """Its holder may be writing it."""
    holding = Holding(tmp_path)
    (tmp_path / "half").write_text('{"who": "a"')
    held = holding.look(None, 0, 0.0)
    assert held == e.RunHeld(0, "half", 120.0)
    assert holding.look(held, 1, 31.0) == e.RunClosed(1, "half has not been heard of for 30 s")


def test_a_run_that_is_stopped_sends_its_holders_away(tmp_path: Path) -> None:
    renew(tmp_path, "a", is_first=True)
    holding = Holding(tmp_path)
    holding.look(None, 0, 0.0)
    holding.end_all()
    assert not renew(tmp_path, "a", 1)


JOB_IN_HELD_RUN = (
    e.RunBegan(0),
    e.RunHeld(0, "me", 5),
    e.JobsPlanned(1, Decision((JobPlan((0, 1), 1, 12, 60),))),
    e.JobStarted(2, 0),
)


def test_a_held_run_is_not_over_when_all_is_done() -> None:
    core = core_of(BASE)
    story = RunStory.of(BASE, ())
    for event in (
        *JOB_IN_HELD_RUN,
        e.TaskFinished(7, 0),
        e.TaskFinished(9, 1),
    ):
        core.handle(event)
        story.take_in(event, float(event.at_s))
        core.check()
    assert (core.is_complete, core.is_over, core.kept_jobs()) == (True, False, [0])
    assert story.kept_jobs() == [0]
    more = added(Task("c", 1, parents=("b",)))
    assert core.handle(more) == [Decide()], "though a job is there that does nothing"
    assert core.view(50, lambda nodes, _: nodes).jobs_running == 0
    core.handle(e.RunClosed(60))
    assert core.kept_jobs() == []
    assert core.view(60, lambda nodes, _: nodes).jobs_running == 1
    story.take_in(e.JobEnded(61, 0), 61.0, {"kept_s": 40.0})
    assert story.kept_node_s == 40


def test_what_joined_while_a_job_ran_is_decided_on_when_it_keeps_its_nodes() -> None:
    """A strategy may have wanted to wait for the job, which does not end."""
    core = core_of(BASE)
    for event in (
        *JOB_IN_HELD_RUN,
        added(Task("c", 1)),
        e.TaskFinished(7, 0),
    ):
        core.handle(event)
    assert core.handle(e.TaskFinished(9, 1)) == [Decide()]
    core.check()


@pytest.mark.parametrize("end", [e.RunStopped(3), e.RunClosed(3, "it fell silent")])
def test_a_held_run_ends_when_it_is_stopped_or_closed(end: e.Event) -> None:
    core = core_of(BASE)
    for event in (e.RunBegan(0), e.RunHeld(0, "me", 5), e.TaskKept(1, 0), e.TaskKept(1, 1)):
        core.handle(event)
    assert not core.is_over
    core.handle(end)
    assert core.is_over


def test_a_kept_job_is_stopped_with_the_job_that_it_took_over() -> None:
    """It has nothing left of its own, but would stay as long as its guest runs."""
    core = core_of(BASE)
    for event in (
        *JOB_IN_HELD_RUN,
        e.TaskFinished(7, 0),
        e.TaskFinished(9, 1),
        added(Task("c", 1)),
        e.JobsPlanned(10, Decision((JobPlan((2,), 1, 1, 60),))),
        e.JobTaken(10, 1, 0, "7"),
    ):
        core.handle(event)
    assert core.handle(e.RunStopped(11)) == [StopJob(0), StopJob(1)]
