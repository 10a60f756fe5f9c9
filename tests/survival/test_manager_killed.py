"""The manager dies at every place where it changes anything outside its own memory; the next one
goes on from there."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import some
from tests.survival.toy import BEGIN_S, Fate, braid, toy

from windrow.model.cause import Cause
from windrow.queues.simulated import Mood
from windrow.story.events import JobKilled
from windrow.trials.virtual.faults import draw
from windrow.trials.virtual.world import AttemptStart

STRATEGIES = ("individual", "glume", "level-by-level")


def places(folder: Path, strategy: str) -> int:
    """At how many places a manager can die in a run that nothing disturbs."""
    run = toy(folder / "whole", strategy)
    fate = Fate()
    assert run.go_on(fate)
    run.check_complete()
    run.close()
    return fate.passed


@pytest.mark.slow
@pytest.mark.parametrize("away_s", some(400, 0))
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_at_every_place(folder: Path, strategy: str, away_s: int) -> None:
    """It is replaced at once, or after the queue has forgotten all about the run."""
    many = places(folder, strategy)
    assert many >= 12  # of a run in one job, whose queue is asked little while its agent tells all
    for deadly in range(many):
        run = toy(folder / str(deadly), strategy, memory_s=300)
        assert not run.go_on(Fate(deadly))
        run.wait(away_s)
        assert run.go_on()
        run.check_complete()
        assert set(run.world.started.values()) == {1}, f"died at place {deadly}"
        assert not run.world.turned_away
        run.close()


@pytest.mark.slow
@pytest.mark.parametrize("strategy", some(*STRATEGIES))
def test_whoever_cancels_dies_at_every_place(folder: Path, strategy: str) -> None:
    """A run without a manager is called off; the one who does it dies; another one does it again;
    then it goes on."""
    whole = places(folder, strategy)
    for deadly in range(0, whole, some(11, 5)[-1]):
        for again in range(8):
            run = toy(
                folder / f"{deadly}-{again}", strategy, braid(runtime_s=40), takes_s=lambda _: 40.0
            )
            run.go_on(Fate(deadly))
            run.call_off(Fate(again))
            jobs, called_off_s = len(run.world.queue.jobs), run.world.now_s
            assert run.call_off()
            run.check_nothing_twice()
            assert len(run.world.queue.jobs) == jobs, "submitted after it was called off"
            assert run.world.now_s - called_off_s < 10, "waited for jobs to end by themselves"
            assert run.go_on()
            run.check_complete()
            run.close()


@pytest.mark.slow
@pytest.mark.parametrize("strategy", some(*STRATEGIES))
def test_a_failed_task_is_tried_again_whoever_died(folder: Path, strategy: str) -> None:
    """`up-0` fails until it is mended. Then all the rest is done; jobs that wait for it are not
    misled by the past."""

    def failure(task: int) -> str:
        return "exit code 1" if task == 1 else ""

    trial = toy(folder / "whole", strategy, failure=failure)
    fate = Fate()
    assert trial.go_on(fate)
    assert trial.story().tasks[1].state == "failed"
    for deadly in range(fate.passed):
        run = toy(folder / str(deadly), strategy, failure=failure)
        assert not run.go_on(Fate(deadly))
        assert run.go_on()
        assert [task.state for task in run.story().tasks] == [
            task.state for task in trial.story().tasks
        ]
        run.world.failure = lambda _: ""
        assert run.go_on()
        run.check_complete()
        assert run.story().trouble == ""
        run.close()


@pytest.mark.slow
def test_why_an_agent_left_is_known_after_a_restart(folder: Path) -> None:
    """The first job is too short for one of its tasks, and says so together with the end of
    another.

    That it was short of time is known, though whoever read it may have died on it.
    """
    fate, first_s = (
        Fate(),
        {1: 30.0, 2: 14.0},
    )  # the job leaves after 17 s, of which the first task takes 3
    for deadly in (None, *range(200)):
        run = toy(folder / str(deadly), "one-job")
        started = run.world.starts

        def takes_s(task: int, started: list[AttemptStart] = started) -> float:
            return (
                first_s.get(task, 3.0) if sum(start.task == task for start in started) <= 1 else 3.0
            )

        run.world.takes_s = takes_s
        if deadly is None:
            assert run.go_on(fate)
        elif deadly == fate.passed:
            break
        else:
            assert not run.go_on(Fate(deadly))
            run.wait(60)
            assert run.go_on()
        run.check_complete()
        expired = [
            record.event.cause is Cause.TIME_LIMIT
            for record in run.records()
            if isinstance(record.event, JobKilled)
        ]
        assert expired == [True], f"died at place {deadly}"
        run.close()


GOOD, DOWN, SILENT, DEAF = Mood.GOOD, Mood.DOWN, Mood.SILENT, Mood.DEAF
MOODS = {"submit": (GOOD, GOOD, DOWN, SILENT, DEAF), "cancel": (GOOD, DOWN), "find": (GOOD, DOWN)}


@pytest.mark.slow
@given(seed=st.integers(0, 2**32), deaths=st.lists(st.integers(0, 60), max_size=5))
def test_everything_at_once(folder: Path, seed: int, deaths: list[int]) -> None:
    """Managers die, the queue is moody, jobs are cancelled, nodes fail, the clock jumps: the run
    still ends well."""
    chance = random.Random(seed)
    run = toy(
        folder / str(len(list(folder.iterdir()))),
        chance.choice(STRATEGIES),
        memory_s=chance.choice([20.0, 300.0]),
        takes_s=lambda task: 1.0 + (task * 7) % 5,
    )
    run.world.mood = lambda call: chance.choice(MOODS.get(call, (GOOD, GOOD, GOOD, DOWN)))
    run.world.faults = draw(seed, 100, BEGIN_S, 6)
    for deadly in deaths:
        run.go_on(Fate(deadly))
        run.wait(chance.choice([0, 1, 10, 100]))
    run.world.mood = lambda _: GOOD
    run.survive()
    run.close()
