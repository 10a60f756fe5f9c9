"""Who shares volumes, and a shared volume as one of them has it."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from windrow.agent.data.blocks import BLOCK_BYTES, Deal
from windrow.agent.data.homes import Home


class Peer(NamedTuple):
    """Who keeps blocks: its name, where its server listens, which server that is, and bytes of
    room; JSON has it."""

    name: str
    host: str
    port: int
    server: str
    room: int


class Group:
    """The nodes of another job by their names there, those that cannot be reached, and the volumes
    that they share."""

    def __init__(
        self, members: Iterable[Peer], sources: Iterable[str], block: int = BLOCK_BYTES
    ) -> None:
        self.members = {member.name: member for member in members}
        self.lost = set[str]()
        self.sources = set(sources)
        self._rooms = rooms_of(self.members.values(), block)
        self._deals: dict[str, Deal] = {}

    def deal(self, volume: Volume) -> Deal:
        """How they deal a volume."""
        deal = self._deals.get(volume.name) or Deal(volume.name, len(volume.at), self._rooms)
        return self._deals.setdefault(volume.name, deal)


class Source(NamedTuple):
    """Who sent a block, who cannot be asked there, and a checksum of what came: whether the own
    disk changed it."""

    member: Peer
    lost: set[str]
    sum: int


class Volume:
    """A shared volume as this member has it. Its blocks are numbered through its files."""

    def __init__(
        self, name: str, home: Home, folder: Path, block: int, rooms: Mapping[str, int]
    ) -> None:
        self.name = name
        self.home = home
        self.folder = folder
        self.is_whole = False
        self.from_peers = 0
        self.digests: dict[int, str] = {}  # of blocks that are here, or were
        self.sources: dict[int, Source] = {}  # of blocks that are not proven
        self.is_proven = False
        self.proving = threading.Lock()
        self.wrong: Counter[str] = Counter()
        sizes = [(file, size) for file, (size, _) in home.files.items()]
        self.at = [
            (file, at, min(at + block, size))
            for file, size in sizes
            for at in range(0, size, block)
        ]
        self.numbers = {at: n for n, at in enumerate(self.at)}
        self.deal = Deal(name, len(self.at), rooms)

    def numbered(self, version: list[str], begin: int, end: int) -> int | None:
        """The block that is just this of a file. `version`: the file's mark, perhaps not the one
        here, and its name."""
        is_here = len(version) == 2 and self.home.files.get(version[1], (0, None))[1] == version[0]
        if is_here:
            return self.numbers.get((version[1], begin, end))
        return None

    def place(self, n: int) -> tuple[Path, int]:
        """The file that block n is in, and where in it."""
        file, begin, _ = self.at[n]
        if self.is_whole:
            return (self.folder / file, begin)
        return (self.folder / f"{n}", 0)


def rooms_of(members: Iterable[Peer], block: int) -> dict[str, int]:
    """How many blocks each may keep."""
    return {member.name: member.room // block for member in members}


def digest_of(data: bytes | memoryview) -> str:
    """What no two blocks have in common. Of the hashes at hand this takes the least time where
    processors help."""
    return hashlib.sha256(data).hexdigest()
