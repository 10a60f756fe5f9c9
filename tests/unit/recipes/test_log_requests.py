"""Requested times and users of generated logs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from windrow.recipes.logs.requests import (
    ROUND_VALUES_S,
    draw_users,
    overestimate_for,
    requested_times,
)

HOUR = 3600


@given(
    hnp.arrays(np.int64, st.integers(1, 40), elements=st.integers(1, 48 * HOUR)),
    st.floats(0, 50),
    st.integers(0, 1000),
)
def test_a_request_is_round_and_covers_the_run(
    run_s: np.ndarray, overestimate: float, seed: int
) -> None:
    draw = np.random.default_rng(seed).random(len(run_s))
    requested = requested_times(run_s, draw, overestimate, 48 * HOUR)
    assert (requested >= run_s).all()
    assert set(requested.tolist()) <= set(ROUND_VALUES_S)
    values = np.array(ROUND_VALUES_S)
    for wanted, got in zip(
        np.minimum(run_s * (1 + overestimate * draw), 48 * HOUR), requested, strict=True
    ):
        assert got == values[values >= wanted].min()  # the next round value, and none further


def test_a_limit_that_is_not_round_may_be_asked_for() -> None:
    run_s = np.array([100_000, 99_000, 50])
    assert requested_times(run_s, np.array([0.9, 0.0, 0.0]), 5, 100_000).tolist() == [
        100_000,
        100_000,
        300,
    ]


def test_the_f_model_asks_for_one_to_one_plus_f_times_the_run() -> None:
    run_s = np.full(100_000, 7 * HOUR)
    draw = np.random.default_rng(1).random(len(run_s))
    requested = requested_times(run_s, draw, 3, 720 * HOUR)
    assert requested.min() == 8 * HOUR  # 7 h rounded up
    assert requested.max() == 30 * HOUR  # 28 h rounded up
    # A run times 1 + 3 u is within 10 h where u < 1/7; n = 100,000 gives a standard error of
    # 0.0011.
    assert (requested <= 10 * HOUR).mean() == pytest.approx(1 / 7, abs=0.005)


@given(st.floats(1.3, 6), st.integers(0, 100))
def test_the_over_estimate_is_found_that_gives_a_ratio(ratio: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    run_s = rng.integers(1, 20 * HOUR, 3000)
    weight, draw = rng.integers(1, 50, 3000), rng.random(3000)
    f = overestimate_for(run_s, draw, weight, 720 * HOUR, ratio)
    requested = requested_times(run_s, draw, f, 720 * HOUR)
    assert (weight * requested).sum() / (weight * run_s).sum() == pytest.approx(ratio, rel=0.01)


def test_an_impossible_ratio_ends_at_the_nearest_end() -> None:
    run_s, one, draw = np.array([HOUR]), np.array([1]), np.array([0.5])
    assert overestimate_for(run_s, draw, one, 10 * HOUR, 1e9) == pytest.approx(1000)
    assert overestimate_for(np.array([HOUR + 1]), draw, one, 10 * HOUR, 1.0) == pytest.approx(
        0, abs=1e-6
    )


def test_users_are_drawn_by_their_popularity() -> None:
    users = draw_users(np.random.default_rng(3), 400_000, 200)
    share = np.bincount(users, minlength=200) / len(users)
    expected = np.array([k**-0.7 for k in range(1, 201)])
    expected /= expected.sum()
    error = np.sqrt(expected / len(users))
    assert (abs(share - expected) < 5 * error).all()
    assert len(share) == 200
    # As on four public logs: the busiest user has 4 to 8 % of the jobs, the ten busiest 20 to 37 %.
    assert 0.04 < share[0] < 0.08
    assert 0.20 < share[:10].sum() < 0.37


def test_one_user_submits_everything() -> None:
    assert draw_users(np.random.default_rng(0), 50, 1).tolist() == [0] * 50
