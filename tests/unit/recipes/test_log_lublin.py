"""The Lublin-Feitelson model against its published distributions, written out anew here from the
paper's numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.steps import steps

from windrow.recipes.logs.lublin import PUBLISHED, draw_gaps, draw_runs, draw_sizes, size_range
from windrow.recipes.logs.models import generate_log

Floats = NDArray[np.float64]

# kind: serial, power of two, low, medium, high, first stage (128 nodes)
SIZES = {
    "batch": (0.2927, 0.6686, 1.2, 5.0, 7.0, 0.875),
    "interactive": (0.1541, 0.625, 1.0, 3.0, 5.5, 0.705),
    "all": (0.244, 0.576, 0.8, 4.5, 7.0, 0.86),
}
# kind: a1, b1, a2, b2, pa, pb
RUNS = {
    "batch": (6.57, 0.823, 639.1, 0.0156, -0.003, 0.6986),
    "interactive": (3.8351, 0.6605, 7.073, 0.6856, -0.0118, 0.9156),
    "all": (4.2, 0.94, 312.0, 0.03, -0.0054, 0.78),
}
# kind: shape (with the published rush-hour ratio), scale
GAPS = {
    "batch": (6.0415 * 1.0519, 0.8531),
    "interactive": (6.551 * 0.9797, 0.6621),
    "all": (10.2303 * 1.0225, 0.4871),
}


def gamma_density(x: Floats, shape: float, scale: float) -> Floats:
    log_density = (shape - 1) * np.log(x) - x / scale - shape * math.log(scale) - math.lgamma(shape)
    return np.asarray(np.exp(log_density))


def size_shares(kind: str) -> Floats:
    """The share of each size 0..128, by putting a fine grid through the published recipe."""
    serial, power, low, medium, high, first = SIZES[kind]
    share = np.zeros(129)
    share[1] = serial
    for start, end, part in ((low, medium, first), (medium, high, 1 - first)):
        grid = start + (end - start) * (np.arange(200_000) + 0.5) / 200_000
        rounded = np.bincount(np.rint(2.0 ** np.rint(grid)).astype(int), minlength=129)
        free = np.bincount(np.rint(2.0**grid).astype(int), minlength=129)
        share += part * (power * rounded + (1 - serial - power) * free) / len(grid)
    return share


@pytest.mark.parametrize("kind", SIZES)
def test_sizes_have_the_published_distribution(kind: str) -> None:
    jobs = 200_000
    sizes = draw_sizes(np.random.default_rng(1), PUBLISHED[kind], 128, jobs)
    observed, expected = np.bincount(sizes, minlength=129), jobs * size_shares(kind)
    assert observed[expected == 0].sum() == 0
    big = expected > 5
    chi_square = float(((observed - expected)[big] ** 2 / expected[big]).sum())
    freedom = int(big.sum()) - 1
    assert chi_square < freedom + 4 * math.sqrt(2 * freedom)
    serial, power = SIZES[kind][:2]
    assert observed[1] / jobs == pytest.approx(serial, abs=0.004)  # four standard errors
    twos = observed[2 ** np.arange(8)].sum() / jobs
    assert (
        serial + power - 0.004 < twos < serial + power + 0.08
    )  # sizes that are free may hit one too


@pytest.mark.parametrize("kind", RUNS)
@pytest.mark.parametrize("size", [1, 64, 300])  # 300: the published line is cut at probability 0
def test_run_times_have_the_published_hyper_gamma_distribution(kind: str, size: int) -> None:
    a1, b1, a2, b2, pa, pb = RUNS[kind]
    p = min(1.0, max(0.0, pa * size + pb))
    grid = np.linspace(1e-6, 12, 60_001)
    density = p * gamma_density(grid, a1, b1) + (1 - p) * gamma_density(grid, a2, b2)
    cdf = np.cumsum(density)
    cdf /= cdf[-1]  # what lies beyond 12 is drawn again
    jobs = 100_000
    runs = np.sort(draw_runs(np.random.default_rng(size), PUBLISHED[kind], np.full(jobs, size)))
    seconds = np.unique(np.logspace(0, math.log10(160_000), 400).astype(int))
    expected = np.interp(
        np.log(seconds + 1.0), grid, cdf
    )  # a run of k whole seconds lasted less than k + 1
    observed = np.searchsorted(runs, seconds, side="right") / jobs
    assert abs(observed - expected).max() < 1.95 / math.sqrt(jobs)  # Kolmogorov-Smirnov at 0.1 %
    assert runs[0] >= 1
    assert runs[-1] <= math.exp(12)


@pytest.mark.parametrize("kind", ["batch", "all"])
def test_the_mean_of_log_run_times_follows_the_formula_of_the_hyper_gamma(kind: str) -> None:
    a1, b1, a2, b2, pa, pb = RUNS[kind]
    for size in (1, 32, 128):
        p = pa * size + pb
        runs = draw_runs(np.random.default_rng(7), PUBLISHED[kind], np.full(100_000, size))
        # 2 %: the formula knows neither the cut at 12 nor whole seconds, and both lower the mean a
        # little.
        assert np.log(runs + 0.5).mean() == pytest.approx(p * a1 * b1 + (1 - p) * a2 * b2, rel=0.02)


@pytest.mark.parametrize("kind", GAPS)
def test_gaps_have_the_published_mean(kind: str) -> None:
    shape, scale = GAPS[kind]
    grid = np.linspace(1e-6, 13, 60_001)
    density = gamma_density(grid, shape, scale)
    mean = float((np.exp(grid) * density).sum() / density.sum())
    spread = math.sqrt(float((np.exp(grid) ** 2 * density).sum() / density.sum()) - mean**2)
    jobs = 400_000
    gaps = draw_gaps(np.random.default_rng(5), PUBLISHED[kind], jobs)
    assert abs(gaps.mean() - mean) < 4 * spread / math.sqrt(jobs)
    assert gaps.max() <= math.exp(13)


def test_the_stages_on_128_nodes_are_the_published_ones() -> None:
    for kind, (_, _, low, medium, high, _) in SIZES.items():
        stages = size_range(PUBLISHED[kind], 128)
        assert (stages.low, stages.medium, stages.high) == pytest.approx((low, medium, high))


def test_the_stages_on_8_nodes_are_as_the_authors_advise() -> None:
    stages = size_range(PUBLISHED["batch"], 8)
    assert (stages.low, stages.medium, stages.high) == pytest.approx((0.8, 1.5, 3), abs=0.051)


@pytest.mark.parametrize("nodes", [1, 2, 3, 7, 100, 100_000])
@pytest.mark.parametrize("kind", PUBLISHED)
def test_sizes_fit_any_machine(kind: str, nodes: int) -> None:
    sizes = draw_sizes(np.random.default_rng(2), PUBLISHED[kind], nodes, 20_000)
    assert sizes.min() == 1
    assert sizes.max() <= nodes
    if nodes > 1:
        assert (sizes == 1).mean() == pytest.approx(SIZES[kind][0], abs=0.015)
    if nodes == 100 and kind == "batch":
        # Powers above 5.5 all become 64, for 128 does not fit; a few free sizes and no more come to
        # it too.
        expected = 0.6686 * 0.125 * (math.log2(100) - 5.5) / 2
        assert expected - 0.006 < (sizes == 64).mean() < expected + 0.008
        assert (sizes > 64).any()


@pytest.mark.slow
def test_the_day_shows_in_a_log() -> None:
    log = generate_log("lublin", seed=1, jobs=1_000_000)
    hours = np.bincount(log.submit_s % 86_400 // 14_400, minlength=6) / len(log)
    grid = np.linspace(10.5, 58.5, 48_001)  # half hours from five in the morning on
    density = gamma_density(grid, 6.1271, 5.2740)
    slot = (
        np.floor(grid - 0.5).astype(int) % 48
    )  # the first half hour of a day is number 1, centred
    expected = np.bincount(slot // 8, weights=density, minlength=6)
    # Gaps vary by 5.8 times their mean, so the count of a sixth of the jobs has a standard error
    # near 1.4 %.
    np.testing.assert_allclose(hours, expected / expected.sum(), rtol=0.06)


@pytest.mark.parametrize("nodes", [1, 64, 128, 1000])
@pytest.mark.parametrize("load", ["0.3", "0.95", "2"])
def test_the_load_asked_for_is_offered(nodes: int, load: str) -> None:
    log = generate_log("lublin", seed=4, jobs=3000, nodes=nodes, parameters={"load": load})
    assert log.load == pytest.approx(float(load), rel=1e-4)
    assert len(log) == 3000
    by_days = generate_log("lublin", seed=4, days=200, nodes=nodes, parameters={"load": load})
    one_job = int((by_days.nodes * by_days.run_s).max()) / (nodes * 200 * 86_400)
    assert float(load) - 1e-6 <= by_days.load <= float(load) + one_job + 1e-6
    assert by_days.submit_s[-1] == pytest.approx(200 * 86_400, abs=1)


def test_load_0_leaves_the_published_gaps() -> None:
    shape, scale = GAPS["batch"]
    expected = np.exp(np.random.default_rng(0).gamma(shape, scale, 1_000_000))
    mean_gap = float(expected[expected < math.exp(13)].mean())
    log = generate_log("lublin", seed=2, jobs=200_000, parameters={"load": "0"})
    assert log.submit_s[-1] / len(log) == pytest.approx(
        mean_gap, rel=0.06
    )  # four standard errors, nearly
    days = generate_log("lublin", seed=2, days=400, parameters={"load": "0"})
    assert days.submit_s[-1] <= 400 * 86_400
    assert len(days) == pytest.approx(
        400 * 86_400 / mean_gap, rel=0.25
    )  # 9,800 jobs: four standard errors again
    np.testing.assert_array_less(-1, np.diff(days.submit_s))


def test_jobs_and_days_together_fix_the_density() -> None:
    log = generate_log("lublin", seed=3, jobs=500, days=10)
    assert len(log) == 500
    assert log.submit_s[-1] == pytest.approx(864_000, abs=1)


def test_wider_jobs_run_longer() -> None:
    log = generate_log("lublin", seed=6, jobs=50_000)
    assert log.run_s[log.nodes >= 64].mean() > 1.3 * log.run_s[log.nodes == 1].mean()


def test_the_widest_job_can_be_held_below_the_machine() -> None:
    narrow = generate_log(
        "lublin", seed=6, jobs=20_000, nodes=100_000, parameters={"widest": "128"}
    )
    published = generate_log("lublin", seed=6, jobs=20_000)
    assert narrow.machine_nodes == 100_000
    np.testing.assert_array_equal(narrow.nodes, published.nodes)
    assert narrow.load == pytest.approx(0.7, rel=1e-3)


def test_requests_over_estimate_about_as_much_as_on_real_logs() -> None:
    log = generate_log("lublin", seed=8, jobs=50_000)
    # KTH-SP2, CTC-SP2, SDSC-SP2 and SDSC-BLUE: mean request over mean run 1.54, 2.17, 2.28, 2.30.
    assert 1.5 < log.requested_s.mean() / log.run_s.mean() < 2.4
    assert len(np.unique(log.requested_s)) < 30


def test_jobs_are_drawn_all_at_once() -> None:
    few, many = (
        steps(lambda n=n: generate_log("lublin", jobs=n, nodes=1000))  # type: ignore[misc]
        for n in (1000, 20_000)
    )
    assert many < 1.2 * few
