"""Arrivals against a slow walk through the half hours, as the published algorithm describes it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.recipes.logs.arrivals import DAY_S, Cycle, arrive, daily_cycle, gamma_cdf, weekly_cycle

BATCH_DAY = (6.1271, 5.2740)


def walk(gaps_s: list[float], weights: list[float]) -> list[float]:
    """Pay each half hour its weight in points, one point per 1,800 s of gap, and note the time at
    each arrival."""
    slot, spent, now, times = 0, 0.0, 0.0, [0.0]
    for gap in gaps_s:
        points = gap / 1800
        while points > weights[slot] - spent:
            points -= weights[slot] - spent
            now = math.floor(now / 1800 + 1e-9) * 1800 + 1800
            slot, spent = (slot + 1) % len(weights), 0.0
        spent += points
        now = math.floor(now / 1800 + 1e-9) * 1800 + 1800 * spent / weights[slot]
        times.append(now)
    return times


@given(
    st.lists(st.floats(1, 200_000), max_size=30),
    st.sampled_from([BATCH_DAY, (8.9186, 3.6680), (8.1737, 3.9631)]),
    st.booleans(),
)
def test_arrivals_equal_a_walk_through_the_half_hours(
    gaps: list[float], day: tuple[float, float], week: bool
) -> None:
    cycle = daily_cycle(*day)
    if week:
        cycle = weekly_cycle(cycle, 0.5)
    expected = walk(gaps, cycle.weights.tolist())
    np.testing.assert_allclose(
        arrive(np.array(gaps, dtype=np.float64), cycle), expected, atol=1.001
    )


@pytest.mark.parametrize(("shape", "scale"), [BATCH_DAY, (8.9186, 3.6680), (8.1737, 3.9631)])
def test_daily_weights_are_the_gamma_shares_of_the_half_hours(shape: float, scale: float) -> None:
    def density(x: float) -> float:
        return math.exp(
            (shape - 1) * math.log(x) - x / scale - shape * math.log(scale) - math.lgamma(shape)
        )

    share = [0.0] * 48
    for number in range(
        11, 59
    ):  # half hours of a day that begins at five, the first half hour of the day being 1
        grid = np.linspace(number - 0.5, number + 0.5, 101)
        share[(number - 1) % 48] = float(np.mean([density(x) for x in (grid[1:] + grid[:-1]) / 2]))
    mean = sum(share) / 48
    np.testing.assert_allclose(
        daily_cycle(shape, scale).weights, [s / mean for s in share], rtol=1e-4
    )


def test_batch_jobs_come_in_the_afternoon_and_not_before_dawn() -> None:
    weights = daily_cycle(*BATCH_DAY).weights
    assert 12 <= int(np.argmax(weights)) / 2 <= 15
    assert 3 <= int(np.argmin(weights)) / 2 <= 7
    assert weights.mean() == pytest.approx(1)


def test_even_gaps_fill_each_half_hour_in_proportion_to_its_weight() -> None:
    cycle = daily_cycle(*BATCH_DAY)
    submits = arrive(np.full(48 * 1000, 1800 / 1000), cycle)[:-1]
    counts = np.bincount(submits // 1800, minlength=48)
    np.testing.assert_allclose(counts, 1000 * cycle.weights, atol=1.5)


def test_a_weekend_day_has_its_share_of_a_weekday() -> None:
    cycle = weekly_cycle(daily_cycle(*BATCH_DAY), 0.5)
    submits = arrive(np.full(7 * 10_000, 48 * 1800 / 10_000), cycle)[:-1]
    per_day = np.bincount(submits // DAY_S, minlength=7)
    assert len(per_day) == 7
    np.testing.assert_allclose(per_day[:5], per_day[0], atol=2)
    np.testing.assert_allclose(per_day[5:], per_day[0] / 2, atol=2)


@given(st.lists(st.floats(0.1, 1e6), min_size=1, max_size=50), st.integers(1, 10**8))
def test_a_span_puts_the_last_arrival_at_its_end(gaps: list[float], span_s: int) -> None:
    submits = arrive(np.array(gaps), weekly_cycle(daily_cycle(*BATCH_DAY), 0.5), span_s)
    assert submits[0] == 0
    assert abs(int(submits[-1]) - span_s) <= 1
    assert (np.diff(submits) >= 0).all()


@given(st.floats(0, 1e9))
def test_points_and_seconds_are_inverse(seconds: float) -> None:
    cycle = daily_cycle(*BATCH_DAY)
    back = cycle.seconds(np.array([cycle.points(seconds)]))[0]
    assert back == pytest.approx(seconds, rel=1e-9, abs=1e-3)


def test_weights_of_one_leave_gaps_alone() -> None:
    gaps = np.array([10.0, 7200.0, 100_000.0])
    assert arrive(gaps, Cycle(np.ones(48))).tolist() == [0, 10, 7210, 107_210]


def test_gamma_distribution_function_against_closed_forms() -> None:
    x = np.array([0.0, 0.1, 1.0, 5.0, 30.0, 90.0])
    np.testing.assert_allclose(gamma_cdf(x, 1, 3), 1 - np.exp(-x / 3), atol=1e-12)
    erlang = 1 - np.exp(-x / 2) * (1 + x / 2 + (x / 2) ** 2 / 2)
    np.testing.assert_allclose(gamma_cdf(x, 3, 2), erlang, atol=1e-12)
