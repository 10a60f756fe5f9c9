"""The whole changing state of a simulated cluster in one array of 64-bit integers, and its layout.

Rule 1: whatever changes during a simulation, and the rules it follows, are in this array; a copy of
it is a clone.
Rule 2: the log is not. Clones share it: one row per job, columns SUBMIT to BY. If nodes fail, a
row that is never reached ends the jobs, and behind it each failure has one: its time, the node,
until when that is out, and 1 if a job of the log that it hits is lost.
Rule 3: the array begins with a header (the names below are places in it); the header says where
each region begins and how many entries it has room for. Kernels never allocate: they say that room
is missing, and `grown` copies all into a roomier array.

One array, and not an object with many, because it costs nothing to hand on: passing a dozen arrays
from kernel to kernel took longer than most of the kernels. A job is named by a number: its row in
the log, or -1, -2, ... if it is a client's.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

FOREVER = 2**62

# Header: time and counts.
NOW = 0  # the current time
NEXT = 1  # row in the log of the next job to arrive
HEAD = 2  # the queue is in entries HEAD to TAIL - 1 of its region
TAIL = 3
RUNNING = 4  # how many jobs run
SEGMENTS = 5  # how many segments the plan has, if nodes have identities
FREE = 6  # nodes not held by running jobs
SEQUENCE = 7  # counts arrivals and starts, to break ties
HELD = 8  # how many jobs are held back by the cap
HAPPENED = 9  # how many events of clients' jobs wait to be fetched
PENDING = 10  # 1 if a client changed the queue after the last pass
# nodes or reservations came free since the last pass: 0 no, 1 on time, 2 earlier than planned
FREED = 11
FRESH = 12  # jobs queued since the last pass
RESERVED = 13  # reservations held by blocked jobs (policies with a depth)
SHADOW = 14  # EASY: when the head can start
EXTRA = 15  # EASY: nodes that the head leaves unused at that time
CLIENTS = 16  # how many jobs clients have submitted so far
ALIVE = 17  # how many of them are in the system
MEASURED = 18  # when fair-share usage was last brought up to date
# 1 if the order of the queue changed since the last pass, other than by jobs added at its tail
DISORDER = 19
# up to when the plan got room since the last pass, by jobs that ended early or were taken away
FREED_UNTIL = 37
MOVED_UNTIL = 38  # up to when it got room in the last pass, by jobs that were moved forward
FAILURE = 39  # row in the log of the next failure of a node; FOREVER if nodes do not fail
# Header: the rules.
POLICY = 20
# how many blocked jobs get reservations; negative: all. EASY, which has one: 0 if what passes the
# head must end before that starts
DEPTH = 21
NODES_ALL = 22  # the cluster's nodes
EVENT_ORDER = 23
QUEUE_ORDER = 24
PLACEMENT = 25
CAP = 26  # the most jobs one user may have in the system; 0: any number
# Header: where regions begin, and their room.
QUEUE_AT = 40
QUEUE_ROOM = 41
HELD_AT = 42
HELD_ROOM = 43
RUNNING_AT = 44  # records of running jobs, in slots
RUNNING_ROOM = 45
HEAP_AT = 46  # which slot ends next
SLOTS_AT = 47  # which slots are free, a stack
RUNS_AT = 48  # the plan of the running jobs alone; 0 if the rules do not need it
PLAN_AT = 49  # the plan; if nodes have identities, the begins of its segments
SEGMENT_ROOM = 50
EVENTS_AT = 51
EVENTS_ROOM = 52
USERS_AT = 53  # jobs in the system, nodes held, usage, what their priority adds
USERS_ROOM = 54
WORDS = 55  # words in a set of nodes; 0 if nodes are only counted
QUEUE_SETS_AT = 56
RUNNING_SETS_AT = 57
PLAN_SETS_AT = 58
# How many closures were announced: each has a running job of the system, which holds no nodes.
CLOSURES = 59
LONG_AT = 60  # what is known of a long queue (see `holes` and `queue_index`); 0 if nothing ever is
IS_KNOWN = 61  # 1 while that is kept up
# how many entries of the queue a pass looks for earlier starts for, beside clients'; 0: all. Only
# what looks ahead in a long queue says less: it is how batch systems bound a pass.
LOOKS = 63
GONE = 62  # how many entries of the queue are of jobs that started, and are still to be closed
WEIGHTS = 64  # twelve entries, in thousandths: see `priority` in jobs
HEADER = 76

# A job in the queue, or held back.
JOB, NODES, REQUESTED, RUN, USER, QUEUED, PLANNED, ORDER, KEY, KIND = range(10)
QUEUED_WIDTH = 10
UNPLACED = -1  # instead of a planned start: looked at, no reservation
NEW = -2  # not looked at yet
STARTED_BEFORE = -3  # the entry is a gap

# A running job. The first five are as in the queue, but RUN's place holds the expected end.
EXPECTED = 3
KILLED = 5  # 1 if it runs into its request
RUNNING_WIDTH = 6
DOWN = -(2**41)
"""A job of the system. It holds a node which failed until it is repaired, and USER is the node; or
it ends with a closure, and holds nothing: what is closed is taken out of the plan. USER is then a
number that no node has."""

NOBODY = -(2**42)
"""The job of an entry of the queue that is a gap."""

# An entry of the heap: ordered by END, then STARTED_AS.
END, STARTED_AS, SLOT = range(3)
HEAP_WIDTH = 3

# A plan of counted nodes; what these are is in `profile`.
BLOCKS, BLOCK_ROOM = range(2)
PLAN_HEADER = 2
ORDER_OF_BLOCKS, FIRST, LOW, HIGH, SIZE, SHIFT = range(6)
PLAN_COLUMNS = 6
BLOCK = 64

# What is known of holes, for each kind of job: see `holes`.
WIDTHS, LENGTHS = 18, 32  # kinds: by nodes, by requested time
KINDS = WIDTHS * LENGTHS
HOLE_NODES, HOLE_LENGTH, NOT_BEFORE = 0, KINDS, 2 * KINDS  # columns
LONG_QUEUE = 512  # jobs that wait, from which on it pays to know

# Who may slide, by time: see `slides`. The times of all reservations are dealt to this many slots.
SLIDE_SLOTS = 4096
SLIDE_SHIFT, SLIDE_PASS, SLIDE_MOVES = range(3)
SLIDE_HEADER = 3

# What is known of entries of the queue, by the block: see `queue_index` and `queue_times`.
INDEX_BLOCK = 32
INDEX_WIDTH = WIDTHS + 1

# An event of a client's job.
E_AT, E_KIND, E_JOB = range(3)
EVENT_WIDTH = 3
STARTED, ENDED, KILLED_EVENT, CANCELLED, FAILED = range(5)

# A row of the log.
SUBMIT, LOG_NODES, LOG_REQUESTED, LOG_RUN, BY = range(5)
# of a failure
NODE = 1
OUT_UNTIL = 2
LOSES = 3

# The numbers behind the settings' names; what they mean is in `windrow.sim.settings`.
FCFS, EASY, BY_DEPTH, CONSERVATIVE = range(4)
BATCHED, ONE_BY_ONE, ENDS_FIRST = range(3)
ARRIVAL, FIXED, CHANGING = range(3)
COUNTED, LEFTMOST, CONTIGUOUS = range(3)


def new_state(
    nodes: int, *, users: int, identities: bool, start: int, rules: dict[int, int]
) -> Ints:
    """An empty cluster at time `start`. `rules` fills header entries POLICY and following."""
    if identities:
        words = (nodes + 63) // 64
    else:
        words = 0
    rooms = Rooms(queue=64, held=8, running=64, events=64, users=max(users, 1), words=words)
    state = _laid_out(rooms, rules)
    state[NOW] = state[MEASURED] = start
    state[FREE] = state[NODES_ALL] = nodes
    state[FAILURE] = FOREVER
    for place in _plans(rooms, rules):
        _begin_plan(state, int(state[place]), start, nodes)
    if words:
        state[SEGMENTS] = 1
        state[state[PLAN_AT]] = start
        state[state[PLAN_SETS_AT] : state[PLAN_SETS_AT] + words] = all_nodes(nodes)
    return state


def _begin_plan(state: Ints, p: int, start: int, nodes: int) -> None:
    """A plan of one segment, in which all nodes are free."""
    state[p + BLOCKS] = 1
    state[[p + PLAN_HEADER + k * state[p + BLOCK_ROOM] for k in (FIRST, LOW, HIGH, SIZE)]] = (
        start,
        nodes,
        nodes,
        1,
    )
    times = p + PLAN_HEADER + PLAN_COLUMNS * state[p + BLOCK_ROOM]
    state[times] = start
    state[times + BLOCK * state[p + BLOCK_ROOM]] = nodes


def all_nodes(nodes: int) -> Ints:
    """The set of all nodes, as words of 64 bits."""
    whole = np.full((nodes + 63) // 64, -1, dtype=np.int64)
    if nodes % 64:
        whole[-1] = (1 << (nodes % 64)) - 1
    return whole


def grown(state: Ints, *, more: int = 1, users: int = 0) -> Ints:
    """The same state with room for `more` jobs to arrive, and for this many users. Rooms double, so
    it is rare."""
    queued = int(state[TAIL] - state[HEAD] + state[HELD]) + more + 1
    running = min(int(state[NODES_ALL] + state[CLOSURES]), int(state[RUNNING]) + queued)
    rules = {
        place: int(state[place]) for place in (*range(POLICY, QUEUE_AT), *range(WEIGHTS, HEADER))
    }
    rooms = Rooms(
        queue=_room(int(state[QUEUE_ROOM]), queued),
        held=_room(int(state[HELD_ROOM]), int(state[HELD]) + more if state[CAP] else 0),
        running=_room(int(state[RUNNING_ROOM]), running),
        events=_room(
            int(state[EVENTS_ROOM]), int(state[HAPPENED] + 2 * state[ALIVE]) + 2 * more + 2
        ),
        users=_room(int(state[USERS_ROOM]), users),
        words=int(state[WORDS]),
    )
    larger = _laid_out(rooms, rules)
    larger[:QUEUE_AT] = state[:QUEUE_AT]
    larger[[CLOSURES, GONE, LOOKS]] = state[[CLOSURES, GONE, LOOKS]]
    plans = _plans(rooms, rules)
    sizes = _sizes(rooms, rules)
    for place, size in _sizes(_rooms_of(state), rules).items():
        parts = _PARTS.get(place, 1)
        if place in plans:
            _copy_plan(state, int(state[place]), larger, int(larger[place]))
        else:
            _copy_region(state, larger, place, size // parts, sizes[place] // parts)
    # Slots that did not exist before are free: they go to the bottom of the stack, below the ones
    # in use there.
    old = int(state[RUNNING_ROOM])
    new = int(larger[RUNNING_ROOM])
    stack = state[state[SLOTS_AT] : state[SLOTS_AT] + old - state[RUNNING]]
    slots = larger[larger[SLOTS_AT] : larger[SLOTS_AT] + new - state[RUNNING]]
    slots[: new - old] = np.arange(new - 1, old - 1, -1)
    slots[new - old :] = stack
    return larger


class Rooms(NamedTuple):
    """For how many entries each region has room; of nodes in sets, in words."""

    queue: int
    held: int
    running: int
    events: int
    users: int
    words: int

    @property
    def segments(self) -> int:
        """Every job in the plan makes at most two breakpoints; moving one makes two more before it
        removes two."""
        return 2 * (self.queue + self.running) + 8


def _rooms_of(state: Ints) -> Rooms:
    rooms = (QUEUE_ROOM, HELD_ROOM, RUNNING_ROOM, EVENTS_ROOM, USERS_ROOM, WORDS)
    return Rooms(*(int(state[place]) for place in rooms))


def _laid_out(rooms: Rooms, rules: dict[int, int]) -> Ints:
    """A zeroed array with a header that has these rules and says where everything is."""
    sizes = _sizes(rooms, rules)
    state = np.zeros(HEADER + sum(sizes.values()), dtype=np.int64)
    for place, value in rules.items():
        state[place] = value
    begin = HEADER
    for place, size in sizes.items():
        if size or place not in _OPTIONAL:
            state[place] = begin
        begin += size
    state[[QUEUE_ROOM, HELD_ROOM, RUNNING_ROOM]] = rooms.queue, rooms.held, rooms.running
    state[[EVENTS_ROOM, USERS_ROOM, WORDS]] = rooms.events, rooms.users, rooms.words
    state[SEGMENT_ROOM] = rooms.segments
    for place in _plans(rooms, rules):
        p = state[place]
        blocks = (sizes[place] - PLAN_HEADER) // (PLAN_COLUMNS + 2 * BLOCK)
        state[p + BLOCK_ROOM] = blocks
        state[p + PLAN_HEADER : p + PLAN_HEADER + blocks] = np.arange(blocks)
    state[state[SLOTS_AT] : state[SLOTS_AT] + rooms.running] = np.arange(rooms.running - 1, -1, -1)
    return state


def _sizes(rooms: Rooms, rules: dict[int, int]) -> dict[int, int]:
    """How long each region is."""
    plans = _plans(rooms, rules)
    has_sets = rooms.words > 0
    return {
        QUEUE_AT: rooms.queue * QUEUED_WIDTH,
        HELD_AT: rooms.held * QUEUED_WIDTH,
        RUNNING_AT: rooms.running * RUNNING_WIDTH,
        HEAP_AT: rooms.running * HEAP_WIDTH,
        SLOTS_AT: rooms.running,
        RUNS_AT: _plan_size(rooms.running + 4) if RUNS_AT in plans else 0,
        PLAN_AT: _plan_size(rooms.segments) if PLAN_AT in plans else rooms.segments * has_sets,
        LONG_AT: _long_size(rooms, rules),
        EVENTS_AT: rooms.events * EVENT_WIDTH,
        USERS_AT: rooms.users * 4,
        QUEUE_SETS_AT: rooms.queue * rooms.words,
        RUNNING_SETS_AT: rooms.running * rooms.words,
        PLAN_SETS_AT: rooms.segments * rooms.words,
    }


def _plans(rooms: Rooms, rules: dict[int, int]) -> list[int]:
    """Which plans of counted nodes the rules need."""
    policy = rules[POLICY]
    found = []
    if policy in (CONSERVATIVE, BY_DEPTH) and not rooms.words:
        found.append(PLAN_AT)
    needs_runs = policy in (EASY, BY_DEPTH) and not rooms.words
    if policy != CONSERVATIVE and (needs_runs or rules[EVENT_ORDER] == ONE_BY_ONE):
        found.append(RUNS_AT)
    return found


def _long_size(rooms: Rooms, rules: dict[int, int]) -> int:
    """Room for what is known of a long queue."""
    if rooms.words or rooms.queue < LONG_QUEUE:
        return 0
    if rules[POLICY] == CONSERVATIVE:
        slides = SLIDE_HEADER + 2 * SLIDE_SLOTS
        return 3 * KINDS + slides + rooms.queue // INDEX_BLOCK + 1
    if rules[POLICY] == BY_DEPTH and rules[DEPTH] < 0:
        return 3 * KINDS
    if rules[POLICY] == EASY and rules[QUEUE_ORDER] == ARRIVAL:
        return (rooms.queue // INDEX_BLOCK + 1) * INDEX_WIDTH
    return 0


def _plan_size(segments: int) -> int:
    """Room for that many segments in blocks that are half full, and for some blocks more."""
    return PLAN_HEADER + (segments // (BLOCK // 2) + 4) * (PLAN_COLUMNS + 2 * BLOCK)


_OPTIONAL = (RUNS_AT, LONG_AT)
_PARTS = {USERS_AT: 4}
"""Regions that are several arrays of one length, one after the other."""


def _copy_plan(source: Ints, p: int, target: Ints, q: int) -> None:
    """Copy a plan into one with more room. Its blocks keep their numbers."""
    blocks = int(source[p + BLOCK_ROOM])
    more = int(target[q + BLOCK_ROOM])
    target[q + BLOCKS] = source[p + BLOCKS]
    widths = [1] * PLAN_COLUMNS + [BLOCK, BLOCK]
    for before, width in zip(np.cumsum([0, *widths]).tolist(), widths, strict=False):
        a = p + PLAN_HEADER + before * blocks
        b = q + PLAN_HEADER + before * more
        target[b : b + width * blocks] = source[a : a + width * blocks]


def _copy_region(source: Ints, target: Ints, place: int, old: int, new: int) -> None:
    """Copy a region part by part: a part keeps its entries at the start of its larger room."""
    for part in range(_PARTS.get(place, 1)):
        begin = int(source[place]) + part * old
        to = int(target[place]) + part * new
        target[to : to + old] = source[begin : begin + old]


def _room(now: int, needed: int) -> int:
    room = max(now, 1)
    while room < needed:
        room *= 2
    return room
