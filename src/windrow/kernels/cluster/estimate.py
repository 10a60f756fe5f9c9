"""When would a job start if it were submitted now? What Maui calls showstart, for many jobs at
once.

Known are the requests of running and waiting jobs; no others arrive. The answer is exact: the start
that the cluster would give under that assumption. Under conservative backfilling it is usually the
first fit in the plan; the plan may still hold a job that the next pass will move, and then the
known jobs are played forward with the candidate among them.

Under the other policies a candidate behind all known jobs changes nothing before its own start. So
the known jobs are played forward once, without any candidate, and each pass tells which candidates
would have started in it.
"""

from __future__ import annotations

import numpy as np

from windrow.kernels.cluster import holes, nodesets, profile
from windrow.kernels.cluster import state as c
from windrow.kernels.cluster.advance import instant, next_instant
from windrow.kernels.cluster.depths import follow_depth
from windrow.kernels.cluster.jobs import (
    arrive,
    finish_first,
    plan_sets,
    plan_times,
    queued,
    sift_down,
)
from windrow.kernels.cluster.policies import free_now, reset_plan, schedule, trim_plan
from windrow.kernels.cluster.state import Ints
from windrow.kernels.jit import kernel, lean

CANDIDATE = -(2**40)  # a job number that no client has


# A pass over the known jobs: when, the nodes that it left free, up to when a job may take any of
# them, and how many it may take for longer. Row 0 has the number of passes.
P_AT, P_FREE, P_UNTIL, P_EXTRA = range(4)
PASS_WIDTH = 4


@kernel
def estimate(
    s: Ints,
    log: Ints,
    nodes: Ints,
    requested: Ints,
    user: int,
    exact: bool,
    answers: Ints,
    later: Ints,
    passes: Ints,
) -> None:
    """Fill `answers` with the start of each candidate (nodes, requested), each submitted alone,
    now, by `user`.

    Unless `exact`, a policy with a plan for every job answers with the first fit in that plan,
    whatever comes later.

    The state must have had its pass for now, and have room for one more job. It is not changed in
    any way that matters. `log` is an empty log. Cost: a walk over the plan per candidate, or one
    simulation of the known jobs for all of them; where a candidate may be in the way of known jobs,
    a copy of the state and a simulation for each. `later` is a copy of the state, and `passes` has
    room for as many as there can be: handed on from call to call while the state does not change,
    they save doing it again. Empty ones are done without.
    """
    capped = s[c.CAP] > 0 and s[s[c.USERS_AT] + user] >= s[c.CAP]
    if s[c.POLICY] == c.CONSERVATIVE and not capped:
        trim_plan(s)
        if not exact or (s[c.PLACEMENT] == c.COUNTED and is_settled(s)):
            fit_plan(s, nodes, requested, answers)
            return
    if s[c.POLICY] != c.CONSERVATIVE and comes_last(s) and not capped:
        if later.shape[0] == 0:
            later = s.copy()
            passes = np.empty((most_passes(s), PASS_WIDTH), dtype=np.int64)
            passes[0, 0] = 0
        follow(later, passes, nodes, requested, answers)
        return
    expected = s.copy()
    as_requested(expected)
    for i in range(nodes.shape[0]):
        answers[i] = play(expected.copy(), log, nodes[i], requested[i], user)


@lean
def most_passes(s: Ints) -> int:
    """How many rows the passes over the known jobs take at most: one at each end."""
    return s[c.RUNNING] + s[c.TAIL] - s[c.HEAD] + 2


@kernel
def comes_last(s: Ints) -> bool:
    """Whether a job that arrives now, and is not held back, stays behind all known ones, on counted
    nodes."""
    return s[c.QUEUE_ORDER] == c.ARRIVAL and s[c.HELD] == 0 and s[c.PLACEMENT] == c.COUNTED


@kernel
def follow(t: Ints, passes: Ints, nodes: Ints, requested: Ints, answers: Ints) -> None:
    """Play the known jobs forward, from where the last call left off, and find for each candidate
    the first pass that starts it."""
    if passes[0, 0] == 0:
        as_requested(t)
    if t[c.POLICY] == c.BY_DEPTH:
        follow_plan(t, nodes, requested, answers)
        return
    if passes[0, 0] == 0:
        note(t, passes)
    batched = t[c.EVENT_ORDER] == c.BATCHED
    no_starts = np.empty(0, dtype=np.int64)
    answers[:] = -1
    open_ones = nodes.shape[0] - settle(passes, 1, nodes, requested, answers)
    while open_ones > 0 and t[c.RUNNING] > 0:
        known = passes[0, 0]
        t[c.NOW] = t[t[c.HEAP_AT] + c.END]
        while t[c.RUNNING] > 0 and t[t[c.HEAP_AT] + c.END] <= t[c.NOW]:
            finish_first(t, -1)
            if not batched:
                schedule(t, no_starts)
                note(t, passes)
        if batched:
            schedule(t, no_starts)
            note(t, passes)
        t[c.HAPPENED] = 0
        open_ones -= settle(passes, known + 1, nodes, requested, answers)


@lean
def note(t: Ints, passes: Ints) -> None:
    """Note what the pass that was just done leaves to a job at the queue's end."""
    passes[0, 0] += 1
    n = passes[0, 0]
    passes[n, P_AT] = t[c.NOW]
    passes[n, P_FREE] = free_now(t)
    passes[n, P_UNTIL] = -1
    passes[n, P_EXTRA] = -1
    if t[c.HEAD] == t[c.TAIL]:
        passes[n, P_UNTIL] = c.FOREVER
    elif t[c.POLICY] == c.EASY:
        passes[n, P_UNTIL] = t[c.SHADOW]
        passes[n, P_EXTRA] = t[c.EXTRA]


@lean
def settle(passes: Ints, first: int, nodes: Ints, requested: Ints, answers: Ints) -> int:
    """Note which candidates the passes from this one on start. Returns how many."""
    count = 0
    for k in range(nodes.shape[0]):
        if answers[k] >= 0:
            continue
        for n in range(first, passes[0, 0] + 1):
            if nodes[k] <= passes[n, P_FREE] and (
                passes[n, P_AT] + requested[k] <= passes[n, P_UNTIL]
                or nodes[k] <= passes[n, P_EXTRA]
            ):
                answers[k] = passes[n, P_AT]
                count += 1
                break
    return count


@kernel
def follow_plan(t: Ints, nodes: Ints, requested: Ints, answers: Ints) -> None:
    """The same under a policy that plans. Without a limit of depth the plan that is there tells
    all: jobs end on time, so nothing is planned again. With one, that is so for the first jobs
    (`depths`), unless each event has a pass of its own."""
    if t[c.DEPTH] < 0:
        if t[c.HEAD] == t[c.TAIL]:
            reset_plan(t)
        else:
            trim_plan(t)
        fit_plan(t, nodes, requested, answers)
        return
    if follow_depth(t, nodes, requested, answers):
        return
    t = t.copy()
    batched = t[c.EVENT_ORDER] == c.BATCHED
    no_starts = np.empty(0, dtype=np.int64)
    answers[:] = -1
    open_ones = nodes.shape[0] - settle_plan(t, nodes, requested, answers)
    while open_ones > 0 and t[c.RUNNING] > 0:
        t[c.NOW] = t[t[c.HEAP_AT] + c.END]
        while t[c.RUNNING] > 0 and t[t[c.HEAP_AT] + c.END] <= t[c.NOW]:
            finish_first(t, -1)
            if not batched:
                schedule(t, no_starts)
                open_ones -= settle_plan(t, nodes, requested, answers)
        if batched:
            schedule(t, no_starts)
            open_ones -= settle_plan(t, nodes, requested, answers)
        t[c.HAPPENED] = 0


@lean
def settle_plan(t: Ints, nodes: Ints, requested: Ints, answers: Ints) -> int:
    """Note which candidates the last pass would have started. Returns how many."""
    free = free_now(t)
    count = 0
    for k in range(nodes.shape[0]):
        if (
            answers[k] < 0
            and nodes[k] <= free
            and (
                t[c.HEAD] == t[c.TAIL] or profile.fits_now(t, t[c.PLAN_AT], nodes[k], requested[k])
            )
        ):
            answers[k] = t[c.NOW]
            count += 1
    return count


@kernel
def fit_plan(s: Ints, nodes: Ints, requested: Ints, answers: Ints) -> None:
    """The first fit of each candidate in the plan."""
    chosen = np.empty(s[c.WORDS], dtype=np.int64)
    for k in range(nodes.shape[0]):
        if s[c.WORDS]:
            at = plan_times(s)
            n = s[c.SEGMENTS]
            contiguous = s[c.PLACEMENT] == c.CONTIGUOUS
            i = nodesets.first_fit(
                at, plan_sets(s), n, nodes[k], requested[k], contiguous, chosen, n
            )
            answers[k] = at[i]
        else:
            answers[k] = profile.first_fit(s, s[c.PLAN_AT], nodes[k], requested[k])


@kernel
def is_settled(s: Ints) -> bool:
    """Whether no waiting job could be moved forward now. Then none will be, while jobs end on time.

    The plan must begin now, and nodes must be counted.
    """
    horizon = max(s[c.FREED_UNTIL], s[c.MOVED_UNTIL])
    if horizon <= s[c.NOW]:
        return True
    for i in range(s[c.HEAD], s[c.TAIL]):
        q = queued(s, i)
        if s[q + c.PLANNED] >= 0 and holes.sooner(s, q, horizon) < s[q + c.PLANNED]:
            return False
    return True


@lean
def as_requested(t: Ints) -> None:
    """From now on all jobs run as long as requested, and no events wait to be fetched."""
    t[c.HAPPENED] = 0
    for i in range(t[c.HEAD], t[c.TAIL]):
        t[queued(t, i) + c.RUN] = t[queued(t, i) + c.REQUESTED]
    for h in range(t[c.HELD_AT], t[c.HELD_AT] + t[c.HELD] * c.QUEUED_WIDTH, c.QUEUED_WIDTH):
        t[h + c.RUN] = t[h + c.REQUESTED]
    for e in range(t[c.HEAP_AT], t[c.HEAP_AT] + t[c.RUNNING] * c.HEAP_WIDTH, c.HEAP_WIDTH):
        t[e + c.END] = t[t[c.RUNNING_AT] + t[e + c.SLOT] * c.RUNNING_WIDTH + c.EXPECTED]
    for i in range(t[c.RUNNING] // 2 - 1, -1, -1):
        sift_down(t, i, t[c.RUNNING])


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
