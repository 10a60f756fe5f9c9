"""Axes: ticks lie on them, are few and round, and values land where arithmetic says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.report.plot import Axis, count_axis, log_duration_axis, share_axis, time_axis


def assert_sound(axis: Axis) -> None:
    values = [value for value, _ in axis.ticks]
    labels = [label for _, label in axis.ticks]
    assert values == sorted(set(values))
    assert len(set(labels)) == len(labels)
    assert all(axis.low <= value <= axis.high for value in values)
    assert 2 <= len(values) <= 12


@given(st.floats(0, 1e9))
def test_a_count_axis_covers_what_it_must(highest: float) -> None:
    axis = count_axis(highest)
    assert_sound(axis)
    assert axis.low == 0
    assert axis.high >= highest * (1 - 1e-6)
    assert axis.high <= max(2, 3 * highest), "no more than a third of the picture may be empty"


@given(st.integers(0, 10**8), st.integers(3, 10**9))
def test_a_time_axis_has_round_ticks_in_its_unit(low: int, span: int) -> None:
    axis = time_axis(low, low + span, "since the first submission")
    unit = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400}[axis.title.split()[0]]
    assert all(value % unit == 0 for value, _ in axis.ticks)
    assert all(label == f"{value // unit:,.10g}" for value, label in axis.ticks)
    assert len(axis.ticks) <= 9
    assert (axis.low, axis.high) == (low, low + span)


@given(st.floats(1, 1e8), st.floats(1, 1e8))
def test_a_log_axis_covers_its_range(one: float, other: float) -> None:
    lowest, highest = sorted((one, other))
    axis = log_duration_axis(lowest, highest)
    assert_sound(axis)
    assert axis.low <= lowest <= highest <= axis.high


def test_places_on_linear_and_log_axes() -> None:
    assert np.allclose(share_axis().place([0, 0.25, 1]), [0, 0.25, 1])
    log = Axis(1, 10000, (), log=True)
    assert np.allclose(log.place([1, 10, 100, 10000]), [0, 0.25, 0.5, 1])
    assert np.allclose(log.place([0.001, 1e9]), [0, 1]), (
        "what lies outside is put on the nearer end"
    )


@pytest.mark.parametrize(
    ("span_s", "unit"), [(20, "seconds"), (600, "minutes"), (50_000, "hours"), (3e7, "days")]
)
def test_the_unit_fits_the_span(span_s: float, unit: str) -> None:
    assert time_axis(0, span_s, "").title.startswith(unit)
