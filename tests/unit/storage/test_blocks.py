"""Blocks dealt to members, and what a member keeps, against the laws told once more, slowly."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from windrow.agent.data.blocks import Deal
from windrow.agent.data.cache import LRU, MRU, CacheIndex

ROOMS = st.lists(st.integers(0, 9), min_size=1, max_size=6).map(
    lambda rooms: {f"n{i}": r for i, r in enumerate(rooms)}
)


def in_turn(order: list[str], rooms: dict[str, int], count: int) -> list[str]:
    """Webster's rule, block by block: most room for each half block more, none above its room while
    another is not."""
    has, dealt = Counter[str](), list[str]()
    for n in range(count):
        over = n // sum(rooms.values())  # how often all are full
        open_ = [member for member in order if has[member] < rooms[member] * (over + 1)]
        dealt.append(max(open_, key=lambda member: Fraction(rooms[member], 2 * has[member] + 1)))
        has[dealt[-1]] += 1
    return dealt


@examples(60)
@given(ROOMS, st.integers(0, 60), st.sampled_from(["a", "b/c"]))
def test_blocks_are_dealt_in_turn_and_by_room(rooms: dict[str, int], count: int, name: str) -> None:
    deal = Deal(name, count, rooms)
    dealt = [deal.primary(block) for block in range(count)]
    total = sum(rooms.values())
    if not total:
        assert set(dealt) <= {None}
        return
    first = list(
        dict.fromkeys(Deal(name, 99, dict.fromkeys(deal.rooms, 1)).primary(b) for b in range(9))
    )
    assert dealt == in_turn([one for one in first if one], deal.rooms, count)
    has = Counter(dealt)
    if count <= total:
        assert all(has[member] <= room for member, room in rooms.items())
    if len(set(deal.rooms.values())) == 1:
        assert max(has.values(), default=0) <= -(-count // len(deal.rooms))


@examples(60)
@given(ROOMS, st.data(), st.booleans())
def test_the_loss_of_a_member_moves_only_its_blocks(
    rooms: dict[str, int], data: st.DataObject, is_hashed: bool
) -> None:
    deal, lost = Deal("file", 40, rooms, is_hashed=is_hashed), set[str]()
    before = [deal.primary(block) for block in range(40)]
    for member in data.draw(st.permutations(sorted(rooms))):
        lost.add(member)
        after = [deal.primary(block, lost) for block in range(40)]
        assert all(b in (a, member) for a, b in zip(after, before, strict=True))
        assert not lost.intersection(after)
        before = after


def test_the_order_of_members_is_that_of_the_file_alone() -> None:
    rooms = {f"n{i}": 5 for i in range(8)}
    orders = {tuple(Deal(name, 8, rooms).primary(b) for b in range(8)) for name in "abcdefgh"}
    assert len(orders) > 4
    assert Deal("a", 8, rooms).primary(3) == Deal("a", 8, dict(reversed(rooms.items()))).primary(3)


class PlainCache:
    """The law of a member: lists of (volume, block, size), from the one used longest ago to the one
    used last."""

    def __init__(self, capacity: int, volumes: dict[str, tuple[int, str]]) -> None:
        self.capacity, self.volumes = capacity, volumes
        self.kept: list[tuple[str, int, int, bool]] = []

    def bytes(self, of: str | None = None, is_primary: bool | None = None) -> int:
        mine = (k for k in self.kept if of in (None, k[0]) and is_primary in (None, k[3]))
        return sum(k[2] for k in mine)

    def drop(self, of: str, is_primary: bool) -> tuple[str, int]:
        mine = [k for k in self.kept if k[0] == of and k[3] == is_primary]
        victim = mine[-1 if self.volumes[of][1] == MRU else 0]
        self.kept.remove(victim)
        return victim[:2]

    def use(self, of: str, block: int) -> bool:
        found = [k for k in self.kept if k[:2] == (of, block)]
        self.kept = [k for k in self.kept if k not in found] + found
        return bool(found)

    def put(self, of: str, block: int, size: int, is_primary: bool) -> list[tuple[str, int]] | None:
        if size > (
            self.volumes[of][0] if is_primary else self.capacity - self.bytes(is_primary=True)
        ):
            return None
        self.kept = [k for k in self.kept if k[:2] != (of, block)]
        gone = []
        while is_primary and self.bytes(of, True) + size > self.volumes[of][0]:
            gone.append(self.drop(of, True))
        while self.bytes() + size > self.capacity:
            other = (
                of
                if self.bytes(of, False)
                else next(v for v in self.volumes if self.bytes(v, False))
            )
            gone.append(self.drop(other, False))
        self.kept.append((of, block, size, is_primary))
        return gone


ACCESS = st.tuples(st.sampled_from("ab"), st.integers(0, 6), st.integers(1, 4), st.booleans())


@examples(100)
@given(
    st.integers(1, 9), st.integers(0, 9), st.sampled_from([LRU, MRU]), st.lists(ACCESS, max_size=40)
)
def test_a_member_keeps_what_the_law_says(
    a: int, rest: int, policy: str, accesses: list[tuple[str, int, int, bool]]
) -> None:
    cache = CacheIndex(a + rest)
    assert cache.allocate("a", a, policy)
    assert cache.allocate("b", rest // 2, LRU)
    assert not cache.allocate("c", a + rest + 1 - cache.guaranteed)
    law = PlainCache(a + rest, {"a": (a, policy), "b": (rest // 2, LRU)})
    for volume, block, size, is_primary in accesses:
        is_there = cache.use(volume, block)
        assert is_there == law.use(volume, block)
        if not is_there:
            assert cache.put(volume, block, size, is_primary=is_primary) == law.put(
                volume, block, size, is_primary
            )
        assert cache.used == law.bytes() <= cache.capacity


class Group:
    """Members that cooperate, without a network: who reads asks the primary, and only that one asks
    home."""

    def __init__(
        self,
        rooms: dict[str, int],
        policy: str = LRU,
        *,
        keeps: bool = False,
        is_hashed: bool = False,
    ) -> None:
        self.caches = {member: CacheIndex(room) for member, room in rooms.items()}
        self.rooms, self.policy, self.keeps, self.is_hashed = rooms, policy, keeps, is_hashed
        self.deals: dict[str, Deal] = {}
        self.from_home = 0
        for cache in self.caches.values():
            assert cache.allocate("all", cache.capacity, policy)

    def read(self, member: str, volume: str, count: int) -> None:
        deal = self.deals.setdefault(
            volume, Deal(volume, count, self.rooms, is_hashed=self.is_hashed)
        )
        for block in range(count):
            if not self.caches[member].use("all", (volume, block)):
                primary = deal.primary(block)
                if primary is None or not self.caches[primary].use("all", (volume, block)):
                    self.from_home += 1
                    if primary is not None:
                        self.caches[primary].put("all", (volume, block), 1, is_primary=True)
                if self.keeps and primary != member:
                    self.caches[member].put("all", (volume, block), 1, is_primary=False)


@examples(40)
@given(
    st.lists(st.integers(0, 8), min_size=1, max_size=6),
    st.integers(0, 40),
    st.booleans(),
    st.data(),
)
def test_what_fits_crosses_from_home_once(
    rooms: list[int], size: int, keeps: bool, data: st.DataObject
) -> None:
    """Whatever the number of nodes and pipelines, for members of any rooms, diskless ones among
    them."""
    size = min(size, sum(rooms))
    group = Group({f"n{i}": room for i, room in enumerate(rooms)}, keeps=keeps)
    readers = data.draw(st.lists(st.sampled_from(sorted(group.rooms)), min_size=1, max_size=12))
    for reader in readers:
        group.read(reader, "genome", size)
    assert group.from_home == size


@pytest.mark.parametrize("members", [1, 2, 4])
def test_scans_of_more_than_fits(members: int) -> None:
    """LRU fetches all of it each time; MRU keeps as large a part of it as fits."""
    rooms, size, scans = {f"n{i}": 10 for i in range(members)}, 20 * members, 6
    fetched = {}
    for policy in (LRU, MRU):
        group = Group(rooms, policy)
        for _ in range(scans):
            group.read("n0", "genome", size)
        fetched[policy] = group.from_home
    assert fetched[LRU] == scans * size
    hit_rate = 1 - (fetched[MRU] - size) / ((scans - 1) * size)
    assert hit_rate == pytest.approx(sum(rooms.values()) / size, abs=members / size)
    alone = [Group({"n0": 10}, LRU) for _ in range(members)]  # no cooperation: each for itself
    for one in alone:
        one.read("n0", "genome", 10)
    assert sum(one.from_home for one in alone) == 10 * members


def fetches(volume: int, order: str, width: int, *, is_hashed: bool = False) -> float:
    """Figure 3.4: how often each of four volumes comes from home; 16 members with 192 blocks of
    room in all."""
    group = Group({f"n{i}": 12 for i in range(16)}, is_hashed=is_hashed)
    rounds = width // 16
    turns = [d for _ in range(rounds) for d in range(4)]
    for depth in turns if order == "depth-first" else sorted(turns):
        group.read(
            "n0", f"volume {depth}", volume
        )  # 16 pipelines in step: one reader of each block is as good as 16
    return group.from_home / (4 * volume)


@pytest.mark.parametrize(("width", "most"), [(64, 4), (32, 2)])
def test_figure_3_4_with_its_knees(width: int, most: int) -> None:
    """Volumes of up to a quarter of the cache are fetched once by either order, up to all of it by
    breadth-first."""
    assert [fetches(v, "depth-first", width) for v in (48, 64, 192, 208)] == [1, most, most, most]
    assert [fetches(v, "breadth-first", width) for v in (48, 64, 192, 208)] == [1, 1, 1, most]
    assert 1 < fetches(176, "breadth-first", width, is_hashed=True) < most, (
        "plain hashing has an early knee"
    )
