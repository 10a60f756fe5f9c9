"""Held node time never exceeds nodes times span, though nobody manages the run for most of its
time."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from tests.survival.toy import BEGIN_S, Fate, VirtualRun, braid, toy

from windrow.story.figures import RecordedRun, node_time
from windrow.story.story import RunStory
from windrow.trials.virtual.disk import scratch

pytestmark = pytest.mark.slow
STRATEGIES = ("individual", "level-by-level", "one-job", "glume")
NODES = 3
if "WINDROW_FULL" in os.environ:
    EACH = 50
else:
    EACH = 5


def recorded(story: RunStory) -> RecordedRun:
    return RecordedRun("r", "complete", "individual", "q", story, (), story.last_s)


def interrupted(path: Path, seed: int) -> VirtualRun:
    """A run whose managers die early and stay away long; some of its agents are killed
    meanwhile."""
    chance = random.Random(seed)
    takes = [chance.randint(1, 40) for _ in range(8)]
    run = toy(path, STRATEGIES[seed % 4], braid(3, 20), nodes=NODES, takes_s=takes.__getitem__)
    run.world.queue.memory_s = chance.choice([0.0, 30.0, 1e9])
    for _ in range(10):
        if run.go_on(Fate(chance.randint(5, 60))):
            break
        run.wait(chance.choice([5, 60, 600, 40_000]))
        if chance.random() < 0.3 and run.world.agents:
            run.world.kill_agent(chance.choice(sorted(run.world.agents)))
    run.survive()
    return run


@pytest.mark.parametrize("part", range(4))
def test_held_node_time_of_interrupted_runs(part: int) -> None:
    """Two hundred of them with `make prove PARTS=interrupted`; by default twenty."""
    for seed in range(50 * part, 50 * part + EACH):
        with scratch() as folder:
            run = interrupted(folder / "run", seed)
            story = run.story()
            run.close()
        last_s = max(attempt.ended_s or 0.0 for task in story.tasks for attempt in task.attempts)
        held_s = node_time(recorded(story)).allocated_s
        assert held_s <= NODES * (last_s + 10 - BEGIN_S), seed
        for job in story.jobs.values():
            if job.started_s is not None and job.outcome == "ended" and job.taken_by is None:
                ends = [
                    a.ended_s or 0.0
                    for task in story.tasks
                    for a in task.attempts
                    if story.jobs.get(a.job) is job
                ]
                assert (job.ended_s or 0.0) <= max(ends, default=job.ended_s or 0.0) + 10, seed
