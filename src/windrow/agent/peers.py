"""A node as a member of a cooperative cache: it fetches shared volumes, block by block, and serves them to its peers.

The wire is HTTP/1.1 with ranges, signed (`signing`). Which member is the primary of a block is said by
`storage.blocks`, which blocks a member keeps by `storage.cache`; where data come from by `homes`.

Rule 1: one fetch in flight for a block and a source; who comes later waits for the same.
Rule 2: a member that is asked by a peer asks home, never another peer. A member asks one that is dealt the block before
itself. So no two wait for each other, and each block comes from home once while all members can talk.
Rule 3: a peer that cannot be reached, or is silent, is not asked again, and its blocks are dealt to others. Whatever a
peer cannot give comes from home. A fault of the network costs time and bytes, never a task.
Rule 4: a volume that fits is kept whole, as the files that it has, and is there when all blocks are; else each block
lies by itself, and may go for another. What is served was put here by `add`: no path of a request is ever opened.
Rule 5: nothing is kept beyond the process. A server that starts again is another one, and for volumes that it has not
got the answer is 410, volume lost; 404 is a volume without such a file.
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
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from math import inf
from pathlib import Path
from typing import BinaryIO, NamedTuple
from urllib.parse import quote_from_bytes, unquote_to_bytes

from windrow.agent.homes import Home
from windrow.agent.signing import HEAD_BYTES, Guard, Request, fields_of, head_of, request_in, signature
from windrow.errors import OutsideError
from windrow.storage.blocks import BLOCK_BYTES, Deal, blocks_in
from windrow.storage.cache import LRU, CacheIndex

SILENT_S = 10.0
"""A peer that has sent nothing for as long is not asked again."""
_CONNECT_S = 5.0
_ALIVE_EVERY_S = 1.0  # how often it says that a block is still on its way
_IDLE_S = 60.0
_HEAD_S = 10.0  # for a request to come whole
_CONNECTIONS = 256
_HOME_STREAMS, _PEER_STREAMS = 3, 4
_REASONS = {206: "Partial Content", 400: "Bad Request", 403: "Forbidden", 404: "Not Found", 410: "Volume Lost",
            416: "Range Not Satisfiable", 431: "Too Large", 502: "Home Unreachable"}  # fmt: skip


class Member(NamedTuple):
    """Who keeps blocks: its name, where its server listens, which server that is, and bytes of room; JSON has it."""

    name: str
    host: str
    port: int
    server: str
    room: int


class _Volume:
    """A shared volume as this member has it. Its blocks are numbered through its files."""

    def __init__(self, name: str, home: Home, deal: Deal, folder: Path, block: int) -> None:
        self.name, self.home, self.deal, self.folder, self.block = name, home, deal, folder, block
        self.is_whole = False
        self.first: dict[str, int] = {}
        self.at: list[tuple[str, int, int]] = []
        for file, (size, _) in home.files.items():
            self.first[file] = len(self.at)
            self.at += [(file, begin, min(begin + block, size)) for begin in range(0, size, block)]

    def place(self, n: int) -> tuple[Path, int]:
        """The file that block n is in, and where in it."""
        file, begin, _ = self.at[n]
        return (self.folder / file, begin) if self.is_whole else (self.folder / f"{n}", 0)


class _UnreachableError(Exception):
    """A peer that is not to be asked again."""


class _RefusedError(Exception):
    """A peer that cannot give this block."""


def facing(host: str) -> str:
    """The address of this machine on the network by which it reaches the other; no packet is sent."""
    for family, _, _, _, address in socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM):
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(address)
            return str(probe.getsockname()[0])
    raise OutsideError(f"no way to {host} from here")


class Peers:
    """This member: its server, and all that it asks of others."""

    def __init__(
        self,
        run: str,
        key: bytes,
        name: str,
        folder: Path,
        room: int,
        *,
        host: str = "127.0.0.1",
        block: int = BLOCK_BYTES,
        is_hashed: bool = False,
    ) -> None:
        """`folder` is this member's alone, and is removed in the end; `room`: bytes that it may take there."""
        folder.mkdir(mode=0o700, parents=True)
        self._run, self._key, self._folder, self._block, self._is_hashed = run, key, folder, block, is_hashed
        self._index, self._lock = CacheIndex(room), threading.Lock()
        self._volumes: dict[str, _Volume] = {}
        self._members: dict[str, Member] = {}
        self._lost: set[str] = set()
        self._flights: dict[tuple[str, int, bool], Future[bytes | None]] = {}
        self._own = threading.local()
        self.moved: Counter[str] = Counter()
        """Bytes that came from home and from peers, and were served to them."""
        self._pools = [ThreadPoolExecutor(n, "windrow-fetch") for n in (_PEER_STREAMS, _HOME_STREAMS)]
        self._door = socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        self.member = Member(name, host, self._door.getsockname()[1], os.urandom(8).hex(), room)
        self._guard = Guard(key, run, self.member.server)
        self._calls: set[socket.socket] = set()
        self._is_closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Listen no more, give up what is fetched, and remove what was kept."""
        self._is_closed = True
        with contextlib.suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()
        with self._lock:
            calls = list(self._calls)
        for call in calls:
            with contextlib.suppress(OSError):
                call.shutdown(socket.SHUT_RDWR)
        for pool in self._pools:
            pool.shutdown(wait=False, cancel_futures=True)
        shutil.rmtree(self._folder, ignore_errors=True)

    # What the agent says

    def meet(self, members: Iterable[Member], lost: Collection[str] = ()) -> None:
        """These are the members, and these of them are lost. Volumes that are here stay dealt as they are."""
        with self._lock:
            self._members = {member.name: member for member in members}
            self._lost.update(lost)

    def add(self, name: str, home: Home, policy: str = LRU) -> bool:
        """Take part in a volume; whether it will be kept whole here. OSError where the disk refuses."""
        if name in self._volumes:
            return self._volumes[name].is_whole
        sizes = [size for size, _ in home.files.values()]
        rooms = {member.name: member.room // self._block for member in self._members.values() or [self.member]}
        count = sum(blocks_in(size, self._block) for size in sizes)
        volume = _Volume(name, home, Deal(name, count, rooms, is_hashed=self._is_hashed), Path(), self._block)
        with self._lock:
            volume.folder = self._folder / str(len(self._volumes))
            volume.is_whole = self._index.allocate(name, sum(sizes), policy)
            if not volume.is_whole:
                own = sum(volume.deal.primary(n) == self.member.name for n in range(count)) * self._block
                self._index.allocate(name, min(own, self._index.capacity - self._index.guaranteed), policy)
            volume.folder.mkdir(mode=0o700)
            for file, (size, _) in home.files.items() if volume.is_whole else ():
                (volume.folder / file).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                with open(volume.folder / file, "xb", opener=_private) as made:
                    made.truncate(size)
            self._volumes[name] = volume
        return volume.is_whole

    def release(self, name: str) -> None:
        """Give a volume up: for all who ask, it is lost."""
        with self._lock:
            if volume := self._volumes.pop(name, None):
                self._index.release(name)
                shutil.rmtree(volume.folder, ignore_errors=True)

    def fill(self, name: str) -> Path:
        """Fetch all of a volume that is kept whole; the folder with its files. OutsideError, OSError."""
        volume = self._volumes[name]
        primaries = [volume.deal.primary(n) for n in range(len(volume.at))]
        begin = next((n for n, primary in enumerate(primaries) if primary == self.member.name), 0)
        turned = [*range(begin, len(primaries)), *range(begin)]  # each asks first for what others have first
        for flight in [self._flight(volume, n, is_for_peer=False) for n in turned]:
            if flight is not None and flight.result() is not None:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)
        for file in volume.home.files:
            (volume.folder / file).chmod(0o400)
        return volume.folder

    def read(self, name: str, file: str, begin: int, end: int) -> bytes:
        """These bytes of a file of a volume, wherever its blocks are."""
        volume, parts = self._volumes[name], []
        for n in range(volume.first[file] + begin // self._block, volume.first[file] + blocks_in(end, self._block)):
            _, at, behind = volume.at[n]
            data = self._obtain(volume, n, is_for_peer=False)
            if not isinstance(data, bytes):
                with data[0] as kept:
                    data = os.pread(kept.fileno(), behind - at, data[1])
            parts.append(data[max(0, begin - at) : end - at])
        return b"".join(parts)

    # Blocks

    def _kept(self, volume: _Volume, n: int) -> tuple[BinaryIO, int] | None:
        """The block, where it is kept: an open file, which lasts though the block may go, and the place in it."""
        with self._lock:
            if volume.name not in self._index or not self._index.use(volume.name, n):
                return None
            path, at = volume.place(n)
            return open(path, "rb", buffering=0), at

    def _obtain(
        self, volume: _Volume, n: int, *, is_for_peer: bool, still: Callable[[], None] | None = None
    ) -> tuple[BinaryIO, int] | bytes:
        """The block: kept, or as it came. `still` is called now and then while it is on its way."""
        while True:
            if kept := self._kept(volume, n):
                return kept
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
        """The fetch of a block, which is begun where it is not on its way; None: the block is here."""
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
                self._write(volume, n, data)
                is_kept = self._keep(volume, n, len(data), is_primary=key[2] or volume.is_whole)
            return None if is_kept else bytes(data)
        finally:
            with self._lock:
                del self._flights[key]

    def _write(self, volume: _Volume, n: int, data: bytes | memoryview) -> None:
        path, at = volume.place(n)
        with open(path, "r+b" if volume.is_whole else "wb", buffering=0, opener=_private) as file:
            view = memoryview(data)
            while view:
                done = os.pwrite(file.fileno(), view, at)
                at, view = at + done, view[done:]

    def _keep(self, volume: _Volume, n: int, size: int, *, is_primary: bool) -> bool:
        with self._lock:
            if volume.name not in self._index:
                raise OutsideError(f"volume lost: {volume.name}")
            if self._index.use(volume.name, n):
                return True
            gone = self._index.put(volume.name, n, size, is_primary=is_primary)
            for name, block in gone or ():
                assert isinstance(block, int)
                self._volumes[name].place(block)[0].unlink(missing_ok=True)
            if gone is None:
                volume.place(n)[0].unlink(missing_ok=True)
            return gone is not None

    def _from_home(self, volume: _Volume, n: int) -> bytes:
        file, begin, end = volume.at[n]
        data = volume.home.read(file, begin, end)
        self._count("home", end - begin)
        return data

    def _from_peers(self, volume: _Volume, n: int) -> bytes | memoryview:
        """From the primary of the block, or who has its place; from home where no one can give it."""
        file, begin, end = volume.at[n]
        while (name := volume.deal.primary(n, self._lost)) not in (None, self.member.name):
            try:
                data = self._ask(self._members[str(name)], volume.name, file, begin, end)
                self._count("peers", end - begin)
                return data
            except (_UnreachableError, KeyError):
                self._lost.add(str(name))
            except _RefusedError:
                break
        return self._from_home(volume, n)

    def _count(self, what: str, size: int) -> None:
        with self._lock:
            self.moved[what] += size

    # Asking

    def _ask(self, member: Member, volume: str, file: str, begin: int, end: int) -> memoryview:
        """These bytes from another member, in the buffer of this thread. _UnreachableError, _RefusedError."""
        path = f"/{quote_from_bytes(volume.encode('utf-8', 'surrogateescape'), safe='')}/{_quoted(file)}"
        open_calls: dict[str, socket.socket] = self._own.__dict__
        while True:
            call = open_calls.pop(member.server, None)
            is_new = call is None
            try:
                if call is None:
                    call = socket.create_connection((member.host, member.port), _CONNECT_S)
                    _patient(call, SILENT_S)
                request = Request.made(path, begin, end, self._run, member.server)
                call.sendall(request.head(self._key, member.host))
                data = self._answer_to(call, request)
                open_calls[member.server] = call
                return data
            except (OSError, ValueError) as error:
                if call is not None:
                    call.close()
                if is_new or isinstance(error, BlockingIOError):
                    raise _UnreachableError from error

    def _answer_to(self, call: socket.socket, request: Request) -> memoryview:
        """What the peer sends for it, in the buffer of this thread. ValueError where that is not a signed answer."""
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
        if status != "206" or length != request.end - request.begin or len(rest) > length:
            raise _UnreachableError if status == "410" else _RefusedError
        view, got = self._buffer()[:length], len(rest)
        view[:got] = rest
        while got < length:
            more = call.recv_into(view[got:], 0, socket.MSG_WAITALL)
            if not more:
                raise ConnectionResetError
            got += more
        return view

    def _buffer(self) -> memoryview:
        """For a block on its way, of this thread: new memory for each would take as long as the block."""
        if not hasattr(self._own, "buffer"):
            self._own.buffer = memoryview(bytearray(self._block))
        found: memoryview = self._own.buffer
        return found

    # Serving

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                call = self._door.accept()[0]
            except OSError:
                if self._is_closed:
                    return
                time.sleep(0.1)  # out of descriptors
                continue
            with self._lock:
                if has_room := len(self._calls) < _CONNECTIONS:
                    self._calls.add(call)
            if has_room:
                threading.Thread(target=self._serve, args=(call,), daemon=True).start()
            else:
                call.close()

    def _serve(self, call: socket.socket) -> None:
        try:
            with contextlib.suppress(OSError, OutsideError), call:
                _patient(call, _IDLE_S)
                unread = b""
                while (read := _head_from(call, unread)) is not None:
                    head, unread = read
                    request = request_in(head) if head else 431
                    with self._lock:
                        status = request if isinstance(request, int) else self._guard.refuses(request)
                    if isinstance(request, int) or status not in (0, 410):
                        call.sendall(head_of(f"HTTP/1.1 {status} {_REASONS[status]}", {"Content-Length": 0}))
                        return
                    self._answer(call, request, status)
        finally:
            with self._lock:
                self._calls.discard(call)

    def _answer(self, call: socket.socket, request: Request, status: int) -> None:
        """What a signed request gets."""
        block: tuple[BinaryIO, int] | bytes = b""
        volume, file = self._named(request.path)
        length = request.end - request.begin
        if status or volume is None:
            status = 410
        elif file not in volume.home.files:
            status = 404
        elif request.begin % self._block or request.end != min(request.begin + self._block, volume.home.files[file][0]):
            status = 416  # not one block
        else:
            n, status = volume.first[file] + request.begin // self._block, 206

            def still() -> None:
                call.sendall(b"HTTP/1.1 102 Processing\r\n\r\n")

            try:
                block = self._obtain(volume, n, is_for_peer=True, still=still)
            except OutsideError:
                status = 410 if volume.name not in self._volumes else 502
        if status != 206:
            length = 0
        signed = signature(self._key, "answer", request.nonce, status, length, self._run)
        fields = {"Content-Length": length, "Windrow-Run": self._run, "Windrow-Signature": signed}
        self._count("served", length)
        call.sendall(head_of(f"HTTP/1.1 {status} {_REASONS[status]}", fields))
        if isinstance(block, bytes):
            call.sendall(block)
        else:
            with block[0] as kept:
                at, end = block[1], block[1] + length
                while at < end and (sent := os.sendfile(call.fileno(), kept.fileno(), at, end - at)):
                    at += sent

    def _named(self, path: str) -> tuple[_Volume | None, str]:
        """The volume and the name of the file in a path; these are looked up, never opened."""
        volume, _, file = path[1:].partition("/")
        return self._volumes.get(os.fsdecode(unquote_to_bytes(volume))), os.fsdecode(unquote_to_bytes(file))


def _quoted(name: str) -> str:
    return quote_from_bytes(os.fsencode(name))


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _patient(call: socket.socket, silent_s: float) -> None:
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
            _patient(call, _HEAD_S)
            until = time.monotonic() + _HEAD_S
        unread += part
    _patient(call, _IDLE_S)
    head, _, rest = unread.partition(b"\r\n\r\n")
    return (head if len(head) <= HEAD_BYTES else b""), rest
