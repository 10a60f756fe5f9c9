"""Estimates by queue: numbers computed by hand from figure 5.5, the pool rule, monitors, and plans
that add up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.model import File, Task, Workflow
from windrow.recipes import generate_workflow
from windrow_lab.grid.estimate import LoopWork, Model, choose, combined, estimate
from windrow_lab.grid.hybrid import AGGRESSIVE, WAYS, DataMove, Ended, execute, plan_length_s
from windrow_lab.grid.recipes import generate_grid


def _by_levels() -> LoopWork:
    """Levels of 1, 20 and 1 tasks, each of 10 iterations that write 100 MB."""
    middle = [
        Task(f"m{i}", 1, parents=("a",), inputs=("x",), outputs=(f"y{i}",)) for i in range(20)
    ]
    last = Task(
        "z", 1, parents=tuple(t.id for t in middle), inputs=tuple(f"y{i}" for i in range(20))
    )
    files = [File("x", 100_000_000), *(File(f"y{i}", 100_000_000) for i in range(20))]
    workflow = Workflow.from_tasks("three", [Task("a", 1, outputs=("x",)), *middle, last], files)
    return LoopWork(workflow, np.full(22, 10.0), np.full(22, 100.0))


def test_exclusive_and_collaborative_times_are_those_computed_by_hand() -> None:
    work, model = _by_levels(), Model.of(generate_grid("four-queues"))
    exclusive, collaborative = estimate(work, model)
    assert exclusive == pytest.approx([2127.5, 2450.0, 2566.8, 6310.5])
    assert collaborative == pytest.approx([1676.5, 2237.5, 2325.1, 6310.5])
    assert choose(work, model) == [0, 1]  # 8 nodes and 16: more than 20 tasks side by side
    assert choose(work, model, stops="better") == [0]
    exclusive, collaborative = estimate(work, model, waits=False)  # as figure 5.2 prints it
    assert (exclusive[0], collaborative[0]) == pytest.approx((1977.5, 1586.5))
    assert (exclusive[3], collaborative[3]) == pytest.approx((910.5, 910.5))
    assert choose(work, model, waits=False) == [3]


@given(st.lists(st.integers(0, 5)), st.lists(st.integers(0, 5)))
def test_a_pool_shrinks_to_a_part_of_it_or_grows(chosen: list[int], old: list[int]) -> None:
    new = combined(chosen, old)
    assert set(new) == (set(chosen) if set(chosen) <= set(old) else set(chosen) | set(old))


def test_monitors_fade() -> None:
    model = Model.of(generate_grid("four-queues")).copy()
    model.saw(0, wait_s=130, run_s=4.5 + 37.8 + 100 * 1.13, iterations=1, mb=100)
    model.saw_move((0, 1), 10, 12.0)
    assert model.wait_s[0] == pytest.approx(0.7 * 30 + 0.3 * 130)
    assert model.s_per_mb[0] == pytest.approx(0.7 * 0.13 + 0.3 * 1.13)
    assert model.link_s_per_mb[0, 1] == pytest.approx(0.7 * 0.2 + 0.3 * 1.2)


def test_a_task_that_writes_little_says_nothing_of_the_disk() -> None:
    model = Model.of(generate_grid("four-queues")).copy()
    model.saw(0, wait_s=30, run_s=2 * (4.5 + 37.8), iterations=1, mb=0.01)
    assert model.s_per_mb[0] == pytest.approx(0.13)


class AsModelled:
    """A world that does what the model says, a node for each task of a queue."""

    def __init__(self, model: Model) -> None:
        self.now_s, self.model = 0.0, model
        self.events: list[tuple[float, int, Ended]] = []
        self.free = [[0.0] * int(n) for n in model.nodes]

    def submit(
        self, task: int, queue: int, moves: Sequence[DataMove], iterations: float, mb: float
    ) -> None:
        took = [float(self.model.link_s_per_mb[m.source, queue]) * m.mb for m in moves]
        there = max((m.from_s + s for m, s in zip(moves, took, strict=True)), default=0.0)
        node = min(range(len(self.free[queue])), key=self.free[queue].__getitem__)
        start = max(
            there, max(self.now_s, self.free[queue][node]) + float(self.model.wait_s[queue])
        )
        run = (
            self.model.start_s[queue]
            + self.model.iteration_s[queue] * iterations
            + self.model.s_per_mb[queue] * mb
        )
        self.free[queue][node] = start + float(run)
        ended = Ended(task, queue, self.now_s, start - self.now_s, start, float(run), moves, took)
        self.events.append((start + float(run), task, ended))

    def next_end(self) -> Ended:
        self.events.sort(key=lambda event: event[:2], reverse=True)
        self.now_s, _, end = self.events.pop()
        return end


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("recipe", ["eman", "fft"])
def test_every_task_ends_after_its_parents_and_a_plan_comes_true(way: str, recipe: str) -> None:
    workflow = generate_workflow(recipe, tasks=39, seed=1)
    work = LoopWork(workflow, workflow.runtime_s / 100, np.full(len(workflow), 20.0))
    model = Model.of(generate_grid("four-queues"))
    outcome = execute(way, work, model, AsModelled(model), AGGRESSIVE)
    assert len(outcome.queue_of) == len(workflow)
    if way == "static":
        assert outcome.turnaround_s == pytest.approx(plan_length_s(work, model), rel=0.02)
        assert set(outcome.queue_of) <= set(choose(work, model))
    assert outcome.turnaround_s >= float(model.run_s(work).min(axis=1).max())
