"""The server of a node that shares volumes: connections, and whether a request may be answered.

What is answered is for `peers` to say. A connection that asks nothing makes room for others; one
that asks slowly is given up.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
import time
from collections.abc import Callable
from math import inf

from windrow.agent.data.signing import HEAD_BYTES, Guard, Request, head_of, request_in

# after which a connection that asks nothing makes room for others
_IDLE_S = 5.0
_SENDING_S = 60.0
_HEAD_S = 10.0  # for a request to come whole
_CONNECTIONS = 256

Answer = Callable[[socket.socket, Request, int], None]
"""Answers a signed request, given what speaks against it: 0, or the status 410."""


class Door:
    """Where a node listens, if it has an address for that."""

    def __init__(self, run: str, key: bytes, host: str) -> None:
        self._socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        self._has_address = bool(host)
        if host:
            self._socket.bind((host, 0))
            self._socket.listen(128)
        self.port: int = self._socket.getsockname()[1]
        self.server = os.urandom(8).hex()
        """Which server this is: one that starts again is another."""
        self._guard = Guard(key, run, self.server)
        self._lock = threading.Lock()
        self.calls: set[socket.socket] = set()
        self._is_closed = False

    def open(self, answer: Answer) -> None:
        """Let others in, each in a thread of its own."""
        self._answer = answer
        if self._has_address:
            threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Listen no more, and end what is being answered."""
        self._is_closed = True
        with self._lock:
            for call in (self._socket, *self.calls):
                with contextlib.suppress(OSError):
                    call.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                call = self._socket.accept()[0]
            except OSError:  # it is closed, or there are no descriptors left
                time.sleep(0 if self._is_closed else 0.1)
                continue
            with self._lock:
                if has_room := len(self.calls) < _CONNECTIONS and not self._is_closed:
                    self.calls.add(call)
            if has_room:
                threading.Thread(target=self._serve, args=(call,), daemon=True).start()
            else:
                call.close()

    def _serve(self, call: socket.socket) -> None:
        try:
            with contextlib.suppress(OSError), call:
                unread = b""
                while (read := _head_from(call, unread)) is not None:
                    head, unread = read
                    if head:
                        request = request_in(head)
                    else:
                        request = 431
                    with self._lock:
                        if isinstance(request, int):
                            status = request
                        else:
                            status = self._guard.refuses(request)
                    if isinstance(request, int) or status not in (0, 410):
                        call.sendall(head_of(f"HTTP/1.1 {status} Refused", {"Content-Length": 0}))
                        return
                    self._answer(call, request, status)
        finally:
            with self._lock:
                self.calls.discard(call)


def be_patient(call: socket.socket, silent_s: float) -> None:
    """Let the kernel move as much as it can in one call, and give up (BlockingIOError) after so
    long a silence."""
    call.setblocking(True)
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        call.setsockopt(
            socket.SOL_SOCKET, option, struct.pack("@ll", int(silent_s), int(silent_s % 1 * 1e6))
        )
    call.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _head_from(call: socket.socket, unread: bytes) -> tuple[bytes, bytes] | None:
    """The head of the next request, empty if it is too long, and what came behind it; None: there
    is none."""
    until = inf
    be_patient(call, _HEAD_S if unread else _IDLE_S)
    while b"\r\n\r\n" not in unread:
        if len(unread) > HEAD_BYTES or time.monotonic() > until:
            return b"", b""
        if not (part := call.recv(HEAD_BYTES)):
            return None
        if not unread:
            be_patient(call, _HEAD_S)
            until = time.monotonic() + _HEAD_S
        unread += part
    be_patient(call, _SENDING_S)
    head, _, rest = unread.partition(b"\r\n\r\n")
    return (head if len(head) <= HEAD_BYTES else b""), rest
