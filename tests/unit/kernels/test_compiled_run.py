"""The compiled run against plain lists: who starts in a job, and how long a job of differing tasks
lasts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.kernels.jit import in_python
from windrow.kernels.run import tables as k
from windrow.kernels.run.estimate import latest_end
from windrow.kernels.run.room import give
from windrow.kernels.run.start import open_job, start_tasks
from windrow.model import Adjacency

TASKS = st.lists(
    st.tuples(st.integers(1, 9), st.integers(1, 5)), min_size=1, max_size=12
)  # lengths and units


@pytest.fixture(autouse=True, scope="module")
def _as_written() -> Iterator[None]:
    with in_python():
        yield


def run_of(tasks: list[tuple[int, int]], edges: list[tuple[int, int]]) -> np.ndarray:
    n = len(tasks)
    pairs = np.array(edges, dtype=np.int64).reshape(-1, 2)
    children = Adjacency.from_edges(n, pairs[:, 0], pairs[:, 1])
    rooms = {k.JOBS_AT: 1, k.ENDS_AT: n, k.POOL_AT: n}
    run = k.new_run(
        np.array([length for length, _ in tasks]), children.start, children.index, rooms
    )
    k.tasks_of(run)[:, k.UNITS] = [units for _, units in tasks]
    run[k.PLAYED] = 1
    return run


@given(TASKS, st.integers(0, 12), st.lists(st.integers(0, 11), max_size=6))
def test_the_longest_start_first_and_what_has_no_room_holds_up_nobody(
    tasks: list[tuple[int, int]], free: int, ends: list[int]
) -> None:
    """Room is given back task by task, in any order; each time all that fits starts, in the order
    of a sorted list."""
    run = run_of(tasks, [])
    j = int(k.job(run, 0))
    k.region(run, k.JOBS_AT)[0] = 0
    run[[j + k.STAGE, j + k.SIZE, j + k.FREE]] = k.RUNNING, len(tasks), free
    k.region(run, k.POOL_AT)[:] = k.position(np.arange(len(tasks)))
    open_job(run, j)
    waiting = sorted(range(len(tasks)), key=lambda v: (-tasks[v][0], v))
    running: list[int] = []
    for end in [None, *ends]:
        if end is not None and end in running:
            running.remove(end)
            give(run, int(k.position(np.array(end))), j)
            free += tasks[end][1]
        start_tasks(0, run, j)
        for v in list(waiting):
            if tasks[v][1] <= free:
                free -= tasks[v][1]
                waiting.remove(v)
                running.append(v)
        assert np.flatnonzero(k.tasks_of(run)[:, k.UNTIL] == 0).tolist() == sorted(waiting)
        assert (run[j + k.FREE], run[j + k.READY]) == (free, len(waiting))


@given(
    TASKS,
    st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=12),
    st.integers(1, 8),
    st.data(),
)
def test_a_job_lasts_as_long_as_its_tasks_played_with_lists(
    tasks: list[tuple[int, int]], pairs: list[tuple[int, int]], cores: int, data: st.DataObject
) -> None:
    """Cores are counted, tasks that end together make room together, and those outside the job
    count as done."""
    edges = sorted({(a, b) for a, b in pairs if a < b < len(tasks)})
    mine = data.draw(st.lists(st.integers(0, len(tasks) - 1), min_size=1, unique=True))
    run = run_of(tasks, edges)
    run[k.PER_NODE] = cores
    drawn = np.array([[length for length, _ in tasks]])
    assert latest_end(run, k.position(np.array(mine)), drawn) == lasting(tasks, edges, mine, cores)


def lasting(
    tasks: list[tuple[int, int]], edges: list[tuple[int, int]], mine: list[int], free: int
) -> int:
    done = set(range(len(tasks))) - set(mine)
    ends: list[tuple[int, int]] = []
    started: set[int] = set()
    now = 0
    while True:
        for v in sorted(set(mine) - started, key=lambda v: (-tasks[v][0], v)):
            if tasks[v][1] <= free and all(a in done for a, b in edges if b == v):
                free -= tasks[v][1]
                started.add(v)
                ends.append((now + tasks[v][0], v))
        if not ends:
            return now
        now = min(ends)[0]
        over = [v for end, v in ends if end == now]
        ends = [(end, v) for end, v in ends if end > now]
        done.update(over)
        free += sum(tasks[v][1] for v in over)
