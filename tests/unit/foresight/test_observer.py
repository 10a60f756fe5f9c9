"""Watching a queue: readings, accounts that tell, accounts that do not, and what earlier runs
kept."""

from __future__ import annotations

from pathlib import Path

from windrow.foresight.observed_file import ObservedFile
from windrow.foresight.observer import Observer
from windrow.queues.port import OthersJob, PastJob, QueueError, Snapshot

HOUR_S, DAY_S = 3600.0, 86_400.0
NOW_S = 100 * DAY_S


class Books:
    """Accounts of these jobs, as a site would tell them. `asked` is how far back each question
    went."""

    place = "slurm.test.main"

    def __init__(self, jobs: list[PastJob] | None) -> None:
        self.jobs, self.asked = jobs, list[float]()
        self.now_s, self.is_down = NOW_S, False

    def past_jobs(self, since_s: float) -> list[PastJob] | None:
        self.asked.append(self.now_s - since_s)
        if self.is_down:
            raise QueueError("sacct: connection refused")
        return (
            None
            if self.jobs is None
            else [j for j in self.jobs if j.ended_s is None or j.ended_s >= since_s]
        )


def hourly(hours: int) -> list[PastJob]:
    """A job of ten minutes in each of the last hours."""
    starts = [NOW_S - HOUR_S * (h + 1) for h in range(hours)]
    return [PastJob(f"j{h}", "ann", 1, 1200, at, at, at + 600) for h, at in enumerate(starts)]


def reading(at_s: float, *running: str) -> Snapshot:
    return Snapshot(
        at_s, 8, tuple(OthersJob(i, 1, 1200, True, at_s - 100, 0.0, "ann") for i in running)
    )


def test_the_first_question_is_short_and_a_week_is_asked_for_where_little_is_known() -> None:
    books = Books(hourly(50))
    watch = Observer(accounts=books)
    watch.look(reading(NOW_S), ())
    assert books.asked == [6 * HOUR_S, 7 * DAY_S]
    assert watch.observed.ends == 50
    assert (
        watch.observed.known_s == 50 * HOUR_S
    )  # accounts that begin with their first job know nothing before
    assert not watch.needs_readings


def test_later_questions_are_for_what_is_new() -> None:
    books = Books(hourly(50))
    watch = Observer(accounts=books)
    for second in range(0, 600, 10):
        books.now_s = NOW_S + second
        watch.look(reading(books.now_s), ())
    assert all(back_s <= 80 for back_s in books.asked[2:])
    assert len(books.asked) == 2 + 9  # once a minute
    assert len(watch.observed.spans) == 1


def test_a_busy_site_is_not_asked_for_a_week() -> None:
    jobs = [
        PastJob(f"j{i}", "ann", 1, 60, NOW_S - i, NOW_S - i, NOW_S - i + 0.5) for i in range(5000)
    ]
    books = Books(jobs)
    Observer(accounts=books).look(reading(NOW_S), ())
    assert books.asked == [6 * HOUR_S]


def test_accounts_that_do_not_know_who_runs_are_not_believed() -> None:
    """As on a site that shows users no jobs but their own."""
    watch = Observer(accounts=Books(hourly(50)))
    watch.look(reading(NOW_S, "a", "b"), ())
    assert watch.observed.ends == 0
    assert watch.needs_readings
    watch.look(reading(NOW_S + 60, "a"), ())
    watch.look(reading(NOW_S + 120), ())
    assert watch.observed.ends == 2
    assert watch.observed.known_s == 120.0


def test_our_own_running_jobs_need_not_be_in_them() -> None:
    watch = Observer(accounts=Books(hourly(50)))
    watch.look(reading(NOW_S, "mine"), {"mine"})
    assert watch.observed.ends == 50


def test_a_site_without_accounts_is_watched() -> None:
    books = Books(None)
    watch = Observer(accounts=books)
    watch.look(reading(NOW_S, "a"), ())
    watch.look(reading(NOW_S + 300, "a"), ())
    assert len(books.asked) == 1
    assert watch.needs_readings


def test_accounts_that_are_down_are_asked_again_ever_more_seldom() -> None:
    books = Books(hourly(50))
    books.is_down = True
    watch = Observer(accounts=books)
    for second in range(0, 8000, 20):
        books.now_s = NOW_S + second
        watch.look(reading(books.now_s), ())
    assert 5 <= len(books.asked) <= 8
    books.is_down = False
    books.now_s = NOW_S + 20_000
    watch.look(reading(books.now_s), ())
    assert watch.observed.ends == 50


def test_what_one_run_saw_the_next_one_knows(tmp_path: Path) -> None:
    books = Books(hourly(50))
    first = Observer(ObservedFile("q", tmp_path), books)
    first.look(reading(NOW_S), ())
    books.now_s = NOW_S + HOUR_S
    second = Observer(ObservedFile("q", tmp_path), books)
    assert second.observed.ends == 50
    second.look(reading(books.now_s), ())
    assert books.asked[-1] <= HOUR_S + 60
    assert second.observed.known_s == 51 * HOUR_S


def test_to_another_run_of_ours_we_are_others_but_not_to_ourselves(tmp_path: Path) -> None:
    one, other = Observer(ObservedFile("q", tmp_path)), Observer(ObservedFile("q", tmp_path))
    other.look(reading(NOW_S, "a", "mine"), ())
    one.look(reading(NOW_S + 1, "a", "mine"), {"mine"})
    assert set(one.observed.jobs) == {"a"}
    assert set(other.observed.jobs) == {"a", "mine"}


def test_nothing_is_written_where_nobody_else_was_or_nothing_may_be(tmp_path: Path) -> None:
    Observer(ObservedFile("q", tmp_path)).look(reading(NOW_S, "mine"), {"mine"})
    Observer(ObservedFile("q", tmp_path), keeps=False).look(reading(NOW_S, "a"), ())
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_mentioned_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said: list[str] = []
    watch = Observer(ObservedFile("q", tmp_path / "file"), say=said.append)
    for second in range(0, 600, 60):
        watch.look(reading(NOW_S + second, "a"), ())
    assert len([text for text in said if "not remembered" in text]) == 1
    assert watch.observed.known_s == 540.0
