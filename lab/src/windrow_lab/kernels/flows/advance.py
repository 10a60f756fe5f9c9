"""Jobs that read, compute and write on nodes of a cluster, whose home is behind a wide area that
all share.

A job reads its batch volumes, then its own inputs, computes, and writes. A batch volume that is not
there is fetched once; all who come meanwhile wait for it, and it weighs as much as they are. Inputs
from home and results that go there cross the wide area too, the latter after their job, holding
their space. All that cross share it in proportion to their weights, none faster than the local
network for each of its weight. Whatever stays within takes its size by the local bandwidth.

Rule 1: at each instant first all that ends there ends, then failures come, then jobs start.
Rule 2: jobs start in their order, the first that is ready first; if it has no space, none
starts.
Rule 3: a pipeline is opened if nothing is ready, with the space that it is guaranteed; or, in
groups, when all of the group before are done. Volumes are free when their last reader in the group
is done, unless batch data are kept.
Rule 4: a failure takes the node's stripe of every batch volume, and sends the pipeline at work
there back to its start, behind all that wait.
"""

from __future__ import annotations

from math import inf

from windrow.kernels.jit import kernel, lean
from windrow.kernels.run.heap import pop, push
from windrow_lab.kernels.flows import state as at
from windrow_lab.kernels.flows.state import Floats, Ints

OVER, PAUSED, STUCK, FAILURES_END = range(4)  # how `advance` may come back
INSTANT = 1e-9  # what is closer together, in seconds and as a share of the time, is at one instant


@lean
def put(s: Ints, f: Floats, clock: int, n: int, i: int, key: float) -> None:
    """Set a clock's key, and who is least above it."""
    f[clock + i] = key
    j = (i + n) >> 1
    while j > 0:
        a = 2 * j
        b = 2 * j + 1
        if a >= n:
            left = a - n
        else:
            left = s[clock + n + a]
        if b >= n:
            right = b - n
        else:
            right = s[clock + n + b]
        s[clock + n + j] = left if f[clock + left] <= f[clock + right] else right
        j >>= 1


@lean
def stop(s: Ints, f: Floats, clock: int, n: int) -> None:
    """No key is due."""
    f[clock : clock + n] = inf
    for j in range(n - 1, 0, -1):
        s[clock + n + j] = 2 * j - n if 2 * j >= n else s[clock + n + 2 * j]


@lean
def timer(w: Ints, s: Ints, f: Floats, node: int, when_s: float) -> None:
    """When the node is done with what it is at; infinite if it waits for others."""
    put(s, f, w[at.TIMER_CLOCK], w[at.TIMERS], node, when_s)


@lean
def flow(w: Ints, s: Ints, f: Floats, slot: int, more: float, weight: int) -> float:
    """This much more crosses the wide area, or its weight changes; weight 0 ends it. What had not
    crossed before."""
    before = s[w[at.WEIGHT] + slot]
    if before:
        left = max(0.0, f[w[at.FLOW_CLOCK] + slot] - f[at.SHARED]) * before
    else:
        left = 0.0
    s[at.ALL_WEIGHT] += weight - before
    s[w[at.WEIGHT] + slot] = weight
    put(
        s,
        f,
        w[at.FLOW_CLOCK],
        w[at.FLOWS],
        slot,
        f[at.SHARED] + (left + more) / weight if weight else inf,
    )
    return left


@lean
def use(f: Floats, size: float) -> None:
    """Space is taken, or given back."""
    f[at.USED] += size
    f[at.MOST_USED] = max(f[at.MOST_USED], f[at.USED])


@lean
def charge(w: Ints, x: Floats, s: Ints, f: Floats, pipe: int, more: float) -> float:
    """The space that a pipeline takes once it holds this much more: at least what it is guaranteed,
    while it is open."""
    return max(
        f[w[at.HELD] + pipe] + more, x[w[at.GUARANTEE] + pipe] if s[w[at.IS_OPEN] + pipe] else 0.0
    )


@lean
def hold(w: Ints, x: Floats, s: Ints, f: Floats, pipe: int, more: float) -> None:
    """The pipeline holds this much more, or less."""
    use(f, charge(w, x, s, f, pipe, more) - charge(w, x, s, f, pipe, 0.0))
    f[w[at.HELD] + pipe] += more


@lean
def let_go(w: Ints, x: Floats, s: Ints, f: Floats, pipe: int, file: int) -> None:
    """One who needed this file is done with it."""
    s[w[at.USES_LEFT] + file] -= 1
    if s[w[at.USES_LEFT] + file] == 0:
        hold(w, x, s, f, pipe, -x[w[at.SIZE] + file])


@lean
def drop_volume(w: Ints, x: Floats, s: Ints, f: Floats, volume: int) -> None:
    """The last reader of the group is done with a batch volume, or will not come."""
    s[w[at.READERS_LEFT] + volume] -= 1
    if w[at.KEEPS_BATCH] or s[w[at.READERS_LEFT] + volume] > 0 or not s[w[at.IS_THERE] + volume]:
        return
    s[w[at.IS_THERE] + volume] = 0
    f[at.OF_BATCH] -= flow(w, s, f, w[at.NODES] + volume, 0.0, 0)
    f[w[at.MISSING] + volume] = x[w[at.VOLUME_SIZE] + volume]
    use(f, -x[w[at.VOLUME_SIZE] + volume])


@lean
def ready(w: Ints, s: Ints, task: int) -> None:
    """It may start when its turn comes."""
    s[w[at.STATUS] + task] = at.READY_TASK
    push(s, w[at.HEAP], s[at.READY], w[w[at.RANK] + task])
    s[at.READY] += 1


@lean
def open_pipe(w: Ints, x: Floats, s: Ints, f: Floats) -> None:
    """The first that waits gets what it is guaranteed, and those of its jobs that need no other are
    ready."""
    pipe = s[w[at.QUEUE] + s[at.FIRST] % w[at.PIPES]]
    s[at.FIRST] += 1
    s[w[at.IS_OPEN] + pipe] = 1
    use(f, x[w[at.GUARANTEE] + pipe])
    s[at.GROUP_LEFT] += 1
    for task in range(w[w[at.PIPE_AT] + pipe], w[w[at.PIPE_AT] + pipe + 1]):
        for i in range(w[w[at.BATCH_AT] + task], w[w[at.BATCH_AT] + task + 1]):
            s[w[at.READERS_LEFT] + w[w[at.BATCH] + i]] += 1
        if s[w[at.PARENTS_LEFT] + task] == 0:
            ready(w, s, task)


@lean
def admit(w: Ints, x: Floats, s: Ints, f: Floats) -> bool:
    """Open what may be opened now: whether there was any."""
    if w[at.IS_GROUPED] and s[at.GROUP_LEFT] > 0:
        return False
    before = s[at.FIRST]
    peaks = 0.0
    while s[at.FIRST] < s[at.LAST]:
        pipe = s[w[at.QUEUE] + s[at.FIRST] % w[at.PIPES]]
        peaks += x[w[at.PEAK] + pipe]
        if not w[at.IS_GROUPED] and (
            s[at.FIRST] > before or f[at.USED] + x[w[at.GUARANTEE] + pipe] > x[at.STORAGE]
        ):
            break
        if w[at.IS_BOUNDED] and s[at.FIRST] > before and peaks > x[at.STORAGE] - x[at.BATCH_NEED]:
            break
        open_pipe(w, x, s, f)
    return s[at.FIRST] > before


@lean
def start(w: Ints, x: Floats, s: Ints, f: Floats, task: int, batch: float) -> None:
    """On the node that came free last."""
    s[at.IDLE] -= 1
    node = s[w[at.IDLE_STACK] + s[at.IDLE]]
    s[w[at.NODE_TASK] + node] = task
    s[w[at.TASK_NODE] + task] = node
    s[w[at.STATUS] + task] = at.RUNNING
    f[w[at.START_S] + task] = f[at.NOW]
    hold(w, x, s, f, w[w[at.PIPE_OF] + task], x[w[at.OWN] + task])
    use(f, batch)
    read_s = 0.0
    waits = False
    for i in range(w[w[at.BATCH_AT] + task], w[w[at.BATCH_AT] + task + 1]):
        volume = w[w[at.BATCH] + i]
        s[w[at.IS_THERE] + volume] = 1
        read_s += x[w[at.VOLUME_SIZE] + volume] / x[at.LOCAL]
        slot = w[at.NODES] + volume
        if f[w[at.MISSING] + volume] > 0.0:
            waits = True
            weight = s[w[at.WEIGHT] + slot]
            if weight:
                more = 0.0
            else:
                more = f[w[at.MISSING] + volume]
            s[at.FETCHES] += weight == 0
            f[at.OF_BATCH] += more
            flow(w, s, f, slot, more, weight + 1)
    s[w[at.PHASE] + node] = at.READS_BATCH
    f[w[at.OWN_S] + node] = f[at.NOW] + read_s
    timer(w, s, f, node, inf if waits else f[at.NOW] + read_s)


@lean
def go_on(w: Ints, x: Floats, s: Ints, f: Floats, node: int, late_s: float) -> None:
    """After batch volumes inputs from home cross the wide area; then it reads, computes and writes
    for a known time."""
    task = s[w[at.NODE_TASK] + node]
    far = x[w[at.FAR] + task]
    if s[w[at.PHASE] + node] == at.READS_BATCH and far > 0.0:
        s[w[at.PHASE] + node] = at.READS_HOME
        f[at.OF_INPUTS] += far
        timer(w, s, f, node, inf)
        flow(w, s, f, node, far, 1)
    else:
        s[w[at.PHASE] + node] = at.COMPUTES
        timer(
            w,
            s,
            f,
            node,
            f[at.NOW] + late_s + x[w[at.NEAR] + task] / x[at.LOCAL] + x[w[at.RUN] + task],
        )


@lean
def free_node(w: Ints, s: Ints, f: Floats, node: int) -> None:
    """It has no job any more."""
    timer(w, s, f, node, inf)
    s[w[at.NODE_TASK] + node] = -1
    s[w[at.IDLE_STACK] + s[at.IDLE]] = node
    s[at.IDLE] += 1


@lean
def end_task(w: Ints, x: Floats, s: Ints, f: Floats, node: int) -> None:
    """Its inputs are free after their last reader; its results begin to cross; jobs that waited for
    it are ready."""
    task = s[w[at.NODE_TASK] + node]
    pipe = w[w[at.PIPE_OF] + task]
    free_node(w, s, f, node)
    s[w[at.STATUS] + task] = at.DONE
    f[w[at.END_S] + task] = f[at.NOW]
    for i in range(w[w[at.IN_AT] + task], w[w[at.IN_AT] + task + 1]):
        let_go(w, x, s, f, pipe, w[w[at.IN] + i])
    for i in range(w[w[at.OUT_AT] + task], w[w[at.OUT_AT] + task + 1]):
        file = w[w[at.OUT] + i]
        if w[w[at.USES] + file] == 0:
            hold(w, x, s, f, pipe, -x[w[at.SIZE] + file])
    for i in range(w[w[at.BATCH_AT] + task], w[w[at.BATCH_AT] + task + 1]):
        drop_volume(w, x, s, f, w[w[at.BATCH] + i])
    for i in range(w[w[at.KIDS_AT] + task], w[w[at.KIDS_AT] + task + 1]):
        kid = w[w[at.KIDS] + i]
        s[w[at.PARENTS_LEFT] + kid] -= 1
        if s[w[at.PARENTS_LEFT] + kid] == 0:
            ready(w, s, kid)
    results = x[w[at.RESULTS] + task]
    if results > 0.0:
        s[w[at.EXTRACTS] + pipe] += 1
        f[at.OF_RESULTS] += results
        flow(w, s, f, w[at.NODES] + w[at.VOLUMES] + task, results, 1)
    s[w[at.TASKS_LEFT] + pipe] -= 1
    if s[w[at.TASKS_LEFT] + pipe] == 0:
        use(f, f[w[at.HELD] + pipe] - charge(w, x, s, f, pipe, 0.0))
        s[w[at.IS_OPEN] + pipe] = 0
        end_pipe(w, s, pipe)


@lean
def end_pipe(w: Ints, s: Ints, pipe: int) -> None:
    """It is finished if its jobs are done and its results are home."""
    if s[w[at.TASKS_LEFT] + pipe] == 0 and s[w[at.EXTRACTS] + pipe] == 0:
        s[at.GROUP_LEFT] -= 1
        s[at.FINISHED] += 1


@lean
def end_flow(w: Ints, x: Floats, s: Ints, f: Floats, slot: int) -> None:
    """All of it has crossed."""
    flow(w, s, f, slot, 0.0, 0)
    nodes = w[at.NODES]
    if slot < nodes:
        go_on(w, x, s, f, slot, x[at.LATENCY])
    elif slot < nodes + w[at.VOLUMES]:
        f[w[at.MISSING] + slot - nodes] = 0.0
        for node in range(nodes):  # what waited continues once none of its volumes is being fetched
            task = s[w[at.NODE_TASK] + node]
            if (
                task >= 0
                and s[w[at.PHASE] + node] == at.READS_BATCH
                and f[w[at.TIMER_CLOCK] + node] == inf
            ):
                fetched = 0
                for i in range(w[w[at.BATCH_AT] + task], w[w[at.BATCH_AT] + task + 1]):
                    fetched += s[w[at.WEIGHT] + nodes + w[w[at.BATCH] + i]]
                if fetched == 0:
                    timer(w, s, f, node, max(f[w[at.OWN_S] + node], f[at.NOW] + x[at.LATENCY]))
    else:
        task = slot - nodes - w[at.VOLUMES]
        pipe = w[w[at.PIPE_OF] + task]
        for i in range(w[w[at.OUT_AT] + task], w[w[at.OUT_AT] + task + 1]):
            if w[w[at.IS_KEPT] + w[w[at.OUT] + i]]:
                let_go(w, x, s, f, pipe, w[w[at.OUT] + i])
        s[w[at.EXTRACTS] + pipe] -= 1
        end_pipe(w, s, pipe)


@lean
def fail(w: Ints, x: Floats, s: Ints, f: Floats, node: int) -> None:
    """A node loses all that is on it."""
    for volume in range(w[at.VOLUMES]):
        if s[w[at.IS_THERE] + volume] and s[w[at.WEIGHT] + w[at.NODES] + volume] == 0:
            size = x[w[at.VOLUME_SIZE] + volume]
            f[w[at.MISSING] + volume] = min(size, f[w[at.MISSING] + volume] + size / w[at.NODES])
    task = s[w[at.NODE_TASK] + node]
    if task >= 0:
        s[at.HITS] += 1
        send_back(w, x, s, f, w[w[at.PIPE_OF] + task])


@lean
def send_back(w: Ints, x: Floats, s: Ints, f: Floats, pipe: int) -> None:
    """All that was done of the pipeline is lost; it waits behind the others."""
    kept = 0
    n = s[at.READY]
    for k in range(
        n
    ):  # the keys in the heap of other pipelines, in their old order, make a heap again
        key = s[w[at.HEAP] + k]
        if w[w[at.PIPE_OF] + w[w[at.ORDER] + key]] != pipe:
            push(s, w[at.HEAP], kept, key)
            kept += 1
    s[at.READY] = kept
    for task in range(w[w[at.PIPE_AT] + pipe], w[w[at.PIPE_AT] + pipe + 1]):
        f[at.OF_RESULTS] -= flow(w, s, f, w[at.NODES] + w[at.VOLUMES] + task, 0.0, 0)
        if s[w[at.STATUS] + task] == at.RUNNING:
            node = s[w[at.TASK_NODE] + task]
            f[at.OF_INPUTS] -= flow(w, s, f, node, 0.0, 0)
            free_node(w, s, f, node)
        if s[w[at.STATUS] + task] != at.DONE:
            for i in range(w[w[at.BATCH_AT] + task], w[w[at.BATCH_AT] + task + 1]):
                drop_volume(w, x, s, f, w[w[at.BATCH] + i])
        forget(w, s, task)
    use(f, -charge(w, x, s, f, pipe, 0.0))
    f[w[at.HELD] + pipe] = 0.0
    s[w[at.IS_OPEN] + pipe] = s[w[at.EXTRACTS] + pipe] = 0
    s[w[at.TASKS_LEFT] + pipe] = w[w[at.PIPE_AT] + pipe + 1] - w[w[at.PIPE_AT] + pipe]
    s[at.GROUP_LEFT] -= 1
    s[w[at.QUEUE] + s[at.LAST] % w[at.PIPES]] = pipe
    s[at.LAST] += 1


@lean
def forget(w: Ints, s: Ints, task: int) -> None:
    """The task as if it had never run."""
    s[w[at.STATUS] + task] = at.WAITING
    s[w[at.TASK_NODE] + task] = -1
    s[w[at.PARENTS_LEFT] + task] = w[w[at.PARENTS] + task]
    for i in range(w[w[at.IN_AT] + task], w[w[at.IN_AT] + task + 1]):
        file = w[w[at.IN] + i]
        s[w[at.USES_LEFT] + file] = w[w[at.USES] + file]
    for i in range(w[w[at.OUT_AT] + task], w[w[at.OUT_AT] + task + 1]):
        file = w[w[at.OUT] + i]
        s[w[at.USES_LEFT] + file] = w[w[at.USES] + file]


@kernel
def begin(w: Ints, x: Floats, s: Ints, f: Floats) -> None:
    """An empty state, all pipelines waiting; batch volumes that are kept have their space from now
    on."""
    s[:] = 0
    stop(s, f, w[at.TIMER_CLOCK], w[at.TIMERS])
    stop(s, f, w[at.FLOW_CLOCK], w[at.FLOWS])
    for node in range(w[at.NODES] - 1, -1, -1):
        s[w[at.NODE_TASK] + node] = -1
        s[w[at.IDLE_STACK] + w[at.NODES] - 1 - node] = node
    s[at.IDLE] = w[at.NODES]
    s[at.LAST] = w[at.PIPES]
    for pipe in range(w[at.PIPES]):
        s[w[at.QUEUE] + pipe] = pipe
        s[w[at.TASKS_LEFT] + pipe] = w[w[at.PIPE_AT] + pipe + 1] - w[w[at.PIPE_AT] + pipe]
    for task in range(w[at.TASKS]):
        forget(w, s, task)
    for volume in range(w[at.VOLUMES]):
        f[w[at.MISSING] + volume] = x[w[at.VOLUME_SIZE] + volume]
        if w[at.KEEPS_BATCH]:
            s[w[at.IS_THERE] + volume] = 1
            use(f, x[w[at.VOLUME_SIZE] + volume])


@lean
def start_all(w: Ints, x: Floats, s: Ints, f: Floats) -> None:
    """Every job that may start now."""
    while s[at.IDLE] > 0:
        if s[at.READY] == 0:
            if not admit(w, x, s, f):
                break
            continue
        task = w[w[at.ORDER] + s[w[at.HEAP]]]
        pipe = w[w[at.PIPE_OF] + task]
        batch = 0.0
        for i in range(w[w[at.BATCH_AT] + task], w[w[at.BATCH_AT] + task + 1]):
            if not s[w[at.IS_THERE] + w[w[at.BATCH] + i]]:
                batch += x[w[at.VOLUME_SIZE] + w[w[at.BATCH] + i]]
        more = charge(w, x, s, f, pipe, x[w[at.OWN] + task]) - charge(w, x, s, f, pipe, 0.0)
        if f[at.USED] + more + batch > x[at.STORAGE]:
            break
        pop(s, w[at.HEAP], s[at.READY])
        s[at.READY] -= 1
        start(w, x, s, f, task, batch)


@kernel
def advance(w: Ints, x: Floats, s: Ints, f: Floats, until_s: float) -> int:
    """Advance to a time, or to the end. STUCK: what is left can never start. FAILURES_END: more
    must be drawn."""
    while True:
        start_all(w, x, s, f)
        if s[at.FINISHED] == w[at.PIPES]:
            return OVER
        timers = w[at.TIMER_CLOCK]
        flows = w[at.FLOW_CLOCK]
        if s[at.ALL_WEIGHT]:
            share = min(x[at.LOCAL], x[at.REMOTE] / s[at.ALL_WEIGHT])
        else:
            share = 0.0
        next_s = f[timers + s[timers + w[at.TIMERS] + 1]]
        if s[at.ALL_WEIGHT]:
            next_s = min(
                next_s, f[at.NOW] + (f[flows + s[flows + w[at.FLOWS] + 1]] - f[at.SHARED]) / share
            )
        if next_s == inf:
            return STUCK
        if w[at.FAILURES]:
            if s[at.NEXT_FAILURE] == w[at.FAILURES]:
                return FAILURES_END
            next_s = min(next_s, x[w[at.FAIL_S] + s[at.NEXT_FAILURE]])
        is_over = next_s > until_s
        next_s = max(f[at.NOW], min(next_s, until_s))
        f[at.SHARED] += share * (next_s - f[at.NOW])
        f[at.MOVED] += share * s[at.ALL_WEIGHT] * (next_s - f[at.NOW])
        f[at.NOW] = next_s
        if is_over:
            return PAUSED
        soon = INSTANT * (1.0 + next_s)
        while f[timers + s[timers + w[at.TIMERS] + 1]] <= next_s + soon:
            node = s[timers + w[at.TIMERS] + 1]
            if s[w[at.PHASE] + node] == at.READS_BATCH:
                go_on(w, x, s, f, node, 0.0)
            else:
                end_task(w, x, s, f, node)
        while (
            s[at.ALL_WEIGHT]
            and f[flows + s[flows + w[at.FLOWS] + 1]] - f[at.SHARED] <= share * soon
        ):
            end_flow(w, x, s, f, s[flows + w[at.FLOWS] + 1])
        while (
            w[at.FAILURES]
            and s[at.NEXT_FAILURE] < w[at.FAILURES]
            and x[w[at.FAIL_S] + s[at.NEXT_FAILURE]] <= next_s
        ):
            fail(w, x, s, f, w[w[at.FAIL_NODE] + s[at.NEXT_FAILURE]])
            s[at.NEXT_FAILURE] += 1
