"""Workloads against the moments that print gives; figures of a run against arithmetic and queueing
theory."""

from __future__ import annotations

import math

import numpy as np
import pytest

from windrow.errors import UserError
from windrow.model import Task, Workflow
from windrow.recipes.chance import seeded
from windrow.streams import Backfilling, find_policy
from windrow_lab.stream.metrics import columns, figures, run_stream
from windrow_lab.stream.simulation import Simulator
from windrow_lab.stream.stability import climb, keeps_up, saturation, verdict
from windrow_lab.stream.workload import (
    GAMMA_SCALES,
    GAMMA_SHAPES,
    GAMMA_SHARES,
    JOB,
    JOB_CORES,
    MEAN_WORK_S,
    SIZE_RANGES,
    SIZE_SHARES,
    Workload,
    draw_sizes,
    draw_work_s,
    draw_workload,
    with_single_ends,
)


def test_the_printed_gamma_parameters_have_a_mean_of_one_hour() -> None:
    mean = sum(p * a * b for p, a, b in zip(GAMMA_SHARES, GAMMA_SHAPES, GAMMA_SCALES, strict=True))
    assert mean == pytest.approx(MEAN_WORK_S, abs=0.01)


def test_work_has_the_moments_of_the_distribution() -> None:
    """Of gamma (a, b): mean ab, second moment a (a + 1) b^2. Five standard errors of 200,000
    draws."""
    drawn = draw_work_s(seeded(1, "test"), 200_000)
    parts = list(zip(GAMMA_SHARES, GAMMA_SHAPES, GAMMA_SCALES, strict=True))
    second = sum(p * a * (a + 1) * b * b for p, a, b in parts)
    deviation = math.sqrt(second - MEAN_WORK_S**2)
    assert float(drawn.mean()) == pytest.approx(
        MEAN_WORK_S, abs=5 * deviation / math.sqrt(len(drawn))
    )
    assert float(drawn.std()) == pytest.approx(deviation, rel=0.01)
    assert drawn.min() > 0


def test_sizes_are_even_and_fill_their_ranges() -> None:
    rng = seeded(2, "test")
    for size, (low, high) in enumerate(SIZE_RANGES):
        drawn = draw_sizes(rng, np.full(5000, size))
        assert (drawn % 2 == 0).all()
        assert (drawn.min(), drawn.max()) == (low, high)
        assert float(drawn.mean()) == pytest.approx((low + high) / 2, rel=0.03)


@pytest.mark.slow
def test_a_mixture_has_the_shares_work_and_arrivals_asked_for() -> None:
    drawn = draw_workload("mixture", workflows=300, seed=3)
    shares = np.bincount(drawn.sizes, minlength=3) / 300
    assert shares == pytest.approx(SIZE_SHARES, abs=0.08)
    names = [w.name.split("-")[0] for w in drawn.workflows]
    assert all(names.count(n) == 100 for n in ("montage", "inspiral", "sipht"))
    rate = 300 / float(drawn.arrivals_s(0.5, 100)[-1])
    assert rate * MEAN_WORK_S / 100 == pytest.approx(0.5, rel=0.2)
    for workflow, size in zip(drawn.workflows, drawn.sizes, strict=True):
        real = [k for k in workflow.kinds if k not in ("entry", "exit")]
        low, high = SIZE_RANGES[int(size)]
        assert low <= len(real) <= high
        assert (
            (workflow.parents.degrees() == 0).sum() == (workflow.children.degrees() == 0).sum() == 1
        )


def test_utilization_stretches_arrivals_and_changes_nothing_else() -> None:
    drawn = draw_workload("ligo", workflows=20, seed=1)
    assert drawn.arrivals_s(0.25, 100) == pytest.approx(2 * drawn.arrivals_s(0.5, 100))
    again = draw_workload("ligo", workflows=20, seed=1)
    assert [w.runtime_s.tolist() for w in drawn.workflows] == [
        w.runtime_s.tolist() for w in again.workflows
    ]


def test_added_ends_take_no_time_and_tie_everything_together() -> None:
    bag = Workflow.from_tasks("bag", [Task("a", 1.0), Task("b", 2.0)])
    tied = with_single_ends(bag)
    assert tied.kinds[2:] == ("entry", "exit")
    assert tied.runtime_s.tolist() == [1.0, 2.0, 0.0, 0.0]
    assert tied.levels.tolist() == [1, 1, 0, 2]
    one = Workflow.from_tasks("one", [Task("a", 1.0)])
    assert with_single_ends(one) is one


def single_tasks(runtime_s: np.ndarray, gaps: np.ndarray) -> Workload:
    """Workflows of one task: the pool becomes an ordinary queue."""
    flows = tuple(Workflow.from_tasks("job", [Task("t", float(r))]) for r in runtime_s)
    return Workload("queue", flows, np.zeros(len(flows), dtype=np.int64), gaps, mean_work_s=1.0)


@pytest.mark.slow
def test_one_task_workflows_wait_as_the_erlang_formula_says() -> None:
    """M/M/c with c = 5 at 0.7: the mean wait is C(c, a) / (c - a), with Erlang's C = 0.3778 for a =
    3.5."""
    rng = np.random.default_rng(5)
    workload = single_tasks(rng.exponential(1.0, 15_000), rng.exponential(1.0, 15_000))
    found = run_stream(Simulator(workload, 5), Backfilling(), 0.7)
    a, c = 3.5, 5
    last = a**c / math.factorial(c) * c / (c - a)
    erlang = last / (sum(a**k / math.factorial(k) for k in range(c)) + last)
    assert found.wait_s == pytest.approx(erlang / (c - a), rel=0.12)
    assert found.utilization == pytest.approx(0.7, rel=0.05)
    assert found.kept == 0


def test_figures_are_plain_arithmetic() -> None:
    """Three workflows of one task of 4 s on one processor, at 0, 1 and 20; the first is warm-up."""
    workload = single_tasks(np.full(3, 4.0), np.array([0.0, 1.0, 19.0]))
    simulator = Simulator(workload, 1)
    arrival_s = np.array([0.0, 1.0, 20.0])
    found = figures(simulator, simulator.run(Backfilling(), arrival_s, until_s=20.0), "bf", 1.0)
    assert (found.measured, found.wait_s, found.makespan_s, found.slowdown) == (1, 3.0, 4.0, 7 / 4)
    assert found.in_system == 1
    assert found.utilization == pytest.approx(8 / 20)


def test_what_is_not_finished_is_not_measured() -> None:
    workload = single_tasks(np.full(6, 4.0), np.ones(6))
    simulator = Simulator(workload, 1)
    arrival_s = np.arange(6.0)
    run = columns(simulator, simulator.run(Backfilling(), arrival_s, until_s=5.0))
    assert run.measured.sum() == 0  # only the first ends by then, and it is warm-up


def test_saturation_of_a_plain_queue_is_one_and_of_alternating_forks_what_is_left() -> None:
    queue = single_tasks(np.full(400, 1.0), np.ones(400))
    assert saturation(Simulator(queue, 4), Backfilling()) == pytest.approx(1.0)
    # Under sr, an entry of 1 s and then four tasks of 1 s hold four processors for 2 s and use 5 of
    # 8.
    tasks = [Task("e", 1.0), *(Task(f"t{i}", 1.0, parents=("e",)) for i in range(4))]
    fork = Workflow.from_tasks("fork", tasks)
    forks = Workload(
        "forks", (fork,) * 200, np.zeros(200, dtype=np.int64), np.ones(200), mean_work_s=5.0
    )
    assert saturation(Simulator(forks, 4), find_policy("sr")) == pytest.approx(5 / 8, rel=0.01)
    assert saturation(Simulator(forks, 4), Backfilling()) == pytest.approx(1.0, rel=0.01)


def test_a_short_stream_gives_no_verdict_but_a_long_one_does() -> None:
    """At 2.0 the pool cannot keep up. Alone, jobs of 1 s at a rate of 8 make 8 in the system: 3 %
    of 267 workflows."""
    rng = np.random.default_rng(2)
    for count, expected in ((100, None), (1000, False)):
        simulator = Simulator(single_tasks(np.ones(count), rng.exponential(1, count)), 4)
        assert verdict(simulator, run_stream(simulator, Backfilling(), 2.0)) is expected
        assert verdict(simulator, run_stream(simulator, Backfilling(), 0.1)) is True


def test_climbing_stops_at_the_first_step_that_is_too_much() -> None:
    rng = np.random.default_rng(9)
    tasks = [Task("e", 1.0), *(Task(f"t{i}", 1.0, parents=("e",)) for i in range(4))]
    fork = Workflow.from_tasks("fork", tasks)
    forks = Workload(
        "forks", (fork,) * 3000, np.zeros(3000, dtype=np.int64), rng.exponential(1, 3000), 5.0
    )
    points = list(climb(Simulator(forks, 4), find_policy("sr")))
    assert [keeps_up(p, 3000) for p in points] == [True] * (len(points) - 1) + [False]
    assert points[-2].offered == pytest.approx(5 / 8, abs=0.05)


def test_batch_jobs_take_the_place_of_some_workflows_and_keep_their_work() -> None:
    plain = draw_workload("ligo", workflows=60, seed=1)
    mixed = draw_workload("ligo", workflows=60, seed=1, jobs=0.4)
    is_job = mixed.sizes == JOB
    assert 12 <= is_job.sum() <= 36
    assert mixed.work_s == pytest.approx(plain.work_s)
    for before, after, job in zip(plain.workflows, mixed.workflows, is_job, strict=True):
        assert (
            (len(after) == 1 and int(after.cores[0]) in JOB_CORES)
            if job
            else after.ids == before.ids
        )


def test_bad_requests_get_one_clear_message() -> None:
    with pytest.raises(UserError, match="did you mean montage"):
        draw_workload("montag")
    with pytest.raises(UserError, match="at least 1 workflow"):
        draw_workload("ligo", workflows=0)
    with pytest.raises(UserError, match="above 0"):
        draw_workload("ligo", workflows=2).arrivals_s(0.0, 100)
