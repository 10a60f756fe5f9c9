"""Forecasts from past waits: the bound holds as often as it says, and classes widen in order."""

from __future__ import annotations

import random
import sqlite3
from fractions import Fraction
from math import comb
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import OutsideError, UserError
from windrow.forecast.base import UNKNOWN_S, Ints
from windrow.forecast.waits import (
    FromHistory,
    History,
    Level,
    PastWait,
    WaitBound,
    default_path,
    order_statistic,
)

MORNING_S, EVENING_S = (
    1_700_006_400.0,
    1_700_006_400.0 + 12 * 3600,
)  # midnight UTC, and noon of that day


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "windrow" / "waits.sqlite")


class Nobody:
    name = "nobody"

    def waits_s(self, nodes: Ints, requested_s: Ints) -> Ints:
        assert nodes.shape == requested_s.shape
        return np.full(nodes.shape, 12_345, dtype=np.int64)


def jobs(
    prefix: str,
    waits: list[float],
    nodes: int = 4,
    requested_s: int = 3600,
    at_s: float = MORNING_S,
) -> list[PastWait]:
    return [
        PastWait(f"{prefix}-{i}", nodes, requested_s, at_s, at_s + wait)
        for i, wait in enumerate(waits)
    ]


@given(st.integers(0, 60), st.integers(1, 19), st.integers(1, 19))
def test_the_order_statistic_against_exact_fractions(
    count: int, twentieths: int, sureness: int
) -> None:
    quantile, confidence = Fraction(twentieths, 20), Fraction(sureness, 20)
    terms = [comb(count, j) * quantile**j * (1 - quantile) ** (count - j) for j in range(count + 1)]
    fitting = [k for k in range(1, count + 1) if sum(terms[:k]) >= confidence]
    exact = fitting[0] if fitting else None
    if any(abs(sum(terms[:k]) - confidence) < Fraction(1, 10**12) for k in range(count + 1)):
        return  # a tie, which floating point may break either way
    assert order_statistic(count, float(quantile), float(confidence)) == exact


@pytest.mark.parametrize(
    ("quantile", "confidence", "count"),
    [(0.5, 0.95, 5), (0.95, 0.95, 59), (0.9, 0.9, 22), (0.75, 0.8, 6)],
)
def test_how_many_waits_it_takes(quantile: float, confidence: float, count: int) -> None:
    """59 for 95/95 is the figure of QBETS; in general the least n with 1 - quantile^n >=
    confidence."""
    assert order_statistic(count - 1, quantile, confidence) is None
    assert order_statistic(count, quantile, confidence) == count
    assert 1 - quantile**count >= confidence > 1 - quantile ** (count - 1)


def test_many_waits_with_a_high_quantile_do_not_underflow() -> None:
    place = order_statistic(5000, 0.99, 0.95)
    assert place is not None
    assert 4950 < place < 4990


@pytest.mark.parametrize(("quantile", "confidence"), [(0.5, 0.95), (0.9, 0.8)])
def test_the_bound_holds_as_often_as_it_says(quantile: float, confidence: float) -> None:
    """Draws from a known distribution: the true quantile lies under the bound in at least that part
    of the trials."""
    chance = random.Random(7)
    true = -np.log(1 - quantile)  # of the exponential distribution with mean 1
    place = order_statistic(40, quantile, confidence)
    assert place is not None
    held = [
        sorted(chance.expovariate(1) for _ in range(40))[place - 1] >= true for _ in range(4000)
    ]
    spread = 4 * (confidence * (1 - confidence) / 4000) ** 0.5
    assert np.mean(held) >= confidence - spread
    before = [
        sorted(chance.expovariate(1) for _ in range(40))[place - 2] >= true for _ in range(4000)
    ]
    assert np.mean(before) < confidence + spread  # and no lower place would do


def test_links_are_kept_as_last_seen(history: History) -> None:
    assert history.links() == {}
    history.record_links([("", "west", 0.5), ("west", "", 0.25)])
    history.record_links([("", "west", 0.75)])
    assert History(history.path).links() == {("", "west"): 0.75, ("west", ""): 0.25}


def test_too_few_waits_give_no_bound(history: History) -> None:
    history.record("slurm", jobs("a", [10, 20, 30, 40]))
    assert history.bounds("slurm", [(4, 3600)], MORNING_S) == [None]
    history.record("slurm", jobs("b", [50.5]))
    assert history.bounds("slurm", [(4, 3600)], MORNING_S) == [
        WaitBound(51, 5, "such jobs at this time of day")
    ]
    assert history.bounds("other", [(4, 3600)], MORNING_S) == [None]


def test_classes_widen_until_they_hold_enough(history: History) -> None:
    history.record("q", jobs("night", [100] * 5))
    history.record("q", jobs("noon", [200] * 5, at_s=EVENING_S))
    history.record("q", jobs("long", [300] * 5, requested_s=86400))
    history.record("q", jobs("wide", [400] * 5, nodes=64))
    asked = [(3, 3000), (4, 60), (4, 86000), (60, 60), (500, 60)]
    found = history.bounds("q", asked, MORNING_S + 100)
    assert [(b.wait_s, b.jobs, b.what) for b in found if b] == [
        (100, 5, "such jobs at this time of day"),
        (300, 15, "jobs on about as many nodes"),
        (300, 5, "such jobs at this time of day"),
        (400, 5, "jobs on about as many nodes"),
        (300, 20, "all jobs"),
    ]  # by tables of the binomial distribution: the 5th of 5, the 12th of 15, the 15th of 20
    at_noon = history.bounds("q", [(4, 3600), (4, 86400)], EVENING_S)
    assert [b and (b.wait_s, b.what) for b in at_noon] == [
        (200, "such jobs at this time of day"),
        (300, "such jobs"),
    ]
    early_evening = history.bounds("q", [(4, 3600)], MORNING_S + 19 * 3600)
    assert early_evening == [WaitBound(200, 10, "such jobs")]


def test_only_the_last_waits_count(tmp_path: Path) -> None:
    history = History(tmp_path / "w", last=10)
    history.record("q", jobs("old", [9000] * 50))
    history.record("q", jobs("new", [60] * 10, at_s=MORNING_S + 86400))
    assert history.bounds("q", [(4, 3600)], MORNING_S) == [
        WaitBound(60, 10, "such jobs at this time of day")
    ]


def test_a_job_counts_once_and_survives_the_process(history: History) -> None:
    for _ in range(3):
        history.record("q", jobs("a", [10, 20, 30, 40]))
    again = History(history.path)
    again.record(
        "q", jobs("b", [-7])
    )  # two hosts' clocks: it cannot have started before it was submitted
    assert again.bounds("q", [(4, 3600)], MORNING_S) == [
        WaitBound(40, 5, "such jobs at this time of day")
    ]
    assert again.bounds("q", [(4, 3600)], MORNING_S, Level(0.1, 0.4)) == [
        WaitBound(0, 5, "such jobs at this time of day")
    ]


def test_the_forecaster_falls_back(history: History) -> None:
    history.record("q", jobs("a", [100] * 6))
    source = FromHistory(history, "q", lambda: MORNING_S, Nobody())
    nodes, requested = np.array([4, 1]), np.array([3600, 60])
    assert source.waits_s(nodes, requested).tolist() == [100, 100]
    stranger = FromHistory(history, "other", lambda: MORNING_S, Nobody())
    assert stranger.known_s(nodes, requested).tolist() == [UNKNOWN_S] * 2
    assert stranger.waits_s(nodes, requested).tolist() == [12_345] * 2
    with pytest.raises(UserError, match="between 0 and 1"):
        history.bounds("q", [(4, 3600)], MORNING_S, Level(95))


def test_files_that_are_no_database(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("buy milk\n" * 200)
    with pytest.raises(
        OutsideError,
        match=r"notes\.txt: the history of waits cannot be used: .* not a database; move it away",
    ):
        History(text)
    assert text.read_text().startswith("buy milk")
    with pytest.raises(OutsideError, match="waits"):
        History(_folder(tmp_path / "waits"))
    with pytest.raises(OutsideError, match="cannot be created"):
        History(text / "waits.sqlite")


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


def test_another_writer_is_waited_for_and_loses_nothing(history: History) -> None:
    history.record("q", jobs("a", [1] * 3))
    other = sqlite3.connect(history.path)
    with other:
        other.execute("UPDATE waits SET wait_s = 2")
    other.close()
    history.record("q", jobs("b", [3, 3]))
    assert history.bounds("q", [(4, 3600)], MORNING_S, Level(0.5, 0.4)) == [
        WaitBound(2, 5, "such jobs at this time of day")
    ]


def test_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("WINDROW_WAITS", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_path() == tmp_path / "windrow" / "waits.sqlite"
    monkeypatch.setenv("XDG_DATA_HOME", "not/whole")
    assert default_path() == Path.home() / ".local/share/windrow/waits.sqlite"
    monkeypatch.setenv("WINDROW_WAITS", str(tmp_path / "own"))
    assert default_path() == tmp_path / "own"
