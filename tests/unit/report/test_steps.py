"""Step functions: thinning loses no peak, averages keep the area."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from windrow.report.plot import averages, round_length, thinned

Ints = NDArray[np.int64]


@st.composite
def step_functions(draw: st.DrawFn) -> tuple[Ints, Ints]:
    times = sorted(draw(st.sets(st.integers(0, 500), min_size=1, max_size=120)))
    values = draw(st.lists(st.integers(0, 50), min_size=len(times), max_size=len(times)))
    return np.array(times), np.array(values)


@given(step_functions(), st.sampled_from([8, 20, 40]))
def test_thinning_keeps_extremes_of_every_stretch(steps: tuple[Ints, Ints], most: int) -> None:
    times, values = steps
    few_times, few_values = thinned(times, values, most)
    assert len(few_times) <= most or len(few_times) == len(times)
    points = set(zip(times.tolist(), values.tolist(), strict=True))
    kept = list(zip(few_times.tolist(), few_values.tolist(), strict=True))
    assert set(kept) <= points
    assert kept == sorted(kept)
    assert (kept[0][0], kept[-1][0]) == (times[0], times[-1])
    # The drawn line must reach as high and as low as the true one in each of most // 4 equal
    # stretches of time.
    span = int(times[-1] - times[0]) + 1
    for k in range(most // 4):
        inside = [v for t, v in points if k <= (t - times[0]) * (most // 4) / span < k + 1]
        inside_kept = [v for t, v in kept if k <= (t - times[0]) * (most // 4) / span < k + 1]
        assert (not inside) == (not inside_kept)
        if inside:
            assert (min(inside), max(inside)) == (min(inside_kept), max(inside_kept))


def test_a_single_spike_among_a_hundred_thousand_points_survives() -> None:
    values = np.zeros(100_000, dtype=np.int64)
    values[54_321] = 999
    times, few = thinned(np.arange(100_000), values)
    assert few.max() == 999
    assert times[few.argmax()] == 54_321
    assert len(few) <= 1500


@given(step_functions(), st.integers(1, 60))
def test_averages_are_those_of_every_single_second(steps: tuple[Ints, Ints], length: int) -> None:
    times, values = steps
    edges = np.arange(0, 600 + length, length, dtype=np.float64)
    seconds = np.arange(int(edges[-1]))
    place = np.searchsorted(times, seconds, side="right") - 1
    per_second = np.where(place >= 0, values[place], 0)
    expected = [per_second[int(a) : int(b)].mean() for a, b in pairwise(edges)]
    assert averages(times, values, edges) == pytest.approx(expected)


@given(st.integers(1, 10**10))
def test_everyday_lengths_are_few_enough(span_s: int) -> None:
    assert span_s / round_length(span_s, 320) <= 320
