"""When would a job start if it were submitted now? What Maui calls showstart, for many jobs at
once.

Known are the requests of running and waiting jobs; no others arrive. The answer is exact: the start
that the cluster would give under that assumption. Under conservative backfilling it is usually the
first fit in the plan; the plan may still hold a job that the next pass will move, and then, as for
the policies without a plan, the known jobs are played forward with the candidate among them.
"""

from __future__ import annotations

import numpy as np

from windrow.kernels.cluster import nodesets, profile
from windrow.kernels.cluster import state as c
from windrow.kernels.cluster.advance import instant, next_instant
from windrow.kernels.cluster.jobs import (
    arrive,
    plan_counts,
    plan_sets,
    plan_times,
    queued,
    sift_down,
)
from windrow.kernels.cluster.policies import schedule, trim_plan
from windrow.kernels.cluster.state import Ints
from windrow.kernels.jit import kernel

CANDIDATE = -(2**40)  # a job number that no client has


@kernel
def estimate(
    s: Ints, log: Ints, nodes: Ints, requested: Ints, user: int, exact: bool, answers: Ints
) -> None:
    """Fill `answers` with the start of each candidate (nodes, requested), each submitted alone,
    now, by `user`.

    Unless `exact`, a policy with a plan for every job answers with the first fit in that plan,
    whatever comes later.

    The state must have had its pass for now, and have room for one more job. It is not changed in
    any way that matters. `log` is an empty log. Cost: a walk over the plan per candidate, or else a
    copy of the state and a simulation of the known jobs up to the candidate's start.
    """
    capped = s[c.CAP] > 0 and s[s[c.USERS_AT] + user] >= s[c.CAP]
    if s[c.POLICY] == c.CONSERVATIVE and not capped:
        trim_plan(s)
        if not exact or (s[c.PLACEMENT] == c.COUNTED and is_settled(s)):
            fit_plan(s, nodes, requested, answers)
            return
    expected = as_requested(s)
    for i in range(nodes.shape[0]):
        answers[i] = play(expected.copy(), log, nodes[i], requested[i], user)


@kernel
def fit_plan(s: Ints, nodes: Ints, requested: Ints, answers: Ints) -> None:
    """The first fit of each candidate in the plan."""
    at = plan_times(s)
    n = s[c.SEGMENTS]
    chosen = np.empty(s[c.WORDS], dtype=np.int64)
    for k in range(nodes.shape[0]):
        if s[c.WORDS]:
            contiguous = s[c.PLACEMENT] == c.CONTIGUOUS
            i = nodesets.first_fit(
                at, plan_sets(s), n, nodes[k], requested[k], contiguous, chosen, n
            )
        else:
            i = profile.first_fit(at, plan_counts(s), n, nodes[k], requested[k])
        answers[k] = at[i]


@kernel
def is_settled(s: Ints) -> bool:
    """Whether no waiting job could be moved forward now. Then none will be, while jobs end on time.

    The plan must begin now, and nodes must be counted.
    """
    at = plan_times(s)
    free = plan_counts(s)
    for i in range(s[c.HEAD], s[c.TAIL]):
        q = queued(s, i)
        if (
            profile.earlier_fit(
                at, free, s[q + c.NODES], s[q + c.REQUESTED], s[q + c.PLANNED], c.FOREVER
            )
            >= 0
        ):
            return False
    return True


@kernel
def as_requested(s: Ints) -> Ints:
    """A copy of the state in which all jobs run as long as requested, and no events wait to be
    fetched."""
    t = s.copy()
    t[c.HAPPENED] = 0
    for i in range(t[c.HEAD], t[c.TAIL]):
        t[queued(t, i) + c.RUN] = t[queued(t, i) + c.REQUESTED]
    for h in range(t[c.HELD_AT], t[c.HELD_AT] + t[c.HELD] * c.QUEUED_WIDTH, c.QUEUED_WIDTH):
        t[h + c.RUN] = t[h + c.REQUESTED]
    for e in range(t[c.HEAP_AT], t[c.HEAP_AT] + t[c.RUNNING] * c.HEAP_WIDTH, c.HEAP_WIDTH):
        t[e + c.END] = t[t[c.RUNNING_AT] + t[e + c.SLOT] * c.RUNNING_WIDTH + c.EXPECTED]
    for i in range(t[c.RUNNING] // 2 - 1, -1, -1):
        sift_down(t, i, t[c.RUNNING])
    return t


@kernel
def play(t: Ints, log: Ints, nodes: int, requested: int, user: int) -> int:
    """Submit the candidate now and continue until it starts, or until it has a reservation that
    will not move."""
    no_starts = np.empty(0, dtype=np.int64)
    has_plan = t[c.POLICY] == c.CONSERVATIVE and t[c.PLACEMENT] == c.COUNTED
    arrive(t, CANDIDATE, nodes, requested, requested, user)
    schedule(t, no_starts)
    while not has_started(t):
        if has_plan:
            trim_plan(t)
            if is_settled(t) and planned_start(t) >= 0:
                return planned_start(t)
        t[c.HAPPENED] = 0
        t[c.NOW] = next_instant(t, log)
        if t[c.NOW] == c.FOREVER:
            return -1
        instant(t, log, no_starts)
    return t[c.NOW]


@kernel
def planned_start(t: Ints) -> int:
    """When the candidate is planned to start, or -1 if it is not in the queue yet."""
    for i in range(t[c.HEAD], t[c.TAIL]):
        if t[queued(t, i) + c.JOB] == CANDIDATE:
            return t[queued(t, i) + c.PLANNED]
    return -1


@kernel
def has_started(t: Ints) -> bool:
    """Whether the candidate is among the jobs that just started."""
    for e in range(t[c.EVENTS_AT], t[c.EVENTS_AT] + t[c.HAPPENED] * c.EVENT_WIDTH, c.EVENT_WIDTH):
        if t[e + c.E_JOB] == CANDIDATE and t[e + c.E_KIND] == c.STARTED:
            return True
    return False
