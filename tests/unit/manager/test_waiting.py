"""What the queue says of jobs that wait is kept for all who tell of the run, and nothing waits in
silence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.survival.toy import VirtualRun, toy
from tests.unit.report.told_runs import recorded

from windrow.forecast.guard import HeldForecast
from windrow.manager.outpost import ROUNDS
from windrow.queues.port import JobState
from windrow.report.run.explanation import explain_job, explain_task
from windrow.story.journal import QueueWords, RunJournal
from windrow.story.story import RunStory
from windrow.story.waiting import nothing_can_start


@pytest.fixture
def run(tmp_path: Path) -> VirtualRun:
    return toy(tmp_path / "run")


def queue_words(run: VirtualRun) -> QueueWords:
    journal = RunJournal.open(run.path / "journal.sqlite")
    words = QueueWords.read(journal.facts())
    journal.close()
    return words


def test_the_queues_reasons_are_kept_while_they_hold(run: VirtualRun) -> None:
    queue = run.world.queue
    status = queue.status
    queue.status = lambda ids: {  # type: ignore[method-assign]
        i: replace(s, reason="Priority" if s.state is JobState.WAITING else "")
        for i, s in status(ids).items()
    }
    queue.holds = lambda _: True
    manager = run.hire()
    manager.begin()
    for _ in range(5):
        run.look(manager)
        run.wait(1)
    assert queue_words(run) == QueueWords(reasons={0: "Priority"})
    queue.holds = lambda _: False
    queue.release()
    run.drive(manager)
    run.check_complete()
    assert queue_words(run).reasons == {}


def test_a_run_waits_and_says_so_while_no_node_takes_jobs(run: VirtualRun) -> None:
    """Nodes are drained when it begins, and come back."""
    back_s = run.world.now_s + 100
    asked: list[float] = []

    def open_to(_: int) -> int:
        asked.append(run.world.now_s)
        return run.world.queue.cluster.nodes if run.world.now_s >= back_s else 0

    manager = run.hire()
    manager.outposts[0].open_to = open_to
    manager.begin()
    while run.world.now_s < back_s - 50:
        run.look(manager)
        run.wait(1)
    assert not run.world.queue.jobs
    words = "nothing more can be submitted: no node accepts new jobs now"
    assert queue_words(run) == QueueWords(words)
    run.drive(manager)
    run.check_complete()
    assert len([at_s for at_s in asked if at_s < back_s]) < 25  # ever more rarely
    assert queue_words(run) == QueueWords()


def waiting(run: VirtualRun, *reasons: str) -> RunStory:
    """The story of a run whose jobs wait for these reasons."""
    run.world.queue.holds = lambda _: True
    manager = run.hire()
    manager.begin()
    story = run.story()
    for job, word in zip(story.jobs.values(), reasons, strict=True):
        job.reason = word
    return story


def test_a_run_that_cannot_start_is_warned_of(run: VirtualRun) -> None:
    story = waiting(run, "PartitionDown")
    fix = "ask the site's support, or cancel the run and start it on another queue (--on)"
    because = "its partition is down (PartitionDown)"
    assert nothing_can_start(story) == (
        f"nothing of this run can start: job 0 (c1) waits because {because}; fix: {fix}"
    )
    assert f"it waits because {because}; fix: {fix}" in explain_job(recorded(story), 0)
    assert explain_task(recorded(story), 0)[-1].endswith(f"its job is waiting, because {because}")


@pytest.mark.parametrize("word", ["Priority", "Resources", "", "NovelReason"])
def test_a_run_that_only_has_to_wait_is_not(run: VirtualRun, word: str) -> None:
    assert nothing_can_start(waiting(run, word)) == ""


def test_a_held_job_is_told_how_to_release(run: VirtualRun) -> None:
    assert nothing_can_start(waiting(run, "JobHeldUser")).endswith("fix: scontrol release c1")


def test_a_run_believes_the_queue_that_says_otherwise(run: VirtualRun) -> None:
    """By the jobs that are shown it would start at once; the queue says twenty minutes, once."""
    world = run.world
    asked: list[int] = []

    def probe(nodes: int, walltime_s: int) -> float:
        del walltime_s
        asked.append(nodes)
        return world.now_s + 1200.0

    world.queue.holds = lambda _: True
    manager = run.hire()
    (outpost,) = manager.outposts
    outpost.guard = HeldForecast(probe, world.queue.snapshot, lambda: world.now_s)
    manager.begin()
    run.look(manager)
    first = run.story().decisions[0].decision
    assert "expected wait by the batch system 20.0 min, by the jobs that it shows none" in first.why
    assert 1 <= len(asked) <= ROUNDS
    (used,) = [p for p in manager.journal.predictions() if p.used and p.job == 0]
    assert used.source == "probe"
    assert used.start_s - used.at_s == pytest.approx(1200, abs=2)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("running", "it will be part of one of the next jobs"),
        ("failed", "the run has ended without it; windrow resume r-1 continues it"),
        ("stopped", "the run was stopped before it ran; windrow resume r-1 continues it"),
        ("interrupted", "no process manages the run now; windrow resume r-1 continues it"),
        ("continued", "another run continues this one"),
    ],
)
def test_of_a_run_that_is_over_no_next_job_is_promised(
    run: VirtualRun, state: str, words: str
) -> None:
    told = replace(recorded(run.story()), name="r-1", state=state)
    assert explain_task(told, 0)[-1].endswith(words)


def test_why_a_run_gave_up_is_said_of_the_tasks_that_did_not_run(run: VirtualRun) -> None:
    story = run.story()
    story.trouble = "3 jobs in a row disappeared"
    told = replace(recorded(story), name="r-1", state="failed")
    assert explain_task(told, 0)[-1] == (
        "the run gave up before it ran: 3 jobs in a row disappeared; "
        "windrow resume r-1 continues it"
    )
