"""Jobs that are submitted, and how long they ask for. The rules of `manager.terms` and of `strategies.individual`."""

from __future__ import annotations

from windrow.kernels.cluster.advance import submit
from windrow.kernels.cluster.state import FOREVER, NOW, Ints
from windrow.kernels.jit import kernel
from windrow.kernels.run.heap import pop
from windrow.kernels.run.start import order_key
from windrow.kernels.run.tables import (
    ACTIVE,
    ACTIVE_AT,
    AT,
    EXPECTED,
    FREE_TASKS,
    HOME,
    IN_NO_JOB,
    JOB_WIDTH,
    JOBS,
    LATE,
    LEFT,
    MARGIN,
    MAX_REQUEST_S,
    MOST_NODES,
    NAME,
    NODES,
    NUMBER,
    OPEN,
    OVERHEAD_S,
    OWNER,
    PARENTS,
    PER_NODE,
    POOL_AT,
    READY_AT,
    REQUESTED,
    ROUND_S,
    RUN,
    SIZE,
    STAGE,
    SUBMITTED,
    UNITS,
    USED_POOL,
    WAITING,
    WAITING_JOBS,
    Floats,
    job,
)


@kernel
def request(run: int, leeway: int, terms: Floats) -> int:
    """How long to ask for, for a job that should run this long: as `Terms.request_s`, but with leeway, and LATE."""
    wanted = round(run * terms[LATE]) + leeway + terms[OVERHEAD_S]
    return int(min(max(1.0, -(-(wanted * terms[MARGIN]) // terms[ROUND_S])) * terms[ROUND_S], terms[MAX_REQUEST_S]))


@kernel
def submit_job(s: Ints, nobody: Ints, r: Ints, size: int, nodes: int, run: int, requested: int) -> None:
    """Submit a job now. Its tasks are the next `size` of the pool. The caller has made room."""
    row, j, first = r[JOBS], job(r, r[JOBS]), r[POOL_AT] + r[USED_POOL]
    for i in range(j, j + JOB_WIDTH):
        r[i] = 0
    r[j + NODES], r[j + RUN], r[j + REQUESTED] = nodes, run, requested
    r[j + AT], r[j + SIZE], r[j + OPEN] = r[USED_POOL], size, size
    for i in range(first, first + size):
        r[r[i] + HOME] = row
    r[USED_POOL] += size
    r[LEFT] -= size
    r[JOBS] += 1
    put_in(s, nobody, r, row)


@kernel
def put_in(s: Ints, nobody: Ints, r: Ints, row: int) -> None:
    """The job of that row is submitted now."""
    j = job(r, row)
    r[j + STAGE], r[j + SUBMITTED] = WAITING, s[NOW]
    r[r[ACTIVE_AT] + r[ACTIVE]] = row
    r[ACTIVE] += 1
    r[WAITING_JOBS] += 1
    r[j + NUMBER] = submit(s, nobody, r[j + NODES], r[j + REQUESTED], FOREVER, r[OWNER])


@kernel
def next_ready(r: Ints) -> int:
    """Take out the first task that is ready and in no job; -1 where there is none. Stale entries are dropped."""
    while r[FREE_TASKS] > 0:
        key = pop(r, r[READY_AT], r[FREE_TASKS])
        r[FREE_TASKS] -= 1
        v = key & NAME
        if r[v + HOME] == IN_NO_JOB and r[v + PARENTS] == 0 and key == order_key(r, v):
            return v
    return -1


@kernel
def submit_single(s: Ints, nobody: Ints, r: Ints, v: int, terms: Floats) -> None:
    """Task `v` becomes a job of its own, on as many nodes as it needs."""
    r[r[POOL_AT] + r[USED_POOL]] = v
    nodes = min(r[MOST_NODES], -(-r[v + UNITS] // r[PER_NODE]))
    submit_job(s, nobody, r, 1, nodes, r[v + EXPECTED], request(r[v + EXPECTED], 0, terms))
