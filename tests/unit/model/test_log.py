"""Logs and durations."""

from __future__ import annotations

import numpy as np
import pytest

from windrow.errors import UserError
from windrow.model import Log, Repairs, format_duration, parse_duration

GOOD = {
    "job": [7, 8],
    "submit_s": [0, 5],
    "nodes": [1, 2],
    "requested_s": [10, 20],
    "run_s": [4, 30],
    "user": [0, 1],
}


def log(**changes: list[int]) -> Log:
    job, submit, nodes, requested, run, user = (
        np.array(column) for column in (GOOD | changes).values()
    )
    return Log("x", 2, job, submit, nodes, requested, run, user)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nodes": [1, 3]}, "job 8 needs 1 to the machine"),
        ({"nodes": [0, 1]}, "job 7 needs 1 to the machine"),
        ({"run_s": [0, 1]}, "job 7 needs a run time"),
        ({"submit_s": [5, 0]}, "job 8 is submitted before"),
        ({"submit_s": [-1, 0]}, "job 7 needs a submission time"),
        ({"user": [0]}, "same length"),
    ],
)
def test_what_is_refused(changes: dict[str, list[int]], message: str) -> None:
    with pytest.raises(UserError, match=message):
        log(**changes)


def test_rows_load_and_accurate_requests() -> None:
    assert [(j.job, j.submit_s, j.nodes) for j in log()] == [(7, 0, 1), (8, 5, 2)]
    assert log().load == pytest.approx((4 + 2 * 20) / (5 * 2))
    assert log().accurate().requested_s.tolist() == [4, 20]


def test_requests_can_be_padded() -> None:
    assert log(requested_s=[59, 60]).padded(round_s=60, extra_s=6).requested_s.tolist() == [66, 126]


def test_a_log_keeps_its_own_columns() -> None:
    submits = np.array([0, 5])
    job, _, nodes, requested, run, user = (np.array(column) for column in GOOD.values())
    mine = Log("x", 2, job, submits, nodes, requested, run, user)
    submits[0] = 99
    assert mine.submit_s.tolist() == [0, 5]
    with pytest.raises(ValueError, match="read-only"):
        mine.submit_s[0] = 1


def test_repairs_speak() -> None:
    repairs = Repairs(dropped_too_wide=1, mended_ran_longer=475)
    assert (repairs.dropped, repairs.mended) == (1, 475)
    assert repairs.lines() == [
        "dropped: 1 job was wider than the machine",
        "repaired: 475 jobs ran longer than requested; they are killed at their requested times",
    ]


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("30m", 1800), ("1.5h", 5400), ("2D", 172800)]
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "h", "-3", "nan", "inf", "3 years"])
def test_durations_refused(text: str) -> None:
    with pytest.raises(UserError, match="is not a duration"):
        parse_duration(text)


def test_a_duration_that_is_too_long() -> None:
    with pytest.raises(UserError, match="is too long"):
        parse_duration("1e400")


def test_durations_for_people() -> None:
    assert [format_duration(s) for s in (0.5, 45, 600, 7200 * 2, 86400 * 3)] == [
        "0.5 s",
        "45 s",
        "10.0 min",
        "4.0 h",
        "3.0 d",
    ]
