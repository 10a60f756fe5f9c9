"""A week made of a few hours."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.foresight.bootstrap import stretched
from windrow.foresight.past import DAY_S, NODES, SUBMIT, QueuePast, RunPredictor, arrivals


def short(known_s: int, submits: list[int]) -> QueuePast:
    """Jobs that came so long ago; each has its own number of nodes and as long a run."""
    ago = np.sort(np.array([-s for s in submits], dtype=np.int64))
    count = np.arange(1, len(ago) + 1)
    return QueuePast(np.column_stack([ago, count, 10 * count, 5 * count, count % 3]), -known_s)


@pytest.mark.slow
@given(st.integers(1, DAY_S - 1), st.lists(st.floats(0, 1.5), max_size=30))
def test_nothing_is_invented_and_nothing_real_is_lost(known_s: int, parts: list[float]) -> None:
    """Parts above 1 came before the known time."""
    past = short(known_s, [int(part * known_s) for part in parts])
    week = stretched(past)
    assert set(map(tuple, week.rows[:, NODES:].tolist())) == set(
        map(tuple, past.rows[:, NODES:].tolist())
    )
    assert (np.diff(week.rows[:, SUBMIT]) >= 0).all()
    inside = past.rows[:, SUBMIT] >= -known_s
    tail = week.rows[:, SUBMIT] >= -known_s
    assert week.rows[:, SUBMIT][tail].tolist() == past.rows[:, SUBMIT][inside].tolist()
    assert week.rows[:, NODES][tail].tolist() == past.rows[:, NODES][inside].tolist()
    early = past.rows[:, NODES][
        ~inside
    ].tolist()  # no day of the week has them, but how long they ran is known
    assert week.rows[:, NODES][week.rows[:, SUBMIT] < -7 * DAY_S].tolist() == early
    assert not set(early) & set(week.rows[:, NODES][week.rows[:, SUBMIT] >= -7 * DAY_S].tolist())


def test_within_a_block_jobs_come_as_they_did() -> None:
    """Jobs came in pairs 3 s apart, a pair every 100 s; blocks cut few of them apart."""
    times = [100 * i + d for i in range(36) for d in (0, 3)]
    week = stretched(short(3600, times))
    gaps = np.diff(week.rows[:, SUBMIT][week.rows[:, SUBMIT] < -3600])
    assert (gaps == 3).mean() > 0.45  # of all gaps half are inside a pair


def test_others_arrive_from_now_on_in_every_future() -> None:
    past = stretched(short(3600, list(range(10, 3600, 30))))
    for seed in range(20):
        log = arrivals(past, 0, RunPredictor(past, "shares"), 14, np.random.default_rng(seed))
        first_hour = log[log[:, 0] < 3600]
        assert 100 <= len(first_hour) <= 140  # 120 came in the hour that is known


def test_the_same_past_gives_the_same_week() -> None:
    one, other = (stretched(short(1000, [5, 50, 500, 900])) for _ in range(2))
    assert one.rows[:, SUBMIT].tolist() == other.rows[:, SUBMIT].tolist()
