"""The paired t-test: a worked example, handbook values, and what is left out."""

from __future__ import annotations

import math

import pytest

from windrow_lab.reproductions.paired import paired_t_test


@pytest.mark.slow
def test_a_worked_example() -> None:
    # Sleep gained under two drugs by ten people, from Student's own paper of 1908: t = 4.0621, p =
    # 0.00283.
    first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
    second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
    found = paired_t_test(second, first)
    assert found.pairs == 10
    assert found.difference == pytest.approx(1.58)
    assert found.t == pytest.approx(4.0621, abs=5e-5)
    assert found.p == pytest.approx(0.00283, abs=5e-6)
    assert found.is_significant()
    assert not found.is_significant(0.001)


@pytest.mark.parametrize(
    ("pairs", "level", "t"),
    [
        (2, 0.05, 12.706),
        (3, 0.05, 4.303),
        (11, 0.01, 3.169),
        (21, 0.001, 3.850),
    ],  # two-tailed, any handbook
)
def test_critical_values_of_the_handbooks(pairs: int, level: float, t: float) -> None:
    sign = [1.0, -1.0] * (pairs // 2) + [0.0] * (pairs % 2)
    spread = math.sqrt(sum(s * s for s in sign) / (pairs - 1) / pairs)
    found = paired_t_test([s + t * spread for s in sign], [0.0] * pairs)
    assert found.p == pytest.approx(level, rel=2e-3)


def test_pairs_without_a_number_are_left_out() -> None:
    holes = [1.0, math.nan, 3.0, 5.0]
    assert paired_t_test(holes, [0.0, 0.0, 1.0, math.nan]) == paired_t_test([1.0, 3.0], [0.0, 1.0])


def test_where_nothing_varies() -> None:
    assert paired_t_test([2, 3, 4], [2, 3, 4]).p == 1
    assert paired_t_test([3, 4, 5], [2, 3, 4]).p == 0
    alone = paired_t_test([3], [1])
    assert (alone.pairs, alone.difference, alone.p, alone.is_significant()) == (1, 2, None, False)
    assert paired_t_test([], []).pairs == 0
