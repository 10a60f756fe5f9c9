"""The queue starts a run's later job first: it takes the earlier one's work over, and nothing is
done twice."""

from __future__ import annotations

import random
from collections.abc import Collection
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.survival.toy import BEGIN_S, Fate, VirtualRun, braid, toy

from windrow.queues.port import JobState
from windrow.story.events import JobStarted, JobTaken
from windrow.strategies import Decision, View
from windrow.trials.virtual.faults import draw


class InTwo:
    """All that is left in two jobs at once: its first level, and the rest."""

    name = "in two"

    def decide(self, view: View) -> Decision:
        if view.jobs or not view.left.any():
            return Decision()
        last = view.levels.count - 1
        spans = [(0, 0), (1, last)] if last else [(0, 0)]
        return Decision(tuple(view.plan(*span, nodes=2, leeway_s=60) for span in spans))


def backwards(folder: Path, takes_s: float = 3.0, held: Collection[str] = ("c1",)) -> VirtualRun:
    run = toy(folder, InTwo(), braid(runtime_s=int(takes_s)), takes_s=lambda _: takes_s)
    run.world.queue.holds = lambda job: job in held
    return run


def let_go(run: VirtualRun) -> None:
    """Nothing is held any more."""
    run.world.queue.holds = lambda _: False
    run.world.queue.release()


def test_the_job_that_has_nodes_takes_the_work(folder: Path) -> None:
    run = backwards(folder / "run")
    assert run.go_on()
    run.check_complete()
    assert set(run.world.started.values()) == {1}
    assert {start.queue_id for start in run.world.starts} == {"c2"}
    first = run.world.queue.jobs["c1"].status
    assert (first.state, first.started_s) == (JobState.CANCELLED, None)
    story = run.story()
    assert (story.jobs[0].taken_by, story.jobs[0].outcome, story.jobs[0].queue_started_s) == (
        1,
        "ended",
        None,
    )
    assert story.jobs[0].note == "taken over by job 1"
    events = [record.event for record in run.records()]
    assert [event.job for event in events if isinstance(event, JobTaken)] == [0]
    assert [event.job for event in events if isinstance(event, JobStarted)] == [1], (
        "no start of job 0 is learned from"
    )


def test_whoever_starts_first_has_the_claim(folder: Path) -> None:
    """Job 0 is let go in the second in which it would be taken over, or around it."""
    for second in range(15, 30):
        run = backwards(folder / str(second))
        run.world.dues = [(BEGIN_S + second, partial(let_go, run))]
        assert run.go_on()
        run.check_complete()
        assert set(run.world.started.values()) == {1}


@pytest.mark.parametrize("state", [JobState.NODE_FAILED, JobState.TIMED_OUT, JobState.PREEMPTED])
def test_the_taker_dies_with_both(folder: Path, state: JobState) -> None:
    run = backwards(folder / "run", takes_s=9.0)
    broken = [False]

    def trouble() -> None:
        if run.world.starts and not broken[0]:
            broken[0] = True
            run.world.kill_agent(run.world.queue.running[0], state)
            let_go(run)

    run.each_look = trouble
    assert run.go_on()
    run.check_complete()
    killed = [job.outcome for job in run.story().jobs.values()]
    assert killed[:2] == ["killed", "killed"]
    assert run.story().trouble == ""


@pytest.mark.slow
@pytest.mark.parametrize("away_s", [0, 60])
def test_whoever_manages_dies_at_every_place(folder: Path, away_s: int) -> None:
    whole = backwards(folder / "whole")
    fate = Fate()
    assert whole.go_on(fate)
    for deadly in range(fate.passed):
        run = backwards(folder / str(deadly))
        assert not run.go_on(Fate(deadly))
        run.wait(away_s)
        assert run.go_on()
        run.check_complete()
        assert set(run.world.started.values()) == {1}, f"died at place {deadly}"
        run.close()


@pytest.mark.slow
@given(seed=st.integers(0, 2**32), deaths=st.lists(st.integers(0, 60), max_size=4))
def test_in_any_order_with_any_trouble(folder: Path, seed: int, deaths: list[int]) -> None:
    """Jobs are held and let go at random, cancelled, preempted, cut off; managers die: the run
    still ends well."""
    chance = random.Random(seed)
    run = backwards(folder / str(len(list(folder.iterdir()))), 9.0)
    queue, held = run.world.queue, set[str]()
    run.world.takes_s = lambda task: 1.0 + (task * 7) % 9
    queue.memory_s, queue.holds = chance.choice([20.0, 300.0]), held.__contains__

    def hold_or_let_go() -> None:
        held.symmetric_difference_update(job for job in queue.left if chance.random() < 0.1)
        queue.release()

    run.each_look = hold_or_let_go
    run.world.faults = draw(seed, 150, BEGIN_S, 5)
    for deadly in deaths:
        run.go_on(Fate(deadly))
        run.wait(chance.choice([0, 1, 10, 100]))
    run.each_look = partial(let_go, run)
    run.survive()
    run.close()
