"""Jobs entering the queue, starting, ending: the bookkeeping shared by all policies. Nothing here decides anything.

`s` is the state (see `state`). `q` is the place in it where the record of a queued job begins, `r` of a running one.
"""

from __future__ import annotations

from windrow.kernels.cluster import nodesets, profile
from windrow.kernels.cluster.state import (
    ALIVE,
    CAP,
    CHANGING,
    CONSERVATIVE,
    DISORDER,
    E_AT,
    E_JOB,
    E_KIND,
    END,
    ENDED,
    ENDS_FIRST,
    EVENT_ORDER,
    EVENT_WIDTH,
    EVENTS_AT,
    EXPECTED,
    FIXED,
    FREE,
    FREED,
    FREED_UNTIL,
    FRESH,
    HAPPENED,
    HEAD,
    HEAP_AT,
    HEAP_WIDTH,
    HELD,
    HELD_AT,
    JOB,
    KEY,
    KILLED,
    KILLED_EVENT,
    NEW,
    NODES,
    NOW,
    ORDER,
    PLAN_AT,
    PLAN_ROOM,
    PLAN_SETS_AT,
    PLANNED,
    POLICY,
    QUEUE_AT,
    QUEUE_ORDER,
    QUEUE_ROOM,
    QUEUE_SETS_AT,
    QUEUED,
    QUEUED_WIDTH,
    RELEASE_AT,
    REQUESTED,
    RUN,
    RUNNING,
    RUNNING_AT,
    RUNNING_ROOM,
    RUNNING_SETS_AT,
    RUNNING_WIDTH,
    SEGMENTS,
    SEQUENCE,
    SLOT,
    SLOTS_AT,
    STARTED,
    STARTED_AS,
    TAIL,
    USER,
    USERS_AT,
    USERS_ROOM,
    WEIGHTS,
    WORDS,
    Ints,
)
from windrow.kernels.jit import kernel

# Entries of the weights, in thousandths.
W_WAIT, CAP_WAIT, W_XFACTOR, CAP_XFACTOR, W_NODES, CAP_NODES, W_AREA, CAP_AREA, W_SHARE, HALF_LIFE = range(10)


@kernel
def queued(s: Ints, i: int) -> int:
    """Where entry `i` of the queue begins."""
    return s[QUEUE_AT] + i * QUEUED_WIDTH


@kernel
def queued_set(s: Ints, i: int) -> Ints:
    """The nodes reserved for entry `i` of the queue."""
    begin = s[QUEUE_SETS_AT] + i * s[WORDS]
    return s[begin : begin + s[WORDS]]


@kernel
def running_set(s: Ints, slot: int) -> Ints:
    """The nodes held by the running job in `slot`."""
    begin = s[RUNNING_SETS_AT] + slot * s[WORDS]
    return s[begin : begin + s[WORDS]]


@kernel
def plan_times(s: Ints) -> Ints:
    """Begins of the plan's segments."""
    return s[s[PLAN_AT] : s[PLAN_AT] + s[PLAN_ROOM]]


@kernel
def plan_counts(s: Ints) -> Ints:
    """Free nodes of the plan's segments."""
    return s[s[PLAN_AT] + s[PLAN_ROOM] : s[PLAN_AT] + 2 * s[PLAN_ROOM]]


@kernel
def plan_sets(s: Ints) -> Ints:
    """Free nodes of the plan's segments, as sets: one row a segment."""
    begin = s[PLAN_SETS_AT]
    return s[begin : begin + s[PLAN_ROOM] * s[WORDS]].reshape((s[PLAN_ROOM], s[WORDS]))


@kernel
def tell(s: Ints, kind: int, job: int) -> None:
    """Note an event of a client's job. Jobs of the log never surface."""
    if job < 0:
        e = s[EVENTS_AT] + s[HAPPENED] * EVENT_WIDTH
        s[e + E_AT] = s[NOW]
        s[e + E_KIND] = kind
        s[e + E_JOB] = job
        s[HAPPENED] += 1
        if kind != STARTED:
            s[ALIVE] -= 1


@kernel
def priority(s: Ints, wait: int, nodes: int, requested: int, share: float) -> int:
    """Maui's sum of weighted, capped factors: wait in minutes, expansion factor, nodes, node-hours, share in percent.

    A whole number of sixtieths of thousandths, so that each second of waiting counts; each term is rounded down, so
    equal sums are exactly equal.
    """
    w = s[WEIGHTS : WEIGHTS + 10]
    total = w[W_WAIT] * min(wait, w[CAP_WAIT] * 60 // 1000)
    total += 60 * w[W_NODES] * min(nodes * 1000, w[CAP_NODES]) // 1000
    total += int(60.0 * w[W_XFACTOR] * min((wait + requested) / requested, w[CAP_XFACTOR] / 1000.0) // 1.0)
    total += int(60.0 * w[W_AREA] * min(nodes * (requested / 3600.0), w[CAP_AREA] / 1000.0) // 1.0)
    return total - int(60.0 * w[W_SHARE] * share // 1.0)


@kernel
def copy_queued(s: Ints, source: int, target: int) -> None:
    """Copy one entry of the queue over another."""
    a, b = queued(s, source), queued(s, target)
    for k in range(QUEUED_WIDTH):
        s[b + k] = s[a + k]
    if s[WORDS]:
        nodesets.copy(queued_set(s, source), queued_set(s, target))


@kernel
def remove_queued(s: Ints, i: int) -> None:
    """Take entry `i` out of the queue."""
    for k in range(i, s[TAIL] - 1):
        copy_queued(s, k + 1, k)
    s[TAIL] -= 1
    empty_to_front(s)


@kernel
def empty_to_front(s: Ints) -> None:
    """An empty queue begins again at entry 0."""
    if s[HEAD] == s[TAIL]:
        s[HEAD] = s[TAIL] = 0


@kernel
def slide_to_front(s: Ints) -> None:
    """Move the queue to entry 0 on, so that its room is at its end."""
    head = s[HEAD]
    for k in range(head, s[TAIL]):
        copy_queued(s, k, k - head)
    s[TAIL] -= head
    s[HEAD] = 0


@kernel
def enqueue(s: Ints, job: int, nodes: int, requested: int, run: int, user: int, order: int) -> None:
    """Put a job into the queue at its place: behind those of higher priority and, among equals, of earlier arrival."""
    if s[TAIL] == s[QUEUE_ROOM]:
        slide_to_front(s)
    i = s[TAIL]
    key = 0
    if s[QUEUE_ORDER] == FIXED:
        # Everybody's wait grows alike, so the order at time 0 is the order forever.
        key = priority(s, -s[NOW], nodes, requested, 0.0)
        while i > s[HEAD]:
            q = queued(s, i - 1)
            if s[q + KEY] > key or (s[q + KEY] == key and s[q + ORDER] < order):
                break
            copy_queued(s, i - 1, i)
            i -= 1
        if i < s[TAIL]:
            s[DISORDER] = 1
    q = queued(s, i)
    s[q + JOB] = job
    s[q + NODES] = nodes
    s[q + REQUESTED] = requested
    s[q + RUN] = run
    s[q + USER] = user
    s[q + QUEUED] = s[NOW]
    s[q + PLANNED] = NEW
    s[q + ORDER] = order
    s[q + KEY] = key
    s[TAIL] += 1
    s[FRESH] += 1


@kernel
def arrive(s: Ints, job: int, nodes: int, requested: int, run: int, user: int) -> None:
    """A job arrives: into the queue, or held back while its user has as many jobs in the system as the cap allows."""
    order = s[SEQUENCE]
    s[SEQUENCE] += 1
    if s[CAP] > 0:
        if s[s[USERS_AT] + user] >= s[CAP]:
            h = s[HELD_AT] + s[HELD] * QUEUED_WIDTH
            s[h + JOB] = job
            s[h + NODES] = nodes
            s[h + REQUESTED] = requested
            s[h + RUN] = run
            s[h + USER] = user
            s[h + ORDER] = order
            s[HELD] += 1
            return
        s[s[USERS_AT] + user] += 1
    enqueue(s, job, nodes, requested, run, user, order)


@kernel
def remove_held(s: Ints, h: int) -> None:
    """Take entry `h` out of the jobs held back."""
    for k in range(s[HELD_AT] + h * QUEUED_WIDTH, s[HELD_AT] + (s[HELD] - 1) * QUEUED_WIDTH):
        s[k] = s[k + QUEUED_WIDTH]
    s[HELD] -= 1


@kernel
def admit(s: Ints) -> None:
    """Queue the jobs held back whose users are under the cap again, in the order of their arrival."""
    i = 0
    while i < s[HELD]:
        h = s[HELD_AT] + i * QUEUED_WIDTH
        user = s[USERS_AT] + s[h + USER]
        if s[user] >= s[CAP]:
            i += 1
            continue
        s[user] += 1
        enqueue(s, s[h + JOB], s[h + NODES], s[h + REQUESTED], s[h + RUN], s[h + USER], s[h + ORDER])
        remove_held(s, i)


@kernel
def sift_up(s: Ints, i: int) -> None:
    """Move entry `i` of the heap up to its place: by end, and at the same end, by start."""
    heap = s[HEAP_AT]
    end, started, slot = s[heap + i * 3 + END], s[heap + i * 3 + STARTED_AS], s[heap + i * 3 + SLOT]
    while i > 0:
        above = heap + (i - 1) // 2 * HEAP_WIDTH
        if s[above + END] < end or (s[above + END] == end and s[above + STARTED_AS] < started):
            break
        e = heap + i * HEAP_WIDTH
        s[e + END], s[e + STARTED_AS], s[e + SLOT] = s[above + END], s[above + STARTED_AS], s[above + SLOT]
        i = (i - 1) // 2
    e = heap + i * HEAP_WIDTH
    s[e + END], s[e + STARTED_AS], s[e + SLOT] = end, started, slot


@kernel
def sift_down(s: Ints, i: int, n: int) -> None:
    """Move entry `i` of a heap of `n` down to its place."""
    heap = s[HEAP_AT]
    end, started, slot = s[heap + i * 3 + END], s[heap + i * 3 + STARTED_AS], s[heap + i * 3 + SLOT]
    while 2 * i + 1 < n:
        child = 2 * i + 1
        c = heap + child * HEAP_WIDTH
        if child + 1 < n:
            d = c + HEAP_WIDTH
            if s[d + END] < s[c + END] or (s[d + END] == s[c + END] and s[d + STARTED_AS] < s[c + STARTED_AS]):
                child, c = child + 1, d
        if end < s[c + END] or (end == s[c + END] and started < s[c + STARTED_AS]):
            break
        e = heap + i * HEAP_WIDTH
        s[e + END], s[e + STARTED_AS], s[e + SLOT] = s[c + END], s[c + STARTED_AS], s[c + SLOT]
        i = child
    e = heap + i * HEAP_WIDTH
    s[e + END], s[e + STARTED_AS], s[e + SLOT] = end, started, slot


@kernel
def add_release(s: Ints, at: int, nodes: int) -> None:
    """Note that a job which starts now will give back `nodes` at `at`."""
    begin, room = s[RELEASE_AT], s[RUNNING_ROOM]
    i = begin + s[RUNNING]
    while i > begin and s[i - 1] > at:
        s[i] = s[i - 1]
        s[i + room] = s[i + room - 1]
        i -= 1
    s[i] = at
    s[i + room] = nodes


@kernel
def drop_release(s: Ints, at: int, nodes: int) -> None:
    """Forget one release. Which of two equal ones does not matter."""
    begin, room = s[RELEASE_AT], s[RUNNING_ROOM]
    low, high = begin, begin + s[RUNNING]
    while low < high:
        middle = (low + high) // 2
        if s[middle] < at:
            low = middle + 1
        else:
            high = middle
    while s[low + room] != nodes:
        low += 1
    for k in range(low, begin + s[RUNNING] - 1):
        s[k] = s[k + 1]
        s[k + room] = s[k + room + 1]


@kernel
def start(s: Ints, starts: Ints, i: int) -> None:
    """Entry `i` of the queue starts now; the caller takes it out of the queue."""
    q, n, now = queued(s, i), s[RUNNING], s[NOW]
    job, nodes, requested, run = s[q + JOB], s[q + NODES], s[q + REQUESTED], s[q + RUN]
    slot = s[s[SLOTS_AT] + s[RUNNING_ROOM] - n - 1]
    r = s[RUNNING_AT] + slot * RUNNING_WIDTH
    s[r + JOB] = job
    s[r + NODES] = nodes
    s[r + REQUESTED] = requested
    s[r + EXPECTED] = now + requested
    s[r + USER] = s[q + USER]
    s[r + KILLED] = 1 if run > requested else 0
    if s[WORDS]:
        nodesets.copy(queued_set(s, i), running_set(s, slot))
    if s[POLICY] != CONSERVATIVE:
        add_release(s, now + requested, nodes)
    e = s[HEAP_AT] + n * HEAP_WIDTH
    s[e + END], s[e + STARTED_AS], s[e + SLOT] = now + min(run, requested), s[SEQUENCE], slot
    sift_up(s, n)
    if s[QUEUE_ORDER] == CHANGING:
        s[s[USERS_AT] + s[USERS_ROOM] + s[q + USER]] += nodes
    s[RUNNING] += 1
    s[SEQUENCE] += 1
    s[FREE] -= nodes
    if job < 0:
        tell(s, STARTED, job)
    elif starts.shape[0]:
        starts[job] = now


@kernel
def start_head(s: Ints, starts: Ints) -> None:
    """The first job of the queue starts now and leaves the queue."""
    start(s, starts, s[HEAD])
    s[HEAD] += 1
    empty_to_front(s)


@kernel
def launch(s: Ints, starts: Ints, first: int) -> None:
    """Start the queued jobs from entry `first` on that are planned for now, in queue order.

    With ends before arrivals, one by one, a job may be planned for nodes that come free at this instant, but later.
    """
    now, ends_first = s[NOW], s[EVENT_ORDER] == ENDS_FIRST
    kept = first
    for i in range(first, s[TAIL]):
        q = queued(s, i)
        if s[q + PLANNED] == now and not (ends_first and s[q + NODES] > s[FREE]):
            start(s, starts, i)
        else:
            if kept < i:
                copy_queued(s, i, kept)
            kept += 1
    s[TAIL] = kept
    empty_to_front(s)


@kernel
def finish_first(s: Ints, kind: int) -> None:
    """The running job that ends first ends now. `kind` is the event for its client, or -1 for its natural end."""
    now, slot = s[NOW], s[s[HEAP_AT] + SLOT]
    r = s[RUNNING_AT] + slot * RUNNING_WIDTH
    nodes, expected, user = s[r + NODES], s[r + EXPECTED], s[r + USER]
    s[FREE] += nodes
    s[FREED] = max(s[FREED], 2 if expected > now else 1)
    if s[POLICY] != CONSERVATIVE:
        drop_release(s, expected, nodes)
    elif expected > now:
        give_back(s, now, expected, nodes, running_set(s, slot))
    s[RUNNING] -= 1
    n = s[RUNNING]
    last = s[HEAP_AT] + n * HEAP_WIDTH
    for k in range(HEAP_WIDTH):
        s[s[HEAP_AT] + k] = s[last + k]
    if n > 0:
        sift_down(s, 0, n)
    s[s[SLOTS_AT] + s[RUNNING_ROOM] - n - 1] = slot
    if s[CAP] > 0:
        s[s[USERS_AT] + user] -= 1
    if s[QUEUE_ORDER] == CHANGING:
        s[s[USERS_AT] + s[USERS_ROOM] + user] -= nodes
    if s[r + JOB] < 0:
        if kind < 0:
            kind = KILLED_EVENT if s[r + KILLED] == 1 and expected == now else ENDED
        tell(s, kind, s[r + JOB])


@kernel
def give_back(s: Ints, begin: int, end: int, nodes: int, chosen: Ints) -> None:
    """Free nodes in the plan from `begin` to `end`."""
    at = plan_times(s)
    s[FREED_UNTIL] = max(s[FREED_UNTIL], end)
    if s[WORDS]:
        s[SEGMENTS] = nodesets.flip(at, plan_sets(s), s[SEGMENTS], begin, end, chosen)
    else:
        s[SEGMENTS] = profile.add(at, plan_counts(s), s[SEGMENTS], begin, end, nodes)
