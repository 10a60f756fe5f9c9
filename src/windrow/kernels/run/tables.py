"""The tables of a run, in one array of whole numbers: what all kernels of this room work on.

One machine, three front ends. `trial` runs a workflow for the figures of a campaign and is exact:
`manager.core`, `model.allocation` and the driver in `trials.trial` are the law, to the second and
in the same order. `play` runs a course of action on one future, and is PLAYED: with the
simplifications that only a look ahead may make. `estimate` runs the tasks of one job on n nodes.
Each rule is in one place: `room` (is there room), `start`, `finish`, `hear` (what a batch system
says of jobs), `lose` (a job was killed), `requests` (what jobs ask for).

One array, `r`, for the reason that a cluster's state is one: of a dozen tables, numba counts all
references in every call, which took three times as long as the calls. It begins with a header; then
come tasks and their children, which stay where they are; then regions that may have to grow. A task
is named by where its row begins (`r[v + HOME]`), a job by the number of its row, since rows of jobs
move: `job` says where to. No kernel makes an array larger: it says that room is missing, and is
called again.

What comes next has its place:
- several attempts of one task at a time: UNTIL moves from the task to a row of its attempt;
- stage-in before a start: `start.start_one` sets UNTIL later, and the end of a transfer is one more
  kind of end;
- several clusters in one virtual time: a column of jobs says which, and `trial` and `play` advance
  the one whose next instant comes first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.cluster.state import EVENT_WIDTH, Ints
from windrow.kernels.jit import lean

Floats = NDArray[np.float64]

# Header: counts. LEFT: tasks in no job; LEAVING: jobs that are about to give tasks back; LONGER: 1
# where some task is expected to take longer than at first; EVENT: the next of EVENTS that were
# told.
PHASE, EVENT, EVENTS, JOBS, ACTIVE, WAITING_JOBS, LEFT, LEAVING, OPEN_TASKS, RUNNING_TASKS = range(
    10
)
FREE_TASKS, USED_POOL, USED_NODES, LONGER, QUEUE_WAIT, NODE_S, KILLS, NEXT_GROUP = range(10, 18)
# Header: rules. Jobs before row OWN were in the system at the beginning; FIRST_CLIENT minus the
# number of any other is its row. PER_NODE: units of a node. MOST_NODES: of a job of one task.
# TASKS_END: where the rows of tasks end. MORE: how far behind its row there is more of a task.
# NODE_FAILURES counts the KILLS of jobs that lost a node. LONGEST: at most this is expected of a
# lost task, unless it had more.
(
    PLAYED,
    PACKED,
    CAP,
    OWN,
    FIRST_CLIENT,
    OWNER,
    PER_NODE,
    NODE_MEMORY,
    MOST_NODES,
    BUSY_IS_REQUEST,
) = range(18, 28)
QUIET, SINGLY, SIZES, LEEWAY_ROUNDS, LIMIT, HORIZON, TASKS_END, MORE, NODE_FAILURES, LONGEST = (
    range(28, 38)
)
# Header: where regions begin; after each, how many rows it has room for.
JOBS_AT = 38
ACTIVE_AT = 40  # the rows of jobs in the system, in the order of submission
ENDS_AT = 42  # a heap of tasks by the end of an attempt
READY_AT = 44  # a heap of tasks that are ready and in no job
POOL_AT = 46  # the tasks of each job: a list while it waits, then a heap of those that may start
NEWS_AT = 48  # what was told of jobs
NODES_AT = 50  # nodes of running jobs, if PACKED
# Header: what a node has beside cores and memory (disk, GPUs, ...), in how many kinds, if PACKED
# and tasks need any.
EXTRAS = 52
# Header: tasks that join the run. GROWTH_S is when the next do; the first of those that joined last
# is NEW_TASKS.
GROWTH_S = 62
NEW_TASKS = 63
HEADER = 64

# A task. EXPECTED is how long, which may grow; ORDER is the length by which it takes its turn;
# ACTUAL what it takes. UNITS is what it needs of the room of a job. PARENTS counts those that are
# not done. HOME is the row of its job, or one of the three below (NOT_YET: it has not joined the
# run). UNTIL is when its last attempt ends or ended, which began ACTUAL before; 0 if it has
# none, or the last was lost. From CHILDREN on, up to those of the next row, are its children. A row
# is a line of cache.
ORDER, ACTUAL, UNITS, PARENTS, HOME, UNTIL, CHILDREN, EXPECTED = range(8)
TASK_WIDTH = 8
IN_NO_JOB = -1
DONE = -2
NOT_YET = -3

# What is seldom asked of a task, in a row of its own (`more`). If PACKED, it needs MEMORY of a
# node or WHOLE nodes, and PLACE is its node. LOST: for how long attempts ran that were lost with
# their jobs. From FIRST_EXTRA on: how much of each of the EXTRAS; what does not fit there is in
# further such rows. Behind the last task are those of what an empty node has.
LEVEL, MEMORY, WHOLE, PLACE, LOST, FIRST_EXTRA = range(6)

# A job. NUMBER is the cluster's name for it. OPEN counts its tasks that are not done. FREE is its
# room that no task has, LEAST the least that one of its tasks needs. In the pool, from AT on, are
# its SIZE tasks, of which READY may start. Its first node is FIRST_NODE.
NUMBER, NODES, REQUESTED, RUN, STAGE, OPEN, STOPPING, BEGUN, SUBMITTED, BEGAN, EXPECTED_END = range(
    11
)
FREE, LEAST, AT, SIZE, READY, FIRST_NODE = range(11, 17)
JOB_WIDTH = 17
PLANNED, WAITING, RUNNING, GONE = range(4)
# the NUMBER of a job on no node of this cluster: its tasks are under way, and it goes with the last
ELSEWHERE = 0

# A node of a running job. HOLDER is the task that has all of it. What is free of the EXTRAS
# follows.
FREE_CORES, FREE_MEMORY, HOLDER = range(3)
NODE_WIDTH = 3  # and EXTRAS

# Requests. LATE is by which factor jobs are asked for longer than they should run.
MARGIN, ROUND_S, OVERHEAD_S, MAX_REQUEST_S, LATE = range(5)

# The key of a heap is a number to order by, and below it, in this many bits, whose it is. There is
# room for times of seventeen thousand years, and for more than a million tasks.
BITS = 24
NAME = (1 << BITS) - 1
LONG = 1 << 38  # longer than any task
MOST_TASKS = (NAME - HEADER) // TASK_WIDTH - 1

_WIDTHS = {
    JOBS_AT: JOB_WIDTH, ACTIVE_AT: 1, ENDS_AT: 1, READY_AT: 1, POOL_AT: 1, NEWS_AT: EVENT_WIDTH,
    NODES_AT: NODE_WIDTH,
}  # fmt: skip


@lean
def more(r: Ints, v: int) -> int:
    """Where there is more of task `v`."""
    return v + r[MORE]


@lean
def extra(r: Ints, v: int, number: int) -> int:
    """Where it says how much task `v` needs of an extra; what a node has, for the row behind the
    last task."""
    place = FIRST_EXTRA + number
    return v + r[MORE] * (1 + place // TASK_WIDTH) + place % TASK_WIDTH


@lean
def job(r: Ints, j: int) -> int:
    """Where the row of job `j` begins."""
    return r[JOBS_AT] + j * JOB_WIDTH


def new_run(
    expected_s: Ints, first_child: Ints, children: Ints, rooms: dict[int, int], extras: int = 0
) -> Ints:
    """A run of which no task is in a job yet. Each needs one unit. `rooms` says how many rows
    regions have."""
    n = len(expected_s)
    end = HEADER + n * TASK_WIDTH
    more = 1 + (FIRST_EXTRA + extras - 1) // TASK_WIDTH  # rows of each task beside its first
    after = (
        end + TASK_WIDTH + more * (n + 1) * TASK_WIDTH
    )  # one task more ends the children of the last
    fixed = np.zeros(after + len(children), dtype=np.int64)
    fixed[TASKS_END] = end
    fixed[MORE] = (n + 1) * TASK_WIDTH
    fixed[EXTRAS] = extras
    tasks = tasks_of(fixed)
    tasks[:, CHILDREN], fixed[end + CHILDREN] = first_child[:-1] + after, len(fixed)
    tasks[:, EXPECTED] = tasks[:, ORDER] = tasks[:, ACTUAL] = expected_s
    tasks[:, PARENTS] = np.bincount(children, minlength=n)
    tasks[:, UNITS] = 1
    tasks[:, HOME] = IN_NO_JOB
    fixed[after:] = position(children)
    return laid_out(fixed, rooms)


def laid_out(fixed: Ints, rooms: dict[int, int]) -> Ints:
    """The header, tasks and children of a run, as they are in `fixed`, with empty regions."""
    begin = len(fixed)
    r = np.empty(
        begin + sum(rooms.get(at, 0) * _width(fixed, at) for at in _WIDTHS), dtype=np.int64
    )
    r[:begin] = fixed
    for at in _WIDTHS:
        room = rooms.get(at, 0)
        r[at], r[at + 1] = begin, room
        begin += room * _width(fixed, at)
    return r


def _width(r: Ints, at: int) -> int:
    return _WIDTHS[at] + (int(r[EXTRAS]) if at == NODES_AT else 0)


def position(rows: Ints) -> Ints:
    """The names of the tasks of these rows."""
    return rows * TASK_WIDTH + HEADER


def tasks_of(r: Ints) -> Ints:
    """The rows of tasks; what is written there is written into `r`."""
    return r[HEADER : r[TASKS_END]].reshape(-1, TASK_WIDTH)


def more_of(r: Ints) -> Ints:
    """The rows with more of each task."""
    return r[HEADER + r[MORE] : r[TASKS_END] + r[MORE]].reshape(-1, TASK_WIDTH)


def extra_of(r: Ints, number: int) -> Ints:
    """What each task needs of an extra, and behind them what a node has."""
    rows, place = divmod(FIRST_EXTRA + number, TASK_WIDTH)
    begin = HEADER + r[MORE] * (1 + rows)
    return r[begin + place : begin + r[MORE] : TASK_WIDTH]


def region(r: Ints, at: int) -> Ints:
    """The rows of a region; what is written there is written into `r`."""
    width = _width(r, at)
    rows = r[r[at] : r[at] + r[at + 1] * width]
    if width == 1:
        return rows
    return rows.reshape(-1, width)


def grown(r: Ints, rooms: dict[int, int]) -> Ints:
    """The same with at least this much room. What must grow doubles, so it happens seldom."""
    if all(r[at + 1] >= rows for at, rows in rooms.items()):
        return r
    now = {at: int(r[at + 1]) for at in _WIDTHS}
    needed = {
        at: rows if rows >= rooms.get(at, 0) else max(2 * rows, rooms[at])
        for at, rows in now.items()
    }
    larger = laid_out(r[: r[JOBS_AT]], needed)
    for at, rows in now.items():
        region(larger, at)[:rows] = region(r, at)
    return larger
