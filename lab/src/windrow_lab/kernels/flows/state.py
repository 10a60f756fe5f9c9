"""Where what is in the two arrays of a simulation of flows: the tables, which nothing changes, and
the state.

Rule 1: each is one array of 64-bit words, seen as integers (`w`, `s`) and, over the same memory, as
floats (`x`, `f`).
Rule 2: all that changes is in the state, so that a copy of it is a clone. Clones share the tables.
Rule 3: the header of the tables says where each region begins, of both arrays. Kernels never
allocate.

A clock is a region of `2 n` words, n a power of two: keys, and over them a tree whose root names
the least.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# The header of the tables: counts and rules, then numbers, then where regions of the tables and of
# the state begin.
(
    NODES,
    TASKS,
    VOLUMES,
    FILES,
    PIPES,
    TIMERS,
    FLOWS,
    FAILURES,
    IS_GROUPED,
    IS_BOUNDED,
    KEEPS_BATCH,
) = range(11)
STORAGE, REMOTE, LOCAL, LATENCY, BATCH_NEED = range(11, 16)  # floats
RUN, PIPE_OF, RANK, ORDER, PARENTS, BATCH_AT, BATCH, IN_AT, IN, OUT_AT, OUT, KIDS_AT, KIDS = range(
    16, 29
)
(
    PIPE_AT,
    VOLUME_SIZE,
    SIZE,
    USES,
    IS_KEPT,
    GUARANTEE,
    PEAK,
    FAIL_S,
    FAIL_NODE,
    FAR,
    NEAR,
    OWN,
    RESULTS,
) = range(29, 42)
(NODE_TASK, PHASE, OWN_S, IDLE_STACK, TIMER_CLOCK, FLOW_CLOCK, WEIGHT, HEAP, QUEUE, STATUS) = range(
    42, 52
)
(PARENTS_LEFT, TASK_NODE, START_S, END_S, TASKS_LEFT, HELD, IS_OPEN, EXTRACTS) = range(52, 60)
(IS_THERE, MISSING, READERS_LEFT, USES_LEFT) = range(60, 64)
HEADER = 64

# The header of the state.
IDLE, READY, FIRST, LAST, GROUP_LEFT, NEXT_FAILURE, FINISHED, HITS, FETCHES, ALL_WEIGHT = range(10)
NOW, SHARED, USED, MOST_USED, MOVED, OF_BATCH, OF_INPUTS, OF_RESULTS = range(10, 18)  # floats
STATE_HEADER = 20

WAITING, READY_TASK, RUNNING, DONE = range(4)  # what a task can be
READS_BATCH, READS_HOME, COMPUTES = range(3)  # what a node can be at


def tables(
    numbers: Mapping[int, float],
    counts: Mapping[int, int],
    regions: Mapping[int, Ints | Floats],
    nodes: int,
) -> tuple[Ints, int]:
    """The tables in one array, and how many words the state needs."""
    at = HEADER
    header = np.zeros(HEADER, dtype=np.int64)
    for place, region in regions.items():
        header[place] = at
        at += len(region)
    tasks, volumes, files, pipes = (counts[one] for one in (TASKS, VOLUMES, FILES, PIPES))
    timers, flows = (
        max(2, 1 << (many - 1).bit_length()) for many in (nodes, nodes + volumes + tasks)
    )
    counts = {**counts, NODES: nodes, TIMERS: timers, FLOWS: flows}
    lengths = {NODE_TASK: nodes, PHASE: nodes, OWN_S: nodes, IDLE_STACK: nodes}
    lengths |= {TIMER_CLOCK: 2 * timers, FLOW_CLOCK: 2 * flows, WEIGHT: flows, HEAP: tasks}
    lengths |= dict.fromkeys((STATUS, PARENTS_LEFT, TASK_NODE, START_S, END_S), tasks)
    lengths |= dict.fromkeys((QUEUE, TASKS_LEFT, HELD, IS_OPEN, EXTRACTS), pipes)
    lengths |= {**dict.fromkeys((IS_THERE, MISSING, READERS_LEFT), volumes), USES_LEFT: files}
    words = STATE_HEADER
    for place, length in lengths.items():
        header[place] = words
        words += length
    for place, count in counts.items():
        header[place] = count
    for place, number in numbers.items():
        header[place : place + 1].view(np.float64)[0] = number
    parts = [header, *(np.ascontiguousarray(region).view(np.int64) for region in regions.values())]
    return np.concatenate(parts), words
