"""What one member of a cooperative cache keeps: blocks of volumes, within its capacity in bytes.

Each volume has bytes that are guaranteed, all of them together at most the capacity; its primary
blocks stay within these, and if a further one does not fit another of the volume goes: the one
used longest ago (LRU), or the one used last (MRU). Copies of blocks whose primary is another member
are secondary: they take what room primary ones leave, of whichever volume, and go first whenever
one of those needs it, those of the volume that needs it before others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from windrow.model.volume import POLICIES

LRU, MRU = POLICIES
Block = Hashable
"""What names a block of a volume."""


class CacheIndex:
    """Which blocks are here, and which go when others come."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.used = 0
        self.guaranteed = 0
        self._volumes: dict[str, tuple[int, str]] = {}  # guaranteed bytes and policy
        self._kept: dict[
            tuple[str, bool], dict[Block, int]
        ] = {}  # sizes, from the one used longest ago to the last
        self._primary: Counter[str] = Counter()

    def __contains__(self, name: str) -> bool:
        return name in self._volumes

    def allocate(self, name: str, guaranteed: int, policy: str = LRU) -> bool:
        """Guarantee a volume these bytes; whether there is room for that. One that is there stays
        as it is."""
        if name not in self._volumes:
            if self.guaranteed + guaranteed > self.capacity:
                return False
            self._volumes[name] = guaranteed, policy
            self.guaranteed += guaranteed
            self._kept.update({(name, True): {}, (name, False): {}})
        return True

    def use(self, name: str, block: Block) -> bool:
        """Whether the block is here; if so, it is the one used last."""
        for kept in (self._kept[name, True], self._kept[name, False]):
            if block in kept:
                kept[block] = kept.pop(block)
                return True
        return False

    def put(
        self, name: str, block: Block, size: int, *, is_primary: bool
    ) -> list[tuple[str, Block]] | None:
        """Keep a block that is not here, or was only as a secondary one. What goes for it; None:
        there is no room."""
        guaranteed = self._volumes[name][0]
        gone = list[tuple[str, Block]]()
        most = guaranteed
        if not is_primary:
            most = self.capacity - sum(self._primary.values())
        if size > most:
            return None
        self.used -= self._kept[name, False].pop(block, 0)
        while is_primary and self._primary[name] + size > guaranteed:
            gone.append((name, self._give_up(name, is_primary=True)))
        for other in (name, *self._volumes):
            while self.used + size > self.capacity and self._kept[other, False]:
                gone.append((other, self._give_up(other, is_primary=False)))
        self._kept[name, is_primary][block] = size
        self.used += size
        if is_primary:
            self._primary[name] += size
        return gone

    def _give_up(self, name: str, *, is_primary: bool) -> Block:
        kept = self._kept[name, is_primary]
        if self._volumes[name][1] == MRU:
            block = next(reversed(kept))
        else:
            block = next(iter(kept))
        size = kept.pop(block)
        self.used -= size
        if is_primary:
            self._primary[name] -= size
        return block
