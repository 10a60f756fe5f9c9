"""Blocks that rot: nodes share what many tasks read, and disks change what lies on them.

The nodes are real members of a cooperative cache (`agent.data.peers`), which talk over this
machine's loopback interface. Law: what a node calls whole is what its home has, whatever became of
the blocks on other nodes, and of those on its own disk until then. One node after the other fetches
all, block by block; between and meanwhile blocks rot on those that have some, but not while a node
proves what it has: a block that is proven may rot before the next one is. All of it is drawn from a
seed.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

from windrow.agent.data.homes import FolderHome
from windrow.agent.data.peers import Peers
from windrow.errors import OutsideError

_BLOCK = 64
_ROOM = 1 << 16
_NAME = "shared"


class _Home(FolderHome):
    """Home, of which some reads take so long that blocks rot meanwhile."""

    def __init__(self, source: str, rots: Callable[[], None], chance: random.Random) -> None:
        self._rots = rots
        self._chance = chance
        super().__init__(source)

    def _get(self, name: str, begin: int, end: int) -> tuple[bytes, str]:
        if self._chance.random() < 0.1:
            self._rots()
        return super()._get(name, begin, end)


class Rotting:
    """Some nodes, in this folder, which goes in the end."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rotten = 0
        """Blocks that rotted."""
        self._folder = folder
        self._chance = random.Random(f"blocks {seed}")
        self._home = folder / "home"
        self._filling: Peers | None = None

    def _make_files(self) -> None:
        self._home.mkdir(parents=True)
        for number in range(self._chance.randint(1, 3)):
            size = self._chance.choice([0, 1, _BLOCK, 5 * _BLOCK + 7])
            (self._home / f"file-{number}").write_bytes(self._chance.randbytes(size))

    def wrong(self) -> str:
        """What a node calls whole that is not; empty if nothing."""
        self._make_files()
        members = list[Peers]()
        try:
            members += [self._member(number) for number in range(self._chance.randint(2, 4))]
            for one in members:
                one.meet([each.member for each in members])
                one.add(_NAME, _Home(str(self._home), self._rot_before_proof, self._chance))
            return "; ".join(filter(None, map(self._filled, members)))
        finally:
            for one in members:
                one.close()
            shutil.rmtree(self._folder)

    def _member(self, number: int) -> Peers:
        place = self._folder / f"node-{number}"
        return Peers("virtual", b"k" * 32, f"n{number}", place, _ROOM, "127.0.0.1", _BLOCK)

    def _filled(self, one: Peers) -> str:
        """Let a node fetch all; what is wrong with it then."""
        self._filling = one
        try:
            place = one.fill(_NAME, is_gentle=True)
        except (OSError, OutsideError) as error:  # a disk that is never right is told, too
            return "" if "disk" in str(error) else f"{one.member.name}: {error}"
        assert place is not None
        for file in sorted(self._home.iterdir()):
            if (place / file.name).read_bytes() != file.read_bytes():
                return f"{file.name} on {one.member.name} is not what home has"
        self._rot()
        return ""

    def _rot_before_proof(self) -> None:
        """Something rots, unless the node that fetches all proves what it has, or has done so.
        Threads of nodes call this."""
        assert self._filling is not None
        volume = self._filling.volume(_NAME)
        if volume is None or not volume.proving.acquire(blocking=False):
            return
        try:
            if not volume.is_proven:
                self._rot()
        finally:
            volume.proving.release()

    def _rot(self) -> None:
        """A byte changes on a node that has some."""
        places = (path for path in self._folder.glob("node-*/**/*") if path.is_file())
        if there := sorted(path for path in places if path.stat().st_size):
            path = self._chance.choice(there)
            data = bytearray(path.read_bytes())
            data[self._chance.randrange(len(data))] ^= 0xFF
            path.chmod(0o600)
            with path.open("r+b") as file:
                file.write(data)
            self.rotten += 1
