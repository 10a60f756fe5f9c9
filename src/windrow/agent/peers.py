"""A node as a member of a cooperative cache: it fetches shared volumes, block by block, and serves them to its peers.

The wire is HTTP/1.1 with ranges, signed (`signing`). Which member is the primary of a block is said by
`storage.blocks`, which blocks a member keeps by `storage.cache`; where data come from by `homes`.

Rule 1: one fetch in flight for a block and a source; who comes later waits for the same.
Rule 2: a member that is asked by a peer asks home, never another peer. A member asks one that is dealt the block before
itself. So no two wait for each other, and each block comes from home once while all members can talk. Between a group
of members and home are older groups, of other jobs (`neighbours`): what home is asked for, one of them is asked first.
Rule 3: a peer that cannot be reached, or is silent, is not asked again, and its blocks are dealt to others. Whatever a
peer cannot give comes from home. A fault of the network costs time and bytes, never a task.
Rule 4: a volume that fits is kept whole, as the files that it has, and is there when all blocks are; else each block
lies by itself, and may go for another. What is served was offered here: no path of a request is ever opened.
Rule 5: a request names the version of the file, as its home tells it, and another version is never the answer.
Rule 6: nothing is kept beyond the process. A server that starts again is another one, and for volumes that it has not
got the answer is 410, volume lost; 404 is a volume without such a file or block.
"""

from __future__ import annotations

import contextlib
import errno
import hmac
import os
import shutil
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from math import inf
from pathlib import Path
from typing import BinaryIO, NamedTuple
from urllib.parse import quote_from_bytes, unquote_to_bytes

from windrow.agent.homes import Home, open_home
from windrow.agent.signing import HEAD_BYTES, Guard, Request, fields_of, head_of, request_in, signature
from windrow.errors import OutsideError
from windrow.storage.blocks import BLOCK_BYTES, Deal
from windrow.storage.cache import LRU, CacheIndex

SILENT_S = 10.0
"""A peer that has sent nothing for as long is not asked again."""
_CONNECT_S = 5.0
_ALIVE_EVERY_S = 1.0  # how often it says that a block is still on its way
_IDLE_S = 60.0
_HEAD_S = 10.0  # for a request to come whole
MEET_S = 30.0
"""How long members have to come."""
_CONNECTIONS = 256
_PEER_STREAMS, _HOME_STREAMS = 4, 3
_OLDER_LOST = 4  # nodes of other jobs that cannot be reached, after which none of those is asked


class Peer(NamedTuple):
    """Who keeps blocks: its name, where its server listens, which server that is, and bytes of room; JSON has it."""

    name: str
    host: str
    port: int
    server: str
    room: int


class Group:
    """The nodes of another job by their names there, those that cannot be reached, and the volumes that they share."""

    def __init__(self, members: Iterable[Peer], sources: Iterable[str], block: int = BLOCK_BYTES) -> None:
        self.members, self.lost, self.sources = {member.name: member for member in members}, set[str](), set(sources)
        self._rooms = _rooms(self.members.values(), block)
        self._deals: dict[str, Deal] = {}

    def deal(self, volume: _Volume) -> Deal:
        """How they deal a volume."""
        deal = self._deals.get(volume.name) or Deal(volume.name, len(volume.at), self._rooms)
        return self._deals.setdefault(volume.name, deal)


class _Volume:
    """A shared volume as this member has it. Its blocks are numbered through its files."""

    def __init__(self, name: str, home: Home, folder: Path, block: int, rooms: Mapping[str, int]) -> None:
        self.name, self.home, self.folder, self.is_whole = name, home, folder, False
        self.from_peers = 0
        sizes = [(file, size) for file, (size, _) in home.files.items()]
        self.at = [(file, at, min(at + block, size)) for file, size in sizes for at in range(0, size, block)]
        self.numbers = {at: n for n, at in enumerate(self.at)}
        self.deal = Deal(name, len(self.at), rooms)

    def numbered(self, version: list[str], begin: int, end: int) -> int | None:
        """The block that is just this of a file. `version`: the file's mark, perhaps not the one here, and its name."""
        is_here = len(version) == 2 and self.home.files.get(version[1], (0, None))[1] == version[0]
        return self.numbers.get((version[1], begin, end)) if is_here else None

    def place(self, n: int) -> tuple[Path, int]:
        """The file that block n is in, and where in it."""
        file, begin, _ = self.at[n]
        return (self.folder / file, begin) if self.is_whole else (self.folder / f"{n}", 0)


def _rooms(members: Iterable[Peer], block: int) -> dict[str, int]:
    """How many blocks each may keep."""
    return {member.name: member.room // block for member in members}


class Peers:
    """This member: its server, and all that it asks of others."""

    def __init__(
        self, run: str, key: bytes, name: str, folder: Path, room: int, host: str, block: int = BLOCK_BYTES
    ) -> None:
        """`folder` is this member's alone, and is removed in the end; `room`: bytes that it may take there.

        `host`: the address at which it listens; without one it does not, and is for itself.
        """
        folder.mkdir(mode=0o700, parents=True)
        self._run, self._key, self._folder, self._block = run, key, folder, block
        self._index, self._lock, self._adding = CacheIndex(room), threading.Lock(), threading.RLock()
        self._volumes: dict[str, _Volume] = {}
        self._offered: set[str] = set()
        self._members: dict[str, Peer] = {}
        self._are_met = threading.Event()
        self._lost: set[str] = set()
        self._older: list[Group] = []
        self._flights: dict[tuple[str, int, bool], Future[bytes | None]] = {}
        self._own = threading.local()
        self.moved: Counter[str] = Counter()
        """Bytes that came from home and from peers, and were served to them."""
        self._pools = [ThreadPoolExecutor(n, "windrow-fetch") for n in (_PEER_STREAMS, _HOME_STREAMS)]
        self._door = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        if host:
            self._door.bind((host, 0))
            self._door.listen(128)
        self.member = Peer(name, host, self._door.getsockname()[1], os.urandom(8).hex(), room)
        self._guard = Guard(key, run, self.member.server)
        self._calls: set[socket.socket] = set()
        self._is_closed = False
        if host:
            threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Listen no more, give up what is fetched, and remove what was kept."""
        self._is_closed = True
        with self._lock:
            for call in (self._door, *self._calls):
                with contextlib.suppress(OSError):
                    call.shutdown(socket.SHUT_RDWR)
        self._door.close()
        for pool in self._pools:
            pool.shutdown(wait=False, cancel_futures=True)
        shutil.rmtree(self._folder, ignore_errors=True)

    # What the agent says

    def meet(self, members: Iterable[Peer], lost: Collection[str] = (), *, are_all: bool = True) -> None:
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
        """Until all members are known; who comes later than this is none. `still` is called now and then meanwhile."""
        until = time.monotonic() + MEET_S
        while time.monotonic() < until and not self._are_met.wait(_ALIVE_EVERY_S):
            still()

    def offer(self, sources: Iterable[str]) -> None:
        """Volumes that this member takes part in when it, or a peer, wants them; their names are their sources."""
        self._offered.update(sources)

    def volume(self, name: str) -> _Volume | None:
        """The volume of this name, if it is here or was offered. OutsideError where its home cannot be reached."""
        with self._adding:
            if name not in self._volumes and name in self._offered:
                self.add(name, open_home(name))
        return self._volumes.get(name)

    def add(self, name: str, home: Home, policy: str = LRU) -> bool:
        """Take part in a volume; whether it will be kept whole here. OSError where the disk refuses."""
        with self._adding:
            if name in self._volumes:
                return self._volumes[name].is_whole
            rooms = _rooms(self._members.values() or [self.member], self._block)
            volume = _Volume(name, home, self._folder / os.urandom(8).hex(), self._block, rooms)
            own = sum(volume.deal.primary(n) == self.member.name for n in range(len(volume.at)))
            with self._lock:
                volume.is_whole = self._index.allocate(name, sum(size for size, _ in home.files.values()), policy)
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
        """Fetch all of a volume: the folder with its files; None where there is no room. OutsideError, OSError.

        `is_gentle`: one block after the other, so that others come in between.
        """
        volume = self.volume(name)
        if volume is None or not volume.is_whole:
            return None
        primaries = [volume.deal.primary(n) for n in range(len(volume.at))]
        begin = primaries.index(self.member.name) if self.member.name in primaries else 0
        flights = []
        for n in (*range(begin, len(primaries)), *range(begin)):  # each asks first for what others have first
            flights.append(self._flight(volume, n, is_for_peer=False))
            if is_gentle and (flight := flights[-1]) is not None:
                flight.result()
        for flight in flights:
            if flight is not None and flight.result() is not None:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)
        for file in volume.home.files:
            volume.home.finish(file, str(volume.folder / file))
        return volume.folder

    def read(self, name: str, file: str, begin: int, end: int) -> bytes:
        """These bytes of a file of a volume, wherever its blocks are."""
        volume, parts = self._volumes[name], []
        for at in range(begin // self._block * self._block, end, self._block):
            behind = min(at + self._block, volume.home.files[file][0])
            data = self._obtain(volume, volume.numbers[file, at, behind], is_for_peer=False)
            if not isinstance(data, bytes):
                with data[0] as kept:
                    data = os.pread(kept.fileno(), behind - at, data[1])
            parts.append(data[max(0, begin - at) : end - at])
        return b"".join(parts)

    # Blocks

    def _obtain(
        self, volume: _Volume, n: int, *, is_for_peer: bool, still: Callable[[], None] | None = None
    ) -> tuple[BinaryIO, int] | bytes:
        """The block as it came; or, where it is kept, an open file, which lasts though the block may go, and its place.

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

    def _flight(self, volume: _Volume, n: int, *, is_for_peer: bool) -> Future[bytes | None] | None:
        """The fetch of a block, started if it is not on its way; None: the block is here."""
        with self._lock:
            if volume.name not in self._index:
                raise OutsideError(f"volume lost: {volume.name}")
            if self._index.use(volume.name, n):
                return None
            is_home = is_for_peer or volume.deal.primary(n, self._lost) in (None, self.member.name)
            key = volume.name, n, is_home
            if key not in self._flights:
                how = self._from_home if is_home else self._from_peers
                self._flights[key] = self._pools[is_home].submit(self._land, key, volume, how)
            return self._flights[key]

    def _land(
        self, key: tuple[str, int, bool], volume: _Volume, how: Callable[[_Volume, int], bytes | memoryview]
    ) -> bytes | None:
        """Fetch a block and keep it; the block where that is impossible."""
        n, is_kept = key[1], False
        try:
            data = how(volume, n)
            with contextlib.suppress(OSError):
                path, at = volume.place(n)
                with open(path, "r+b" if volume.is_whole else "wb", buffering=0, opener=_private) as file:
                    view = memoryview(data)
                    while view:
                        done = os.pwrite(file.fileno(), view, at)
                        at, view = at + done, view[done:]
                is_kept = self._keep(volume, n, len(data), is_primary=key[2] or volume.is_whole)
            return None if is_kept else bytes(data)
        finally:
            with self._lock:
                del self._flights[key]

    def _keep(self, volume: _Volume, n: int, size: int, *, is_primary: bool) -> bool:
        with self._lock:
            if volume.name not in self._index or self._index.use(volume.name, n):
                return volume.name in self._index
            gone = self._index.put(volume.name, n, size, is_primary=is_primary)
            for name, block in [(volume.name, n)] if gone is None else gone:
                assert isinstance(block, int)
                self._volumes[name].place(block)[0].unlink(missing_ok=True)
            return gone is not None

    def _from_home(self, volume: _Volume, n: int) -> bytes | memoryview:
        """From an older group, another one for each block; from home where none can give it."""
        older = [group for group in self._older if volume.name in group.sources]
        while older and sum(len(group.lost) for group in self._older) < _OLDER_LOST:
            group = older.pop(n % len(older))
            found = self._from_members(volume, n, group.deal(volume), group.members, group.lost, 1)
            if found is not None:
                return found
        data = volume.home.read(*volume.at[n])
        self._count("home", len(data))
        return data

    def _from_peers(self, volume: _Volume, n: int) -> bytes | memoryview:
        """From the primary of the block, or who has its place; from home where no one can give it."""
        found = self._from_members(volume, n, volume.deal, self._members, self._lost)
        return self._from_home(volume, n) if found is None else found

    def _from_members(
        self, volume: _Volume, n: int, deal: Deal, members: Mapping[str, Peer], lost: set[str], tries: float = inf
    ) -> memoryview | None:
        """From who it is dealt to, of those that can be reached; None: that is this node, or no one."""
        while tries > 0 and (name := deal.primary(n, lost)) is not None and members.get(name) != self.member:
            tries -= 1
            try:
                data = self._ask(members[name], volume, n)
                if data is not None:
                    self._count("peers", len(data), volume)
                return data
            except (OSError, KeyError):
                lost.add(name)
        return None

    def _count(self, what: str, size: int, volume: _Volume | None = None) -> None:
        with self._lock:
            self.moved[what] += size
            if volume is not None:
                volume.from_peers += size

    # Asking

    def _ask(self, member: Peer, volume: _Volume, n: int) -> memoryview | None:
        """A block from another member, in the buffer of this thread; None: it cannot give it. OSError."""
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
                    _be_patient(call, SILENT_S)
                request = Request.made(path, begin, end, self._run, member.server)
                call.sendall(request.head(self._key, member.host))
                data = self._answer_to(call, request)
                open_calls[member.server] = call
                return data
            except (OSError, ValueError) as error:
                if call is not None:
                    call.close()
                if is_new or isinstance(error, BlockingIOError):
                    raise ConnectionError from error

    def _answer_to(self, call: socket.socket, request: Request) -> memoryview | None:
        """What the peer sends for it; None: not that. ValueError: no signed answer, or another server's."""
        head, rest = b"HTTP/1.1 102", b""
        while head.startswith(b"HTTP/1.1 102"):
            while b"\r\n\r\n" not in rest:
                part = call.recv(HEAD_BYTES)
                if not part or len(rest) > HEAD_BYTES:
                    raise ConnectionResetError
                rest += part
            head, _, rest = rest.partition(b"\r\n\r\n")
        first, *lines = head.decode("ascii").split("\r\n")
        status, fields = first.split()[1], fields_of(lines) or {}
        length = int(fields.get("content-length", ""))
        signed = signature(self._key, "answer", request.nonce, status, length, request.run)
        if not hmac.compare_digest(fields.get("windrow-signature", ""), signed):
            raise ValueError("not signed")
        if status == "410":
            raise ValueError("volume lost")
        if status != "206" or length != request.end - request.begin or len(rest) > length:
            return None
        if not hasattr(self._own, "buffer"):  # new memory for each block would take as long as the block
            self._own.buffer = memoryview(bytearray(self._block))
        view: memoryview = self._own.buffer[:length]
        view[: len(rest)], got = rest, len(rest)
        while got < length:
            more = call.recv_into(view[got:], 0, socket.MSG_WAITALL)
            if not more:
                raise ConnectionResetError
            got += more
        return view

    # Serving

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                call = self._door.accept()[0]
            except OSError:  # it is closed, or there are no descriptors left
                time.sleep(0 if self._is_closed else 0.1)
                continue
            with self._lock:
                if has_room := len(self._calls) < _CONNECTIONS and not self._is_closed:
                    self._calls.add(call)
            if has_room:
                threading.Thread(target=self._serve, args=(call,), daemon=True).start()
            else:
                call.close()

    def _serve(self, call: socket.socket) -> None:
        try:
            with contextlib.suppress(OSError), call:
                _be_patient(call, _IDLE_S)
                unread = b""
                while (read := _head_from(call, unread)) is not None:
                    head, unread = read
                    request = request_in(head) if head else 431
                    with self._lock:
                        status = request if isinstance(request, int) else self._guard.refuses(request)
                    if isinstance(request, int) or status not in (0, 410):
                        call.sendall(head_of(f"HTTP/1.1 {status} Refused", {"Content-Length": 0}))
                        return
                    self._answer(call, request, status)
        finally:
            with self._lock:
                self._calls.discard(call)

    def _answer(self, call: socket.socket, request: Request, status: int) -> None:
        """What a signed request gets."""

        def still() -> None:
            call.sendall(b"HTTP/1.1 102 Processing\r\n\r\n")

        block: tuple[BinaryIO, int] | bytes = b""
        name, *version = (os.fsdecode(unquote_to_bytes(part)) for part in request.path.split("/")[1:])
        try:
            self.wait_for_members(still)
            volume = None if status else self.volume(name)
            n = None if volume is None else volume.numbered(version, request.begin, request.end)
            status = 410 if volume is None else 404
            if volume is not None and n is not None:
                block, status = self._obtain(volume, n, is_for_peer=True, still=still), 206
        except OutsideError:
            status = 502 if name in self._volumes or name in self._offered else 410
        length = request.end - request.begin if status == 206 else 0
        signed = signature(self._key, "answer", request.nonce, status, length, self._run)
        fields = {"Content-Length": length, "Windrow-Run": self._run, "Windrow-Signature": signed}
        self._count("served", length)
        call.sendall(head_of(f"HTTP/1.1 {status} {'Partial Content' if length else 'Not Here'}", fields))
        if isinstance(block, bytes):
            call.sendall(block)
        else:
            with block[0] as kept:
                at, end = block[1], block[1] + length
                while at < end and (sent := os.sendfile(call.fileno(), kept.fileno(), at, end - at)):
                    at += sent


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _be_patient(call: socket.socket, silent_s: float) -> None:
    """Let the kernel move as much as it can in one call, and give up (BlockingIOError) after so long a silence."""
    call.setblocking(True)
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        call.setsockopt(socket.SOL_SOCKET, option, struct.pack("@ll", int(silent_s), int(silent_s % 1 * 1e6)))
    call.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _head_from(call: socket.socket, unread: bytes) -> tuple[bytes, bytes] | None:
    """The head of the next request, empty if it is too long, and what came behind it; None: there is none."""
    until = inf
    while b"\r\n\r\n" not in unread:
        if len(unread) > HEAD_BYTES or time.monotonic() > until:
            return b"", b""
        if not (part := call.recv(HEAD_BYTES)):
            return None
        if not unread:
            _be_patient(call, _HEAD_S)
            until = time.monotonic() + _HEAD_S
        unread += part
    _be_patient(call, _IDLE_S)
    head, _, rest = unread.partition(b"\r\n\r\n")
    return (head if len(head) <= HEAD_BYTES else b""), rest
