"""Hazards against scipy: special functions, numerical integration; and against what a moment in a
long life sees."""

from __future__ import annotations

import math
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.model.hazard import NO_HAZARD, Hazard

scipy = pytest.importorskip("scipy")  # which loads its parts when they are used

shapes, lives = st.floats(0.1, 20), st.floats(-3, 3).map(lambda x: 10**x)
hazards = st.builds(
    Hazard,
    shapes,
    st.none() | st.just(1e5),
    st.just(0.0) | st.floats(1e-8, 1e-4),
    st.just(0.0) | st.floats(1e-8, 1e-4),
)


@given(shapes, lives, st.integers(1, 10_000))
def test_a_node_of_unknown_age_is_in_the_middle_of_its_life(
    shape: float, times: float, nodes: int
) -> None:
    scale_s = 3e6
    one = scipy.special.gammaincc(1 / shape, times**shape)
    found = Hazard(shape, scale_s)
    assert found.survival(1, times * scale_s) == pytest.approx(one, rel=1e-9, abs=1e-14)
    assert found.survival(nodes, times * scale_s) == pytest.approx(one**nodes, rel=1e-6, abs=1e-12)
    assert found.nodes_s == pytest.approx(scale_s * scipy.special.gamma(1 + 1 / shape))


@given(hazards, st.integers(1, 64), st.floats(1, 1e6))
def test_time_held_and_work_lost_by_numerical_integration(
    hazard: Hazard, nodes: int, seconds: float
) -> None:
    cuts = [seconds / 2**k for k in range(25)]
    held = sum(
        scipy.integrate.quad(lambda x: hazard.survival(nodes, x), b, a, epsabs=0, epsrel=1e-9)[0]
        for a, b in zip(cuts, [*cuts[1:], 0.0], strict=True)
    )
    assert hazard.held_s(nodes, seconds) == pytest.approx(held, rel=1e-3)
    lost = nodes * (held - seconds * hazard.survival(nodes, seconds))
    assert hazard.lost_node_s(nodes, seconds) == pytest.approx(
        lost, rel=0.02, abs=2e-3 * nodes * seconds
    )


def test_drawn_lives_agree() -> None:
    draws, hazard = np.random.default_rng(7), Hazard(0.7, 100.0, preemption_rate=1e-3)
    ends = np.cumsum(100 * draws.weibull(0.7, 200_000))
    moments = np.sort(draws.random(50_000)) * ends[-1] * 0.99
    left = ends[np.searchsorted(ends, moments, side="right")] - moments
    both = np.minimum(left, draws.exponential(1000, len(left)))
    for seconds in (10, 50, 300):
        assert (both > seconds).mean() == pytest.approx(hazard.survival(1, seconds), abs=0.01)
    # The work of a piece that starts again after each loss, at some moment; it waits for 5 s then.
    tries, spent = 30, np.zeros(1000)
    for run in range(1000):
        some = both[draws.integers(0, len(both), tries)]
        until = int(np.argmax(some >= 20))
        spent[run] = some[:until].sum() + 5 * until + 20
    assert spent.mean() == pytest.approx(hazard.expected_s(1, 20, again_s=5), rel=0.05)


@given(hazards, st.integers(1, 64), st.floats(1, 1e6), st.floats(1, 1e6))
def test_longer_and_wider_is_riskier_and_pieces_help(
    hazard: Hazard, nodes: int, a: float, b: float
) -> None:
    short, long = sorted((a, b))
    assert hazard.survival(nodes, long) <= hazard.survival(nodes, short) <= 1
    assert hazard.survival(nodes + 1, long) <= hazard.survival(nodes, long)
    assert hazard.expected_s(nodes, long) >= long * (1 - 1e-9)
    assert Hazard(**asdict(hazard)) == hazard
    if hazard.shape == 1:  # without memory pieces never harm, and age does not matter
        assert hazard.expected_s(nodes, long, short, 60) <= hazard.expected_s(
            nodes, long, None, 60
        ) * (1 + 1e-6)
        assert hazard.survival(nodes, short, 1e4) == pytest.approx(
            hazard.survival(nodes, short), rel=1e-9
        )
    else:
        old, new = (hazard.survival(nodes, short, age_s) for age_s in (1e6, 0))
        assert (old - new) * (1 - hazard.shape) >= -1e-9


def test_without_any_hazard_nothing_is_lost() -> None:
    assert not NO_HAZARD
    assert NO_HAZARD.survival(100, 1e9) == 1
    assert NO_HAZARD.expected_s(3, 50.0, 7, 9) == 50
    assert NO_HAZARD.lost_node_s(3, 100) == 0
    assert NO_HAZARD.checkpoint_every_s(4, 60) == math.inf
    daily = Hazard.of_mean(86400.0)
    assert daily.survival(1, 86400) == pytest.approx(math.exp(-1))
    assert daily.rate(4) == pytest.approx(4 / 86400)
    assert daily.checkpoint_every_s(4, 60) == pytest.approx(math.sqrt(2 * 60 * 86400 / 4))
    with pytest.raises(ValueError, match="no such hazard"):
        Hazard(shape=0)
