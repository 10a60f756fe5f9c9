"""How good predictions were, and whom to trust: checked by hand and by properties."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.forecast.base import shortened
from windrow.forecast.ledger import (
    LAST,
    LEAST,
    PastPrediction,
    StartAccuracy,
    accuracies,
    choose,
    part_waited,
    too_few,
)
from windrow.model import NEVER_S


def told(
    source: str, errors: Sequence[float], first: int = 0, step_s: float = 100.0
) -> list[PastPrediction]:
    """Predictions for jobs first, first + 1, ... that were off by so much."""
    jobs = enumerate(errors, first)
    return [
        PastPrediction(source, f"job-{i}", i * step_s, i * step_s + 50 + e, i * step_s + 50)
        for i, e in jobs
    ]


def test_figures_by_hand() -> None:
    pending = PastPrediction("twin", "job-9", 900.0, 1000.0)
    [found] = accuracies([*told("twin", [-300, 0, 20, 60, 420]), pending])
    assert found == StartAccuracy("twin", 5, 1, 60, 40)
    assert accuracies([pending]) == [StartAccuracy("twin", 0, 1, None, None)]
    assert accuracies([]) == []


def test_to_promise_nothing_is_no_merit() -> None:
    """Who always says tomorrow never promises too much, and misses by a day."""
    late, exact = accuracies(
        [*told("a tomorrow", [86_400] * 6), *told("near", [-5, 5, -4, 5, -5, 4])]
    )
    assert late.median_error_s == late.bias_s == 86_400
    assert exact.median_error_s == 5


def test_the_median_is_a_miss_that_happened_and_few_misses_have_none() -> None:
    [found] = accuracies(told("twin", [0, 10, -20, 30, 44, 50]))
    assert found.median_error_s == 20
    few = told("twin", [0, 44])
    assert accuracies(few) == [StartAccuracy("twin", 2, 0, None, None)]
    records = [*few, *told("system", [1] * 5)]
    assert too_few(records, accuracies(records)) == few


def test_the_part_of_predicted_waits_that_comes_true() -> None:
    """Jobs wait 50 s; a source is only believed, or doubted, after five of them."""
    assert part_waited(told("twin", [50] * 4), "twin") == part_waited([], "system") == 0.5, (
        "as requests usually go"
    )
    assert part_waited([], "history") == 1, "which has seen waits, not requests"
    assert part_waited(told("twin", [150] * 5), "twin") == 0.25
    assert part_waited(told("twin", [-25] * 5), "twin") == 2, "longer than predicted"
    assert (
        part_waited([*told("twin", [0] * 9), *told("twin", [50] * LAST, first=9)], "twin") == 0.5
    ), "the last count"
    assert part_waited([*told("twin", [0] * 5), *told("twin", [-50] * 9, first=5)], "twin") == 1, (
        "not those at once"
    )


def test_a_wait_without_end_is_not_shortened() -> None:
    waits_s = shortened(lambda nodes, _: np.where(nodes < 8, 10 * nodes, NEVER_S), 0.25)
    assert waits_s(np.array([1, 6, 8]), np.array([60])).tolist() == [2, 15, NEVER_S]


@pytest.mark.slow
@given(
    st.lists(st.integers(-10_000, 10_000), min_size=1, max_size=40),
    st.integers(1, 50),
    st.randoms(),
)
def test_figures_against_numpy_in_any_order(errors: list[float], last: int, chance: object) -> None:
    records = told("a", errors) + told("b", [2 * e for e in errors])
    shuffled = list(records)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    found = accuracies(shuffled, last=last)
    assert found == accuracies(records, last=last)
    counted = np.array(errors[-last:], dtype=float)
    for accuracy, factor in zip(found, (1, 2), strict=True):
        assert accuracy.starts == len(counted)
        if len(counted) < LEAST:
            assert accuracy.median_error_s is accuracy.bias_s is None
            continue
        assert accuracy.median_error_s == np.percentile(
            np.abs(counted * factor), 50, method="inverted_cdf"
        )
        assert accuracy.bias_s == pytest.approx(np.mean(counted * factor))


def test_the_default_until_five_jobs_tell_otherwise() -> None:
    assert choose([]) == "twin"
    for count, expected in ((4, "twin"), (5, "system")):
        records = told("twin", [900] * count) + told("system", [30] * count)
        assert choose(records) == expected


def test_a_source_is_not_believed_for_easy_questions() -> None:
    """The system answered for other jobs, and well; on the jobs that both spoke of, it was
    worse."""
    records = (
        told("twin", [100] * 8) + told("system", [0] * 30, first=50) + told("system", [200] * 8)
    )
    assert choose(records) == "twin"


def test_predictions_at_different_times_are_not_compared() -> None:
    early = told("twin", [900] * 6)
    late = [
        PastPrediction("system", r.tag, r.at_s + 40, r.predicted_s - 900, r.started_s)
        for r in early
    ]
    assert choose(early + late) == "twin"


def test_the_best_of_several_rivals() -> None:
    records = told("twin", [100] * 6) + told("system", [60] * 6) + told("history", [-40] * 6)
    assert choose(records) == "history"
    assert choose(records, default="history") == "history"
    assert choose(records, default="system") == "history"


def test_only_the_last_starts_count() -> None:
    records = told("twin", [0] * 60 + [500] * 20) + told("system", [50] * 80)
    assert choose(records, last=80) == "twin"
    assert choose(records, last=20) == "system"


def test_jobs_that_have_not_started_say_nothing() -> None:
    records = told("twin", [900] * 4) + told("system", [0] * 4)
    waiting = [PastPrediction(r.source, r.tag + "x", r.at_s, r.predicted_s) for r in records]
    assert choose(records + waiting) == "twin"


def test_equal_sources_leave_the_default() -> None:
    assert choose(told("twin", [7] * 9) + told("system", [-7] * 9)) == "twin"
    assert choose(told("twin", [0] * 9) + told("system", [0] * 9)) == "twin"


@given(
    st.lists(st.tuples(st.integers(0, 500), st.integers(0, 500)), min_size=5, max_size=30),
    st.randoms(),
)
def test_the_choice_has_the_least_median_error_and_no_order_matters(
    errors: list[tuple[int, int]], chance: object
) -> None:
    records = told("twin", [a for a, _ in errors]) + told("system", [b for _, b in errors])
    chance.shuffle(records)  # type: ignore[attr-defined]
    twin, system = (np.median([pair[side] for pair in errors]) for side in (0, 1))
    assert choose(records) == ("system" if system < twin else "twin")
