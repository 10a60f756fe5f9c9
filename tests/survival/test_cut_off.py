"""Jobs that the queue gave up while their agents live: they begin nothing more, and what they
finish counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.survival.toy import BEGIN_S, Fate, VirtualRun, braid, toy

from windrow.model.cause import Cause
from windrow.queues.port import JobState
from windrow.story.events import JobKilled, TaskFinished

UNTIL = 6  # seconds until the node is cut off: up-0 to up-2 run


def cut_off(folder: Path, takes_s: float = 8.0, *, holds_until: int = 0) -> VirtualRun:
    """A run whose only job is cut off from the queue, once; its replacement may have to wait."""
    run = toy(
        folder,
        "one-job",
        braid(runtime_s=int(takes_s)),
        takes_s=lambda task: takes_s if task else 3.0,
    )
    world, queue = run.world, run.world.queue

    def cut() -> None:
        for job in queue.running[:1]:
            world.cut_off(job)
        queue.holds = lambda _: world.now_s < BEGIN_S + holds_until

    world.dues = [(BEGIN_S + UNTIL, cut), (BEGIN_S + holds_until, queue.release)]
    return run


def check_fenced(run: VirtualRun) -> None:
    """No task was begun by a given-up job once its replacement had begun; none ran in more than two
    jobs."""
    starts = run.world.starts
    for queue_id in run.world.was_unseen:
        after = [s.at_s for s in starts if s.queue_id != queue_id and s.at_s > starts[0].at_s]
        own = [s.at_s for s in starts if s.queue_id == queue_id]
        assert not after or max(own) <= min(after), starts
    assert max(run.world.started.values()) <= 2


def test_what_a_lost_job_finishes_is_not_run_again(folder: Path) -> None:
    """Its replacement waits while it ends what it had begun: only the rest runs there."""
    run = cut_off(folder / "run", holds_until=30)
    assert run.go_on()
    run.check_complete()
    check_fenced(run)
    assert set(run.world.started.values()) == {1}, run.world.started
    killed = [r.event for r in run.records() if isinstance(r.event, JobKilled)]
    assert [event.cause for event in killed] == [Cause.NODE_FAILED]
    late = [
        r.event.task
        for r in run.records()
        if isinstance(r.event, TaskFinished) and r.attempt and r.attempt.job >= 0
    ]
    assert late, "what it finished was heard"


def test_the_first_to_finish_wins(folder: Path) -> None:
    """Its replacement begins at once: tasks that ran when it was given up run in both, and nothing
    else does."""
    run = cut_off(folder / "run", takes_s=12.0)
    assert run.go_on()
    run.check_complete()
    check_fenced(run)
    assert {task for task, count in run.world.started.items() if count > 1} == {1, 2, 3}


@pytest.mark.slow
@pytest.mark.parametrize("away_s", [0, 15])
def test_whoever_manages_dies_at_every_place(folder: Path, away_s: int) -> None:
    fate = Fate()
    assert cut_off(folder / "whole", takes_s=5.0).go_on(fate)
    for deadly in range(fate.passed):
        run = cut_off(folder / str(deadly), takes_s=5.0)
        assert not run.go_on(Fate(deadly))
        run.wait(away_s)
        assert run.go_on()
        run.check_complete()
        check_fenced(run)
        run.close()


def test_resume_hears_what_was_finished_meanwhile(folder: Path) -> None:
    """The manager stops after it gave the job up; the agent ends its tasks; nobody runs them
    again."""
    run = cut_off(folder / "run", holds_until=50)
    manager = run.hire()
    manager.begin()
    while not (run.path / "jobs" / "0" / "over").exists():
        run.look(manager)
        run.wait(1)
    run.wait(20)
    assert run.go_on()
    run.check_complete()
    assert set(run.world.started.values()) == {1}, run.world.started


@pytest.mark.parametrize("times", [5, 9])
def test_preemptions_in_a_row_do_not_end_a_run(folder: Path, times: int) -> None:
    run = toy(folder / "run", "one-job", braid(runtime_s=9), takes_s=lambda _: 9.0)
    left = [times]

    def preempt() -> None:
        if left[0] and run.world.queue.running:
            left[0] -= 1
            run.world.remove(run.world.queue.running[0], JobState.PREEMPTED)

    run.each_look = preempt
    assert run.go_on()
    run.check_complete()
    killed = [r.event.cause for r in run.records() if isinstance(r.event, JobKilled)]
    assert killed == [Cause.PREEMPTED] * times
    assert run.story().trouble == ""
