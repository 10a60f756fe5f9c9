"""Jobs entering the queue, starting, ending: the bookkeeping shared by all policies. Nothing here
decides anything.

`s` is the state (see `state`). `q` is the place in it where the record of a queued job begins, `r`
of a running one.
"""

from __future__ import annotations

from windrow.kernels.cluster import holes, nodesets, profile, queue_index, queue_times
from windrow.kernels.cluster import state as c
from windrow.kernels.cluster.state import Ints
from windrow.kernels.jit import kernel, lean

# Entries of the weights, in thousandths.
(
    W_WAIT,
    CAP_WAIT,
    W_XFACTOR,
    CAP_XFACTOR,
    W_NODES,
    CAP_NODES,
    W_AREA,
    CAP_AREA,
    W_SHARE,
    HALF_LIFE,
    W_REQUESTED,
    CAP_REQUESTED,
) = range(12)

_FEW_GAPS = 4  # entries of a long queue for each gap in it, at least


@lean
def queued(s: Ints, i: int) -> int:
    """Where entry `i` of the queue begins."""
    return s[c.QUEUE_AT] + i * c.QUEUED_WIDTH


@kernel
def queued_set(s: Ints, i: int) -> Ints:
    """The nodes reserved for entry `i` of the queue."""
    begin = s[c.QUEUE_SETS_AT] + i * s[c.WORDS]
    return s[begin : begin + s[c.WORDS]]


@kernel
def running_set(s: Ints, slot: int) -> Ints:
    """The nodes held by the running job in `slot`."""
    begin = s[c.RUNNING_SETS_AT] + slot * s[c.WORDS]
    return s[begin : begin + s[c.WORDS]]


@kernel
def plan_times(s: Ints) -> Ints:
    """Begins of the plan's segments, if nodes have identities."""
    return s[s[c.PLAN_AT] : s[c.PLAN_AT] + s[c.SEGMENT_ROOM]]


@kernel
def plan_sets(s: Ints) -> Ints:
    """Free nodes of the plan's segments, as sets: one row a segment."""
    begin = s[c.PLAN_SETS_AT]
    return s[begin : begin + s[c.SEGMENT_ROOM] * s[c.WORDS]].reshape(
        (s[c.SEGMENT_ROOM], s[c.WORDS])
    )


@lean
def tell(s: Ints, kind: int, job: int) -> None:
    """Note an event of a client's job. Jobs of the log never surface."""
    if job < 0:
        e = s[c.EVENTS_AT] + s[c.HAPPENED] * c.EVENT_WIDTH
        s[e + c.E_AT] = s[c.NOW]
        s[e + c.E_KIND] = kind
        s[e + c.E_JOB] = job
        s[c.HAPPENED] += 1
        if kind != c.STARTED:
            s[c.ALIVE] -= 1


@kernel
def priority(s: Ints, wait: int, nodes: int, requested: int, user: int, share: float) -> int:
    """Maui's sum of weighted, capped factors: wait in minutes, expansion factor, nodes, node-hours,
    hours requested, share in percent; and what the user's jobs have by themselves.

    A whole number of sixtieths of thousandths, so that each second of waiting counts; each term is
    rounded down, so equal sums are exactly equal.
    """
    w = s[c.WEIGHTS : c.WEIGHTS + 12]
    total = w[W_WAIT] * min(wait, w[CAP_WAIT] * 60 // 1000)
    total += 60 * w[W_NODES] * min(nodes * 1000, w[CAP_NODES]) // 1000
    total += int(
        60.0 * w[W_XFACTOR] * min((wait + requested) / requested, w[CAP_XFACTOR] / 1000.0) // 1.0
    )
    total += int(60.0 * w[W_AREA] * min(nodes * (requested / 3600.0), w[CAP_AREA] / 1000.0) // 1.0)
    total += 60 * w[W_REQUESTED] * min(requested, w[CAP_REQUESTED] * 3600 // 1000) // 3600
    total += 60 * s[s[c.USERS_AT] + 3 * s[c.USERS_ROOM] + user]
    return total - int(60.0 * w[W_SHARE] * share // 1.0)


@lean
def copy_queued(s: Ints, source: int, target: int) -> None:
    """Copy one entry of the queue over another."""
    a = queued(s, source)
    b = queued(s, target)
    for k in range(c.QUEUED_WIDTH):
        s[b + k] = s[a + k]
    if s[c.WORDS]:
        copy_reserved(s, source, target)


@kernel
def copy_reserved(s: Ints, source: int, target: int) -> None:
    """Copy the nodes reserved for one entry of the queue over those of another."""
    nodesets.copy(queued_set(s, source), queued_set(s, target))


@lean
def remove_queued(s: Ints, i: int) -> None:
    """Take entry `i` out of the queue."""
    for k in range(i, s[c.TAIL] - 1):
        copy_queued(s, k + 1, k)
    s[c.TAIL] -= 1
    if s[c.POLICY] == c.EASY:
        s[c.IS_KNOWN] = 0
    queue_times.forget(s, i)
    if s[c.GONE] > 0:
        trim_queue(s)
    empty_to_front(s)


@lean
def empty_to_front(s: Ints) -> None:
    """An empty queue begins again at entry 0."""
    if s[c.HEAD] == s[c.TAIL]:
        s[c.HEAD] = s[c.TAIL] = 0


@lean
def slide_to_front(s: Ints) -> None:
    """Move the queue to entry 0 on, without gaps, so that its room is at its end."""
    to = 0
    for k in range(s[c.HEAD], s[c.TAIL]):
        if s[queued(s, k) + c.JOB] != c.NOBODY:
            copy_queued(s, k, to)
            to += 1
    s[c.TAIL] = to
    s[c.HEAD] = 0
    s[c.GONE] = 0
    if s[c.POLICY] == c.EASY:
        s[c.IS_KNOWN] = 0  # what is known goes by entry
    queue_times.forget(s, 0)


@lean
def leave_gap(s: Ints, i: int) -> None:
    """Entry `i` of a long queue is free again.

    Gaps are closed when they are many: to close each took longer than a pass. What goes over the
    queue skips them; the queue neither begins nor ends with one.
    """
    q = queued(s, i)
    s[q + c.JOB] = c.NOBODY
    s[q + c.PLANNED] = c.STARTED_BEFORE
    s[q + c.NODES] = c.FOREVER  # which never fit
    s[c.GONE] += 1
    if s[c.POLICY] == c.EASY:
        queue_index.left(s, i)


@lean
def trim_queue(s: Ints) -> None:
    """The queue neither begins nor ends with a gap, and has few."""
    while s[c.GONE] > 0 and s[queued(s, s[c.HEAD]) + c.JOB] == c.NOBODY:
        s[c.HEAD] += 1
        s[c.GONE] -= 1
    while s[c.GONE] > 0 and s[queued(s, s[c.TAIL] - 1) + c.JOB] == c.NOBODY:
        s[c.TAIL] -= 1
        s[c.GONE] -= 1
    if _FEW_GAPS * s[c.GONE] > s[c.TAIL] - s[c.HEAD]:
        slide_to_front(s)
    empty_to_front(s)


@lean
def enqueue(s: Ints, job: int, nodes: int, requested: int, run: int, user: int, order: int) -> None:
    """Put a job into the queue at its place: behind those of higher priority and, among equals, of
    earlier arrival."""
    if s[c.TAIL] == s[c.QUEUE_ROOM]:
        slide_to_front(s)
    i = s[c.TAIL]
    if s[c.POLICY] == c.EASY:
        queue_index.joined(s, i, nodes, requested)
    key = 0
    if s[c.QUEUE_ORDER] == c.FIXED:
        # Everybody's wait grows alike, so the order at time 0 is the order forever.
        key = priority(s, -s[c.NOW], nodes, requested, user, 0.0)
        while i > s[c.HEAD]:
            q = queued(s, i - 1)
            if s[q + c.KEY] > key or (s[q + c.KEY] == key and s[q + c.ORDER] < order):
                break
            copy_queued(s, i - 1, i)
            i -= 1
        if i < s[c.TAIL]:
            s[c.DISORDER] = 1
            queue_times.forget(s, i)
    queue_times.joined(s, i)
    q = queued(s, i)
    if s[c.POLICY] == c.CONSERVATIVE or s[c.POLICY] == c.BY_DEPTH:
        s[q + c.KIND] = holes.kind(nodes, requested)
    s[q + c.JOB] = job
    s[q + c.NODES] = nodes
    s[q + c.REQUESTED] = requested
    s[q + c.RUN] = run
    s[q + c.USER] = user
    s[q + c.QUEUED] = s[c.NOW]
    s[q + c.PLANNED] = c.NEW
    s[q + c.ORDER] = order
    s[q + c.KEY] = key
    s[c.TAIL] += 1
    s[c.FRESH] += 1


@lean
def arrive(s: Ints, job: int, nodes: int, requested: int, run: int, user: int) -> None:
    """A job arrives: into the queue, or held back while its user has as many jobs in the system as
    the cap allows."""
    order = s[c.SEQUENCE]
    s[c.SEQUENCE] += 1
    if s[c.CAP] > 0:
        if s[s[c.USERS_AT] + user] >= s[c.CAP]:
            h = s[c.HELD_AT] + s[c.HELD] * c.QUEUED_WIDTH
            s[h + c.JOB] = job
            s[h + c.NODES] = nodes
            s[h + c.REQUESTED] = requested
            s[h + c.RUN] = run
            s[h + c.USER] = user
            s[h + c.ORDER] = order
            s[c.HELD] += 1
            return
        s[s[c.USERS_AT] + user] += 1
    enqueue(s, job, nodes, requested, run, user, order)


@lean
def remove_held(s: Ints, h: int) -> None:
    """Take entry `h` out of the jobs held back."""
    for k in range(
        s[c.HELD_AT] + h * c.QUEUED_WIDTH, s[c.HELD_AT] + (s[c.HELD] - 1) * c.QUEUED_WIDTH
    ):
        s[k] = s[k + c.QUEUED_WIDTH]
    s[c.HELD] -= 1


@lean
def admit(s: Ints) -> None:
    """Queue the jobs held back whose users are under the cap again, in the order of their
    arrival."""
    i = 0
    while i < s[c.HELD]:
        h = s[c.HELD_AT] + i * c.QUEUED_WIDTH
        user = s[c.USERS_AT] + s[h + c.USER]
        if s[user] >= s[c.CAP]:
            i += 1
            continue
        s[user] += 1
        enqueue(
            s,
            s[h + c.JOB],
            s[h + c.NODES],
            s[h + c.REQUESTED],
            s[h + c.RUN],
            s[h + c.USER],
            s[h + c.ORDER],
        )
        remove_held(s, i)


@lean
def sift_up(s: Ints, i: int) -> None:
    """Move entry `i` of the heap up to its place: by end, and at the same end, by start."""
    heap = s[c.HEAP_AT]
    end = s[heap + i * 3 + c.END]
    started = s[heap + i * 3 + c.STARTED_AS]
    slot = s[heap + i * 3 + c.SLOT]
    while i > 0:
        above = heap + (i - 1) // 2 * c.HEAP_WIDTH
        if s[above + c.END] < end or (
            s[above + c.END] == end and s[above + c.STARTED_AS] < started
        ):
            break
        e = heap + i * c.HEAP_WIDTH
        s[e + c.END], s[e + c.STARTED_AS], s[e + c.SLOT] = (
            s[above + c.END],
            s[above + c.STARTED_AS],
            s[above + c.SLOT],
        )
        i = (i - 1) // 2
    e = heap + i * c.HEAP_WIDTH
    s[e + c.END], s[e + c.STARTED_AS], s[e + c.SLOT] = end, started, slot


@lean
def sift_down(s: Ints, i: int, n: int) -> None:
    """Move entry `i` of a heap of `n` down to its place."""
    heap = s[c.HEAP_AT]
    end = s[heap + i * 3 + c.END]
    started = s[heap + i * 3 + c.STARTED_AS]
    slot = s[heap + i * 3 + c.SLOT]
    while 2 * i + 1 < n:
        child = 2 * i + 1
        b = heap + child * c.HEAP_WIDTH
        if child + 1 < n:
            d = b + c.HEAP_WIDTH
            if s[d + c.END] < s[b + c.END] or (
                s[d + c.END] == s[b + c.END] and s[d + c.STARTED_AS] < s[b + c.STARTED_AS]
            ):
                child = child + 1
                b = d
        if end < s[b + c.END] or (end == s[b + c.END] and started < s[b + c.STARTED_AS]):
            break
        e = heap + i * c.HEAP_WIDTH
        s[e + c.END], s[e + c.STARTED_AS], s[e + c.SLOT] = (
            s[b + c.END],
            s[b + c.STARTED_AS],
            s[b + c.SLOT],
        )
        i = child
    e = heap + i * c.HEAP_WIDTH
    s[e + c.END], s[e + c.STARTED_AS], s[e + c.SLOT] = end, started, slot


@lean
def hold(s: Ints, job: int, nodes: int, requested: int, run: int, user: int) -> int:
    """From now on the job holds nodes, as one of the running jobs. Returns its slot."""
    n = s[c.RUNNING]
    now = s[c.NOW]
    slot = s[s[c.SLOTS_AT] + s[c.RUNNING_ROOM] - n - 1]
    r = s[c.RUNNING_AT] + slot * c.RUNNING_WIDTH
    s[r + c.JOB] = job
    s[r + c.NODES] = nodes
    s[r + c.REQUESTED] = requested
    s[r + c.EXPECTED] = now + requested
    s[r + c.USER] = user
    s[r + c.KILLED] = 1 if run > requested else 0
    if s[c.RUNS_AT] > 0:
        profile.trim(s, s[c.RUNS_AT], now)
        profile.add(s, s[c.RUNS_AT], now, now + requested, -nodes)
    e = s[c.HEAP_AT] + n * c.HEAP_WIDTH
    s[e + c.END], s[e + c.STARTED_AS], s[e + c.SLOT] = (
        now + min(run, requested),
        s[c.SEQUENCE],
        slot,
    )
    sift_up(s, n)
    s[c.RUNNING] += 1
    s[c.SEQUENCE] += 1
    s[c.FREE] -= nodes
    return slot


@lean
def start(s: Ints, starts: Ints, i: int) -> None:
    """Entry `i` of the queue starts now; the caller takes it out of the queue."""
    q = queued(s, i)
    now = s[c.NOW]
    job = s[q + c.JOB]
    nodes = s[q + c.NODES]
    user = s[q + c.USER]
    slot = hold(s, job, nodes, s[q + c.REQUESTED], s[q + c.RUN], user)
    if s[c.WORDS]:
        take_reserved(s, i, slot)
    if s[c.QUEUE_ORDER] == c.CHANGING:
        s[s[c.USERS_AT] + s[c.USERS_ROOM] + user] += nodes
    if job < 0:
        tell(s, c.STARTED, job)
    elif starts.shape[0]:
        starts[job] = now


@kernel
def take_reserved(s: Ints, i: int, slot: int) -> None:
    """The running job in `slot` has the nodes that are reserved for entry `i` of the queue."""
    nodesets.copy(queued_set(s, i), running_set(s, slot))


@lean
def start_head(s: Ints, starts: Ints) -> None:
    """The first job of the queue starts now and leaves the queue."""
    start(s, starts, s[c.HEAD])
    if s[c.POLICY] == c.EASY:
        queue_index.left(s, s[c.HEAD])
    s[c.HEAD] += 1
    if s[c.GONE] > 0:
        trim_queue(s)
    empty_to_front(s)


@lean
def launch(s: Ints, starts: Ints, first: int, last: int) -> None:
    """Start the queued jobs from entry `first` to `last` that are planned for now, in queue order.

    With ends before arrivals, one by one, a job may be planned for nodes that come free at this
    instant, but later.
    """
    now = s[c.NOW]
    ends_first = s[c.EVENT_ORDER] == c.ENDS_FIRST
    if (s[c.IS_KNOWN] == 1 and s[c.POLICY] != c.BY_DEPTH) or s[c.GONE] > 0:
        skips = queue_times.is_kept(s)
        i = first
        while i <= last:
            if skips and queue_times.can_skip(s, i):
                i += c.INDEX_BLOCK
                continue
            q = queued(s, i)
            if s[q + c.PLANNED] == now and not (ends_first and s[q + c.NODES] > s[c.FREE]):
                start(s, starts, i)
                leave_gap(s, i)
            i += 1
        trim_queue(s)
        return
    kept = first
    for i in range(first, s[c.TAIL]):
        q = queued(s, i)
        if (
            i <= last
            and s[q + c.PLANNED] == now
            and not (ends_first and s[q + c.NODES] > s[c.FREE])
        ):
            start(s, starts, i)
        else:
            if kept < i:
                copy_queued(s, i, kept)
            kept += 1
    s[c.TAIL] = kept
    empty_to_front(s)


@lean
def finish_first(s: Ints, kind: int) -> None:
    """The running job that ends first ends now. `kind` is the event for its client, or -1 for its
    natural end."""
    now = s[c.NOW]
    slot = s[s[c.HEAP_AT] + c.SLOT]
    r = s[c.RUNNING_AT] + slot * c.RUNNING_WIDTH
    nodes = s[r + c.NODES]
    expected = s[r + c.EXPECTED]
    user = s[r + c.USER]
    s[c.FREE] += nodes
    s[c.FREED] = max(s[c.FREED], 2 if expected > now else 1)
    if s[c.RUNS_AT] > 0 and expected > now:
        profile.trim(s, s[c.RUNS_AT], now)
        profile.add(s, s[c.RUNS_AT], now, expected, nodes)
    if s[c.POLICY] == c.CONSERVATIVE and expected > now:
        give_back(s, now, expected, nodes, s[c.RUNNING_SETS_AT] + slot * s[c.WORDS])
    s[c.RUNNING] -= 1
    n = s[c.RUNNING]
    last = s[c.HEAP_AT] + n * c.HEAP_WIDTH
    for k in range(c.HEAP_WIDTH):
        s[s[c.HEAP_AT] + k] = s[last + k]
    if n > 0:
        sift_down(s, 0, n)
    s[s[c.SLOTS_AT] + s[c.RUNNING_ROOM] - n - 1] = slot
    if s[r + c.JOB] == c.DOWN:
        return  # a node is back, which no user had
    if s[c.CAP] > 0:
        s[s[c.USERS_AT] + user] -= 1
    if s[c.QUEUE_ORDER] == c.CHANGING:
        s[s[c.USERS_AT] + s[c.USERS_ROOM] + user] -= nodes
    if s[r + c.JOB] < 0:
        if kind < 0:
            if s[r + c.KILLED] == 1 and expected == now:
                kind = c.KILLED_EVENT
            else:
                kind = c.ENDED
        tell(s, kind, s[r + c.JOB])


@lean
def give_back(s: Ints, begin: int, end: int, nodes: int, chosen: int) -> None:
    """Free nodes in the plan from `begin` to `end`; if they have identities, those of the set at
    place `chosen`."""
    s[c.FREED_UNTIL] = max(s[c.FREED_UNTIL], end)
    if s[c.WORDS]:
        give_back_set(s, begin, end, chosen)
    else:
        profile.add(s, s[c.PLAN_AT], begin, end, nodes)
        holes.opened(s, begin, end)


@kernel
def give_back_set(s: Ints, begin: int, end: int, chosen: int) -> None:
    """Free the set of nodes at this place."""
    nodes = s[chosen : chosen + s[c.WORDS]]
    s[c.SEGMENTS] = nodesets.flip(plan_times(s), plan_sets(s), s[c.SEGMENTS], begin, end, nodes)


@lean
def give_up_place(s: Ints, i: int) -> None:
    """Free what is reserved for entry `i` of the queue."""
    q = queued(s, i)
    planned = s[q + c.PLANNED]
    chosen = s[c.QUEUE_SETS_AT] + i * s[c.WORDS]
    give_back(s, planned, planned + s[q + c.REQUESTED], s[q + c.NODES], chosen)
