"""What was seen of a queue, against what really happened in it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.foresight.observed import JOBS_KEPT, Observed
from windrow.foresight.past import RUN, SUBMIT
from windrow.queues.port import OthersJob, PastJob, Snapshot

DAY_S = 86_400


def past(
    job_id: str, submitted_s: float, started_s: float, ended_s: float | None, user: str = "u"
) -> PastJob:
    return PastJob(job_id, user, 2, 600, submitted_s, started_s, ended_s)


def reading(at_s: float, jobs: list[PastJob]) -> Snapshot:
    """The queue at that time as these jobs make it."""
    there = [j for j in jobs if j.submitted_s <= at_s and (j.ended_s is None or at_s < j.ended_s)]
    shown = []
    for j in there:
        started = j.started_s if j.started_s is not None and j.started_s <= at_s else None
        shown.append(
            OthersJob(j.id, j.nodes, j.requested_s, started is not None, started, 0.0, j.user)
        )
    return Snapshot(at_s, 4, tuple(shown))


def watched(jobs: list[PastJob], times: list[float]) -> Observed:
    seen = Observed()
    for at_s in times:
        seen.look(reading(at_s, jobs))
    return seen


@given(
    st.lists(st.tuples(st.integers(0, 900), st.integers(0, 200), st.integers(61, 500)), max_size=20)
)
def test_readings_tell_runs_and_arrivals_within_their_distance(
    rows: list[tuple[int, int, int]],
) -> None:
    """Random jobs that each last longer than the minute between two readings: none can be
    missed."""
    jobs = [
        past(f"j{i}", float(s), float(s + w), float(s + w + r)) for i, (s, w, r) in enumerate(rows)
    ]
    times = [100.0 + 60 * k for k in range(30)]
    seen = watched(jobs, times)
    assert seen.known_s == times[-1] - times[0]
    for job in jobs:
        assert job.started_s is not None
        assert job.ended_s is not None
        if job.ended_s <= times[0]:
            assert job.id not in seen.jobs
            continue
        found = seen.jobs[job.id]
        assert found.run_s == pytest.approx(job.run_s, abs=30)
        came = times[0] <= found.submitted_s
        if job.submitted_s > times[0]:
            assert came
            assert 0 <= found.submitted_s - job.submitted_s <= 60
        else:  # it was there when the look began: nobody saw it come
            assert not came


def test_what_waited_and_is_gone_may_or_may_not_have_run() -> None:
    seen = Observed()
    seen.look(Snapshot(0.0, 4, (OthersJob("a", 1, 60, False, None, 0.0, "u"),)))
    seen.look(Snapshot(60.0, 4, ()))
    assert seen.ends == 0
    assert seen.past().rows[:, RUN].tolist() == [0]


def test_nobody_knows_who_came_between_two_looks_far_apart() -> None:
    jobs = [past("a", 10.0, 20.0, 100.0), past("b", 5010.0, 5020.0, 5100.0)]
    seen = watched(jobs, [0.0, 60.0, 5000.0, 5060.0, 5120.0])
    assert seen.spans == ((0.0, 60.0), (5000.0, 5120.0))
    assert seen.known_s == 180.0
    assert seen.jobs["a"].run_s is None  # it ended in the gap
    assert seen.jobs["b"].run_s == pytest.approx(80, abs=30)


def test_times_in_which_nobody_looked_are_left_out_of_the_past() -> None:
    seen = Observed()
    seen.learn([past("a", 10.0, 10.0, 40.0)], 0.0, 100_000.0)
    seen.learn([past("b", 500_010.0, 500_020.0, 500_050.0)], 500_000.0, 500_100.0)
    found = seen.past()  # a: 90 s before the end of its span, which 100 s follow
    assert found.since_s == -100_100
    assert found.rows[:, SUBMIT].tolist() == [-100_090, -90]
    assert found.rows[:, RUN].tolist() == [30, 30]


def test_own_jobs_are_nobody_elses() -> None:
    seen = Observed()
    job = OthersJob("mine", 1, 60, True, 0.0, 0.0, "me")
    seen.look(Snapshot(10.0, 4, (job,)), own={"mine"})
    seen.look(Snapshot(70.0, 4, ()), own={"mine"})
    assert seen.jobs == {}


def test_an_end_that_is_known_stays_known() -> None:
    """squeue shows a job that is completing while the accounts have its end; accounts lag behind at
    other times."""
    ended, lagging = past("a", 0.0, 5.0, 50.0), past("a", 0.0, 5.0, None)
    for first, second in ((ended, lagging), (lagging, ended)):
        seen = Observed()
        seen.learn([first], 0.0, 60.0)
        seen.learn([second], 0.0, 61.0)
        seen.look(reading(40.0, [ended]))
        assert seen.jobs["a"] == ended


def test_merging_is_knowing_what_both_know() -> None:
    one, other = Observed(), Observed()
    one.learn([past("a", 10.0, 20.0, None), past("b", 30.0, 40.0, 90.0)], 0.0, 100.0)
    other.learn([past("a", 10.0, 20.0, 120.0), past("c", 140.0, 150.0, 180.0)], 80.0, 200.0)
    one.merge(other)
    assert one.spans == ((0.0, 200.0),)
    assert {job_id: job.run_s for job_id, job in one.jobs.items()} == {
        "a": 100.0,
        "b": 50.0,
        "c": 30.0,
    }


def test_it_stays_small_and_claims_no_more_than_it_keeps() -> None:
    seen = Observed()
    jobs = [past(f"j{i}", float(i), float(i), float(i + 5)) for i in range(JOBS_KEPT + 1000)]
    seen.learn(jobs, 0.0, 6000.0)
    assert len(seen.jobs) == JOBS_KEPT
    assert seen.spans == ((1000.0, 6000.0),)
    seen.learn([], 20 * DAY_S, 20 * DAY_S + 10.0)
    assert (len(seen.jobs), seen.known_s) == (0, 10.0)


def test_a_long_queue_does_not_push_out_the_past() -> None:
    """3,900 jobs of a week, of which accounts tell; then as many run and wait, and are seen
    twice."""
    step_s = 7 * DAY_S / 3900
    seen = Observed()
    seen.learn(
        [past(f"j{i}", step_s * i, step_s * i, step_s * i + 5) for i in range(3900)],
        0.0,
        7.0 * DAY_S,
    )
    jobs = [
        OthersJob(f"q{i}", 1, 600, i % 2 == 0, 7.0 * DAY_S if i % 2 == 0 else None, 0.0, "u")
        for i in range(3900)
    ]
    for at_s in (7.0 * DAY_S, 7.0 * DAY_S + 60):
        seen.look(Snapshot(at_s, 4000, tuple(jobs)))
    assert seen.ends == 3900
    assert seen.known_s >= 7 * DAY_S
    assert seen.is_enough(DAY_S)
    seen.look(Snapshot(8.0 * DAY_S, 4000, ()))  # unseen, all went: they do not count as known ends
    assert seen.ends > 0.8 * 3900


def test_enough_is_twenty_ends_and_twice_the_run_or_a_day() -> None:
    seen = Observed()
    seen.learn([past(f"j{i}", float(i), float(i), float(i + 5)) for i in range(19)], 0.0, 1000.0)
    assert not seen.is_enough(10.0)
    seen.learn([past("last", 20.0, 20.0, 25.0)], 0.0, 1000.0)
    assert seen.is_enough(500.0)
    assert not seen.is_enough(501.0)
    seen.learn([], 0.0, float(DAY_S))
    assert seen.is_enough(10.0 * DAY_S)


def test_a_short_past_comes_again_at_once_and_at_the_same_rate() -> None:
    """An hour with a job every 20 s: in every day of the past, the first hours have about as
    many."""
    seen = Observed()
    seen.learn([past(f"j{i}", 20.0 * i, 20.0 * i, 20.0 * i + 5) for i in range(180)], 0.0, 3600.0)
    found = seen.past()
    assert found.since_s == -7 * DAY_S
    assert (np.diff(found.rows[:, SUBMIT]) >= 0).all()
    for day in range(1, 8):
        hours = np.histogram(
            found.rows[:, SUBMIT], bins=[-day * DAY_S + 3600 * h for h in range(5)]
        )[0]
        assert hours.tolist() == pytest.approx([180] * 4, abs=10)
    assert (
        found.rows[:, SUBMIT] > -3600
    ).sum() == 179  # what was really seen is there once, at the end
