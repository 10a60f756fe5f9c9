"""The queue starts a run's later job first: it takes the earlier one's work over, and nothing is done twice."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.survival.toy import Fate, ToyCluster, ToyRun, braid

from windrow.manager.events import JobStarted, JobTaken
from windrow.queues.port import JobState
from windrow.strategies import Decision, View


class InTwo:
    """All that is left in two jobs at once: its first level, and the rest."""

    name = "in two"

    def decide(self, view: View) -> Decision:
        if view.jobs or not view.left.any():
            return Decision()
        last = view.levels.count - 1
        spans = [(0, 0), (1, last)] if last else [(0, 0)]
        return Decision(tuple(view.plan(*span, nodes=2, leeway_s=60) for span in spans))


def backwards(folder: Path, takes_s: float = 3.0) -> ToyRun:
    cluster = ToyCluster(takes_s=lambda _: takes_s, held={"1"})
    return ToyRun(folder, cluster, InTwo(), braid(runtime_s=int(takes_s)))


def test_the_job_that_has_nodes_takes_the_work(folder: Path) -> None:
    run = backwards(folder / "run")
    assert run.go_on(Fate())
    run.check_complete()
    cluster = run.cluster
    assert set(cluster.started.values()) == {1}
    assert {queue_id for _, queue_id, _ in cluster.starts} == {"2"}
    assert cluster.jobs[0].state is JobState.CANCELLED
    assert cluster.jobs[0].started_s is None
    story = run.story()
    assert (story.jobs[0].taken_by, story.jobs[0].outcome, story.jobs[0].queue_started_s) == (1, "ended", None)
    assert story.jobs[0].note == "taken over by job 1"
    events = [record.event for record in run.records()]
    assert [event.job for event in events if isinstance(event, JobTaken)] == [0]
    assert [event.job for event in events if isinstance(event, JobStarted)] == [1], "no start of job 0 is learnt from"


def test_whoever_starts_first_has_the_claim(folder: Path) -> None:
    """Job 0 is let go in the second in which it would be taken over, or around it."""
    for tick in range(15, 30):
        run = backwards(folder / str(tick))
        ticks = [0]

        def let_go(run: ToyRun = run, ticks: list[int] = ticks, tick: int = tick) -> None:
            ticks[0] += 1
            if ticks[0] == tick:
                run.cluster.held.clear()

        assert run.go_on(Fate(), let_go)
        run.check_complete()
        assert set(run.cluster.started.values()) == {1}


@pytest.mark.parametrize("state", [JobState.NODE_FAILED, JobState.TIMED_OUT, JobState.PREEMPTED])
def test_the_taker_dies_with_both(folder: Path, state: JobState) -> None:
    run = backwards(folder / "run", takes_s=9.0)
    broken = [False]

    def trouble() -> None:
        if run.cluster.starts and not broken[0]:
            broken[0] = True
            run.cluster.break_job(run.cluster.running[0], state)
            run.cluster.held.clear()

    assert run.go_on(Fate(), trouble)
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
        assert run.go_on(Fate())
        run.check_complete()
        assert set(run.cluster.started.values()) == {1}, f"died at place {deadly}"


@pytest.mark.slow
@given(data=st.data())
def test_in_any_order_with_any_trouble(folder: Path, data: st.DataObject) -> None:
    """Jobs are held and let go at random, cancelled, preempted, cut off; managers die: the run still ends well."""
    cluster = ToyCluster(takes_s=lambda task: 1.0 + (task * 7) % 9, memory_s=data.draw(st.sampled_from([20.0, 300.0])))
    run = ToyRun(folder / str(len(list(folder.iterdir()))), cluster, InTwo(), braid(runtime_s=9))
    chance = random.Random(data.draw(st.integers(0, 2**32)))
    troubles = data.draw(st.integers(0, 5))

    def trouble() -> None:
        nonlocal troubles
        for job in cluster.jobs:
            if chance.random() < 0.05:
                (cluster.held.discard if job.id in cluster.held else cluster.held.add)(job.id)
        if troubles and cluster.running and chance.random() < 0.05:
            troubles -= 1
            job = chance.choice(cluster.running)
            how = chance.choice(["scancel", "preempted", "cut off", "node"])
            if how == "cut off":
                cluster.lose_sight(job)
            elif how == "node":
                cluster.break_job(job, JobState.NODE_FAILED)
            else:
                cluster.remove(job, JobState.CANCELLED if how == "scancel" else JobState.PREEMPTED)

    for deadly in data.draw(st.lists(st.integers(0, 60), max_size=4)):
        run.go_on(Fate(deadly), trouble)
        for _ in range(chance.choice([0, 1, 10, 100])):
            run.wait(1)
            trouble()
    troubles = 0
    assert run.go_on(Fate(), trouble)
    assert run.go_on(Fate(), cluster.held.clear)
    run.check_complete()
