"""The time left, as a person would have read it at each second of recorded runs, against what
came."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.survival.test_out_of_order import InTwo
from tests.survival.toy import BEGIN_S, VirtualRun, braid, toy

from windrow.forecast.twin import Twin
from windrow.queues.port import JobState
from windrow.story.journal import PredictedStart
from windrow.story.time_left import Offer, time_left_s
from windrow.strategies import Strategy
from windrow.trials.virtual.world import World, empty_queue

TASK_S = 10


def watched(
    folder: Path,
    trouble: Callable[[VirtualRun], None],
    strategy: str | Strategy = "one-job",
    takes_s: float = TASK_S,
) -> tuple[list[tuple[float, float | None]], VirtualRun]:
    """A run; at each second the time that was left in truth, and what was said of it."""
    run = toy(
        folder / "run", strategy, braid(width=12, runtime_s=TASK_S), takes_s=lambda _: takes_s
    )
    said: list[tuple[float, float | None]] = []

    def told() -> None:
        assert run.manager is not None
        predictions: list[PredictedStart] = run.manager.journal.predictions()
        said.append(
            (run.world.now_s, time_left_s(run.story(), predictions, Offer(), run.world.now_s))
        )

    run.world.dues = [(BEGIN_S + second, told) for second in range(1, 1000)]
    trouble(run)
    assert run.go_on()
    run.check_complete()
    end_s = max(task.attempts[-1].ended_s or 0.0 for task in run.story().tasks)
    return [(end_s - now_s, left_s) for now_s, left_s in said if now_s < end_s], run


def nothing(run: VirtualRun) -> None:
    """Nothing goes wrong."""


def test_it_holds_from_the_first_second(folder: Path) -> None:
    told, _ = watched(folder, nothing)
    assert told[0][0] > 5 * TASK_S
    for true_s, left_s in told:
        assert left_s is not None
        assert left_s == pytest.approx(true_s, abs=0.35 * true_s + TASK_S)


def test_a_lost_job_costs_what_is_left_and_no_more(folder: Path) -> None:
    """Elapsed time times tasks left by tasks done would say several times as much."""

    def trouble(run: VirtualRun) -> None:
        world = run.world
        world.dues.append(
            (BEGIN_S + 25, lambda: world.kill_agent(world.queue.running[0], JobState.NODE_FAILED))
        )

    told, _ = watched(folder, trouble)
    for true_s, left_s in told[30:]:
        assert left_s is None or left_s == pytest.approx(true_s, abs=0.35 * true_s + TASK_S)
    assert any(left_s is not None for _, left_s in told[30:])


@pytest.mark.slow
def test_tasks_that_take_three_times_as_long_are_noticed(folder: Path) -> None:
    told, _ = watched(folder, nothing, takes_s=3 * TASK_S)
    later = told[len(told) // 2 :]
    for true_s, left_s in later:
        assert left_s is not None
        assert left_s == pytest.approx(true_s, abs=0.5 * true_s + 3 * TASK_S)


@pytest.mark.parametrize(
    ("word", "is_said"), [("Priority", True), ("QOSMaxCpuPerUserLimit", False)]
)
def test_of_a_job_that_runs_into_a_limit_nothing_is_said(
    folder: Path, word: str, *, is_said: bool
) -> None:
    """The forecast said that it starts at once; the queue says that it waits for something else."""
    run = toy(folder / "run", "one-job", braid(runtime_s=TASK_S))
    run.world.queue.holds = lambda _: True
    manager = run.hire()
    manager.begin()
    run.look(manager)
    story = run.story()
    (job,) = story.jobs.values()
    job.reason = word
    left_s = time_left_s(story, manager.journal.predictions(), Offer(), run.world.now_s)
    assert (left_s is not None) == is_said


def test_of_a_job_that_does_not_start_nothing_is_said(folder: Path) -> None:
    """It was to start at once; a minute later nobody believes that any more."""

    run = toy(folder / "run", InTwo(), braid(runtime_s=TASK_S), takes_s=lambda _: 3.0)
    world, said = run.world, list[float | None]()
    world.queue.holds = lambda _: world.now_s < BEGIN_S + 150

    def told() -> None:
        assert run.manager is not None
        said.append(
            time_left_s(run.story(), run.manager.journal.predictions(), Offer(), world.now_s)
        )

    world.dues = [(BEGIN_S + second, told) for second in range(1, 170)]
    world.dues.append((BEGIN_S + 150, world.queue.release))
    assert run.go_on()
    assert said[70] is None
    assert said[160] is not None


def test_after_a_fifth_of_a_run_of_many_jobs_it_is_near_the_truth(folder: Path) -> None:
    """Jobs of single tasks on four nodes: forecasts by requests, and most tasks still in no job. In
    the median."""
    off: list[float] = []
    for seed in range(7):
        chance = random.Random(seed)
        took_s = [chance.uniform(0.6, 1.6) * TASK_S for _ in range(82)]
        runnable = braid(width=40, runtime_s=TASK_S)
        queue = empty_queue(4)
        world = World(queue, took_s.__getitem__, lambda _: "")
        run = VirtualRun(
            folder / f"run-{seed}",
            world,
            runnable,
            "individual",
            forecasters=[Twin(queue, partial(getattr, world, "now_s"))],
        )
        said: list[tuple[float, float | None]] = []

        def told(run: VirtualRun = run, said: list[tuple[float, float | None]] = said) -> None:
            assert run.manager is not None
            predictions = run.manager.journal.predictions()
            said.append(
                (run.world.now_s, time_left_s(run.story(), predictions, Offer(), run.world.now_s))
            )

        run.world.dues = [(BEGIN_S + second, told) for second in range(5, 1000, 5)]
        assert run.go_on()
        end_s = max(task.attempts[-1].ended_s or 0.0 for task in run.story().tasks)
        fifth_s = BEGIN_S + (end_s - BEGIN_S) / 5
        now_s, left_s = next(one for one in said if one[0] >= fifth_s)
        assert left_s is not None
        off.append(left_s / (end_s - now_s))
    assert 0.75 <= statistics.median(off) <= 1.33, off
