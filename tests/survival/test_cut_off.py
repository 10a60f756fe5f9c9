"""Jobs that the queue gave up while their agents live: they begin nothing more, and what they finish counts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.survival.toy import Fate, ToyCluster, ToyRun, braid

from windrow.manager.events import JobKilled, TaskFinished
from windrow.model.cause import Cause
from windrow.queues.port import JobState

UNTIL = 6  # ticks until the node is cut off: up-0 to up-2 run


def cut_off(folder: Path, takes_s: float = 8.0, strategy: str = "one-job") -> tuple[ToyRun, list[int]]:
    """A run whose only job is cut off from the queue, once; and a list that counts ticks."""
    cluster = ToyCluster(takes_s=lambda task: 3.0 if task == 0 else takes_s)
    run = ToyRun(folder, cluster, strategy, braid(runtime_s=int(takes_s)))
    return run, [0]


def check_fenced(run: ToyRun) -> None:
    """No task was begun by a given-up job once its replacement had begun; none ran in more than two jobs."""
    starts = run.cluster.starts
    for agent, _ in run.cluster.unseen:
        after = [at for at, queue_id, _ in starts if queue_id != agent.queue_id and at > starts[0][0]]
        own = [at for at, queue_id, _ in starts if queue_id == agent.queue_id]
        assert not after or max(own) <= min(after), starts
    assert max(Counter(task for _, _, task in starts).values()) <= 2


def test_what_a_lost_job_finishes_is_not_run_again(folder: Path) -> None:
    """Its replacement waits while it ends what it had begun: only the rest runs there."""
    run, ticks = cut_off(folder / "run")
    cluster = run.cluster

    def trouble() -> None:
        ticks[0] += 1
        if ticks[0] == UNTIL:
            cluster.lose_sight(cluster.running[0])
            cluster.nodes = 0  # its replacement has to wait
        if ticks[0] == 30:
            cluster.nodes = 4

    assert run.go_on(Fate(), trouble)
    run.check_complete()
    check_fenced(run)
    assert set(cluster.started.values()) == {1}, cluster.started
    killed = [r.event for r in run.records() if isinstance(r.event, JobKilled)]
    assert [event.cause for event in killed] == [Cause.NODE_FAILED]
    late = [r.event.task for r in run.records() if isinstance(r.event, TaskFinished) and "job" in (r.detail or {})]
    assert late, "what it finished was heard"
    assert run.story().is_complete


def test_the_first_to_finish_wins(folder: Path) -> None:
    """Its replacement begins at once: tasks that ran when it was given up run in both, and nothing else does."""
    run, ticks = cut_off(folder / "run", takes_s=12.0)
    cluster = run.cluster

    def trouble() -> None:
        ticks[0] += 1
        if ticks[0] == UNTIL:
            cluster.lose_sight(cluster.running[0])

    assert run.go_on(Fate(), trouble)
    run.check_complete()
    check_fenced(run)
    twice = {task for task, count in cluster.started.items() if count > 1}
    assert twice == {1, 2, 3}


@pytest.mark.slow
@pytest.mark.parametrize("away_s", [0, 15])
def test_whoever_manages_dies_at_every_place(folder: Path, away_s: int) -> None:
    def story(name: str, deadly: int | None) -> tuple[ToyRun, int]:
        run, ticks = cut_off(folder / name, takes_s=5.0)

        def trouble() -> None:
            ticks[0] += 1
            if ticks[0] == UNTIL and run.cluster.running:
                run.cluster.lose_sight(run.cluster.running[0])

        fate = Fate(deadly)
        if not run.go_on(fate, trouble):
            for _ in range(away_s):
                run.wait(1)
                trouble()
            assert run.go_on(Fate(), trouble)
        return run, fate.passed

    _, many = story("whole", None)
    for deadly in range(many):
        run, _ = story(str(deadly), deadly)
        run.check_complete()
        check_fenced(run)
        assert run.story().is_complete


def test_resume_hears_what_was_finished_meanwhile(folder: Path) -> None:
    """The manager stops after it gave the job up; the agent ends its tasks; nobody runs them again."""
    run, ticks = cut_off(folder / "run")
    cluster = run.cluster

    def trouble() -> None:
        ticks[0] += 1
        if ticks[0] == UNTIL:
            cluster.lose_sight(cluster.running[0])
            cluster.nodes = 0

    manager = run.hire(Fate())
    manager.begin()
    while not (run.path / "jobs" / "0" / "over").exists():
        manager.step()
        cluster.tick()
        trouble()
    run.wait(20)
    cluster.nodes = 4
    assert run.go_on(Fate())
    run.check_complete()
    assert set(cluster.started.values()) == {1}, cluster.started


@pytest.mark.parametrize("times", [5, 9])
def test_preemptions_in_a_row_do_not_end_a_run(folder: Path, times: int) -> None:
    run = ToyRun(folder / "run", ToyCluster(takes_s=lambda _: 9.0), "one-job", braid(runtime_s=9))
    left = [times]

    def trouble() -> None:
        if left[0] and run.cluster.running:
            left[0] -= 1
            run.cluster.remove(run.cluster.running[0], JobState.PREEMPTED)

    assert run.go_on(Fate(), trouble)
    run.check_complete()
    killed = [r.event.cause for r in run.records() if isinstance(r.event, JobKilled)]
    assert killed == [Cause.PREEMPTED] * times
    assert run.story().trouble == ""
