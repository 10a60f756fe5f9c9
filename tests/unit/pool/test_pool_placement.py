"""Placement: no node gives more than it has, and nobody is overtaken."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from windrow.model import NodeShape
from windrow.model.nodes import Need
from windrow.pool.placement import Placement

NEEDS = st.one_of(
    st.builds(Need, st.integers(1, 4), st.integers(0, 8), st.just(0), st.just(0), st.just(())),
    st.builds(lambda n: Need(1, 0, n), st.integers(1, 3)),
)


@given(st.lists(NEEDS, min_size=1, max_size=20), st.data())
def test_no_node_gives_more_than_it_has_and_nobody_is_overtaken(
    needs: list[Need], data: st.DataObject
) -> None:
    placement = Placement(3, NodeShape(4, 8))
    placed: dict[int, tuple[int, ...]] = {}
    order: list[int] = []
    asked = 0
    while len(order) < len(needs) or placed:
        if asked < len(needs) and (not placed or data.draw(st.booleans())):
            placement.ask(asked, needs[asked])
            asked += 1
        else:
            gone = data.draw(st.sampled_from(sorted(placed)))
            placement.free(gone)
            del placed[gone]
        for key, nodes in placement.place():
            order.append(key)
            placed[key] = nodes
        for node in range(3):
            here = [needs[key] for key, nodes in placed.items() if node in nodes]
            assert sum(4 if need.nodes else need.cores for need in here) <= 4
            assert sum(0 if need.nodes else need.memory_bytes for need in here) <= 8
        assert all(len(nodes) == max(1, needs[key].nodes) for key, nodes in placed.items())
    assert order == list(range(len(needs)))


def test_a_wide_task_is_not_kept_waiting_by_small_ones() -> None:
    placement = Placement(1, NodeShape(4))
    placement.ask(0, Need(1))
    placement.ask(1, Need(4))
    placement.ask(2, Need(1))
    assert placement.place() == [(0, (0,))]
    placement.free(0)
    assert placement.place() == [(1, (0,))]


def test_who_waits_for_a_lost_node_is_told_apart() -> None:
    placement = Placement(3, NodeShape(1))
    for key, need in enumerate((Need(1), Need(1, 0, 3), Need(1, 0, 2), Need(1))):
        placement.ask(key, need)
    assert placement.place() == [(0, (0,))]
    assert placement.misfits() == []
    placement.lose(2)
    assert placement.misfits() == [1]
    placement.free(1)
    placement.free(0)
    assert placement.place() == [(2, (0, 1))]


def test_one_that_waits_can_be_taken_back() -> None:
    placement = Placement(1, NodeShape(1))
    for key in range(3):
        placement.ask(key, Need(1))
    assert placement.place() == [(0, (0,))]
    placement.free(1)
    placement.free(0)
    assert placement.place() == [(2, (0,))]


def test_nothing_starts_on_a_lost_node() -> None:
    placement = Placement(2, NodeShape(1))
    placement.ask(0, Need(1))
    assert placement.place() == [(0, (0,))]
    placement.lose(0)
    placement.free(0)
    placement.ask(1, Need(1))
    placement.ask(2, Need(1))
    assert placement.place() == [(1, (1,))]
    placement.free(1)
    assert placement.place() == [(2, (1,))]
