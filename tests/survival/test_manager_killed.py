"""The manager dies at every place where it changes anything outside its own memory; the next one goes on from there."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.survival.toy import Fate, ToyCluster, ToyRun, braid

from windrow.manager.events import JobKilled
from windrow.queues.port import JobState

STRATEGIES = ("individual", "glume", "level-by-level")


def places(folder: Path, strategy: str) -> int:
    """At how many places a manager can die in a run that nothing disturbs."""
    run = ToyRun(folder / "whole", ToyCluster(), strategy)
    fate = Fate()
    assert run.go_on(fate)
    run.check_complete()
    return fate.passed


@pytest.mark.slow
@pytest.mark.parametrize("away_s", [0, 400])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_at_every_place(folder: Path, strategy: str, away_s: int) -> None:
    """It is replaced at once, or after the queue has forgotten all about the run."""
    many = places(folder, strategy)
    assert many >= 20
    for deadly in range(many):
        run = ToyRun(folder / str(deadly), ToyCluster(memory_s=300), strategy)
        assert not run.go_on(Fate(deadly))
        run.wait(away_s)
        assert run.go_on(Fate())
        run.check_complete()
        assert set(run.cluster.started.values()) == {1}, f"died at place {deadly}"
        assert not run.cluster.turned_away


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_whoever_cancels_dies_at_every_place(folder: Path, strategy: str) -> None:
    """A run without a manager is called off; the one who does it dies; another one does it again; then it goes on."""
    whole = places(folder, strategy)
    for deadly in range(0, whole, 5):
        for again in range(8):
            cluster = ToyCluster(takes_s=lambda _: 40.0)
            run = ToyRun(folder / f"{deadly}-{again}", cluster, strategy, braid(runtime_s=40))
            run.go_on(Fate(deadly))
            run.call_off(Fate(again))
            jobs, called_off_s = len(cluster.jobs), cluster.now_s
            assert run.call_off(Fate())
            run.check_nothing_twice()
            assert len(cluster.jobs) == jobs, "submitted after it was called off"
            assert cluster.now_s - called_off_s < 10, "waited for jobs to end by themselves"
            assert run.go_on(Fate())
            run.check_complete()


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_failed_task_is_tried_again_whoever_died(folder: Path, strategy: str) -> None:
    """`up-0` fails until it is mended. Then all the rest is done; jobs that wait for it are not misled by the past."""
    broken = {1}
    trial = ToyRun(folder / "whole", ToyCluster(succeeds=lambda task: task not in broken), strategy)
    fate = Fate()
    assert trial.go_on(fate)
    assert trial.story().tasks[1].state == "failed"
    for deadly in range(fate.passed):
        run = ToyRun(folder / str(deadly), ToyCluster(succeeds=lambda task: task not in broken), strategy)
        assert not run.go_on(Fate(deadly))
        assert run.go_on(Fate())
        assert [task.state for task in run.story().tasks] == [task.state for task in trial.story().tasks]
        run.cluster.succeeds = lambda _: True
        assert run.go_on(Fate())
        run.check_complete()
        assert run.story().trouble == ""


@pytest.mark.slow
def test_why_an_agent_left_is_known_after_a_restart(folder: Path) -> None:
    """The first job is too short for one of its tasks, and says so together with the end of another.

    That it was short of time is known, though whoever read it may have died on it.
    """

    def fresh(name: str) -> ToyRun:
        cluster = ToyCluster()
        first_s = {1: 30.0, 2: 14.0}  # the job leaves after 17 s, of which the first task takes 3
        cluster.takes_s = lambda task: first_s.get(task, 3.0) if cluster.started[task] <= 1 else 3.0
        return ToyRun(folder / name, cluster, "one-job")

    fate = Fate()
    assert fresh("whole").go_on(fate)
    for deadly in range(fate.passed):
        run = fresh(str(deadly))
        assert not run.go_on(Fate(deadly))
        run.wait(60)
        assert run.go_on(Fate())
        run.check_complete()
        expired = [record.event.is_expiry for record in run.records() if isinstance(record.event, JobKilled)]
        assert expired == [True], f"died at place {deadly}"


MOODS = {"submit": ("", "", "down", "silent", "deaf"), "cancel": ("", "down"), "find": ("", "down")}


@pytest.mark.slow
@given(data=st.data())
def test_everything_at_once(folder: Path, data: st.DataObject) -> None:
    """Managers die, the queue is moody, jobs are cancelled, nodes fail, the clock jumps: the run still ends well."""
    number = len(list(folder.iterdir()))
    cluster = ToyCluster(memory_s=data.draw(st.sampled_from([20.0, 300.0])))
    cluster.takes_s = lambda task: 1.0 + (task * 7) % 5
    run = ToyRun(folder / str(number), cluster, data.draw(st.sampled_from(STRATEGIES)))
    chance = random.Random(data.draw(st.integers(0, 2**32)))
    troubles = data.draw(st.integers(0, 6))

    def mood(call: str) -> str:
        return chance.choice(MOODS.get(call, ("", "", "", "down")))

    def trouble() -> None:
        nonlocal troubles
        if troubles and cluster.running and chance.random() < 0.1:
            troubles -= 1
            job = chance.choice(cluster.running)
            how = chance.choice(["scancel", "agent", "node", "clock", "cut off", "preempted"])
            if how == "scancel":
                cluster.remove(job)
            elif how == "cut off":
                cluster.lose_sight(job)
            elif how == "preempted":
                cluster.remove(job, JobState.PREEMPTED)
            elif how == "clock":
                run.clock_step_s = chance.choice([-86_400.0, 86_400.0, 0.0])
            else:
                cluster.break_job(job, JobState.ENDED if how == "agent" else JobState.NODE_FAILED)

    cluster.mood = mood
    for deadly in data.draw(st.lists(st.integers(0, 60), max_size=5)):
        run.go_on(Fate(deadly), trouble)
        run.wait(chance.choice([0, 1, 10, 100]))
    cluster.mood = lambda _: ""
    troubles = 0
    run.go_on(Fate())
    run.go_on(Fate())  # where three jobs in a row were lost it gave up
    run.check_complete()
