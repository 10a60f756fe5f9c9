"""The jobs in the state of a simulated cluster, as arrays: who waits and runs, and how to change
what they are.

Only `Cluster` calls this. Columns are those of `kernels.cluster.state`. What is said to be a view
changes the state.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.cluster import queue_times
from windrow.kernels.cluster import state as k
from windrow.kernels.cluster.jobs import slide_to_front

Ints = NDArray[np.int64]

Runs = Callable[[Ints, Ints], Ints]
"""For rows (requested time, user) and how long each has run already: how long each will run in
all."""


def heap_rows(s: Ints) -> Ints:
    """The heap of running jobs, as a view."""
    return s[s[k.HEAP_AT] :][: int(s[k.RUNNING]) * k.HEAP_WIDTH].reshape(-1, k.HEAP_WIDTH)


def running_rows(s: Ints) -> Ints:
    """The records of running jobs in the order of the heap; a copy."""
    return _slots(s)[heap_rows(s)[:, k.SLOT]]


def waiting_rows(s: Ints) -> Ints:
    """The records of queued jobs, as a view."""
    if s[k.GONE]:
        slide_to_front(s)
    rows = s[s[k.QUEUE_AT] :][: int(s[k.TAIL]) * k.QUEUED_WIDTH].reshape(-1, k.QUEUED_WIDTH)
    return rows[int(s[k.HEAD]) :]


def held_rows(s: Ints) -> Ints:
    """The records of jobs held back, as a view."""
    return s[s[k.HELD_AT] :][: int(s[k.HELD]) * k.QUEUED_WIDTH].reshape(-1, k.QUEUED_WIDTH)


def redraw(s: Ints, runs: Runs) -> None:
    """From now on the log's jobs that are there run as long as `runs` says; clients' jobs are left
    alone."""
    for rows in (waiting_rows(s), held_rows(s)):
        known = np.flatnonzero(rows[:, k.JOB] >= 0)
        asked = rows[known][:, [k.REQUESTED, k.USER]]
        rows[known, k.RUN] = np.maximum(1, runs(asked, np.zeros(len(asked), dtype=np.int64)))
    now = int(s[k.NOW])
    heap = heap_rows(s)
    running = running_rows(s)
    # By number, not as they stand: the order of the heap is that of the true ends, and would give
    # them away.
    others = np.argsort(running[:, k.JOB], kind="stable")[int((running[:, k.JOB] < 0).sum()) :]
    began = running[others, k.EXPECTED] - running[others, k.REQUESTED]
    drawn = runs(running[others][:, [k.REQUESTED, k.USER]], now - began)
    heap[others, k.END] = np.maximum(now + 1, began + drawn)
    heap[:] = heap[np.lexsort((heap[:, k.STARTED_AS], heap[:, k.END]))]  # a sorted array is a heap


def coarsen(s: Ints, grid_s: int) -> None:
    """The log's jobs that are there end whole steps of that many seconds from now, if they start at
    one: events fall together, and one pass serves many."""
    waiting = waiting_rows(s)
    others = np.flatnonzero(waiting[:, k.JOB] >= 0)
    waiting[others, k.RUN] = whole_steps(waiting[others, k.RUN], grid_s)
    now = int(s[k.NOW])
    heap = heap_rows(s)
    running = running_rows(s)
    others = np.flatnonzero(running[:, k.JOB] >= 0)
    ends = now + whole_steps(heap[others, k.END] - now, grid_s)
    heap[others, k.END] = np.minimum(ends, np.maximum(now + 1, running[others, k.EXPECTED]))
    heap[:] = heap[np.lexsort((heap[:, k.STARTED_AS], heap[:, k.END]))]


def whole_steps(seconds: Ints, grid_s: int) -> Ints:
    """To the nearest whole step, and at least one."""
    steps: Ints = np.maximum(1, (seconds + grid_s // 2) // grid_s) * grid_s
    return steps


def adopt(s: Ints, own: NDArray[np.bool_], requested_s: Ints) -> None:
    """Make these of the log's jobs clients' jobs -1, -2, ..., which run until they are ended or
    their time is over.

    `requested_s` is what each job of the log asked for at first, if the log knows only what is
    left of it.
    """
    number = np.where(own, -own.cumsum(dtype=np.int64), np.arange(len(own)))
    slots = _slots(s)
    places = heap_rows(s)[:, k.SLOT]
    places = places[slots[places, k.JOB] != k.DOWN]
    job = slots[places, k.JOB]
    slots[places, k.REQUESTED] = np.maximum(requested_s[job], slots[places, k.REQUESTED])
    slots[places, k.KILLED] = own[job]  # at its request, unless its tasks are done before
    slots[places, k.JOB] = number[job]
    waiting = waiting_rows(s)
    job = waiting[:, k.JOB].copy()
    waiting[own[job], k.RUN] = k.FOREVER
    waiting[:, k.JOB] = number[job]
    s[k.CLIENTS] = s[k.ALIVE] = int(own.sum())
    queue_times.forget(s, 0)


def _slots(s: Ints) -> Ints:
    return s[s[k.RUNNING_AT] :][: int(s[k.RUNNING_ROOM]) * k.RUNNING_WIDTH].reshape(
        -1, k.RUNNING_WIDTH
    )
