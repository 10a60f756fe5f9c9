"""How data that many tasks of a job read come to the disks of its nodes: from each other, or by
Slurm's `sbcast`.

A *mover* brings a source to its node, once, and says where it lies there; it runs in the node's
carrier. What it cannot bring, or what is too small to be worth it, each node copies for itself, as
it does without a mover; what has an address each node fetches for itself, if they do not fetch
from each other. Movers of a job hear each other by way of the agent, which passes on what one says
to all (`tell`, `hear`): first each its card, which says that it is there.

Nodes that fetch from each other also do so across the jobs of a run that see the same files
(`neighbours`). While a job waits in the queue, one that runs fetches what it will share, if
there is room, and hands it on when that one starts.
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from windrow.agent.data.carrier import Share
from windrow.agent.data.homes import open_home
from windrow.agent.data.members import Peer
from windrow.agent.data.neighbours import Neighbours
from windrow.agent.data.peers import MEET_S, Peers
from windrow.agent.data.signing import run_key
from windrow.agent.folder import RunFolder
from windrow.agent.job_file import read_job
from windrow.errors import OutsideError, WindrowError
from windrow.files import free_bytes
from windrow.model.volume import PEER, SBCAST

SMALL_BYTES = 1 << 20
"""Below this a node copies a file for itself."""
_ROOM = 0.9  # of what is free on the disk

_AHEAD = "ahead"
_LOOK_EVERY_S = 5.0
_LOOK_AT_LEAST_EVERY_S = 60.0
_JOBS_AHEAD = 8  # of how many jobs that wait it reads what they share: most share the same

Tell = Callable[[Sequence[object]], None]


class Mover:
    """Nodes fetch from home what is theirs to fetch, and the rest from each other; and ahead, in
    order of need."""

    def __init__(self, share: Share, tell: Tell) -> None:
        """OSError, OutsideError, ValueError if this node cannot take part."""
        self.share = share
        self._tell = tell
        self._cards: dict[int, Any] = {}
        self._folder = RunFolder.at(share.home)
        self._are_met = threading.Event()
        self._ahead = queue.Queue[str]()
        self._neighbours = Neighbours(self._folder.caches, share.job, self._is_over)
        is_alone = share.how != PEER
        host, key = (
            ("", b"")
            if is_alone
            else (_own_address(share), run_key(self._folder.path / "peer-key"))
        )
        self._peers = Peers(
            share.run, key, str(share.place), Path(share.folder), int(self._free() * _ROOM), host
        )
        self._peers.offer(share.sources)
        if not is_alone:
            self._announce(None)  # before any of this job looks for others
        tell([share.folder if is_alone else self._peers.member])
        if not is_alone:
            threading.Thread(target=self._fetch_ahead, daemon=True).start()

    def hear(self, place: int, what: Sequence[Any]) -> None:
        """What the mover at this place says; as its card None: it takes no part, or is lost.

        The first also says which volumes to fetch for other jobs.
        """
        if what[0] == _AHEAD:
            self._peers.offer(what[1])
            for source in what[1]:
                self._ahead.put(source)
            return
        card = self._cards[place] = what[0]
        are_all = len(self._cards) == self.share.nodes
        if isinstance(card, list):
            members = [Peer(*card)]
        else:
            members = []
        if card:
            lost = []
        else:
            lost = [str(place)]
        self._peers.meet(members, lost, are_all=are_all and self.share.how != PEER)
        if are_all:
            self._are_met.set()

    def _free(self) -> int:
        return free_bytes(Path(self.share.folder).parent) or 0

    def _is_over(self, job: int) -> bool:
        is_known = job < self.share.over_below or job in self.share.over
        return is_known or self._folder.over(job).exists()

    def bring(self, source: str) -> str | None:
        """Where the source lies on this node; None: it is to be copied. OSError, OutsideError."""
        self._peers.wait_for_members()
        if _is_worth_it(source):
            return self._bring(source)
        return None

    def _log_brought(self, source: str) -> None:
        moved = self._peers.moved
        shown = source.partition("?")[0]
        text = f"{moved['home']} bytes from home, {moved['peers']} from other nodes"
        _log(f"node {self.share.place} has {shown}; in total {text}")
        for who, size in self._peers.wrong(source).items():
            _log(
                f"node {self.share.place} got {size} wrong bytes of {shown} from {who}, and "
                "fetched them again"
            )

    def _bring(self, source: str) -> str | None:
        if self.share.how != PEER and "://" not in source:
            return None
        folder = self._peers.fill(source)
        self._log_brought(source)
        is_file = "://" not in source and os.path.isfile(source)
        if folder is None:
            return None
        return str(folder / os.path.basename(source) if is_file else folder)

    def from_nodes(self, source: str) -> int:
        """How many bytes of what was brought came from other nodes."""
        volume = self._peers.volume(source)
        if volume is None:
            return 0
        return volume.from_peers

    def wrong(self, source: str) -> dict[str, int]:
        """Who gave other data than was read from home, and how many bytes."""
        return dict(self._peers.wrong(source))

    def _fetch_ahead(self) -> None:
        """All that this job shares; then what those will share that wait."""
        self._are_met.wait(MEET_S)
        with contextlib.suppress(OSError):
            self._peers.follow(self._neighbours.older())
        self._announce([])
        self._peers.meet([], are_all=True)
        for source in self.share.sources:
            with contextlib.suppress(OSError, OutsideError):  # the task that needs it will say so
                if _is_worth_it(source):
                    self._peers.fill(source, is_gentle=True)
        if self.share.place == 0:
            threading.Thread(target=self._look_for_jobs, daemon=True).start()
        while True:
            with contextlib.suppress(OSError, OutsideError):
                self._peers.fill(self._ahead.get(), is_gentle=True)

    def _announce(self, more: Iterable[str] | None) -> None:
        """Let jobs that start from now on know what this one shares; None: that it will."""
        if self.share.place == 0:
            members = [Peer(*card) for card in self._cards.values() if isinstance(card, list)]
            with contextlib.suppress(OSError):
                self._neighbours.tell(
                    None if more is None else members, [*self.share.sources, *(more or ())]
                )

    def _look_for_jobs(self) -> None:
        """Now and then: what the next jobs of this run will share that have not started, as far as
        there is room."""
        folder = self._folder
        looked_at = {self.share.job}
        ahead = list[str]()
        found = 0
        pause_s = _LOOK_EVERY_S
        while True:
            time.sleep(pause_s)
            pause_s = min(1.5 * pause_s, _LOOK_AT_LEAST_EVERY_S)
            for job in [job for job in folder.numbers() if job not in looked_at]:
                if folder.claim(job).exists() or self._is_over(job):
                    looked_at.add(job)
                    continue
                with contextlib.suppress(OSError, WindrowError):  # it is not written yet
                    wanted = read_job(folder.job_file(job)).shared_sources()
                    known = {*self.share.sources, *ahead}
                    looked_at.add(job)
                    found += 1
                    if new := [
                        source for source in wanted if source not in known and self._fits(source)
                    ]:
                        ahead += new
                        self._tell([_AHEAD, new])
                        self._announce(ahead)
                if found == _JOBS_AHEAD:
                    return

    def _fits(self, source: str) -> bool:
        """Whether it may be fetched for another job: it is there, and takes less than half of what
        is free."""
        try:
            size = sum(size for size, _ in open_home(source).files.values())
        except (OSError, WindrowError):  # a task has yet to make it, perhaps
            return False
        return SMALL_BYTES <= size <= self._free() // 2


class SbcastMover(Mover):
    """The first node has Slurm copy whole files to all nodes, one at a time, as they are wanted."""

    def __init__(self, share: Share, tell: Tell) -> None:
        self._wanted: queue.Queue[str] = queue.Queue()
        self._brought: dict[str, bool] = {}
        self._news = threading.Condition()
        super().__init__(share, tell)
        if share.place == 0:
            threading.Thread(target=self._cast, daemon=True).start()

    def hear(self, place: int, what: Sequence[Any]) -> None:
        """A card, a source that one wants, or one that was brought, or not."""
        if len(what) == 1:
            super().hear(place, what)
        elif len(what) == 2:
            self._wanted.put(what[1])
        else:
            with self._news:
                self._brought[what[1]] = what[2]
                self._news.notify_all()

    def _bring(self, source: str) -> str | None:
        if not os.path.isfile(source):
            return super()._bring(source)
        with self._news:
            if source not in self._brought:
                self._tell(["want", source])
                self._news.wait_for(lambda: source in self._brought)
            if self._brought[source]:
                return self._place(source)
            return None

    def from_nodes(self, source: str) -> int:
        """The first node reads a file, and sends it to the others."""
        is_cast = self._brought.get(source, False)
        if is_cast:
            return os.path.getsize(self._place(source)) * bool(self.share.place)
        return super().from_nodes(source)

    def _place(self, source: str) -> str:
        return f"{self.share.folder}/{self.share.sources.index(source)}"

    def _cast(self) -> None:
        self._peers.wait_for_members()
        are_alike = list(self._cards.values()) == [self.share.folder] * self.share.nodes
        done = set[str]()
        while True:
            if (source := self._wanted.get()) not in done:
                done.add(source)
                command = ["sbcast", "--force", "--preserve", source, self._place(source)]
                is_done = (
                    are_alike
                    and subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode
                    == 0
                )
                self._tell(["brought", source, is_done])


def facing(host: str) -> str:
    """The address of this machine on the network by which it reaches the other; no packet is
    sent."""
    for family, _, _, _, address in socket.getaddrinfo(
        host, 9, type=socket.SOCK_DGRAM
    ):  # OSError: an unknown name
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(address)
            return str(probe.getsockname()[0])
    raise OutsideError(f"no route to {host} from here")


def _own_address(share: Share) -> str:
    """Where this node is to listen: on the network by which it reaches the first node, or that one
    another.

    A name may be unknown here, or that of another network; Slurm knows by which address it reaches
    a node.
    """
    if share.place:
        launcher = os.environ.get("SLURM_LAUNCH_NODE_IPADDR", "")
    else:
        launcher = ""
    try:
        return facing(launcher or share.facing)
    except OSError:
        command = ["scontrol", "--oneliner", "show", "node", share.facing]
        told = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=60
        ).stdout
        found = re.search(r" NodeAddr=(\S+)", told)
        if found is None:
            raise
        return facing(found[1])


def _log(text: str) -> None:
    os.write(
        2, f"windrow: {text}\n".encode(errors="replace")
    )  # at once: all nodes write to the output of the job


def _is_worth_it(source: str) -> bool:
    return "://" in source or os.path.isdir(source) or os.path.getsize(source) >= SMALL_BYTES


def begin(share: Share, tell: Tell) -> list[Mover]:
    """The mover of this node; none, and said to the others, if it cannot take part."""
    try:
        return [(SbcastMover if share.how == SBCAST else Mover)(share, tell)]
    except (OSError, OutsideError, ValueError) as error:
        _log(f"node {share.place} shares no data with others: {error}")
        tell([None])
        return []
