"""The figures of a simulation, on cases small enough to work out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from windrow.errors import UserError
from windrow.model import Log
from windrow.sim.simulation import Simulation


def by_hand() -> Simulation:
    columns = ([1, 2, 3], [0, 10, 20], [2, 1, 1], [100, 50, 5], [40, 80, 5], [0, 0, 1])
    job, submit, nodes, requested, run, user = (np.array(c) for c in columns)
    return Simulation(
        "x", Log("x", 2, job, submit, nodes, requested, run, user), 2, np.array([0, 40, 40])
    )


def test_columns() -> None:
    s = by_hand()
    assert s.end_s.tolist() == [40, 90, 45]
    assert s.wait_s.tolist() == [0, 30, 20]
    assert s.bounded_slowdown.tolist() == [1.0, 1.6, 2.5]


def test_summary() -> None:
    summary = by_hand().summary()
    assert summary.jobs == 3
    assert summary.mean_wait_s == pytest.approx(50 / 3)
    assert (summary.median_wait_s, summary.max_wait_s, summary.makespan_s, summary.killed) == (
        20,
        30,
        90,
        1,
    )
    assert summary.mean_bounded_slowdown == pytest.approx(5.1 / 3)
    assert summary.utilization == pytest.approx((80 + 50 + 5) / 180)


def test_only_jobs_in_the_window_count() -> None:
    summary = by_hand().summary(10, 20)
    assert (summary.jobs, summary.mean_wait_s, summary.makespan_s) == (1, 30, 80)
    with pytest.raises(UserError, match="widen the window"):
        by_hand().summary(100)


def test_steps() -> None:
    times, waiting = by_hand().queue_length()
    assert (times.tolist(), waiting.tolist()) == ([0, 10, 20, 40], [0, 1, 2, 0])
    times, busy = by_hand().busy_nodes()
    assert (times.tolist(), busy.tolist()) == ([0, 40, 45, 90], [2, 2, 1, 0])
