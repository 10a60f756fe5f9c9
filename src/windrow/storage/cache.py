"""What one member of a cooperative cache keeps: blocks of volumes, within its capacity in bytes.

Each volume has bytes that are guaranteed, all of them together at most the capacity; its primary blocks stay within
these, and where a further one does not fit another of the volume goes: the one used longest ago (LRU), or the one used
last (MRU). Copies of blocks whose primary is another member are secondary: they take what room primary ones leave, of
whichever volume, and go first whenever one of those needs it, those of the volume that needs it before others.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from windrow.model.volume import POLICIES

LRU, MRU = POLICIES

Block = Hashable
"""What names a block of a volume."""


@dataclass
class _Kept:
    """Blocks with their sizes, from the one used longest ago to the one used last."""

    sizes: dict[Block, int] = field(default_factory=dict)
    total: int = 0

    def add(self, block: Block, size: int) -> None:
        self.sizes[block] = size
        self.total += size

    def remove(self, block: Block) -> Block:
        self.total -= self.sizes.pop(block)
        return block


@dataclass
class _Volume:
    guaranteed: int
    policy: str
    primary: _Kept = field(default_factory=_Kept)
    secondary: _Kept = field(default_factory=_Kept)

    def give_up(self, kept: _Kept) -> Block:
        return kept.remove(next(reversed(kept.sizes)) if self.policy == MRU else next(iter(kept.sizes)))


class CacheIndex:
    """Which blocks are here, and which go when others come."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._volumes: dict[str, _Volume] = {}

    @property
    def primary(self) -> int:
        """Bytes of primary blocks."""
        return sum(volume.primary.total for volume in self._volumes.values())

    @property
    def used(self) -> int:
        """Bytes of all blocks."""
        return self.primary + sum(volume.secondary.total for volume in self._volumes.values())

    @property
    def guaranteed(self) -> int:
        """Bytes that volumes have been promised."""
        return sum(volume.guaranteed for volume in self._volumes.values())

    def __contains__(self, name: str) -> bool:
        return name in self._volumes

    def allocate(self, name: str, guaranteed: int, policy: str = LRU) -> bool:
        """Guarantee a volume these bytes; whether there is room for that. One that is there stays as it is."""
        if name not in self._volumes:
            if self.guaranteed + guaranteed > self.capacity:
                return False
            self._volumes[name] = _Volume(guaranteed, policy)
        return True

    def use(self, name: str, block: Block) -> bool:
        """Whether the block is here; if so, it is the one used last."""
        for kept in (self._volumes[name].primary.sizes, self._volumes[name].secondary.sizes):
            if block in kept:
                kept[block] = kept.pop(block)
                return True
        return False

    def put(self, name: str, block: Block, size: int, *, is_primary: bool) -> list[tuple[str, Block]] | None:
        """Keep a block that is not here, or was only as a secondary one. What goes for it; None: there is no room."""
        volume, gone = self._volumes[name], list[tuple[str, Block]]()
        if size > (volume.guaranteed if is_primary else self.capacity - self.primary):
            return None
        if block in volume.secondary.sizes:
            volume.secondary.remove(block)
        while is_primary and volume.primary.total + size > volume.guaranteed:
            gone.append((name, volume.give_up(volume.primary)))
        for other, each in ((name, volume), *self._volumes.items()):
            while self.used + size > self.capacity and each.secondary.sizes:
                gone.append((other, each.give_up(each.secondary)))
        (volume.primary if is_primary else volume.secondary).add(block, size)
        return gone
