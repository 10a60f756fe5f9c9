"""A schedule on clusters that fail and are repaired: whether it ends, when, and what it costs.

Rule 1: a row (a task on a cluster) starts when its planned time has come, the data of all its
parents are there, its cluster is up and a node of it is free; of several the one that was planned
first. Without failures all is as planned.
Rule 2: a failure kills what runs on its nodes. A task that has no other row, and has not ended, is
lost. Without restarts the workflow has failed. With restarts the task gets a row on the cluster, of
those that are up, where it is believed least likely to fail, and so do those parents of whose data
none can be reached; a task too often: all fails.
Rule 3: data go to where rows are planned when the parent ends, and to where a row is added when it
is added; from clusters that are down nothing can be fetched, but what is there is there again after
the repair (`is_losing`: not, and rows that wait on the failed cluster must be given their data
again then).
Rule 4: when every task has ended once, all stops. At one moment ends come before failures, and
these before starts.

A row waits for data (WAITS), for its turn (IN_LINE), RUNS, has ENDED, or is LOST; GONE: it has
ended, but its data are lost. `best`: of each row, from `at`, when the data of each edge arrive.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from windrow.kernels.jit import kernel, lean
from windrow.model.graph import Ints
from windrow_lab.kernels.grid.reliability import Beliefs, failure
from windrow_lab.kernels.grid.rooms import Floats, Given, way_s

WAITS, IN_LINE, RUNS, ENDED, LOST, GONE = range(6)
NOW, CPU_ENDED, CPU_FAILED = range(3)
ROWS, LEFT, HAS_FAILED, EVENTS = range(4)
IS_UP, BUSY = range(2)


class PlannedRows(NamedTuple):
    """Rows of a schedule; the edges from each task, as numbers of `Given.parent`, with the child;
    where to restart."""

    task: Ints
    cluster: Ints
    begin: Floats
    edge_start: Ints
    edge: Ints
    child: Ints
    allowed: Ints


class Failing(NamedTuple):
    """What fails when: for each draw, times in order, the unit, and whether it is a repair. unit:
    its first node.

    is_losing: with a cluster go its data. is_final: nothing is repaired.
    """

    time_s: Floats
    which: Ints
    is_repair: Ints
    unit: Ints
    is_losing: bool
    is_final: bool


class Game(NamedTuple):
    """What does not change; `limit`: how often a task may be restarted or, `is_total`, all tasks
    together."""

    given: Given
    planned: PlannedRows
    failing: Failing
    beliefs: Beliefs
    limit: int
    is_total: bool


class State(NamedTuple):
    """Of rows, of tasks, of nodes, and two kinds of heaps: of events, and of each cluster's rows in
    line."""

    task: Ints
    cluster: Ints
    begin: Floats
    known: Floats
    ready: Floats
    end: Floats
    state: Ints
    node: Ints
    next_row: Ints
    at: Ints
    missing: Ints
    best: Floats
    head: Ints
    alive: Ints
    ended: Ints
    restarts: Ints
    nodes: Ints
    since: Floats
    key: Floats
    event: Ints
    line_key: Floats
    line: Ints
    in_line: Ints
    times: Floats
    counts: Ints
    stack: Ints


@kernel
def play(g: Game, last: float, until: Floats, out: Floats) -> None:
    """Into `out`, for each draw: whether it ended, when, and CPU time of what ended, of what
    failed, of what is left.

    `last`: when it ends if nothing fails. `until`: when each draw is stopped at the latest.
    """
    s = new_state(g)
    given = g.given
    planned = g.planned
    failing = g.failing
    total = 0.0
    used = np.zeros(len(given.first), dtype=np.int64)
    for r in range(len(planned.task)):
        total += given.run_s[planned.task[r], planned.cluster[r]]
        used[planned.cluster[r]] = 1
    for draw in range(len(out)):
        stop = min(last, until[draw])
        k = 0
        while (
            failing.time_s[draw, k] < stop
            and used[cluster_of(given, failing.unit[failing.which[draw, k]])] == 0
        ):
            k += 1
        if failing.time_s[draw, k] >= stop:  # nothing fails that matters: all is as planned
            out[draw, 0] = last < until[draw]
            out[draw, 1] = stop
            out[draw, 2] = 0.0
            out[draw, 3] = 0.0
            for r in range(len(planned.task)):
                run_s = given.run_s[planned.task[r], planned.cluster[r]]
                out[draw, 2] += max(0.0, min(run_s, stop - planned.begin[r]))
        else:
            begin(given, planned, s)
            run(g, s, until[draw], draw)
            out[draw, 0] = s.counts[LEFT] == 0
            out[draw, 1] = s.times[NOW]
            out[draw, 2] = s.times[CPU_ENDED]
            out[draw, 3] = s.times[CPU_FAILED]
        out[draw, 4] = 0.0 if out[draw, 0] else max(0.0, total - out[draw, 2])


@kernel
def new_state(g: Game) -> State:
    """Room for all rows that there can be."""
    given = g.given
    planned = g.planned
    failing = g.failing
    limit = g.limit
    tasks = len(given.run_s)
    planned_rows = len(planned.task)
    nodes = given.first[-1]
    clusters = len(given.first) - 1
    rows = planned_rows + limit * tasks
    most = 1
    count = np.zeros(tasks, dtype=np.int64)
    edges = limit * len(given.parent)
    for i in planned.task:
        count[i] += 1
        edges += given.start[i + 1] - given.start[i]
        most = max(most, count[i])
    events = (
        edges * (most + limit)
        + 2 * rows
        + (rows * failing.time_s.shape[1] if failing.is_losing else 0)
    )
    times = np.zeros((4, rows))
    ints = np.zeros((7, rows), dtype=np.int64)
    of_tasks = np.zeros((4, tasks), dtype=np.int64)
    lines = np.zeros((clusters, rows)), np.zeros((clusters, rows), dtype=np.int64)
    return State(
        ints[0], ints[1], times[0], times[1], times[2], times[3], ints[2], ints[3], ints[4],
        ints[5], ints[6],
        np.zeros(edges), of_tasks[0], of_tasks[1], of_tasks[2], of_tasks[3],
        np.zeros((2, nodes), dtype=np.int64), np.zeros(nodes), np.zeros(events),
        np.zeros(events, dtype=np.int64),
        lines[0], lines[1], np.zeros(clusters, dtype=np.int64), np.zeros(3),
        np.zeros(4, dtype=np.int64),
        np.zeros(2 * len(given.parent) + 1, dtype=np.int64),
    )  # fmt: skip


@lean
def cluster_of(given: Given, node: int) -> int:
    """The node's cluster."""
    return int(np.searchsorted(given.first, node, side="right")) - 1


@lean
def begin(given: Given, planned: PlannedRows, s: State) -> None:
    """All clusters are new and up, all planned rows wait."""
    s.head[:] = -1
    s.alive[:] = 0
    s.ended[:] = 0
    s.restarts[:] = 0
    s.nodes[IS_UP] = 1
    s.nodes[BUSY] = -1
    s.since[:] = 0.0
    s.in_line[:] = 0
    s.times[:] = 0.0
    s.counts[:] = 0
    s.counts[LEFT] = len(s.head)
    for r in range(len(planned.task)):
        add_row(given, s, planned.task[r], planned.cluster[r], planned.begin[r])
        schedule(given, s, r)


@lean
def run(g: Game, s: State, until: float, draw: int) -> None:
    """From event to event."""
    k = 0
    given = g.given
    failing = g.failing
    while s.counts[LEFT] > 0 and s.counts[HAS_FAILED] == 0:
        then = min(failing.time_s[draw, k], s.key[0] if s.counts[EVENTS] > 0 else np.inf)
        s.times[NOW] = min(then, until)
        if then >= until or then == np.inf:
            break
        happen(g, s, then)
        while failing.time_s[draw, k] == then and s.counts[LEFT] > 0:
            first = failing.unit[failing.which[draw, k]]
            last = failing.unit[failing.which[draw, k] + 1]
            if failing.is_repair[draw, k] == 1:
                s.nodes[IS_UP, first:last] = 1
                s.since[first:last] = then
                if failing.is_losing:
                    give_again(g, s, cluster_of(given, first))
            else:
                fail(g, s, first, last)
            k += 1
        happen(g, s, then)
        for c in range(len(s.in_line)):
            start_rows(given, s, c)
    for r in range(s.counts[ROWS]):
        if s.state[r] == RUNS:
            s.times[CPU_ENDED] += given.run_s[s.task[r], s.cluster[r]] - (s.end[r] - s.times[NOW])


@lean
def happen(g: Game, s: State, then: float) -> None:
    """What ends at this moment has ended, and what has its data is in line."""
    while s.counts[EVENTS] > 0 and s.key[0] == then:
        r = s.event[0]
        s.counts[EVENTS] = pop(s.key, s.event, s.counts[EVENTS])
        if s.state[r] == RUNS and s.end[r] == then:
            end_row(g, s, r)
        elif s.state[r] == WAITS and s.ready[r] == then and s.missing[r] == 0:
            s.state[r] = IN_LINE
            c = s.cluster[r]
            s.in_line[c] = push(s.line_key[c], s.line[c], s.in_line[c], s.begin[r], r)


@lean
def fail(g: Game, s: State, first: int, last: int) -> None:
    """These nodes are down; with them go the rows that they run."""
    given = g.given
    c = cluster_of(g.given, first)
    s.nodes[IS_UP, first:last] = 0
    if g.failing.is_losing:
        for r in range(s.counts[ROWS]):
            if s.cluster[r] == c and s.state[r] == ENDED:
                s.state[r] = GONE
            elif s.cluster[r] == c and s.state[r] <= IN_LINE:
                forget_data(given, s, r)
        s.in_line[c] = 0
    for node in range(first, last):
        r = s.nodes[BUSY, node]
        if r >= 0:
            s.nodes[BUSY, node] = -1
            s.times[CPU_FAILED] += given.run_s[s.task[r], s.cluster[r]] - (s.end[r] - s.times[NOW])
            lose(g, s, r)
    if g.failing.is_final and up_node(given, s, c) < 0:
        s.in_line[c] = 0
        for r in range(s.counts[ROWS]):
            if s.cluster[r] == c and s.state[r] <= IN_LINE and s.counts[HAS_FAILED] == 0:
                lose(g, s, r)


@lean
def lose(g: Game, s: State, r: int) -> None:
    """The row is lost, and perhaps its task."""
    i = s.task[r]
    given = g.given
    planned = g.planned
    s.state[r] = LOST
    s.alive[i] -= 1
    if s.alive[i] == 0 and s.ended[i] == 0:
        s.stack[0] = i
        restart(g, s, 1)
    for k in range(
        planned.edge_start[i], planned.edge_start[i + 1] if s.alive[i] == 0 and g.limit > 0 else 0
    ):
        x = s.head[planned.child[k]]
        e = planned.edge[k]
        while x >= 0:  # it ran again for rows that still wait: they look for its data once more
            if s.state[x] == WAITS and s.best[s.at[x] + e - given.start[s.task[x]]] == np.inf:
                restart(g, s, fetch(given, s, x, 0))
            x = s.next_row[x]


@lean
def restart(g: Game, s: State, size: int) -> None:
    """Tasks on the stack that will not end get new rows, and so do those before them whose data
    cannot be reached."""
    while size > 0:
        size -= 1
        i = s.stack[size]
        if g.is_total:
            counted = 0
        else:
            counted = i
        if s.alive[i] == 0 and s.restarts[counted] == g.limit:
            s.counts[HAS_FAILED] = 1
            return
        if s.alive[i] == 0:
            s.restarts[counted] += 1
            size = fetch(g.given, s, add_row(g.given, s, i, safest(g, s, i), s.times[NOW]), size)


@lean
def safest(g: Game, s: State, task: int) -> int:
    """The cluster, of those that are up, where the task is believed least likely to fail; if none
    is up, of all."""
    best = -1
    least = np.inf
    is_up = False
    given = g.given
    for c in range(len(g.planned.allowed)):
        node = up_node(given, s, c)
        run_s = given.run_s[task, c]
        if g.planned.allowed[c] == 1 and (node >= 0 or not is_up):
            age = s.times[NOW] - s.since[max(node, given.first[c])]
            risk = failure(g.beliefs, c, age, age + run_s)
            if (
                (node >= 0 and not is_up)
                or risk < least
                or (risk == least and run_s < given.run_s[task, best])
            ):
                best = c
                least = risk
                is_up = node >= 0
    return best


@lean
def fetch(given: Given, s: State, r: int, size: int) -> int:
    """The row gets all data that can be reached now; onto the stack go parents of whom there are
    none, nor will be."""
    i = s.task[r]
    s.known[r] = s.times[NOW]
    for e in range(given.start[i], given.start[i + 1]):
        a = given.parent[e]
        x = s.head[a]
        while x >= 0:
            if s.state[x] == ENDED and (
                s.cluster[x] == s.cluster[r] or up_node(given, s, s.cluster[x]) >= 0
            ):
                deliver(given, s, x, r, e)
            x = s.next_row[x]
        if s.best[s.at[r] + e - given.start[i]] == np.inf and s.alive[a] == 0:
            s.stack[size] = a
            size = size + 1
    schedule(given, s, r)
    return size


@lean
def give_again(g: Game, s: State, c: int) -> None:
    """The cluster is back, without data: those that rows on it wait for are sent again, or made
    again."""
    for r in range(s.counts[ROWS]):
        if (
            s.cluster[r] == c
            and s.state[r] == WAITS
            and s.ready[r] == np.inf
            and s.counts[HAS_FAILED] == 0
        ):
            size = fetch(g.given, s, r, 0)
            if size > 0 and g.limit == 0:
                lose(g, s, r)
            else:
                restart(g, s, size)


@lean
def up_node(given: Given, s: State, c: int) -> int:
    """The first node of the cluster that is up, or -1."""
    for node in range(given.first[c], given.first[c + 1]):
        if s.nodes[IS_UP, node] == 1:
            return node
    return -1


@lean
def add_row(given: Given, s: State, task: int, c: int, begin: float) -> int:
    """One more row for the task, not before `begin`."""
    r = s.counts[ROWS]
    parents = given.start[task + 1] - given.start[task]
    s.task[r] = task
    s.cluster[r] = c
    s.begin[r] = begin
    s.known[r] = 0.0
    s.next_row[r] = s.head[task]
    s.head[task] = r
    s.counts[ROWS] = r + 1
    if r == 0:
        s.at[r] = 0
    if r + 1 < len(s.at):
        s.at[r + 1] = s.at[r] + parents
    s.alive[task] += 1
    forget_data(given, s, r)
    return r


@lean
def forget_data(given: Given, s: State, r: int) -> None:
    """The row waits for all data of its parents."""
    parents = given.start[s.task[r] + 1] - given.start[s.task[r]]
    s.state[r] = WAITS
    s.ready[r] = np.inf
    s.missing[r] = parents
    s.best[s.at[r] : s.at[r] + parents] = np.inf


@lean
def deliver(given: Given, s: State, x: int, r: int, edge: int) -> bool:
    """Data of row x, which has ended, go to row r; whether they are the first ones, or come earlier
    than others."""
    then = max(s.end[x], s.known[r])
    if s.cluster[x] != s.cluster[r]:
        then += way_s(given, edge, s.cluster[x], s.cluster[r])
    k = s.at[r] + edge - given.start[s.task[r]]
    if then >= s.best[k]:
        return False
    s.missing[r] -= 1 if s.best[k] == np.inf else 0
    s.best[k] = then
    return True


@lean
def schedule(given: Given, s: State, r: int) -> None:
    """If all data of the row are on their way, it is known when it can start."""
    if s.missing[r] == 0:
        then = max(s.begin[r], s.times[NOW])
        for k in range(s.at[r], s.at[r] + given.start[s.task[r] + 1] - given.start[s.task[r]]):
            then = max(then, s.best[k])
        if then < s.ready[r]:
            s.ready[r] = then
            s.counts[EVENTS] = push(s.key, s.event, s.counts[EVENTS], then, r)


@lean
def start_rows(given: Given, s: State, c: int) -> None:
    """Rows in line start while there are nodes; one that takes no time needs none of its own."""
    if s.in_line[c] > 0:
        node = up_node(given, s, c)
    else:
        node = -1
    while s.in_line[c] > 0 and node >= 0:
        r = s.line[c, 0]
        run_s = given.run_s[s.task[r], c]
        while (
            run_s > 0.0
            and node < given.first[c + 1]
            and (s.nodes[IS_UP, node] == 0 or s.nodes[BUSY, node] >= 0)
        ):
            node += 1
        if node == given.first[c + 1]:
            return
        s.in_line[c] = pop(s.line_key[c], s.line[c], s.in_line[c])
        s.state[r] = RUNS
        s.node[r] = -1
        s.end[r] = s.times[NOW] + run_s
        if run_s > 0.0:
            s.node[r] = node
            s.nodes[BUSY, node] = r
        s.counts[EVENTS] = push(s.key, s.event, s.counts[EVENTS], s.end[r], r)


@lean
def end_row(g: Game, s: State, r: int) -> None:
    """The row has ended; its data go to all that wait for them."""
    i = s.task[r]
    given = g.given
    planned = g.planned
    s.state[r] = ENDED
    if s.node[r] >= 0:
        s.nodes[BUSY, s.node[r]] = -1
    s.times[CPU_ENDED] += given.run_s[i, s.cluster[r]]
    s.counts[LEFT] -= 1 if s.ended[i] == 0 else 0
    s.alive[i] = s.alive[i] - 1
    s.ended[i] = s.ended[i] + 1
    for k in range(planned.edge_start[i], planned.edge_start[i + 1]):
        x = s.head[planned.child[k]]
        while x >= 0:
            if s.state[x] == WAITS and deliver(given, s, r, x, planned.edge[k]):
                schedule(given, s, x)
            x = s.next_row[x]


@lean
def push(keys: Floats, values: Ints, size: int, key: float, value: int) -> int:
    """Into a heap, by key and then by value; its size then."""
    k = size
    while k > 0:
        up = (k - 1) // 2
        if keys[up] < key or (keys[up] == key and values[up] <= value):
            break
        keys[k] = keys[up]
        values[k] = values[up]
        k = up
    keys[k] = key
    values[k] = value
    return size + 1


@lean
def pop(keys: Floats, values: Ints, size: int) -> int:
    """The first leaves the heap; its size then."""
    last = size - 1
    k = 0
    key = keys[last]
    value = values[last]
    while 2 * k + 1 < last:
        down = 2 * k + 1
        if down + 1 < last and (
            keys[down + 1] < keys[down]
            or (keys[down + 1] == keys[down] and values[down + 1] < values[down])
        ):
            down += 1
        if key < keys[down] or (key == keys[down] and value <= values[down]):
            break
        keys[k] = keys[down]
        values[k] = values[down]
        k = down
    keys[k] = key
    values[k] = value
    return last
