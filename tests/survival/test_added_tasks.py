"""Tasks join a run at any time, and whoever manages it dies at any place: they are added once, and
run once."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from tests.examples import FUZZ
from tests.survival.test_manager_killed import STRATEGIES
from tests.survival.toy import Fate, VirtualRun, toy

from windrow.model import Step, Task
from windrow.records.runnable_file import RunnableRecord
from windrow.story.events import TasksAdded
from windrow.trials.virtual.crew import Killed

MORE = [
    Task("more-2", 3, parents=("more-1", "last")),
    Task("more-1", 3, parents=("first",)),
    Task("alone", 3),
]


def addition(number: int) -> TasksAdded:
    tasks = [
        Task(
            f"{t.id}-{number}",
            3,
            parents=tuple(f"{p}-{number}" if "more" in p else p for p in t.parents),
        )
        for t in MORE
    ]
    return TasksAdded(
        0, f"request-{number}", RunnableRecord("more", tasks, [], [Step(("true",), "/")] * 3)
    )


def grow(run: VirtualRun, fate: Fate, at: dict[int, int]) -> bool:
    """Manage the run; at these looks tasks join it. Each request is made again until a manager has
    survived it."""
    looks = 0

    def each_look() -> None:
        nonlocal looks
        looks += 1
        if number := at.get(looks):
            assert run.manager is not None
            run.manager.add(addition(number))
            run.manager.run_again(())

    run.each_look = each_look
    return run.go_on(fate)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_at_every_place(folder: Path, strategy: str) -> None:
    whole, at = toy(folder / "whole", strategy), {2: 1, 7: 2}
    fate = Fate()
    assert grow(whole, fate, at)
    whole.check_complete()
    assert len(whole.story().tasks) == 8 + 6
    for deadly in range(0, fate.passed, 1 if FUZZ else 11):
        run = toy(folder / str(deadly), strategy)
        assert not grow(run, Fate(deadly), at)
        asked = [
            number
            for number in at.values()
            if f"request-{number}" not in {a.event.id for a in run.story().additions}
        ]
        assert grow(run, Fate(), {1: 1, 2: 2, 3: 1})  # asked again, whoever heard it before
        run.check_complete()
        assert len(run.story().tasks) == 8 + 6
        assert set(run.world.started.values()) == {1}, (
            f"died at place {deadly}, when {asked} were not added"
        )


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES[:2])
def test_a_run_that_was_complete_goes_on(folder: Path, strategy: str) -> None:
    run = toy(folder / "run", strategy)
    assert run.go_on()
    run.check_complete()
    for deadly in (0, 1, 2, None):
        with suppress(Killed), run.world.watched():
            run.hire(Fate(deadly)).add(addition(1))
    assert run.go_on()
    run.check_complete()
    assert (len(run.story().tasks), len(run.story().additions)) == (11, 1)
    assert set(run.world.started.values()) == {1}
