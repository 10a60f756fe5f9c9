"""Nodes come and go: no strategy submits a job that could never start on those that take jobs
now."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from windrow.app.strategies import STRATEGIES
from windrow.forecast.twin import Twin
from windrow.foresight.course import Course, Sampling
from windrow.foresight.live import Ahead
from windrow.manager.core import Core
from windrow.manager.terms import Terms
from windrow.model import NEVER_S, NodeShape, Task, Workflow, format_duration
from windrow.model.site import Site
from windrow.queues.port import OthersJob, Snapshot
from windrow.strategies.base import Decision, JobPlan, View, decided
from windrow.strategies.levels import Work

ALL = 6


class Board:
    """A queue of `nodes` usable nodes, of which new jobs may have `offered`."""

    def __init__(self, nodes: int, offered: int | None = None, *jobs: OthersJob) -> None:
        self._shown = Snapshot(time.time(), nodes, jobs, offered)

    def snapshot(self) -> Snapshot:
        return self._shown


def seen(board: Board, *, task_nodes: int = 0) -> View:
    """What a strategy sees of 20 tasks on a cluster of six nodes of four cores."""
    tasks = [Task(f"t{i}", 5, nodes=task_nodes) for i in range(20)]
    workflow = Workflow.from_tasks("wide", tasks)
    core = Core(Work(workflow, np.full(20, 5), Site.of(ALL, NodeShape(4))), Terms())
    twin = Twin(board, time.time)
    view = core.view(0, twin.waits_s).within(twin.snapshot().open_nodes)
    futures = Ahead(twin).futures(
        view, {}, np.zeros(20, dtype=bool), core.terms.requests(view.work.site)
    )
    return replace(view, futures=futures)


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize(
    "board", [Board(4), Board(2), Board(5, 4, OthersJob("9", 1, 60, True, time.time(), 0, "u"))]
)
def test_no_job_is_wider_than_what_is_up(name: str, board: Board) -> None:
    view = seen(board)
    decision = decided(STRATEGIES[name], view)
    assert decision.jobs
    assert all(job.nodes <= board.snapshot().open_nodes for job in decision.jobs)
    waits = view.waits_s(
        np.array([job.nodes for job in decision.jobs]),
        np.array([job.run_s for job in decision.jobs]),
    )
    assert (waits < NEVER_S).all()
    assert "never" not in decision.why


@pytest.mark.parametrize("name", STRATEGIES)
def test_tasks_too_wide_for_what_is_up_are_not_submitted(name: str) -> None:
    decision = decided(STRATEGIES[name], seen(Board(4), task_nodes=5))
    assert not decision.jobs
    assert "4 nodes that accept new jobs now" in decision.why


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("board", [Board(0), Board(6, 0)])
def test_nothing_is_submitted_where_no_node_takes_jobs(name: str, board: Board) -> None:
    view = seen(Board(6)).within(board.snapshot().open_nodes)
    assert decided(STRATEGIES[name], view) == Decision(why="no node accepts new jobs now")


def test_a_course_that_cannot_start_never_ends() -> None:
    """The kernel would start a job that is wider than the cluster at once."""
    view = seen(Board(4))
    assert view.futures is not None
    futures = view.futures(Sampling())
    wide = JobPlan(tuple(range(20)), 5, 5, 60)
    assert futures.play(Course("all", (wide,)), 0).makespan_s >= NEVER_S
    assert futures.play(Course("all", (replace(wide, nodes=4),)), 0).makespan_s < 60


def test_the_twin_offers_a_draining_node_to_nobody() -> None:
    twin = Twin(Board(6, 5, OthersJob("9", 1, 60, True, time.time(), 0, "u")), time.time)
    assert twin.waits_s(np.array([5, 6]), np.array([60, 60])).tolist() == [0, NEVER_S]


def test_never_is_a_word() -> None:
    assert format_duration(NEVER_S) == format_duration(NEVER_S / 32) == "never"
    assert format_duration(20 * 365 * 86400) == "7300.0 d"
