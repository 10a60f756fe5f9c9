"""A node as a member of a cooperative cache: it fetches shared volumes, block by block, and serves
them to its peers.

The wire is HTTP/1.1 with ranges, signed (`signing`). Which member is the primary of a block is said
by `agent.data.blocks`, which blocks a member keeps by `agent.data.cache`; where data come from by
`homes`.

Rule 1: one fetch in flight for a block and a source; who comes later waits for the same.
Rule 2: a member that is asked by a peer asks home, never another peer. A member asks one that is
dealt the block before itself. So no two wait for each other, and each block comes from home once
while all members can talk. Between a group of members and home are older groups, of other jobs
(`neighbours`): what home is asked for, one of them is asked first.
Rule 3: a peer that cannot be reached, or is silent, is not asked again, and its blocks are dealt to
others. Whatever a peer cannot give comes from home. A fault of the network costs time and bytes,
never a task.
Rule 4: a volume that fits is kept whole, as the files that it has, and is there when all blocks
are; else each block lies by itself, and may go for another. What is served was offered here: no
path of a request is ever opened.
Rule 5: a request names the version of the file, as its home tells it, and another version is never
the answer.
Rule 6: who reads a block from home makes a hash of it, which goes with the block in signed answers.
A volume is used when all that lies on the disk has been compared, and what came from a member is
passed on only then. Who sent something else is not asked again, and is named (`wrong`).
Rule 7: nothing is kept beyond the process. A server that starts again is another one, and for
volumes that it has not got the answer is 410, volume lost; 404 is a volume without such a file or
block.
"""

from __future__ import annotations

import contextlib
import errno
import hmac
import os
import socket
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from functools import partial
from math import inf
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote_from_bytes, unquote_to_bytes

from windrow.agent.data.blocks import BLOCK_BYTES, Deal
from windrow.agent.data.cache import LRU, CacheIndex
from windrow.agent.data.homes import Home, open_home
from windrow.agent.data.members import Group, Peer, Source, Volume, digest_of, rooms_of
from windrow.agent.data.serving import Door, be_patient
from windrow.agent.data.signing import (
    HEAD_BYTES,
    Request,
    fields_of,
    head_of,
    signature,
)
from windrow.deletion import discard, discard_tree, stamp_at
from windrow.errors import OutsideError

SILENT_S = 10.0
"""A peer that has sent nothing for as long is not asked again."""
_CONNECT_S = 5.0
_ALIVE_EVERY_S = 1.0  # how often it says that a block is still on its way
MEET_S = 30.0
"""How long members have to come."""
_PEER_STREAMS = 4
_HOME_STREAMS = 3
OWN_DISK = "its own disk"
_REPAIRS = 3  # times that a block on the own disk may be wrong
_OLDER_LOST = 4  # nodes of other jobs that cannot be reached, after which none of those is asked


class Peers:
    """This member: its server, and all that it asks of others."""

    def __init__(
        self,
        run: str,
        key: bytes,
        name: str,
        folder: Path,
        room: int,
        host: str,
        block: int = BLOCK_BYTES,
    ) -> None:
        """`folder` is this member's alone, and is removed in the end; `room`: bytes that it may
        take there.

        `host`: the address at which it listens; without one it does not, and is for itself.
        """
        folder.mkdir(mode=0o700, parents=True)
        self._made = stamp_at(folder)
        self._run = run
        self._key = key
        self._folder = folder
        self._block = block
        self._index = CacheIndex(room)
        self._lock = threading.Lock()
        self._adding = threading.RLock()
        self._volumes: dict[str, Volume] = {}
        self._offered: set[str] = set()
        self._members: dict[str, Peer] = {}
        self._are_met = threading.Event()
        self._lost: set[str] = set()
        self._older: list[Group] = []
        self._flights: dict[tuple[str, int, bool], Future[bytes | None]] = {}
        self._own = threading.local()
        self.moved: Counter[str] = Counter()
        """Bytes that came from home and from peers, and were served to them."""
        self._pools = [
            ThreadPoolExecutor(n, "windrow-fetch") for n in (_PEER_STREAMS, _HOME_STREAMS)
        ]
        self._door = Door(run, key, host)
        self.member = Peer(name, host, self._door.port, self._door.server, room)
        self._door.open(self._answer)

    def close(self) -> None:
        """Listen no more, give up what is fetched, and remove what was kept."""
        self._door.close()
        for pool in self._pools:
            pool.shutdown(wait=False, cancel_futures=True)
        with contextlib.suppress(OSError, ValueError):
            discard_tree(self._folder, made=self._made)

    # What the agent says

    def meet(
        self, members: Iterable[Peer], lost: Collection[str] = (), *, are_all: bool = True
    ) -> None:
        """These are members, and these are lost. Blocks are dealt, once, when all are known."""
        with self._lock:
            self._members.update({member.name: member for member in members})
            self._lost.update(lost)
        if are_all:
            self._are_met.set()

    def follow(self, older: Iterable[Group]) -> None:
        """These groups share data already; none of them ever asks this one."""
        self._older = list(older)

    def wait_for_members(self, still: Callable[[], None] = lambda: None) -> None:
        """Until all members are known; who comes later than this is none. `still` is called now and
        then meanwhile."""
        until = time.monotonic() + MEET_S
        while time.monotonic() < until and not self._are_met.wait(_ALIVE_EVERY_S):
            still()

    def offer(self, sources: Iterable[str]) -> None:
        """Volumes that this member takes part in when it, or a peer, wants them; their names are
        their sources."""
        self._offered.update(sources)

    def volume(self, name: str) -> Volume | None:
        """The volume of this name, if it is here or was offered. OutsideError if its home cannot
        be reached."""
        with self._adding:
            if name not in self._volumes and name in self._offered:
                self.add(name, open_home(name))
        return self._volumes.get(name)

    def add(self, name: str, home: Home, policy: str = LRU) -> bool:
        """Take part in a volume; whether it will be kept whole here. OSError if the disk
        refuses."""
        with self._adding:
            if name in self._volumes:
                return self._volumes[name].is_whole
            rooms = rooms_of(self._members.values() or [self.member], self._block)
            volume = Volume(name, home, self._folder / os.urandom(8).hex(), self._block, rooms)
            own = sum(volume.deal.primary(n) == self.member.name for n in range(len(volume.at)))
            with self._lock:
                volume.is_whole = self._index.allocate(
                    name, sum(size for size, _ in home.files.values()), policy
                )
                room = self._index.capacity - self._index.guaranteed
                self._index.allocate(name, min(own * self._block, room), policy)
            volume.folder.mkdir(mode=0o700)
            for file, (size, _) in home.files.items() if volume.is_whole else ():
                (volume.folder / file).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                with open(volume.folder / file, "xb", opener=_private) as made:
                    made.truncate(size)
            self._volumes[name] = volume
            return volume.is_whole

    def fill(self, name: str, *, is_gentle: bool = False) -> Path | None:
        """Fetch all of a volume: the folder with its files; None if there is no room.
        OutsideError, OSError.

        `is_gentle`: one block after the other, so that others come in between.
        """
        volume = self.volume(name)
        if volume is None or not volume.is_whole:
            return None
        primaries = [volume.deal.primary(n) for n in range(len(volume.at))]
        if self.member.name in primaries:
            begin = primaries.index(self.member.name)
        else:
            begin = 0
        flights = []
        for n in (
            *range(begin, len(primaries)),
            *range(begin),
        ):  # each asks first for what others have first
            flights.append(self._flight(volume, n, is_for_peer=False))
            if is_gentle and (flight := flights[-1]) is not None:
                flight.result()
        for flight in flights:
            if flight is not None and flight.result() is not None:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)
        self._prove(volume)
        for file in volume.home.files:
            volume.home.finish(file, str(volume.folder / file))
        return volume.folder

    def _prove(self, volume: Volume) -> None:
        """See that what lies on the disk is what was read from home; a block that is not comes from
        there again."""
        with volume.proving:
            if not volume.is_proven:
                list(self._pools[0].map(partial(self._prove_block, volume), range(len(volume.at))))
                volume.is_proven = True

    def _prove_block(self, volume: Volume, n: int) -> None:
        file, begin, end = volume.at[n]
        with open(volume.folder / file, "r+b", buffering=0) as kept:
            for _ in range(_REPAIRS):
                found = self._buffered(kept, begin, end - begin)
                if digest_of(found) == volume.digests[n]:
                    volume.sources.pop(n, None)
                    return
                _write_all(kept, self._again(volume, n, found), begin)
            raise OSError(
                errno.EIO, "the disk of this node gives back other data than it got", str(kept.name)
            )

    def _again(self, volume: Volume, n: int, found: bytes | memoryview) -> bytes:
        """The block from home, since what was found here is wrong. It names who spoiled it: sender
        or own disk."""
        source = volume.sources.pop(n, None)
        who = OWN_DISK
        if source is not None and zlib.crc32(found) == source.sum:
            source.lost.add(source.member.name)
            who = f"node {source.member.name} ({source.member.host})"
        with self._lock:
            volume.wrong[who] += len(found)
        return self._read_home(volume, n)

    def _buffered(self, file: BinaryIO, begin: int, size: int) -> memoryview:
        """These bytes of a file, as far as there are any, in the buffer of this thread."""
        view = self._buffer(size)
        got = 0
        while got < size and (more := os.preadv(file.fileno(), [view[got:]], begin + got)):
            got += more
        return view[:got]

    def _buffer(self, size: int) -> memoryview:
        if not hasattr(
            self._own, "buffer"
        ):  # new memory for each block would take as long as the block
            self._own.buffer = memoryview(bytearray(self._block))
        view: memoryview = self._own.buffer[:size]
        return view

    def wrong(self, name: str) -> Mapping[str, int]:
        """Who gave other data of a volume than was read from home, and how many bytes."""
        volume = self._volumes.get(name)
        if volume is None:
            return {}
        return dict(volume.wrong)

    def read(self, name: str, file: str, begin: int, end: int) -> bytes:
        """These bytes of a file of a volume, wherever its blocks are."""
        volume = self._volumes[name]
        parts = []
        for at in range(begin // self._block * self._block, end, self._block):
            behind = min(at + self._block, volume.home.files[file][0])
            n = volume.numbers[file, at, behind]
            data = self._obtain(volume, n, is_for_peer=False)
            if not isinstance(data, bytes):
                with data[0] as kept:
                    data = bytes(self._buffered(kept, data[1], behind - at))
            if digest_of(data) != volume.digests[n]:
                data = self._again(volume, n, data)
            parts.append(data[max(0, begin - at) : end - at])
        return b"".join(parts)

    # Blocks

    def _obtain(
        self, volume: Volume, n: int, *, is_for_peer: bool, still: Callable[[], None] | None = None
    ) -> tuple[BinaryIO, int] | bytes:
        """The block as it came; or, if it is kept, an open file, which lasts though the block
        may go, and its place.

        `still` is called now and then while it is on its way.
        """
        while True:
            with self._lock:
                if volume.name in self._index and self._index.use(volume.name, n):
                    path, at = volume.place(n)
                    return open(path, "rb", buffering=0), at
            flight = self._flight(volume, n, is_for_peer=is_for_peer)
            while flight is not None:
                try:
                    if (data := flight.result(_ALIVE_EVERY_S)) is not None:
                        return data
                    break
                except NotYet:
                    if still:
                        still()

    def _flight(self, volume: Volume, n: int, *, is_for_peer: bool) -> Future[bytes | None] | None:
        """The fetch of a block, started if it is not on its way; None: the block is here."""
        with self._lock:
            if volume.name not in self._index:
                raise OutsideError(f"volume lost: {volume.name}")
            if self._index.use(volume.name, n):
                return None
            is_home = is_for_peer or volume.deal.primary(n, self._lost) in (None, self.member.name)
            key = volume.name, n, is_home
            if key not in self._flights:
                if is_home:
                    how = self._from_home
                else:
                    how = self._from_peers
                self._flights[key] = self._pools[is_home].submit(self._land, key, volume, how)
            return self._flights[key]

    def _land(
        self,
        key: tuple[str, int, bool],
        volume: Volume,
        how: Callable[[Volume, int], bytes | memoryview],
    ) -> bytes | None:
        """Fetch a block and keep it; the block if that is impossible."""
        n = key[1]
        is_kept = False
        try:
            data = how(volume, n)
            with contextlib.suppress(OSError):
                path, at = volume.place(n)
                with open(
                    path, "r+b" if volume.is_whole else "wb", buffering=0, opener=_private
                ) as file:
                    _write_all(file, data, at)
                is_kept = self._keep(volume, n, len(data), is_primary=key[2] or volume.is_whole)
            if is_kept:
                return None
            return bytes(data)
        finally:
            with self._lock:
                del self._flights[key]

    def _keep(self, volume: Volume, n: int, size: int, *, is_primary: bool) -> bool:
        with self._lock:
            if volume.name not in self._index or self._index.use(volume.name, n):
                return volume.name in self._index
            gone = self._index.put(volume.name, n, size, is_primary=is_primary)
            for name, block in [(volume.name, n)] if gone is None else gone:
                assert isinstance(block, int)
                discard(self._volumes[name].place(block)[0])
            return gone is not None

    def _fit_to_pass_on(
        self, volume: Volume, n: int, block: tuple[BinaryIO, int] | bytes
    ) -> tuple[BinaryIO, int] | bytes:
        """The block, which is looked at first if it came from another member and is not proven
        yet."""
        if n not in volume.sources:
            return block
        size = volume.at[n][2] - volume.at[n][1]
        data = block if isinstance(block, bytes) else self._buffered(*block, size)
        if digest_of(data) == volume.digests[n]:
            return block
        if not isinstance(block, bytes):
            block[0].close()
        return self._again(volume, n, data)

    def _from_home(self, volume: Volume, n: int) -> bytes | memoryview:
        """From an older group, another one for each block; from home if none can give it."""
        older = [group for group in self._older if volume.name in group.sources]
        while older and sum(len(group.lost) for group in self._older) < _OLDER_LOST:
            group = older.pop(n % len(older))
            found = self._from_members(volume, n, group.deal(volume), group.members, group.lost, 1)
            if found is not None:
                return found
        return self._read_home(volume, n)

    def _read_home(self, volume: Volume, n: int) -> bytes:
        data = volume.home.read(*volume.at[n])
        self._count("home", len(data))
        volume.digests[n] = digest_of(data)
        return data

    def _from_peers(self, volume: Volume, n: int) -> bytes | memoryview:
        """From the primary of the block, or who has its place; from home if no one can give
        it."""
        found = self._from_members(volume, n, volume.deal, self._members, self._lost)
        if found is None:
            return self._from_home(volume, n)
        return found

    def _from_members(
        self,
        volume: Volume,
        n: int,
        deal: Deal,
        members: Mapping[str, Peer],
        lost: set[str],
        tries: float = inf,
    ) -> memoryview | None:
        """From who it is dealt to, of those that can be reached; None: that is this node, or no
        one."""
        while (
            tries > 0
            and (name := deal.primary(n, lost)) is not None
            and members.get(name) != self.member
        ):
            tries -= 1
            try:
                data = self._ask(members[name], volume, n)
                if data is not None:
                    self._count("peers", len(data), volume)
                    volume.sources[n] = Source(members[name], lost, zlib.crc32(data))
                return data
            except (OSError, KeyError):
                lost.add(name)
        return None

    def _count(self, what: str, size: int, volume: Volume | None = None) -> None:
        with self._lock:
            self.moved[what] += size
            if volume is not None:
                volume.from_peers += size

    # Asking

    def _ask(self, member: Peer, volume: Volume, n: int) -> memoryview | None:
        """A block from another member, in the buffer of this thread; None: it cannot give it.
        OSError."""
        file, begin, end = volume.at[n]
        parts = (volume.name, volume.home.files[file][1], file)
        path = "".join(f"/{quote_from_bytes(os.fsencode(part), safe='')}" for part in parts)
        open_calls: dict[str, socket.socket] = self._own.__dict__
        while True:
            call = open_calls.pop(member.server, None)
            is_new = call is None
            try:
                if call is None:
                    call = socket.create_connection((member.host, member.port), _CONNECT_S)
                    be_patient(call, SILENT_S)
                request = Request.made(path, begin, end, self._run, member.server)
                call.sendall(request.head(self._key, member.host))
                found = self._answer_to(call, request)
                open_calls[member.server] = call
                if found is None:
                    return None
                data, volume.digests[n] = found
                return data
            except (OSError, ValueError) as error:
                if call is not None:
                    call.close()
                if is_new or isinstance(error, BlockingIOError):
                    raise ConnectionError from error

    def _answer_to(self, call: socket.socket, request: Request) -> tuple[memoryview, str] | None:
        """What the peer sends for it, and its hash; None: not that. ValueError: no signed answer,
        or another's."""
        head = b"HTTP/1.1 102"
        rest = b""
        while head.startswith(b"HTTP/1.1 102"):
            while b"\r\n\r\n" not in rest:
                part = call.recv(HEAD_BYTES)
                if not part or len(rest) > HEAD_BYTES:
                    raise ConnectionResetError
                rest += part
            head, _, rest = rest.partition(b"\r\n\r\n")
        first, *lines = head.decode("ascii").split("\r\n")
        status = first.split()[1]
        fields = fields_of(lines) or {}
        length = int(fields.get("content-length", ""))
        digest = fields.get("windrow-digest", "")
        signed = signature(self._key, "answer", request.nonce, status, length, digest, request.run)
        if not hmac.compare_digest(fields.get("windrow-signature", ""), signed):
            raise ValueError("not signed")
        if status == "410":
            raise ValueError("volume lost")
        if status != "206" or length != request.end - request.begin or len(rest) > length:
            return None
        view = self._buffer(length)
        view[: len(rest)], got = rest, len(rest)
        while got < length:
            more = call.recv_into(view[got:], 0, socket.MSG_WAITALL)
            if not more:
                raise ConnectionResetError
            got += more
        return view, digest

    # Serving

    def _answer(self, call: socket.socket, request: Request, status: int) -> None:
        """What a signed request gets; `status`, if that is said already."""

        def still() -> None:
            call.sendall(b"HTTP/1.1 102 Processing\r\n\r\n")

        name, *version = (
            os.fsdecode(unquote_to_bytes(part)) for part in request.path.split("/")[1:]
        )
        block: tuple[BinaryIO, int] | bytes = b""
        length = 0
        digest = ""
        try:
            self.wait_for_members(still)
            volume = None if status else self.volume(name)
            if volume is None:
                status = 410
            elif (n := volume.numbered(version, request.begin, request.end)) is None:
                status = 404
            else:
                block = self._obtain(volume, n, is_for_peer=True, still=still)
                block = self._fit_to_pass_on(volume, n, block)
                status = 206
                length = request.end - request.begin
                digest = volume.digests[n]
        except OutsideError:
            status = 502 if name in self._volumes or name in self._offered else 410
        signed = signature(self._key, "answer", request.nonce, status, length, digest, self._run)
        fields = {"Content-Length": length, "Windrow-Run": self._run, "Windrow-Signature": signed}
        if digest:
            fields["Windrow-Digest"] = digest
        self._count("served", length)
        reason = "Partial Content" if length else "Not Here"
        call.sendall(head_of(f"HTTP/1.1 {status} {reason}", fields))
        _send(call, block, length)


def _write_all(file: BinaryIO, data: bytes | memoryview, at: int) -> None:
    view = memoryview(data)
    while view:
        done = os.pwrite(file.fileno(), view, at)
        at = at + done
        view = view[done:]


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _send(call: socket.socket, block: tuple[BinaryIO, int] | bytes, length: int) -> None:
    """Bytes, or that number of a file from this place on, which is then closed."""
    if isinstance(block, bytes):
        call.sendall(block)
        return
    kept, at = block
    end = at + length
    with kept:
        while at < end and (sent := os.sendfile(call.fileno(), kept.fileno(), at, end - at)):
            at += sent
