"""Forecasts held to the batch system's own word."""

from __future__ import annotations

import numpy as np
import pytest

from windrow.forecast.guard import HeldForecast, hidden_jobs, is_far
from windrow.model import NEVER_S
from windrow.queues.port import QueueError, Snapshot

NOW_S = 1000.0


class System:
    """A batch system that says so, or nothing; it counts how often it is asked."""

    def __init__(self, wait_s: float | None, hidden: int = 0) -> None:
        self.wait_s, self.hidden, self.asked = wait_s, hidden, 0

    def probe(self, nodes: int, walltime_s: int) -> float | None:
        del nodes, walltime_s
        self.asked += 1
        return None if self.wait_s is None else NOW_S + self.wait_s

    def reading(self) -> Snapshot:
        return Snapshot(NOW_S, 8, (), hidden_nodes=self.hidden)

    def guard(self) -> HeldForecast:
        return HeldForecast(self.probe, self.reading, lambda: NOW_S)


def flat(nodes: np.ndarray, requested_s: np.ndarray) -> np.ndarray:
    """A forecast of 100 s for all but the widest, which never starts."""
    del requested_s
    return np.where(nodes > 8, NEVER_S, 100)


def waits(guard: HeldForecast, *jobs: tuple[int, int]) -> list[int]:
    nodes, requested_s = (np.array(column) for column in zip(*jobs, strict=True))
    found: list[int] = guard.bounded(flat)(nodes, requested_s).tolist()
    return found


@pytest.mark.parametrize(
    ("expected_s", "system_s", "is_other"),
    [
        (0, 299, False),
        (0, 301, True),
        (4000, 2100, False),
        (4000, 1900, True),
        (1900, 4000, True),
        (0, 0, False),
    ],
)
def test_what_counts_as_another_word(expected_s: int, system_s: int, *, is_other: bool) -> None:
    assert is_far(expected_s, system_s) == is_other


def test_a_job_waits_as_long_as_the_batch_system_says_and_larger_ones_too() -> None:
    system = System(1194)
    guard = system.guard()
    assert guard.disagrees(4, 600, 100)
    assert system.asked == 1
    assert (
        guard.words
        == "expected wait by the batch system 19.9 min, by the jobs that it shows 100 s: it is "
        "believed"
    )
    assert waits(guard, (4, 600), (8, 900), (2, 600), (4, 300), (9, 600)) == [
        1194,
        1194,
        100,
        100,
        NEVER_S,
    ]
    assert guard.said_s(4, 600) == NOW_S + 1194
    assert not guard.disagrees(4, 600, 1194)
    assert guard.notes == [guard.words]  # it is why they agree


def test_an_earlier_start_counts_for_smaller_jobs() -> None:
    guard = System(0).guard()
    assert guard.disagrees(4, 600, 900)
    assert waits(guard, (4, 600), (2, 300), (8, 600)) == [0, 0, 100]


def test_after_three_later_answers_nothing_starts_before_all_of_them() -> None:
    guard = System(900).guard()
    for nodes in (8, 6, 4):
        assert guard.disagrees(nodes, 600, 100)
    assert waits(guard, (1, 60)) == [900]


def test_hidden_jobs_are_told_and_a_minute_counts() -> None:
    guard = System(61, hidden=6).guard()
    assert not guard.sees_all()
    assert guard.hidden.startswith(
        "6 of 8 nodes are in use by jobs that the batch system does not show you"
    )
    assert guard.disagrees(1, 60, 0)
    assert hidden_jobs(Snapshot(NOW_S, 8, (), hidden_nodes=1)) == ""


def test_without_an_answer_nothing_changes() -> None:
    guard = System(None).guard()
    assert not guard.disagrees(1, 60, 0)
    assert guard.sees_all()

    def silent(nodes: int, walltime_s: int) -> float | None:
        raise QueueError(f"no answer on {nodes}, {walltime_s}")

    assert not HeldForecast(silent, System(0).reading, lambda: NOW_S).disagrees(1, 60, 0)
