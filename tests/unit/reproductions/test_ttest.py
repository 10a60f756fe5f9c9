"""The paired t-test, against printed tables, closed forms and numerical integration."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.reproductions.zhang.ttest import incomplete_beta, paired_t_test, two_tailed_p


@pytest.mark.parametrize(
    ("freedom", "level", "t"),
    [  # any statistical handbook: critical values of Student's t, two-tailed
        (1, 0.05, 12.706),
        (2, 0.05, 4.303),
        (5, 0.10, 2.015),
        (10, 0.05, 2.228),
        (10, 0.01, 3.169),
        (20, 0.001, 3.850),
        (30, 0.05, 2.042),
        (60, 0.02, 2.390),
        (120, 0.05, 1.980),
    ],
)
def test_critical_values_of_the_handbooks(freedom: int, level: float, t: float) -> None:
    assert two_tailed_p(t, freedom) == pytest.approx(level, rel=2e-3)
    assert two_tailed_p(-t, freedom) == two_tailed_p(t, freedom)


@given(st.floats(1e-6, 1e6))
def test_closed_forms_for_one_two_and_four_degrees(t: float) -> None:
    assert two_tailed_p(t, 1) == pytest.approx(2 / math.pi * math.atan2(1, t), rel=1e-9)
    root = math.sqrt(2 + t * t)
    assert two_tailed_p(t, 2) == pytest.approx(2 / (root * (root + t)), rel=1e-9)  # 1 - t/root, without cancellation
    z = t / math.sqrt(4 + t * t)
    assert two_tailed_p(t, 4) == pytest.approx(1 - z * (1.5 - 0.5 * z * z), rel=1e-8, abs=1e-13)


@given(st.floats(0.01, 8), st.integers(1, 400))
def test_it_is_the_integral_of_the_density(t: float, freedom: int) -> None:
    x = np.linspace(-t, t, 20_001)
    front = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - 0.5 * math.log(freedom * math.pi)
    density = np.exp(front - (freedom + 1) / 2 * np.log1p(x * x / freedom))
    weights = np.ones(len(x))
    weights[1:-1:2], weights[2:-1:2] = 4, 2  # Simpson's rule
    inside = float((weights * density).sum() * (x[1] - x[0]) / 3)
    assert two_tailed_p(t, freedom) == pytest.approx(1 - inside, abs=1e-9)


@pytest.mark.parametrize("t", [0.5, 1.96, 3.0, 5.0])
def test_with_very_many_pairs_it_is_the_normal_distribution(t: float) -> None:
    freedom = 10_000_000
    density = math.exp(-t * t / 2) / math.sqrt(2 * math.pi)
    first_order = 2 * density * (t**3 + t) / (4 * freedom)  # Fisher's expansion in 1 / freedom
    assert two_tailed_p(t, freedom) == pytest.approx(math.erfc(t / math.sqrt(2)) + first_order, rel=1e-8)


@given(st.floats(0.1, 50), st.floats(0.1, 50), st.floats(0.001, 0.999))
def test_the_beta_function_is_symmetric_and_grows(a: float, b: float, x: float) -> None:
    assert incomplete_beta(a, b, x) + incomplete_beta(b, a, 1 - x) == pytest.approx(1, abs=1e-9)
    assert incomplete_beta(a, b, x) <= incomplete_beta(a, b, min(1.0, x + 0.01)) + 1e-12
    assert incomplete_beta(a, 1, x) == pytest.approx(x**a, rel=1e-9)


def test_a_worked_example() -> None:
    # Sleep gained under two drugs by ten people, from Student's own paper of 1908: t = 4.0621, p = 0.00283.
    first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
    second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
    found = paired_t_test(second, first)
    assert found.pairs == 10
    assert found.difference == pytest.approx(1.58)
    assert found.t == pytest.approx(4.0621, abs=5e-5)
    assert found.p == pytest.approx(0.00283, abs=5e-6)
    assert found.is_significant()
    assert not found.is_significant(0.001)


def test_pairs_without_a_number_are_left_out() -> None:
    holes = [1.0, math.nan, 3.0, 5.0]
    assert paired_t_test(holes, [0.0, 0.0, 1.0, math.nan]) == paired_t_test([1.0, 3.0], [0.0, 1.0])


def test_where_nothing_varies() -> None:
    assert paired_t_test([2, 3, 4], [2, 3, 4]).p == 1
    assert paired_t_test([3, 4, 5], [2, 3, 4]).p == 0
    alone = paired_t_test([3], [1])
    assert (alone.pairs, alone.difference, alone.p, alone.is_significant()) == (1, 2, None, False)
    assert paired_t_test([], []).pairs == 0


def test_no_degrees_of_freedom_are_refused() -> None:
    with pytest.raises(ValueError, match="above 0"):
        two_tailed_p(1, 0)
