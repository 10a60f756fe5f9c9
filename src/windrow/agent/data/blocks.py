"""Which member of a cooperative cache is the primary of a block: the one that fetches it from home,
for all.

What is dealt is a file, or the files of a volume in a row: blocks 0, 1, 2, ... They go to the
members in turn, in an order that a hash of its name gives. A member has a room, in blocks. Of
unequal ones each gets its share of any first blocks, as near as whole blocks allow (Webster's
rule), and none more than its room while another has some left. Without room (a diskless node) it is
dealt none; without tasks (a storage-only node) it is a member as any.

When members are lost their blocks, and no others, go to those that are left, by rendezvous hashing
in proportion to their rooms. `is_hashed`: all blocks go by that, as in Bent's system: some members
are full long before others, and home is asked for more well before the data are as large as all
rooms together.
"""

from __future__ import annotations

import hashlib
import heapq
from array import array
from collections.abc import Collection, Iterator, Mapping
from math import log

BLOCK_BYTES = 4 << 20


def _draw(*what: object) -> float:
    """A number between 0 and 1 that only these decide."""
    text = "\0".join(map(str, what)).encode("utf-8", "surrogateescape")
    return (int.from_bytes(hashlib.sha256(text).digest()[:6], "big") + 0.5) / (1 << 48)


class Deal:
    """The blocks of one name, dealt to members by their rooms."""

    def __init__(
        self, name: str, count: int, rooms: Mapping[str, int], *, is_hashed: bool = False
    ) -> None:
        self.name = name
        self.count = count
        self.rooms = {member: room for member, room in rooms.items() if room > 0}
        self._order = sorted(self.rooms, key=lambda member: (_draw(name, member), member))
        self._is_hashed = is_hashed
        are_alike = len(set(self.rooms.values())) <= 1
        if are_alike or is_hashed:
            self._turns = None
        else:
            self._turns = array("H", self._shares())

    def primary(self, block: int, lost: Collection[str] = ()) -> str | None:
        """Who fetches it, if these members are lost; None if no member has room."""
        if not self._is_hashed and self._order:
            if self._turns is None:
                turn = block % len(self._order)
            else:
                turn = self._turns[block]
            if self._order[turn] not in lost:
                return self._order[turn]
        left = [member for member in self._order if member not in lost]
        return max(
            left,
            key=lambda member: self.rooms[member] / -log(_draw(self.name, block, member)),
            default=None,
        )

    def _shares(self) -> Iterator[int]:
        """Whose turn it is, block by block: the member with the most room for each block that it
        would have then."""
        rooms = [self.rooms[member] for member in self._order]
        turns = [(1 / room, turn, 1) for turn, room in enumerate(rooms)]
        full = list[tuple[float, int, int]]()
        heapq.heapify(turns)
        for _ in range(self.count):
            if not turns:  # more than there is room for: let all be as much too full
                turns = full
                full = []
                heapq.heapify(turns)
            _, turn, odd = heapq.heappop(turns)
            later = ((odd + 2) / rooms[turn], turn, odd + 2)
            if (odd + 1) // 2 % rooms[turn] == 0:
                full.append(later)
            else:
                heapq.heappush(turns, later)
            yield turn
