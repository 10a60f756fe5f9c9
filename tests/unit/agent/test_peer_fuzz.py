"""The server of a member lets no one in: what is not a signed request of this run, for the first
time, is refused.

`make test` tries 500 requests, `make prove` (WINDROW_FULL) 12,000; WINDROW_FUZZ_SEED draws others.
"""

from __future__ import annotations

import os
import random
import socket
import stat
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from windrow.agent.data.homes import FolderHome
from windrow.agent.data.peers import Peers
from windrow.agent.data.signing import HEAD_BYTES, LASTS_S, Guard, Request, request_in, run_key

BLOCK, KEY, INSIDE, OUTSIDE = 4096, bytes(range(32)), b"a block of the volume", b"a file beside it"
CASES = 12_000 if os.environ.get("WINDROW_FULL") else 500
NAMES = (
    *(
        "../secret",
        "%2e%2e/secret",
        "..%2fsecret",
        "/etc/passwd",
        "./a",
        "a/",
        "%00a",
        "a%00",
        "%2Fetc%2Fpasswd",
    ),
    *("../db/a", "a?x", "", "a/a"),
)
ESCAPES = (
    *(f"/db/{mark}{name}" for mark in ("7/", "", "8/", "/", "7/7/", "..%2f/") for name in NAMES),
    *(
        "//etc/passwd",
        "/../db/7/a",
        "/DB/7/a",
        "/db",
        "/",
        "/0/7/a",
        "/db/07/a",
        "/db/7",
        "/db/8/a",
        "/db//a",
    ),
)
"""The version of the file is 7."""


@pytest.fixture
def server() -> Iterator[tuple[Peers, Path]]:
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        top.chmod(0o755)  # what protects the volume is its own
        (top / "home").mkdir()
        (top / "home" / "a").write_bytes((INSIDE * BLOCK)[: 2 * BLOCK])
        os.utime(top / "home" / "a", ns=(7, 7))
        (top / "secret").write_bytes(OUTSIDE)
        peers = Peers("run-1", KEY, "n0", top / "node", 8 * BLOCK, "127.0.0.1", BLOCK)
        peers.meet([peers.member])
        peers.add("db", FolderHome(str(top / "home")))
        peers.fill("db")
        yield peers, top
        peers.close()


def said(port: int, data: bytes, *, ends: bool = True) -> bytes:
    """What the server says to these bytes, until it closes or waits for more."""
    with socket.create_connection(("127.0.0.1", port), 20) as call:
        try:
            call.sendall(data)
            if ends:
                call.shutdown(socket.SHUT_WR)
            found = b""
            while part := call.recv(1 << 16):
                found += part
        except OSError:  # it did not read what was too long
            return b""
        return found


class Forger:
    """Requests that must not pass, of every kind in turn."""

    def __init__(self, peers: Peers, seed: int) -> None:
        self.draw, self.server = random.Random(seed), peers.member.server
        self.heard = self.good()  # and used already, when it is sent again

    def good(self, path: str = "/db/7/a", begin: int = 0, end: int = BLOCK) -> Request:
        return Request.made(path, begin, end, "run-1", self.server)

    def head(self, request: Request, key: bytes = KEY) -> bytes:
        return request.head(key, "n0")

    def unsigned(self) -> bytes:
        lines = self.head(self.good()).split(b"\r\n")
        doomed = self.draw.sample(range(3, 8), self.draw.randint(1, 5))
        return b"\r\n".join(line for at, line in enumerate(lines) if at not in doomed)

    def wrong_key(self) -> bytes:
        return self.head(
            self.good(), self.draw.choice([b"", KEY[:-1], KEY[::-1], self.draw.randbytes(32)])
        )

    def replayed(self) -> bytes:
        return self.head(self.heard)

    def expired(self) -> bytes:
        late = self.draw.choice([-1, -LASTS_S, -1e9, 3 * LASTS_S, 1e9])
        return self.head(self.good()._replace(expires=str(int(time.time() + late))))

    def wrong_run(self) -> bytes:
        return self.head(
            self.good()._replace(run=self.draw.choice(["run-2", "run", "run-11", "RUN-1"]))
        )

    def other_server(self) -> bytes:
        return self.head(self.good()._replace(server=self.draw.randbytes(8).hex()))

    def changed_after_signing(self) -> bytes:
        request, other = self.good(), self.good("/db/7/b", BLOCK, 2 * BLOCK)
        name = self.draw.choice(["path", "begin", "end", "nonce", "expires", "run", "server"])
        value = {"run": "run-3", "server": "0" * 16, "expires": str(int(request.expires) + 1)}
        changed = request._replace(**{name: value.get(name, getattr(other, name))})
        signature = request.signed(KEY).encode()
        return self.head(changed).replace(changed.signed(KEY).encode(), signature)

    def escaping(self) -> bytes:
        key = self.draw.choice([KEY, bytes(32)])
        return self.head(self.good(self.draw.choice(ESCAPES)), key)

    def odd_range(self) -> bytes:
        """Signed, but more or less than a block, or beyond the file."""
        spans = [
            (0, BLOCK + 1),
            (0, 2 * BLOCK),
            (1, BLOCK),
            (0, 1),
            (2 * BLOCK, 3 * BLOCK),
            (0, 10**17),
            (10**15, 10**16),
        ]
        return self.head(self.good("/db/7/a", *self.draw.choice(spans)))

    def oversized(self) -> bytes:
        size = self.draw.choice([HEAD_BYTES + 1, 3 * HEAD_BYTES, 100_000])
        head = self.head(self.good())
        filler = b"X-Fill: " + b"y" * size + b"\r\n"
        return self.draw.choice([b"z" * size, b"GET /" + b"a" * size, head[:-2] + filler + b"\r\n"])

    def malformed(self) -> bytes:
        head = self.head(self.good())
        at = self.draw.randrange(len(head) - 4)
        return self.draw.choice(
            [
                self.draw.randbytes(self.draw.randint(0, 300)) + b"\r\n\r\n",
                head.replace(
                    b"GET", self.draw.choice([b"POST", b"HEAD", b"get", b"PUT", b"GET ", b""]), 1
                ),
                head.replace(
                    b"HTTP/1.1", self.draw.choice([b"HTTP/1.0", b"HTTP/2", b"", b"HTTP/1.1 x"]), 1
                ),
                head.replace(b"\r\n", b"\n"),
                head[:-2] + b"Content-Length: 5\r\n\r\nabcde",
                head[:-2] + b"Transfer-Encoding: chunked\r\n\r\n",
                head[:-2] + head.split(b"\r\n")[3] + b"\r\n\r\n",
                head.replace(
                    b"bytes=", self.draw.choice([b"", b"bytes=-", b"bytes=0-1,2-", b"lines="])
                ),
                head[:at]
                + bytes([self.draw.choice([b for b in (0, 10, 13, 128, 255) if b != head[at]])])
                + head[at + 1 :],
                head[:at],
            ]
        )

    def one(self, n: int) -> tuple[str, bytes]:
        kinds = [
            self.unsigned,
            self.wrong_key,
            self.replayed,
            self.expired,
            self.wrong_run,
            self.other_server,
        ]
        kinds += [
            self.changed_after_signing,
            self.escaping,
            self.odd_range,
            self.oversized,
            self.malformed,
        ]
        kind = kinds[n % len(kinds)]
        return kind.__name__, kind()


def test_what_is_not_a_signed_request_of_this_run_is_refused(server: tuple[Peers, Path]) -> None:
    peers, _ = server
    forger = Forger(peers, int(os.environ.get("WINDROW_FUZZ_SEED", "1")))
    port, count = peers.member.port, Counter[str]()
    first = said(port, forger.head(forger.heard))
    assert first.startswith(b"HTTP/1.1 206 ")
    assert INSIDE in first
    before = threading.active_count()
    for n in range(CASES):
        kind, request = forger.one(n)
        answer = said(port, request)
        status = answer[9:12].decode() if answer else "closed"
        assert status in ("400", "403", "404", "410", "416", "431", "closed"), (n, kind, request)
        assert answer.endswith(b"\r\n\r\n") or not answer
        assert INSIDE[:9] not in answer, (n, kind, request)
        assert OUTSIDE[:9] not in answer
        if status in ("404", "410", "416"):  # what one who has the key is told
            assert kind in ("escaping", "odd_range", "other_server"), (n, kind, request)
        else:
            assert b"run-1" not in answer
        count[kind] += 1
    assert min(count.values()) >= CASES // 12
    assert threading.active_count() <= before + 5
    assert said(port, forger.head(forger.good("/db/7/a", BLOCK, 2 * BLOCK))).startswith(
        b"HTTP/1.1 206 "
    )
    assert peers.moved["served"] == 2 * BLOCK


def test_requests_in_one_call_are_each_judged(server: tuple[Peers, Path]) -> None:
    peers, _ = server
    forger = Forger(peers, 2)
    good, bad = forger.head(forger.good()), forger.unsigned()
    assert said(peers.member.port, good + bad + good).count(b"HTTP/1.1 ") == 2  # and it hangs up
    assert said(peers.member.port, good + forger.head(forger.good())).count(b"HTTP/1.1 403") == 1


def test_half_a_request_does_not_hold_a_place_for_long(
    server: tuple[Peers, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windrow.agent.data.serving._HEAD_S", 0.1)
    assert said(server[0].member.port, b"GET /db/a HT", ends=False) == b""


def test_a_request_passes_once_and_nonces_are_forgotten_when_they_expire() -> None:
    now = [1000.0]
    guard = Guard(KEY, "run", "s", lambda: now[0])
    requests = [
        Request("/v/f", 0, 1, "run", "s", str(int(now[0] + LASTS_S)), f"{n}") for n in range(50)
    ]
    for request in requests:
        sent = request_in(request.head(KEY, "h")[:-4])
        assert isinstance(sent, Request)
        assert [guard.refuses(sent), guard.refuses(sent)] == [0, 403]
    now[0] += LASTS_S + 1
    late = requests[0]._replace(expires=str(int(now[0] + 5)), nonce="new")
    assert guard.refuses(late._replace(signature=late.signed(KEY))) == 0
    assert len(guard._seen) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user, which needs root")
def test_other_users_of_the_node_cannot_read_volumes_or_the_key(server: tuple[Peers, Path]) -> None:
    _, top = server
    run_key(top / "key")
    files = [path for path in (top / "node").rglob("*") if path.is_file()]
    assert files
    command = ["cat", *map(str, files), str(top / "key"), str(top / "home" / "a")]
    done = subprocess.run(
        command, user=65534, group=65534, capture_output=True, check=False, cwd="/"
    )
    assert done.stdout == (top / "home" / "a").read_bytes(), "what all may read, and no more"
    assert {
        stat.S_IMODE(path.stat().st_mode) & 0o077 for path in [top / "node", *files, top / "key"]
    } == {0}
