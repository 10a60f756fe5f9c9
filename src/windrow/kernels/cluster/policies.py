"""One scheduling pass under each policy. A pass starts the jobs that can start now.

The policies, in the words of the docs ("The rules of the simulated cluster"):
FCFS          heads of the queue start while they fit; nothing passes the head.
EASY          as FCFS; then any job may start now that does not delay the blocked head's earliest start;
              if DEPTH is 0, only one that ends before it.
BY_DEPTH k    the plan is rebuilt in queue order: each job starts now if it fits; the first k that do not get a
              reservation. k = 1 is EASY; k without limit is conservative-replan.
CONSERVATIVE  every job has a reservation from its arrival on. When nodes come free, one pass in queue order moves each
              job to its first fit, all others staying where they are; so no promised start ever gets later.
"""  # noqa: E501

from __future__ import annotations

from math import log

from windrow.kernels.cluster import holes, nodesets, profile, queue_index, queue_times, slides
from windrow.kernels.cluster import state as c
from windrow.kernels.cluster.jobs import (
    HALF_LIFE,
    W_SHARE,
    copy_queued,
    give_up_place,
    launch,
    plan_sets,
    plan_times,
    priority,
    queued,
    queued_set,
    running_set,
    slide_to_front,
    start_head,
)
from windrow.kernels.cluster.state import Ints
from windrow.kernels.jit import kernel, lean

_MANY_PLACED = 512  # jobs that are placed in one pass, from which on it pays to know of holes


@lean
def schedule(s: Ints, starts: Ints) -> None:
    """One pass at the current time."""
    if s[c.HEAD] == s[c.TAIL]:
        return  # what came free stays noted for the first pass that finds a job
    if s[c.QUEUE_ORDER] == c.CHANGING:
        sort_queue(s)
    if s[c.POLICY] == c.CONSERVATIVE:
        conservative_pass(s, starts)
    elif s[c.POLICY] == c.EASY:
        easy_pass(s, starts)
    elif s[c.POLICY] == c.FCFS and s[c.PLACEMENT] == c.COUNTED:
        fcfs_pass(s, starts)
    else:
        depth_pass(s, starts)
    s[c.FREED] = 0
    s[c.FRESH] = 0
    s[c.DISORDER] = 0


@lean
def sort_queue(s: Ints) -> None:
    """Order the queue by priority now, the highest first; equals by arrival.

    By insertion, since little changes from pass to pass; the entry behind the tail holds the job
    being moved.
    """
    if s[c.TAIL] == s[c.QUEUE_ROOM] or s[c.GONE] > 0:
        slide_to_front(s)
    if s[c.WEIGHTS + W_SHARE] != 0:
        measure_usage(s)
    usage = s[c.USERS_AT] + 2 * s[c.USERS_ROOM]
    total = 0
    for u in range(usage, usage + s[c.USERS_ROOM]):
        total += s[u]
    head = s[c.HEAD]
    spare = s[c.TAIL]
    for i in range(head, s[c.TAIL]):
        q = queued(s, i)
        share = 100.0 * s[usage + s[q + c.USER]] / max(1, total)
        s[q + c.KEY] = priority(
            s, s[c.NOW] - s[q + c.QUEUED], s[q + c.NODES], s[q + c.REQUESTED], s[q + c.USER], share
        )
        if i == head or not is_before(s, i, i - 1):
            continue
        copy_queued(s, i, spare)
        k = i
        while k > head and is_before(s, spare, k - 1):
            copy_queued(s, k - 1, k)
            k -= 1
        copy_queued(s, spare, k)
        s[c.DISORDER] = 1
    if s[c.DISORDER] == 1:
        queue_times.forget(s, 0)


@lean
def is_before(s: Ints, a: int, b: int) -> bool:
    """Whether entry `a` of the queue comes before entry `b`."""
    p = queued(s, a)
    q = queued(s, b)
    if s[p + c.KEY] != s[q + c.KEY]:
        return s[p + c.KEY] > s[q + c.KEY]
    return s[p + c.ORDER] < s[q + c.ORDER]


@lean
def measure_usage(s: Ints) -> None:
    """Bring every user's node-seconds, counted in thousandths, up to now; older ones fade with the
    half-life."""
    elapsed = s[c.NOW] - s[c.MEASURED]
    room = s[c.USERS_ROOM]
    half_life = s[c.WEIGHTS + HALF_LIFE] / 1000.0
    fade = 0.5 ** (elapsed / half_life)
    gain = 1000.0 * (1.0 - fade) * half_life / log(2.0)
    for u in range(s[c.USERS_AT], s[c.USERS_AT] + room):
        s[u + 2 * room] = int(s[u + 2 * room] * fade + s[u + room] * gain)
    s[c.MEASURED] = s[c.NOW]


@lean
def free_now(s: Ints) -> int:
    """Nodes that can be given away now.

    With arrivals before ends, those of jobs whose time is up this very instant are among them.
    """
    if s[c.EVENT_ORDER] != c.ONE_BY_ONE:
        return s[c.FREE]
    return profile.level(s, s[c.RUNS_AT], s[c.NOW])


@lean
def fcfs_pass(s: Ints, starts: Ints) -> None:
    """Start heads of the queue while they fit."""
    free = free_now(s)
    while s[c.HEAD] < s[c.TAIL] and s[queued(s, s[c.HEAD]) + c.NODES] <= free:
        free -= s[queued(s, s[c.HEAD]) + c.NODES]
        start_head(s, starts)


@lean
def easy_pass(s: Ints, starts: Ints) -> None:
    """Start heads while they fit, then whatever does not delay the head.

    If nothing came free since the last pass, the jobs that could not start then cannot start now:
    only new ones count.
    """
    now = s[c.NOW]
    free = free_now(s)
    i = s[c.TAIL] - s[c.FRESH]
    if s[c.FREED] > 0 or s[c.DISORDER] > 0 or free > s[c.FREE] or i == s[c.HEAD]:
        while s[c.HEAD] < s[c.TAIL] and s[queued(s, s[c.HEAD]) + c.NODES] <= free:
            free -= s[queued(s, s[c.HEAD]) + c.NODES]
            start_head(s, starts)
        if s[c.HEAD] == s[c.TAIL]:
            return
        find_shadow(s)
        i = s[c.HEAD] + 1
    queue_index.keep_up(s)
    shadow = s[c.SHADOW]
    extra = s[c.EXTRA]
    first = -1
    last = -1
    looked = -1
    while i < s[c.TAIL] and free > 0:
        if s[c.IS_KNOWN] == 1 and i // c.INDEX_BLOCK != looked:
            looked = i // c.INDEX_BLOCK
            if not queue_index.has_any(s, i, free, extra, shadow - now):
                i = (looked + 1) * c.INDEX_BLOCK
                continue
        q = queued(s, i)
        nodes = s[q + c.NODES]
        if nodes <= free:
            ends_in_time = now + s[q + c.REQUESTED] <= shadow
            if ends_in_time or nodes <= extra:
                free -= nodes
                extra -= 0 if ends_in_time else nodes
                s[q + c.PLANNED] = now
                last = i
                if first < 0:
                    first = i
        i += 1
    s[c.EXTRA] = extra
    if first >= 0:
        launch(s, starts, first, last)


@lean
def find_shadow(s: Ints) -> None:
    """When the blocked head can start at the latest, and how many nodes it then leaves."""
    need = s[queued(s, s[c.HEAD]) + c.NODES]
    profile.trim(s, s[c.RUNS_AT], s[c.NOW])
    s[c.SHADOW] = profile.first_fit(s, s[c.RUNS_AT], need, 1)
    s[c.EXTRA] = 0
    if s[c.DEPTH] > 0:
        s[c.EXTRA] = profile.level(s, s[c.RUNS_AT], s[c.SHADOW]) - need


@lean
def depth_pass(s: Ints, starts: Ints) -> None:
    """Start what fits now in queue order, with reservations for the first DEPTH jobs that do not.

    The plan of the last pass stays good while nothing came free and new jobs stand at the tail
    (and, without a limit of depth, also when jobs end exactly on time): then only new jobs are
    placed.
    """
    unlimited = s[c.DEPTH] < 0
    if unlimited:
        came_free = s[c.FREED] > 1
    else:
        came_free = s[c.FREED] > 0 or free_now(s) > s[c.FREE]
    if came_free or s[c.DISORDER] == 1 or s[c.POLICY] == c.FCFS:
        if s[c.GONE] > 0:
            slide_to_front(s)
        reset_plan(s)
        s[c.IS_KNOWN] = 0
        if s[c.LONG_AT] > 0 and s[c.TAIL] - s[c.HEAD] >= _MANY_PLACED:
            s[c.IS_KNOWN] = 1  # of holes, until the plan gets room again
            holes.forget(s)
        s[c.RESERVED] = 0
        for i in range(s[c.HEAD], s[c.TAIL]):
            s[queued(s, i) + c.PLANNED] = c.NEW
    else:
        trim_plan(s)
    free = (
        s[c.FREE] if s[c.EVENT_ORDER] == c.ENDS_FIRST else s[c.NODES_ALL]
    )  # what the plan grants must also be there
    for i in range(s[c.HEAD], s[c.TAIL]):
        q = queued(s, i)
        if s[q + c.PLANNED] != c.NEW:
            continue
        if unlimited:
            place(s, i)
        elif s[q + c.NODES] <= free and place_now(s, i):
            s[q + c.PLANNED] = s[c.NOW]
            free -= s[q + c.NODES]
        elif s[c.POLICY] == c.FCFS:
            break
        elif s[c.RESERVED] < s[c.DEPTH]:
            place(s, i)
            s[c.RESERVED] += 1
        else:
            s[q + c.PLANNED] = c.UNPLACED
    launch(s, starts, s[c.HEAD], s[c.TAIL] - 1)


@lean
def conservative_pass(s: Ints, starts: Ints) -> None:
    """Move each job of the queue to its first fit, if nodes came free; else only place the new
    ones."""
    trim_plan(s)
    freed = s[c.FREED] > 0
    if freed or s[c.QUEUE_ORDER] != c.ARRIVAL or s[c.LOOKS] > 0:
        first = s[c.HEAD]
    else:
        first = s[c.TAIL] - s[c.FRESH]
    last = s[c.TAIL] - 1
    if s[c.PLACEMENT] == c.COUNTED and s[c.EVENT_ORDER] == c.BATCHED:
        first, last = move_forward(s, first)
    elif s[c.PLACEMENT] == c.COUNTED:
        move_forward(s, first)
    else:
        for i in range(first, s[c.TAIL]):
            if s[queued(s, i) + c.PLANNED] != c.NEW:
                if not freed:
                    continue
                give_up_place(s, i)
            place(s, i)
    # With arrivals before ends, an older job may be planned for nodes whose time is up at this very
    # instant.
    launch(s, starts, first if s[c.EVENT_ORDER] == c.BATCHED else s[c.HEAD], last)


@lean
def move_forward(s: Ints, first: int) -> tuple[int, int]:
    """Place new jobs, and move those behind `first` that fit earlier, each with all others where
    they are. Returns the first and the last entry that is due now; without any, the last is below.

    A job that could not move when it was last looked at can only move now into room that the plan
    has got since: from jobs that ended early or left, from those moved before it in this pass, and
    from those moved in the last pass. So no start at or after the end of all that room needs a
    look. (That time has passed makes no start possible that was not: a job that fits from the
    middle of a segment on fits from its begin on.)
    """
    p = s[c.PLAN_AT]
    holes.keep_up(s)
    horizon = max(s[c.FREED_UNTIL], s[c.MOVED_UNTIL])
    moved = 0
    due = s[c.TAIL]
    last = due - 1
    until = s[c.TAIL]
    if s[c.LOOKS] > 0:
        until = s[c.HEAD] + s[c.LOOKS]
    skips = queue_times.is_kept(s)
    if s[c.FREED] > 0 and s[c.IS_KNOWN] == 1:
        slides.next_pass(s)
    i = first - 1
    while i + 1 < s[c.TAIL]:
        i += 1
        if skips and i >= until and queue_times.can_skip(s, i):
            i += c.INDEX_BLOCK - 1
            continue
        q = queued(s, i)
        planned = s[q + c.PLANNED]
        if 0 <= planned < s[c.NOW]:
            end = planned + s[q + c.REQUESTED]
            give_up_rest(s, i)
            moved = max(moved, end)
            horizon = max(horizon, end)
            planned = c.NEW
        if planned == c.NEW:
            place(s, i)
            holes.placed(s, q)
        elif (
            s[c.FREED] > 0
            and horizon > s[c.NOW]
            and planned >= 0
            and (i < until or s[q + c.JOB] < 0)
            and holes.may_move(s, q, horizon)
        ):
            to = holes.sooner(s, q, horizon)
            if to < planned:
                requested = s[q + c.REQUESTED]
                s[q + c.PLANNED] = to
                profile.move(s, p, to, planned, requested, s[q + c.NODES])
                holes.placed(s, q)
                holes.opened(s, max(to + requested, planned), planned + requested)
                moved = max(moved, planned + requested)
                horizon = max(horizon, moved)
        if s[q + c.PLANNED] == s[c.NOW]:
            due = min(due, i)
            last = i
        if skips and (i % c.INDEX_BLOCK == c.INDEX_BLOCK - 1 or i == s[c.TAIL] - 1):
            queue_times.measure(s, i)
    if s[c.FREED] > 0:
        s[c.FREED_UNTIL] = 0
        s[c.MOVED_UNTIL] = moved
    return due, last


@lean
def give_up_rest(s: Ints, i: int) -> None:
    """Entry `i` of the queue was to start at a time that has passed: free what is left of its
    place.

    Where passes are bounded, others may have moved away from the job whose end it waited for, and
    then there was no pass at its time.
    """
    q = queued(s, i)
    end = s[q + c.PLANNED] + s[q + c.REQUESTED]
    if end > s[c.NOW]:
        profile.add(s, s[c.PLAN_AT], s[c.NOW], end, s[q + c.NODES])
        holes.opened(s, s[c.NOW], end)


@lean
def trim_plan(s: Ints) -> None:
    """Drop the past from the plan."""
    if s[c.WORDS]:
        trim_sets(s)
    else:
        profile.trim(s, s[c.PLAN_AT], s[c.NOW])


@kernel
def trim_sets(s: Ints) -> None:
    """The same if nodes have identities."""
    s[c.SEGMENTS] = nodesets.trim(plan_times(s), plan_sets(s), s[c.SEGMENTS], s[c.NOW])


@lean
def reset_plan(s: Ints) -> None:
    """A plan that knows the running jobs only."""
    if s[c.WORDS]:
        reset_sets(s)
    else:
        profile.trim(s, s[c.RUNS_AT], s[c.NOW])
        profile.copy_plan(s, s[c.RUNS_AT], s[c.PLAN_AT])


@kernel
def reset_sets(s: Ints) -> None:
    """The same if nodes have identities."""
    at = plan_times(s)
    sets = plan_sets(s)
    at[0] = s[c.NOW]
    for w in range(s[c.WORDS]):
        sets[0, w] = -1
    if s[c.NODES_ALL] % 64:
        sets[0, s[c.WORDS] - 1] = (1 << (s[c.NODES_ALL] % 64)) - 1
    n = 1
    for e in range(s[c.HEAP_AT], s[c.HEAP_AT] + s[c.RUNNING] * c.HEAP_WIDTH, c.HEAP_WIDTH):
        slot = s[e + c.SLOT]
        expected = s[s[c.RUNNING_AT] + slot * c.RUNNING_WIDTH + c.EXPECTED]
        if expected > s[c.NOW]:
            n = nodesets.flip(at, sets, n, s[c.NOW], expected, running_set(s, slot))
    s[c.SEGMENTS] = n


@lean
def place_now(s: Ints, i: int) -> bool:
    """Reserve for entry `i` of the queue from now on, if it fits."""
    if s[c.WORDS]:
        return place_set(s, i, 0)
    now = s[c.NOW]
    nodes = s[queued(s, i) + c.NODES]
    length = s[queued(s, i) + c.REQUESTED]
    if not profile.fits_now(s, s[c.PLAN_AT], nodes, length):
        return False
    profile.add(s, s[c.PLAN_AT], now, now + length, -nodes)
    return True


@lean
def place(s: Ints, i: int) -> None:
    """Reserve for entry `i` of the queue at its first fit."""
    if s[c.WORDS]:
        place_set(s, i, s[c.SEGMENTS])
        return
    q = queued(s, i)
    nodes = s[q + c.NODES]
    length = s[q + c.REQUESTED]
    if s[c.IS_KNOWN] == 1:
        begin = holes.first(s, q)
    else:
        begin = profile.first_fit(s, s[c.PLAN_AT], nodes, length)
    profile.add(s, s[c.PLAN_AT], begin, begin + length, -nodes)
    s[q + c.PLANNED] = begin


@kernel
def place_set(s: Ints, i: int, last: int) -> bool:
    """Reserve a set of nodes for entry `i` of the queue at its first fit, if that is not after
    segment `last`."""
    q = queued(s, i)
    at = plan_times(s)
    sets = plan_sets(s)
    n = s[c.SEGMENTS]
    length = s[q + c.REQUESTED]
    chosen = queued_set(s, i)
    contiguous = s[c.PLACEMENT] == c.CONTIGUOUS
    found = nodesets.first_fit(at, sets, n, s[q + c.NODES], length, contiguous, chosen, last)
    if found < 0:
        return False
    s[q + c.PLANNED] = at[found]
    s[c.SEGMENTS] = nodesets.flip(at, sets, n, at[found], at[found] + length, chosen)
    return True
