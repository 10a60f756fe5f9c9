"""One scheduling pass under each policy. A pass starts the jobs that can start now.

The policies, in the words of the docs ("The rules of the simulated cluster"):
FCFS          heads of the queue start while they fit; nothing passes the head.
EASY          as FCFS; then any job may start now that does not delay the blocked head's earliest start.
BY_DEPTH k    the plan is rebuilt in queue order: each job starts now if it fits; the first k that do not get a
              reservation. k = 1 is EASY; k without limit is conservative-replan.
CONSERVATIVE  every job has a reservation from its arrival on. When nodes come free, one pass in queue order moves each
              job to its first fit, all others staying where they are; so no promised start ever gets later.
"""

from __future__ import annotations

from math import log

from windrow.kernels.cluster import nodesets, profile
from windrow.kernels.cluster.jobs import (
    HALF_LIFE,
    W_SHARE,
    copy_queued,
    give_back,
    launch,
    plan_counts,
    plan_sets,
    plan_times,
    priority,
    queued,
    queued_set,
    running_set,
    slide_to_front,
    start_head,
)
from windrow.kernels.cluster.state import (
    ARRIVAL,
    BATCHED,
    CHANGING,
    CONSERVATIVE,
    CONTIGUOUS,
    COUNTED,
    DEPTH,
    DISORDER,
    EASY,
    ENDS_FIRST,
    EVENT_ORDER,
    EXPECTED,
    EXTRA,
    FCFS,
    FREE,
    FREED,
    FREED_UNTIL,
    FRESH,
    HEAD,
    HEAP_AT,
    HEAP_WIDTH,
    KEY,
    MEASURED,
    MOVED_UNTIL,
    NEW,
    NODES,
    NODES_ALL,
    NOW,
    ORDER,
    PLACEMENT,
    PLANNED,
    POLICY,
    QUEUE_ORDER,
    QUEUE_ROOM,
    QUEUED,
    RELEASE_AT,
    REQUESTED,
    RESERVED,
    RUNNING,
    RUNNING_AT,
    RUNNING_ROOM,
    RUNNING_WIDTH,
    SEGMENTS,
    SHADOW,
    SLOT,
    TAIL,
    UNPLACED,
    USER,
    USERS_AT,
    USERS_ROOM,
    WEIGHTS,
    WORDS,
    Ints,
)
from windrow.kernels.jit import kernel


@kernel
def schedule(s: Ints, starts: Ints) -> None:
    """One pass at the current time."""
    if s[HEAD] == s[TAIL]:
        return  # what came free stays noted for the first pass that finds a job
    if s[QUEUE_ORDER] == CHANGING:
        sort_queue(s)
    if s[POLICY] == CONSERVATIVE:
        conservative_pass(s, starts)
    elif s[POLICY] == EASY:
        easy_pass(s, starts)
    elif s[POLICY] == FCFS and s[PLACEMENT] == COUNTED:
        fcfs_pass(s, starts)
    else:
        depth_pass(s, starts)
    s[FREED] = 0
    s[FRESH] = 0
    s[DISORDER] = 0


@kernel
def sort_queue(s: Ints) -> None:
    """Order the queue by priority now, the highest first; equals by arrival.

    By insertion, since little changes from pass to pass; the entry behind the tail holds the job being moved.
    """
    if s[TAIL] == s[QUEUE_ROOM]:
        slide_to_front(s)
    if s[WEIGHTS + W_SHARE] != 0:
        measure_usage(s)
    usage, total = s[USERS_AT] + 2 * s[USERS_ROOM], 0
    for u in range(usage, usage + s[USERS_ROOM]):
        total += s[u]
    head, spare = s[HEAD], s[TAIL]
    for i in range(head, s[TAIL]):
        q = queued(s, i)
        share = 100.0 * s[usage + s[q + USER]] / max(1, total)
        s[q + KEY] = priority(s, s[NOW] - s[q + QUEUED], s[q + NODES], s[q + REQUESTED], share)
        if i == head or not is_before(s, i, i - 1):
            continue
        copy_queued(s, i, spare)
        k = i
        while k > head and is_before(s, spare, k - 1):
            copy_queued(s, k - 1, k)
            k -= 1
        copy_queued(s, spare, k)
        s[DISORDER] = 1


@kernel
def is_before(s: Ints, a: int, b: int) -> bool:
    """Whether entry `a` of the queue comes before entry `b`."""
    p, q = queued(s, a), queued(s, b)
    if s[p + KEY] != s[q + KEY]:
        return s[p + KEY] > s[q + KEY]
    return s[p + ORDER] < s[q + ORDER]


@kernel
def measure_usage(s: Ints) -> None:
    """Bring every user's node-seconds, counted in thousandths, up to now; older ones fade with the half-life."""
    elapsed, room = s[NOW] - s[MEASURED], s[USERS_ROOM]
    half_life = s[WEIGHTS + HALF_LIFE] / 1000.0
    fade = 0.5 ** (elapsed / half_life)
    gain = 1000.0 * (1.0 - fade) * half_life / log(2.0)
    for u in range(s[USERS_AT], s[USERS_AT] + room):
        s[u + 2 * room] = int(s[u + 2 * room] * fade + s[u + room] * gain)
    s[MEASURED] = s[NOW]


@kernel
def free_now(s: Ints) -> int:
    """Nodes that can be given away now.

    With arrivals before ends, those of jobs whose time is up this very instant are among them.
    """
    free = s[FREE]
    if s[EVENT_ORDER] != ENDS_FIRST:
        r = s[RELEASE_AT]
        while r < s[RELEASE_AT] + s[RUNNING] and s[r] <= s[NOW]:
            free += s[r + s[RUNNING_ROOM]]
            r += 1
    return free


@kernel
def fcfs_pass(s: Ints, starts: Ints) -> None:
    """Start heads of the queue while they fit."""
    free = free_now(s)
    while s[HEAD] < s[TAIL] and s[queued(s, s[HEAD]) + NODES] <= free:
        free -= s[queued(s, s[HEAD]) + NODES]
        start_head(s, starts)


@kernel
def easy_pass(s: Ints, starts: Ints) -> None:
    """Start heads while they fit, then whatever does not delay the head.

    If nothing came free since the last pass, the jobs that could not start then cannot start now: only new ones count.
    """
    now, free = s[NOW], free_now(s)
    i = s[TAIL] - s[FRESH]
    if s[FREED] > 0 or s[DISORDER] > 0 or free > s[FREE] or i == s[HEAD]:
        while s[HEAD] < s[TAIL] and s[queued(s, s[HEAD]) + NODES] <= free:
            free -= s[queued(s, s[HEAD]) + NODES]
            start_head(s, starts)
        if s[HEAD] == s[TAIL]:
            return
        find_shadow(s, free)
        i = s[HEAD] + 1
    shadow, extra, first = s[SHADOW], s[EXTRA], -1
    while i < s[TAIL] and free > 0:
        q = queued(s, i)
        nodes = s[q + NODES]
        if nodes <= free:
            ends_in_time = now + s[q + REQUESTED] <= shadow
            if ends_in_time or nodes <= extra:
                free -= nodes
                extra -= 0 if ends_in_time else nodes
                s[q + PLANNED] = now
                first = i if first < 0 else first
        i += 1
    s[EXTRA] = extra
    if first >= 0:
        launch(s, starts, first)


@kernel
def find_shadow(s: Ints, free: int) -> None:
    """When the blocked head, with `free` nodes now, can start at the latest, and how many nodes it then leaves."""
    ends, room = s[RELEASE_AT], s[RUNNING_ROOM]
    last = ends + s[RUNNING]
    need = s[queued(s, s[HEAD]) + NODES]
    r = ends
    if s[EVENT_ORDER] != ENDS_FIRST:
        while s[r] <= s[NOW]:  # in `free` already; some job ends later, or the head would fit
            r += 1
    at = s[NOW]
    while free < need or (r < last and s[r] <= at):
        at = s[r]
        free += s[r + room]
        r += 1
    s[SHADOW] = at
    s[EXTRA] = free - need


@kernel
def depth_pass(s: Ints, starts: Ints) -> None:
    """Start what fits now in queue order, with reservations for the first DEPTH jobs that do not.

    The plan of the last pass stays good while nothing came free and new jobs stand at the tail (and, without a limit
    of depth, also when jobs end exactly on time): then only new jobs are placed.
    """
    unlimited = s[DEPTH] < 0
    came_free = s[FREED] > 1 if unlimited else s[FREED] > 0 or free_now(s) > s[FREE]
    if came_free or s[DISORDER] == 1 or s[POLICY] == FCFS:
        reset_plan(s)
        s[RESERVED] = 0
        for i in range(s[HEAD], s[TAIL]):
            s[queued(s, i) + PLANNED] = NEW
    else:
        trim_plan(s)
    free = s[FREE] if s[EVENT_ORDER] == ENDS_FIRST else s[NODES_ALL]  # what the plan grants must also be there
    for i in range(s[HEAD], s[TAIL]):
        q = queued(s, i)
        if s[q + PLANNED] != NEW:
            continue
        if unlimited:
            place(s, i)
        elif s[q + NODES] <= free and place_now(s, i):
            s[q + PLANNED] = s[NOW]
            free -= s[q + NODES]
        elif s[POLICY] == FCFS:
            break
        elif s[RESERVED] < s[DEPTH]:
            place(s, i)
            s[RESERVED] += 1
        else:
            s[q + PLANNED] = UNPLACED
    launch(s, starts, s[HEAD])


@kernel
def conservative_pass(s: Ints, starts: Ints) -> None:
    """Move each job of the queue to its first fit, if nodes came free; else only place the new ones."""
    trim_plan(s)
    freed = s[FREED] > 0
    first = s[HEAD] if freed or s[QUEUE_ORDER] != ARRIVAL else s[TAIL] - s[FRESH]
    if s[PLACEMENT] == COUNTED:
        move_forward(s, first)
    else:
        for i in range(first, s[TAIL]):
            q = queued(s, i)
            if s[q + PLANNED] != NEW:
                if not freed:
                    continue
                give_back(s, s[q + PLANNED], s[q + PLANNED] + s[q + REQUESTED], s[q + NODES], queued_set(s, i))
            place(s, i)
    # With arrivals before ends, an older job may be planned for nodes whose time is up at this very instant.
    launch(s, starts, first if s[EVENT_ORDER] == BATCHED else s[HEAD])


@kernel
def move_forward(s: Ints, first: int) -> None:
    """Place new jobs, and move those behind `first` that fit earlier, each with all others where they are.

    A job that could not move when it was last looked at can only move now into room that the plan has got since: from
    jobs that ended early or left, from those moved before it in this pass, and from those moved in the last pass. So no
    start at or after the end of all that room needs a look. (That time has passed makes no start possible that was not:
    a job that fits from the middle of a segment on fits from its begin on.)
    """
    at, free = plan_times(s), plan_counts(s)
    horizon, moved = max(s[FREED_UNTIL], s[MOVED_UNTIL]), 0
    for i in range(first, s[TAIL]):
        q = queued(s, i)
        planned, requested, nodes = s[q + PLANNED], s[q + REQUESTED], s[q + NODES]
        if planned == NEW:
            place(s, i)
        elif s[FREED] > 0 and horizon > s[NOW]:
            to = profile.earlier_fit(at, free, nodes, requested, planned, horizon)
            if to >= 0:
                s[q + PLANNED] = at[to]
                s[SEGMENTS] = profile.move(at, free, s[SEGMENTS], at[to], planned, requested, nodes)
                moved = max(moved, planned + requested)
                horizon = max(horizon, moved)
    if s[FREED] > 0:
        s[FREED_UNTIL] = 0
        s[MOVED_UNTIL] = moved


@kernel
def trim_plan(s: Ints) -> None:
    """Drop the past from the plan."""
    if s[WORDS]:
        s[SEGMENTS] = nodesets.trim(plan_times(s), plan_sets(s), s[SEGMENTS], s[NOW])
    else:
        s[SEGMENTS] = profile.trim(plan_times(s), plan_counts(s), s[SEGMENTS], s[NOW])


@kernel
def reset_plan(s: Ints) -> None:
    """A plan that knows the running jobs only."""
    if s[WORDS]:
        reset_sets(s)
        return
    at, free = plan_times(s), plan_counts(s)
    at[0] = s[NOW]
    count, n = s[FREE], 1
    for r in range(s[RELEASE_AT], s[RELEASE_AT] + s[RUNNING]):
        if s[r] > at[n - 1]:
            free[n - 1] = count
            at[n] = s[r]
            n += 1
        count += s[r + s[RUNNING_ROOM]]
    free[n - 1] = count
    s[SEGMENTS] = n


@kernel
def reset_sets(s: Ints) -> None:
    """The same where nodes have identities."""
    at, sets = plan_times(s), plan_sets(s)
    at[0] = s[NOW]
    for w in range(s[WORDS]):
        sets[0, w] = -1
    if s[NODES_ALL] % 64:
        sets[0, s[WORDS] - 1] = (1 << (s[NODES_ALL] % 64)) - 1
    n = 1
    for e in range(s[HEAP_AT], s[HEAP_AT] + s[RUNNING] * HEAP_WIDTH, HEAP_WIDTH):
        slot = s[e + SLOT]
        expected = s[s[RUNNING_AT] + slot * RUNNING_WIDTH + EXPECTED]
        if expected > s[NOW]:
            n = nodesets.flip(at, sets, n, s[NOW], expected, running_set(s, slot))
    s[SEGMENTS] = n


@kernel
def place_now(s: Ints, i: int) -> bool:
    """Reserve for entry `i` of the queue from now on, if it fits."""
    at, n, now = plan_times(s), s[SEGMENTS], s[NOW]
    nodes, length = s[queued(s, i) + NODES], s[queued(s, i) + REQUESTED]
    if s[WORDS]:
        chosen, contiguous = queued_set(s, i), s[PLACEMENT] == CONTIGUOUS
        if nodesets.first_fit(at, plan_sets(s), n, nodes, length, contiguous, chosen, 0) < 0:
            return False
        s[SEGMENTS] = nodesets.flip(at, plan_sets(s), n, now, now + length, chosen)
        return True
    free = plan_counts(s)
    if not profile.fits_now(at, free, n, nodes, length):
        return False
    s[SEGMENTS] = profile.add(at, free, n, now, now + length, -nodes)
    return True


@kernel
def place(s: Ints, i: int) -> None:
    """Reserve for entry `i` of the queue at its first fit."""
    q, at, n = queued(s, i), plan_times(s), s[SEGMENTS]
    nodes, length = s[q + NODES], s[q + REQUESTED]
    if s[WORDS]:
        chosen, contiguous = queued_set(s, i), s[PLACEMENT] == CONTIGUOUS
        begin = at[nodesets.first_fit(at, plan_sets(s), n, nodes, length, contiguous, chosen, n)]
        s[SEGMENTS] = nodesets.flip(at, plan_sets(s), n, begin, begin + length, chosen)
    else:
        begin = at[profile.first_fit(at, plan_counts(s), n, nodes, length)]
        s[SEGMENTS] = profile.add(at, plan_counts(s), n, begin, begin + length, -nodes)
    s[q + PLANNED] = begin
