"""Nodes that fail: the job that holds one is killed, and the node is out until it is repaired.

A node that is out is held by a job of the system, DOWN, which takes it without asking and ends when
the repair does. So every policy, plan and estimate respects it as it does any other running job.

Whom it hits. If nodes have identities, the job that holds the node. If they are only counted,
the nodes that are up are taken to be given out in the order of their numbers to the running jobs in
the order of their starts; the rest is idle. So a job is hit as often as its share of the nodes
says. A node that is out does not fail again.

A job of the log that is hit arrives again, to run from the beginning, as it was submitted; or it is
lost, if the row of the failure says so. A client's job is over, and the client is notified.

Reservations are promises on nodes of which one is gone now: all are dropped, and the next pass
makes them in the order of the queue.
"""

from __future__ import annotations

from windrow.kernels.cluster import nodesets, queue_times
from windrow.kernels.cluster import state as c
from windrow.kernels.cluster.jobs import (
    arrive,
    finish_first,
    give_back,
    give_up_place,
    hold,
    queued,
    running_set,
    sift_up,
    slide_to_front,
)
from windrow.kernels.cluster.state import Ints
from windrow.kernels.jit import kernel

IDLE = -1
IS_OUT = -2


@kernel
def is_due(s: Ints, log: Ints) -> bool:
    """Whether a node fails now."""
    return s[c.FAILURE] < log.shape[0] and log[s[c.FAILURE], c.SUBMIT] <= s[c.NOW]


@kernel
def fail(s: Ints, node: int, until: int, loses: int) -> int:
    """The node is out from now on until then. Returns the job that it takes with it, or DOWN if
    there is none."""
    i = holder(s, node)
    job = c.DOWN
    nodes = 0
    requested = 0
    run = 0
    user = 0
    if i == IS_OUT:
        return job
    if i != IDLE:
        e = s[c.HEAP_AT] + i * c.HEAP_WIDTH
        r = s[c.RUNNING_AT] + s[e + c.SLOT] * c.RUNNING_WIDTH
        job = s[r + c.JOB]
        nodes = s[r + c.NODES]
        requested = s[r + c.REQUESTED]
        user = s[r + c.USER]
        run = s[e + c.END] - s[r + c.EXPECTED] + requested
        s[e + c.END] = s[c.NOW]  # every other end lies in the future, so this one comes to the top
        sift_up(s, i)
        finish_first(s, c.FAILED)
    if s[c.POLICY] == c.CONSERVATIVE:
        forget_reservations(s)
    take_out(s, node, until)
    s[c.FREED] = 2  # what earlier passes found out is no longer true
    if job >= 0 and loses == 0:
        arrive(s, job, nodes, requested, run, user)
    return job


@kernel
def holder(s: Ints, node: int) -> int:
    """The place in the heap of the job that holds the node; IDLE if none does, IS_OUT if it
    has failed."""
    rank = node
    for i in range(s[c.RUNNING]):
        slot = s[s[c.HEAP_AT] + i * c.HEAP_WIDTH + c.SLOT]
        r = s[c.RUNNING_AT] + slot * c.RUNNING_WIDTH
        if s[r + c.JOB] == c.DOWN:
            if s[r + c.USER] == node:
                return IS_OUT
            rank -= 1 if s[r + c.USER] < node else 0
        elif s[c.WORDS] and (running_set(s, slot)[node // 64] >> (node % 64)) & 1:
            return i
    if s[c.WORDS]:
        return IDLE
    for i in range(s[c.RUNNING]):
        before = started_before(s, i)
        r = s[c.RUNNING_AT] + s[s[c.HEAP_AT] + i * c.HEAP_WIDTH + c.SLOT] * c.RUNNING_WIDTH
        if s[r + c.JOB] != c.DOWN and before <= rank < before + s[r + c.NODES]:
            return i
    return IDLE


@kernel
def started_before(s: Ints, i: int) -> int:
    """How many nodes the jobs hold that started before entry `i` of the heap."""
    nodes = 0
    order = s[s[c.HEAP_AT] + i * c.HEAP_WIDTH + c.STARTED_AS]
    for e in range(s[c.HEAP_AT], s[c.HEAP_AT] + s[c.RUNNING] * c.HEAP_WIDTH, c.HEAP_WIDTH):
        r = s[c.RUNNING_AT] + s[e + c.SLOT] * c.RUNNING_WIDTH
        if s[e + c.STARTED_AS] < order and s[r + c.JOB] != c.DOWN:
            nodes += s[r + c.NODES]
    return nodes


@kernel
def forget_reservations(s: Ints) -> None:
    """No job of the queue has a reservation any more."""
    if s[c.GONE] > 0:
        slide_to_front(s)
    for i in range(s[c.HEAD], s[c.TAIL]):
        q = queued(s, i)
        if s[q + c.PLANNED] >= 0:
            give_up_place(s, i)
        s[q + c.PLANNED] = c.NEW
    queue_times.forget(s, 0)


@kernel
def take_out(s: Ints, node: int, until: int) -> None:
    """The node, which no job has, is held by DOWN from now on until then."""
    left = until - s[c.NOW]
    slot = hold(s, c.DOWN, 1, left, left, node)
    if s[c.WORDS]:
        chosen = running_set(s, slot)
        nodesets.clear(chosen)
        chosen[node // 64] = 1 << (node % 64)
    if s[c.POLICY] == c.CONSERVATIVE:
        # of less than nothing: it is taken
        give_back(s, s[c.NOW], until, -1, s[c.RUNNING_SETS_AT] + slot * s[c.WORDS])
