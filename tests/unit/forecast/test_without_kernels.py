"""A short queue and a small workflow are decided on in Python, to the same end as compiled."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from tests.unit.forecast.queue_starts import expected_starts_s

from windrow.forecast.twin import Twin
from windrow.foresight.live import Ahead
from windrow.foresight.strategy import Foresight
from windrow.kernels.jit import Kernel
from windrow.manager.core import Core
from windrow.manager.terms import Terms
from windrow.model import Task, Workflow
from windrow.model.site import Site
from windrow.queues.port import OthersJob, Snapshot
from windrow.strategies import Decision, Glume, Strategy, Work, whole_seconds

NODES = 8

IDLE = """
import sys
from tests.unit.forecast.test_without_kernels import Board, decision, workflow
from windrow.queues.port import Snapshot
from windrow.foresight.strategy import Foresight
assert decision(Foresight(), workflow(1, tasks=40), Board(Snapshot(1000.0, 8, ()))).is_played
assert "numba" not in sys.modules
"""


class Board:
    """A queue that shows what it is given."""

    def __init__(self, shown: Snapshot) -> None:
        self.shown = shown

    def snapshot(self) -> Snapshot:
        return self.shown


def workflow(seed: int, tasks: int) -> Workflow:
    draw = random.Random(seed)
    made = []
    for i in range(tasks):
        parents = draw.sample(range(i), min(i, draw.randint(0, 2)))
        made.append(Task(f"t{i}", draw.randint(5, 600), parents=tuple(f"t{p}" for p in parents)))
    return Workflow.from_tasks("made up", made)


def queue(seed: int, *, waiting: int) -> Board:
    draw = random.Random(seed)
    running = [
        OthersJob(f"r{i}", 2, draw.randint(100, 4000), True, 900.0, 0, "a")
        for i in range(draw.randint(0, 4))
    ]
    behind = [
        OthersJob(f"w{i}", draw.randint(1, 8), draw.randint(60, 4000), False, None, 0, "b")
        for i in range(waiting)
    ]
    return Board(Snapshot(1000.0, NODES, (*running, *behind)))


def decision(
    strategy: Strategy, work: Workflow, board: Board, policy: str = "conservative"
) -> Decision:
    core = Core(Work(work, whole_seconds(work), Site.of(NODES)), Terms())
    twin = Twin(board, lambda: 1000.0, policy=policy)
    view = core.view(1000, twin.waits_s)
    if not board.shown.jobs:
        futures = Ahead(twin).futures(
            view, {}, np.zeros(len(work), dtype=bool), core.terms.requests(view.work.site)
        )
        view = replace(view, futures=futures)
    return strategy.decide(view)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("policy", ["conservative", "easy"])
def test_decisions_are_the_same(seed: int, policy: str) -> None:
    idle, busy = Board(Snapshot(1000.0, NODES, ())), queue(seed, waiting=seed)
    work = workflow(seed, tasks=12)
    cases: list[tuple[Strategy, Board]] = [(Foresight(), idle), (Glume(), busy)]
    for strategy, board in cases:
        compiled = decision(strategy, work, board, policy)
        with mock.patch.object(Kernel, "__call__", lambda kernel, *args: kernel.function(*args)):
            assert decision(strategy, work, board, policy) == compiled
        assert compiled.jobs


@pytest.mark.parametrize("policy", ["conservative", "easy", "fcfs"])
def test_starts_are_the_same(policy: str) -> None:
    shown = queue(7, waiting=6).shown
    compiled = expected_starts_s(shown, policy=policy)
    with mock.patch.object(Kernel, "__call__", lambda kernel, *args: kernel.function(*args)):
        assert expected_starts_s(shown, policy=policy) == compiled


@pytest.mark.slow
def test_an_idle_queue_compiles_and_loads_nothing(tmp_path: Path) -> None:
    root = str(Path(__file__).resolve().parents[3])
    answer = subprocess.run(
        [sys.executable, "-c", IDLE],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"WINDROW_CACHE": str(tmp_path), "PYTHONPATH": root},
    )
    assert answer.returncode == 0, answer.stderr
    assert not list(tmp_path.glob("**/*.nbc"))
