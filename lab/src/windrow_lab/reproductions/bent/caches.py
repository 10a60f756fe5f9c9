"""What levels of caches make of scans, block by block (figures 3.4, A.3 and A.4). Sizes are in
blocks, of 4 MiB.

A cooperative cache has one place for each block: dealt to members in turn, or by a hash, which
fills them unevenly.
"""

import hashlib
from collections.abc import Mapping

import numpy as np

from windrow.model.graph import Ints
from windrow_lab.kernels.flows.blocks import misses


def missed(blocks: Ints, capacity: int, *, is_mru: bool = False) -> Ints:
    """Where in the accesses a cache of this capacity does not have the block."""
    ring = np.full((2, int(blocks.max(initial=0)) + 2), -1)
    found = np.zeros(len(blocks), dtype=np.int64)
    misses(blocks, capacity, is_mru, ring[0], ring[1], found)
    return np.flatnonzero(found)


def fetches(
    volume: int, cache: int, order: str, width: int, *, members: int = 16, is_hashed: bool = False
) -> float:
    """How often each of four batch volumes crosses the wide area; rounds of as many pipelines as
    members, in step."""
    rounds = width // members
    if order == "depth-first":
        depths = np.tile(np.arange(4), rounds)
    else:
        depths = np.repeat(np.arange(4), rounds)
    blocks = (depths[:, None] * volume + np.arange(volume)).ravel()
    if is_hashed:
        member = _by_hash(4 * volume, members)
    else:
        member = np.arange(4 * volume) % members
    own = [blocks[member[blocks] == one] for one in range(members)]
    return sum(len(missed(each, cache // members)) for each in own) / (4 * volume)


def _by_hash(blocks: int, members: int) -> Ints:
    """The member that has each block."""
    hashes = (hashlib.sha256(b"%d" % block).digest()[0] for block in range(blocks))
    return np.array([one % members for one in hashes])


def scan_rate(
    size: int, memory: int, disk: int, rates: Mapping[str, float], *, is_mru: bool = False
) -> float:
    """Of warm scans by one of two nodes; every other block is the other one's, and is kept in what
    room is left."""
    blocks = np.tile(np.arange(size), 4)
    seconds = np.full(len(blocks), 1 / rates["memory"])
    far = missed(blocks, memory, is_mru=is_mru)
    seconds[far] += 1 / rates["disk"]
    for side, room in ((0, disk), (1, max(0, disk - (size + 1) // 2))):
        there = far[blocks[far] % 2 == side]
        there = there[missed(blocks[there] // 2, room, is_mru=is_mru)]
        if side:
            seconds[there] += 1 / rates["local"]
            there = there[missed(blocks[there] // 2, disk, is_mru=is_mru)]
        seconds[there] += 1 / rates["remote"]
    return float(1 / seconds[size:].mean())


def second_scan_rate(size: int, memory: int, rates: Mapping[str, float]) -> float:
    """Of the scan after the one that brought the blocks, by LRU, up to one disk: what memory still
    had of that one is written to the disk before it goes.
    """
    again = int(np.sum(missed(np.tile(np.arange(size), 2), memory) >= size))
    return size / (size / rates["memory"] + (again + min(again, memory)) / rates["disk"])
