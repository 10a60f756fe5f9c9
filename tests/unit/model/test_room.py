"""Room on nodes: a job's packing, a pool's placement and the count of nodes against slow, obvious
versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from windrow.model import NodeShape
from windrow.model.nodes import Need, Nodes
from windrow.model.packing import Packing
from windrow.pool.placement import Placement
from windrow.strategies.levels import _first_fit

CORES, MEMORY = 4, 8
SHAPES = st.sampled_from(
    [
        NodeShape(CORES),
        NodeShape(CORES, MEMORY),
        NodeShape(CORES, MEMORY, 6, (("gpus", 2), ("x", 3))),
    ]
)
PARTS = st.builds(
    Need, st.integers(1, CORES), st.integers(0, MEMORY), st.just(0), st.just(0), st.just(())
)
NAMED = st.builds(
    lambda cores, disk, gpus, x: Need(
        cores, 1, 0, disk, tuple((k, n) for k, n in (("gpus", gpus), ("x", x)) if n)
    ),
    *(st.integers(1, 2), st.integers(0, 3), st.integers(0, 2), st.integers(0, 3)),
)
WHOLE = st.builds(
    Need,
    st.just(1),
    st.just(0),
    st.integers(1, 3),
    st.integers(0, 1),
    st.sampled_from([(), (("gpus", 1),)]),
)
NEEDS = st.one_of(PARTS, NAMED, WHOLE)


@dataclass
class Slow:
    """Nodes as lists of what is on them; everything is added up anew for every question."""

    shapes: list[NodeShape]
    on: list[list[Need]]
    lost: set[int] = field(default_factory=set)

    def has_room(self, place: int, need: Need) -> bool:
        here, there = self.on[place], self.shapes[place].amounts()
        if place in self.lost or (need.nodes and here) or any(other.nodes for other in here):
            return False
        for name, amount in need.amounts().items():
            if sum(other.amounts().get(name, 0) for other in here) + amount > there.get(name, 0):
                return False
        return True

    def could_ever(self, need: Need) -> bool:
        left = [place for place in range(len(self.on)) if place not in self.lost]
        empty = Slow(self.shapes, [[] for _ in self.on])
        if not left and not need.nodes:
            return any(empty.has_room(place, need) for place in range(len(self.on)))
        return sum(empty.has_room(place, need) for place in left) >= max(1, need.nodes)

    def room(self, need: Need) -> tuple[int, ...]:
        places = [place for place in range(len(self.on)) if self.has_room(place, need)]
        wanted = need.nodes or 1
        return tuple(places[:wanted]) if len(places) >= wanted else ()

    def take(self, need: Need, places: Sequence[int]) -> None:
        for place in places:
            self.on[place].append(need)

    def give(self, need: Need, places: Sequence[int]) -> None:
        for place in places:
            self.on[place].remove(need)


@given(st.lists(SHAPES, min_size=1, max_size=4), st.data())
def test_room_is_what_adding_up_says(shapes: list[NodeShape], data: st.DataObject) -> None:
    """On nodes that differ. A GPU is never two tasks' at a time, nor one that others have while
    another is free."""
    count = len(shapes)
    nodes, slow, taken = (
        Nodes(shapes),
        Slow(shapes, [[] for _ in shapes]),
        dict[int, tuple[int, ...]](),
    )
    needs = data.draw(st.lists(NEEDS, max_size=25))
    nodes.busy_gpus = data.draw(st.sampled_from([frozenset(), frozenset({0})]))
    for task, need in enumerate(needs):
        assert nodes.can_ever_hold(need) == slow.could_ever(need)
        places = slow.room(need)
        assert nodes.room(need) == places
        if places:
            nodes.take(task, need, places)
            slow.take(need, places)
            taken[task] = places
            check_gpus(
                nodes, task, need, {t: needs[t] for t in taken if taken[t] == places and t != task}
            )
        if data.draw(st.booleans()) and taken:
            gone = data.draw(st.sampled_from(sorted(taken)))
            nodes.give(gone)
            slow.give(needs[gone], taken.pop(gone))
        if data.draw(st.integers(0, 9)) == 0:
            slow.lost.add(lost := data.draw(st.integers(0, count - 1)))
            nodes.lose(lost)
        assert all((task in nodes) == (task in taken) for task in range(len(needs)))
        every = [(needs[other], at) for other, at in taken.items()]
        held = [
            sum(shapes[place].cores for place in at) if its.nodes else its.cores
            for its, at in every
        ]
        assert nodes.held().cores == sum(held)
    free = [CORES - sum(CORES if n.nodes else n.cores for n in here) for here in slow.on]
    assert nodes.free_cores == sum(
        cores for place, cores in enumerate(free) if place not in slow.lost
    )


def check_gpus(nodes: Nodes, task: int, need: Need, others: dict[int, Need]) -> None:
    mine = nodes.gpus_of(task)
    if need.nodes:
        assert mine is None
        return
    wanted = dict(need.counts).get("gpus", 0)
    if mine is None:
        assert wanted == 0
        return
    theirs = [gpu for other in others for gpu in nodes.gpus_of(other) or ()]
    assert len(mine) == wanted
    assert not set(mine) & set(theirs)
    if 0 in nodes.busy_gpus and 0 in mine:
        assert len(mine) + len(theirs) == 2


@given(SHAPES, st.integers(1, 4), st.data())
def test_a_job_starts_the_longest_that_has_room(
    shape: NodeShape, count: int, data: st.DataObject
) -> None:
    """Every task offered is tried, the longest first, equals by number, as often as one of them
    could start.

    Some have data on nodes, the most on the first of them: these start there before others, and
    elsewhere after them.
    """
    needs = data.draw(st.lists(NEEDS, max_size=20))
    length_s = [data.draw(st.integers(1, 3)) for _ in needs]
    is_local, some = (
        data.draw(st.booleans()),
        st.lists(st.integers(0, count - 1), unique=True, max_size=2),
    )
    near = [data.draw(some) if is_local and not need.nodes else [] for need in needs]
    packing, slow = Packing(count, shape), Slow([shape] * count, [[] for _ in range(count)])
    packing.prefer = near.__getitem__ if is_local else None
    offered: set[int] = set()
    running: dict[int, tuple[int, ...]] = {}
    for task, need in enumerate(needs):
        packing.offer(task, length_s[task], need)
        offered.add(task)
        if data.draw(st.booleans()):
            expected = list[tuple[int, tuple[int, ...]]]()
            for turn in ("at data", "others", "away"):
                for one in sorted(offered, key=lambda t: (-length_s[t], t)):
                    if bool(near[one]) == (turn == "others"):
                        continue
                    at_data = [place for place in near[one] if slow.has_room(place, needs[one])]
                    places = tuple(at_data[:1]) or slow.room(needs[one])
                    if places if turn != "at data" else at_data[:1] == near[one][:1]:
                        slow.take(needs[one], places)
                        expected.append((one, places))
                offered.difference_update(one for one, _ in expected)
            running |= dict(expected)
            assert packing.start() == expected
            assert packing.held.cores == sum(
                needs[t].nodes * CORES or needs[t].cores for t in running
            )
        if data.draw(st.booleans()) and running:
            gone = data.draw(st.sampled_from(sorted(running)))
            packing.finish(gone)
            slow.give(needs[gone], running.pop(gone))


@given(SHAPES, st.integers(1, 4), st.data())
def test_a_pool_places_in_the_order_of_asking(
    shape: NodeShape, count: int, data: st.DataObject
) -> None:
    needs = data.draw(st.lists(NEEDS, max_size=20))
    placement, slow = Placement(count, shape), Slow([shape] * count, [[] for _ in range(count)])
    waiting: list[int] = []
    placed: dict[int, tuple[int, ...]] = {}
    for key, need in enumerate(needs):
        placement.ask(key, need)
        waiting.append(key)
        assert placement.misfits() == [k for k in waiting if not slow.could_ever(needs[k])]
        expected = []
        while waiting and (places := slow.room(needs[waiting[0]])):
            slow.take(needs[waiting[0]], places)
            expected.append((waiting.pop(0), places))
        assert placement.place() == expected
        placed |= dict(expected)
        if data.draw(st.booleans()):
            gone = data.draw(st.sampled_from([*placed, *waiting]))
            placement.free(gone)
            if gone in placed:
                slow.give(needs[gone], placed.pop(gone))
            else:
                waiting.remove(gone)
        if data.draw(st.integers(0, 9)) == 0:
            slow.lost.add(lost := data.draw(st.integers(0, count - 1)))
            placement.lose(lost)


@given(SHAPES, st.lists(PARTS, max_size=30))
def test_a_new_node_is_counted_where_no_other_has_room(shape: NodeShape, needs: list[Need]) -> None:
    slow = Slow([shape] * len(needs), [])
    for need in sorted(needs, reverse=True):
        if not slow.room(need):
            slow.on.append([])
        slow.take(need, slow.room(need))
    assert _first_fit(needs, shape) == len(slow.on)
