"""Reliability learned from lives: against lifelines (figures of 0.30.3), scipy, and worlds that are
known."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from windrow.forecast.best_effort import known_hazard
from windrow.forecast.failures import (
    CLUSTER,
    Floats,
    Lives,
    Reliability,
    fitted,
    gamma_quantile,
    reliability,
)
from windrow.model.cause import Cause
from windrow.model.hazard import NO_HAZARD, Hazard
from windrow.queues.port import Life

scipy = pytest.importorskip("scipy")  # which loads its parts when they are used
DAY_S = 86400.0
FITS = 300 if os.environ.get("WINDROW_FULL") else 12

# Times, whether they ended in a failure, and what lifelines.WeibullFitter found: rho, lambda,
# variance of lambda, of rho, and their covariance.
FITTED = [
    (
        "43+ 261+ 1204 908 218+ 145+ 305+ 39+ 1002+ 21+ 321+ 1553 152+ 1264 87 591 136 310 171+ "
        "85+ 1+ 475 789 1323+ "
        "545+ 454+ 342 464+ 11+ 84 1088 21+ 944 1072 105+ 695+ 54+ 318 793 201 770 858 674+ 630 "
        "32 845 329 98+ 622 "
        "609 390+ 104+ 559 52+ 770 150 875 1233+ 901 105+",
        (0.6902441253878586, 1225.6024111013526, 129373.032852, 0.012496, -16.066214),
    ),
    (
        "799 954+ 1017 1737 3 613 886+ 1127+ 1010 349+ 474+ 1231 729+ 495+ 544+ 584 1205 339+ "
        "365+ 865 49 967 829+ "
        "626+ 1159 479+ 512+ 608+ 141 1029+ 1400+ 1050+ 245 208 1443+ 558+ 487 688 433+ 291 445+ "
        "1189 1298 23 153+ "
        "267+ 785 1013 505 1219+ 382 624+ 303 549+ 1037+ 1227+ 243 673+ 807+ 225+",
        (2.0351510216826916, 1089.8061156179385, 9107.133009, 0.081245, -3.445977),
    ),
]


@pytest.mark.parametrize(("text", "expected"), FITTED)
def test_as_lifelines_fits_them(text: str, expected: tuple[float, ...]) -> None:
    words = text.split()
    failed = np.array([word.endswith("+") for word in words])
    later = np.column_stack([[float(word.rstrip("+")) for word in words], failed])
    found = fitted(np.zeros((0, 2)), later)
    assert found is not None
    shape, scale, of_scale, of_shape, both = expected
    assert found[:2] == pytest.approx((shape, scale), rel=1e-4)
    logs = np.array(
        [[of_shape / shape**2, both / shape / scale], [both / shape / scale, of_scale / scale**2]]
    )
    assert found[2] == pytest.approx(logs, rel=0.01, abs=1e-4)


def drawn(
    seed: int, shape: float, mean_s: float, nodes: int, span_s: float
) -> tuple[Floats, Floats]:
    """Nodes seen for a while, in the middle of their lives."""
    draws, scale = np.random.default_rng(seed), mean_s / math.gamma(1 + 1 / shape)
    rows: tuple[list[tuple[float, bool]], list[tuple[float, bool]]] = ([], [])
    for _ in range(nodes):
        at = 0.0
        left = scale * draws.standard_gamma(1 + 1 / shape) ** (1 / shape) * draws.random()
        while True:
            rows[at > 0].append((min(left, span_s - at), left <= span_s - at))
            at += left
            if at >= span_s:
                break
            left = scale * draws.weibull(shape)
    return np.array(rows[0], dtype=float), np.array(rows[1], dtype=float)


@examples(10)
@given(st.integers(0, 2**32), st.floats(0.5, 4))
def test_the_likelihood_has_its_peak_there_by_scipy(seed: int, shape: float) -> None:
    first, later = drawn(seed, shape, 20 * DAY_S, 60, 30 * DAY_S)
    found = fitted(first, later)
    assert found is not None

    def law(logs: np.ndarray) -> float:
        k, scale = np.exp(logs)
        open_first = first[first[:, 1] == 0, 0]
        total = np.log(scipy.special.gammaincc(1 / k, (open_first / scale) ** k)).sum()
        done = first[first[:, 1] == 1, 0]
        total += (-((done / scale) ** k) - np.log(scale * scipy.special.gamma(1 + 1 / k))).sum()
        total += scipy.stats.weibull_min.logpdf(later[later[:, 1] == 1, 0], k, scale=scale).sum()
        total += scipy.stats.weibull_min.logsf(later[later[:, 1] == 0, 0], k, scale=scale).sum()
        return float(-total)

    best = scipy.optimize.minimize(
        law, np.log(found[:2]) + 0.2, method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-9}
    )
    assert np.log(found[:2]) == pytest.approx(best.x, abs=1e-3)


@pytest.mark.parametrize("shape", [0.7, 1.0, 1.6])
def test_intervals_hold_what_they_promise(shape: float) -> None:
    """Of fits to known worlds, 95 % of the intervals of a job's survival must hold the truth."""
    truth, hits, shapes = Hazard.of_mean(40 * DAY_S, shape), 0, []
    for seed in range(FITS):
        found = fitted(*drawn(seed, shape, 40 * DAY_S, 80, 30 * DAY_S))
        assert found is not None
        _, low, high = Reliability(hazard=Hazard(*found[:2]), spread=found[2]).survival(
            16, 12 * 3600
        )
        hits += low <= truth.survival(16, 12 * 3600) <= high
        shapes.append(found[0])
    assert scipy.stats.binom.cdf(hits, FITS, 0.95) > 1e-3, f"{hits} of {FITS}"
    assert np.median(shapes) == pytest.approx(shape, rel=0.15 if FITS < 100 else 0.05)
    print(
        f"shape {shape}: {hits} of {FITS} intervals hold the truth; median shape "
        f"{np.median(shapes):.3f}"
    )


def lives_of(seed: int, cut_s: float) -> list[Life]:
    """Jobs of one node each, one after another, on 20 nodes that fail every 10 days; longer ones
    are several."""
    draws, mean_s, found = np.random.default_rng(seed), 10 * DAY_S, list[Life]()
    for node in range(20):
        at, left = 0.0, mean_s * draws.exponential()
        while at < 25 * DAY_S:
            run_s = 0.3 * DAY_S * draws.exponential()
            run_s, is_lost = min(run_s, left), left < run_s
            for begin in np.arange(0, run_s, cut_s):
                end = min(run_s, begin + cut_s)
                cause = Cause.NODE_FAILED if is_lost and end == run_s else None
                found.append(
                    Life(f"{node}-{at}-{begin}", 1, at + begin, at + end, cause, (f"n{node}",))
                )
            at += run_s + (4 * 3600 if is_lost else 0)
            left = mean_s * draws.exponential() if is_lost else left - run_s
    return found


def test_a_jobs_start_renews_no_node() -> None:
    """The same nodes under shorter jobs: the same fit."""
    whole, cut = (reliability(lives_of(5, cut_s=cut_s)) for cut_s in (1e9, 3600.0))
    assert whole.losses["node failed"] > 30
    assert cut.jobs > 4 * whole.jobs
    assert cut.hazard.shape == pytest.approx(whole.hazard.shape, rel=1e-6)
    assert cut.survival(16, 12 * 3600) == pytest.approx(whole.survival(16, 12 * 3600), rel=1e-6)
    low, high = whole.survival(16, 12 * 3600)[1:]
    assert low < Hazard.of_mean(10 * DAY_S).survival(16, 12 * 3600) < high


@given(st.floats(0.5, 200), st.floats(0.01, 0.99))
def test_quantiles_of_rates_by_scipy(events: float, chance: float) -> None:
    assert gamma_quantile(events, chance) == pytest.approx(
        scipy.stats.gamma.ppf(chance, events), rel=1e-6, abs=1e-9
    )


def test_few_failures_have_a_prior_and_rates_an_interval() -> None:
    nothing = reliability([])
    assert nothing.jobs == 0
    assert nothing.survival(16, 12 * 3600)[0] == pytest.approx(math.exp(-16 * 0.5 / (3 * 365)))
    some = [Life(str(i), 4, 0.0, 3600.0, Cause.PREEMPTED if i < 5 else None) for i in range(100)]
    found = reliability(some)
    assert found.losses == {"preempted": 5}
    assert found.hazard.preemption_rate == pytest.approx(5 / 360_000)
    chance, low, high = found.survival(1, 3600)
    least, most = (
        scipy.stats.gamma.ppf([0.025], 5)[0] / 100,
        scipy.stats.gamma.ppf([0.975], 6)[0] / 100,
    )
    assert (low, chance, high) == pytest.approx(
        (math.exp(-most), math.exp(-0.05), math.exp(-least)), abs=3e-3
    )


def test_who_is_to_blame_and_what_the_cluster_did() -> None:
    hosts = tuple(f"n{i}" for i in range(8))
    lives = [Life(f"a{h}", 1, 0, 1e6 * 3600, None, (h,)) for h in hosts]
    lives += [Life("wide", 3, 100, 5000, Cause.NODE_FAILED, ("n0", "n1", "n2"))]
    lives += [
        Life("next", 2, 6000, 7000, None, ("n0", "n2")),
        Life("last", 1, 9000, 9900, None, ("n1",)),
    ]
    lives += [
        Life("same", 1, 100, 5010, Cause.NODE_FAILED, ("n1",))
    ]  # another job on the same node
    lives += [Life(f"all{h}", 1, 10_000, 20_000, Cause.NODE_FAILED, (h,)) for h in hosts]
    lives += [
        Life(f"bad{i}", 1, 1e5 * i, 1e5 * i + 60, Cause.NODE_FAILED, ("n5",)) for i in range(1, 7)
    ]
    found = reliability(lives)
    assert found.losses == {"node failed": 7, CLUSTER: 1}
    assert [(one.node, one.failures) for one in found.suspects] == [("n5", 6)]
    assert found.suspects[0].times > 10


def test_what_was_learned_is_there_for_the_next_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDROW_WAITS", str(tmp_path / "new" / "w.sqlite"))
    assert known_hazard("here", 1e6) == NO_HAZARD
    lives = [
        Life("x", 2, 0.0, 7200.0),
        Life("y", 2, 0.0, 7200.0, Cause.PREEMPTED),
        Life("y", 1, 0.0, 1.0),
    ]
    Lives().record("here", lives)
    assert Lives().past("here", 0.0) == lives[:2]
    assert known_hazard("elsewhere", 1e6) == NO_HAZARD
    assert known_hazard("here", 1e6) == Hazard(preemption_rate=1 / 14400), (
        "what is only assumed does not count"
    )
    Lives().keep("here", 1e6, Hazard(0.7, 1e7))
    assert known_hazard("here", 1e6) == Hazard(0.7, 1e7)
    assert known_hazard("here", 1e8) == NO_HAZARD, "all of it is old"
    (tmp_path / "new" / "w.sqlite").write_text("buy milk" * 100)
    assert known_hazard("here", 1e6) == NO_HAZARD
