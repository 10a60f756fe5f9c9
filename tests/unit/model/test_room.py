"""Room on nodes: a job's packing, a pool's placement and the count of nodes against slow, obvious versions."""

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
SHAPES = st.sampled_from([NodeShape(CORES), NodeShape(CORES, MEMORY)])
PARTS = st.builds(Need, st.integers(1, CORES), st.integers(0, MEMORY), st.just(0))
NEEDS = st.one_of(PARTS, st.builds(Need, st.just(1), st.just(0), st.integers(1, 3)))


@dataclass
class Slow:
    """Nodes as lists of what is on them; everything is added up anew for every question."""

    shape: NodeShape
    on: list[list[Need]]
    lost: set[int] = field(default_factory=set)

    def has_room(self, place: int, need: Need) -> bool:
        here = self.on[place]
        if place in self.lost or (need.nodes and here):
            return False
        cores = sum(self.shape.cores if other.nodes else other.cores for other in here)
        memory = sum(0 if other.nodes else other.memory_bytes for other in here)
        memory_left = self.shape.memory_bytes is None or memory + need.memory_bytes <= self.shape.memory_bytes
        return bool(need.nodes) or (cores + need.cores <= self.shape.cores and memory_left)

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


@given(SHAPES, st.integers(1, 4), st.data())
def test_room_is_what_adding_up_says(shape: NodeShape, count: int, data: st.DataObject) -> None:
    nodes, slow, taken = Nodes(count, shape), Slow(shape, [[] for _ in range(count)]), dict[int, tuple[int, ...]]()
    needs = data.draw(st.lists(NEEDS, max_size=25))
    for task, need in enumerate(needs):
        assert nodes.can_ever_hold(need) == (need.nodes <= count - len(slow.lost))
        places = slow.room(need)
        assert nodes.room(need) == places
        if places:
            nodes.take(task, need, places)
            slow.take(need, places)
            taken[task] = places
        if data.draw(st.booleans()) and taken:
            gone = data.draw(st.sampled_from(sorted(taken)))
            assert nodes.give(gone) == needs[gone]
            slow.give(needs[gone], taken.pop(gone))
        if data.draw(st.integers(0, 9)) == 0:
            slow.lost.add(lost := data.draw(st.integers(0, count - 1)))
            nodes.lose(lost)
        assert all((task in nodes) == (task in taken) for task in range(len(needs)))
    free = [CORES - sum(CORES if n.nodes else n.cores for n in here) for here in slow.on]
    assert nodes.free_cores == sum(cores for place, cores in enumerate(free) if place not in slow.lost)


@given(SHAPES, st.integers(1, 4), st.data())
def test_a_job_starts_the_longest_that_has_room(shape: NodeShape, count: int, data: st.DataObject) -> None:
    """Every task offered is tried, the longest first, equals by number, as often as one of them could start."""
    needs = data.draw(st.lists(NEEDS, max_size=20))
    length_s = [data.draw(st.integers(1, 3)) for _ in needs]
    packing, slow = Packing(count, shape), Slow(shape, [[] for _ in range(count)])
    offered: set[int] = set()
    running: dict[int, tuple[int, ...]] = {}
    for task, need in enumerate(needs):
        packing.offer(task, length_s[task], need)
        offered.add(task)
        if data.draw(st.booleans()):
            expected = []
            for one in sorted(offered, key=lambda t: (-length_s[t], t)):
                if places := slow.room(needs[one]):
                    slow.take(needs[one], places)
                    expected.append((one, places))
            offered.difference_update(one for one, _ in expected)
            running |= dict(expected)
            assert packing.start() == expected
            assert packing.held.cores == sum(needs[t].nodes * CORES or needs[t].cores for t in running)
        if data.draw(st.booleans()) and running:
            gone = data.draw(st.sampled_from(sorted(running)))
            packing.finish(gone)
            slow.give(needs[gone], running.pop(gone))


@given(SHAPES, st.integers(1, 4), st.data())
def test_a_pool_places_in_the_order_of_asking(shape: NodeShape, count: int, data: st.DataObject) -> None:
    needs = data.draw(st.lists(NEEDS, max_size=20))
    placement, slow = Placement(count, shape), Slow(shape, [[] for _ in range(count)])
    waiting: list[int] = []
    placed: dict[int, tuple[int, ...]] = {}
    for key, need in enumerate(needs):
        placement.ask(key, need)
        waiting.append(key)
        assert placement.misfits() == [k for k in waiting if needs[k].nodes > count - len(slow.lost)]
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
    slow = Slow(shape, [])
    for need in sorted(needs, reverse=True):
        if not slow.room(need):
            slow.on.append([])
        slow.take(need, slow.room(need))
    assert _first_fit(needs, shape) == len(slow.on)
