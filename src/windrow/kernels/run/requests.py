"""Jobs that are submitted, and how long they ask for. The rules of `model.requests` and of
`strategies.individual`."""

from __future__ import annotations

from windrow.kernels.cluster import state as c
from windrow.kernels.cluster.advance import submit
from windrow.kernels.cluster.state import Ints
from windrow.kernels.jit import kernel, lean
from windrow.kernels.run import tables as t
from windrow.kernels.run.heap import pop
from windrow.kernels.run.start import order_key
from windrow.kernels.run.tables import Floats


@lean
def request(run: int, leeway: int, terms: Floats) -> int:
    """How long to ask for, for a job that should run this long: as `Terms.request_s`, but with
    leeway, and LATE."""
    wanted = (round(run * terms[t.LATE]) + leeway + terms[t.OVERHEAD_S]) * terms[t.MARGIN]
    return int(
        min(max(1.0, -(-wanted // terms[t.ROUND_S])) * terms[t.ROUND_S], terms[t.MAX_REQUEST_S])
    )


@kernel
def submit_job(
    s: Ints, no_starts: Ints, r: Ints, size: int, nodes: int, run: int, requested: int
) -> None:
    """Submit a job now. Its tasks are the next `size` of the pool. The caller has made room."""
    row = r[t.JOBS]
    j = t.job(r, r[t.JOBS])
    first = r[t.POOL_AT] + r[t.USED_POOL]
    for i in range(j, j + t.JOB_WIDTH):
        r[i] = 0
    r[j + t.NODES], r[j + t.RUN], r[j + t.REQUESTED] = nodes, run, requested
    r[j + t.AT], r[j + t.SIZE], r[j + t.OPEN] = r[t.USED_POOL], size, size
    for i in range(first, first + size):
        r[r[i] + t.HOME] = row
    r[t.USED_POOL] += size
    r[t.LEFT] -= size
    r[t.JOBS] += 1
    put_in(s, no_starts, r, row)


@lean
def put_in(s: Ints, no_starts: Ints, r: Ints, row: int) -> None:
    """The job of that row is submitted now."""
    j = t.job(r, row)
    r[j + t.STAGE], r[j + t.SUBMITTED] = t.WAITING, s[c.NOW]
    r[r[t.ACTIVE_AT] + r[t.ACTIVE]] = row
    r[t.ACTIVE] += 1
    r[t.WAITING_JOBS] += 1
    r[j + t.NUMBER] = submit(
        s, no_starts, r[j + t.NODES], r[j + t.REQUESTED], c.FOREVER, r[t.OWNER]
    )


@lean
def next_ready(r: Ints) -> int:
    """Take out the first task that is ready and in no job; -1 if there is none. Stale entries
    are dropped."""
    while r[t.FREE_TASKS] > 0:
        key = pop(r, r[t.READY_AT], r[t.FREE_TASKS])
        r[t.FREE_TASKS] -= 1
        v = key & t.NAME
        if r[v + t.HOME] == t.IN_NO_JOB and r[v + t.PARENTS] == 0 and key == order_key(r, v):
            return v
    return -1


@lean
def submit_single(s: Ints, no_starts: Ints, r: Ints, v: int, terms: Floats) -> None:
    """Task `v` becomes a job of its own, on as many nodes as it needs."""
    r[r[t.POOL_AT] + r[t.USED_POOL]] = v
    nodes = min(r[t.MOST_NODES], -(-r[v + t.UNITS] // r[t.PER_NODE]))
    submit_job(s, no_starts, r, 1, nodes, r[v + t.EXPECTED], request(r[v + t.EXPECTED], 0, terms))
