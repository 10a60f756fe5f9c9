"""Requests for ranges of files that only nodes of one run can make, and answers that only they can
give.

Rule 1: a run has one key, random, in a file of its folder that its user alone can read; never in an
argument, a variable or a message. A request is signed by it (HMAC-SHA256): method, path, range,
run, server, expiry, a nonce.
Rule 2: a request holds for one server, for a short time, once. So what someone else on the network
has heard is of no use, there or anywhere else. Rule 3: what is not exactly such a request is
refused, without a word on why, and before anything is looked up. Rule 4: an answer is signed
together with the nonce: a port that another program has by now cannot answer in the server's place.
It covers a hash of the content, which is not encrypted.
"""

from __future__ import annotations

import hmac
import os
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from windrow.files import draft_beside, link_once

HEAD_BYTES = 8192
"""The most that a request may be long."""
LASTS_S = 60.0
"""For how long a request holds; clocks of nodes may differ by as much."""
_LINE = re.compile(r"GET (/[!-~]{1,4096}) HTTP/1\.1")
_FIELD = re.compile(r"([A-Za-z][A-Za-z0-9-]{0,40}):[ \t]*([!-~](?:[ -~]*[!-~])?)?[ \t]*")
_RANGE = re.compile(r"bytes=(\d{1,18})-(\d{1,18})", re.ASCII)
_OWN = ("windrow-run", "windrow-server", "windrow-expires", "windrow-nonce", "windrow-signature")
_KEY = re.compile(rb"[0-9a-f]{64}\n")


def run_key(path: Path) -> bytes:
    """The key in this file, which is made if it is missing. OSError; ValueError if it holds
    something else."""
    if not path.exists():
        with draft_beside(path) as draft:
            draft.touch(0o600)
            draft.write_bytes(os.urandom(32).hex().encode() + b"\n")
            link_once(draft, path)
    if not _KEY.fullmatch(content := path.read_bytes()):
        raise ValueError(f"{path} does not contain a key")
    return bytes.fromhex(content.decode())


def signature(key: bytes, *parts: object) -> str:
    """What only a holder of the key can say of these. None of them has a line break."""
    return hmac.new(key, "\n".join(map(str, parts)).encode(), "sha256").hexdigest()


class Request(NamedTuple):
    """A request for the bytes of a path from `begin` to before `end`."""

    path: str
    begin: int
    end: int
    run: str
    server: str
    expires: str
    nonce: str
    signature: str = ""

    def signed(self, key: bytes) -> str:
        """Its signature by this key."""
        return signature(key, "GET", *self[:-1])

    @staticmethod
    def made(path: str, begin: int, end: int, run: str, server: str) -> Request:
        """A new one, to be sent at once, by `head`."""
        return Request(
            path, begin, end, run, server, str(int(time.time() + LASTS_S)), os.urandom(16).hex()
        )

    def head(self, key: bytes, host: str) -> bytes:
        """As it is sent."""
        own = dict(zip(_OWN, [*self[3:-1], self.signed(key)]))  # noqa: B905  (nodes may have Python 3.9)
        return head_of(
            f"GET {self.path} HTTP/1.1",
            {"Host": host, "Range": f"bytes={self.begin}-{self.end - 1}", **own},
        )


def head_of(first: str, fields: Mapping[str, object]) -> bytes:
    """A head of this first line and these fields, as it is sent."""
    return "\r\n".join(
        [first, *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    ).encode("ascii")


def fields_of(lines: list[str]) -> dict[str, str] | None:
    """The fields of a head, by their names in small letters; None if one is malformed or there
    twice."""
    found = [_FIELD.fullmatch(line) for line in lines]
    fields = {match[1].lower(): match[2] or "" for match in found if match}
    if len(fields) == len(lines):
        return fields
    return None


def request_in(head: bytes) -> Request | int:
    """The request in a head, without the empty line at its end; or the status with which it is
    refused."""
    first, *lines = head.decode("ascii", "replace").split(
        "\r\n"
    )  # what is not ASCII matches nothing
    line = _LINE.fullmatch(first)
    fields = fields_of(lines)
    if (
        line is None
        or fields is None
        or not {"content-length", "transfer-encoding", "expect"}.isdisjoint(fields)
    ):
        return 400
    if not all(fields.get(name) for name in _OWN):
        return 403
    span = _RANGE.fullmatch(fields.get("range", ""))
    if span is None or int(span[2]) < int(span[1]):
        return 400
    return Request(line[1], int(span[1]), int(span[2]) + 1, *(fields[name] for name in _OWN))


class Guard:
    """Lets each signed request pass once, while it holds."""

    def __init__(
        self, key: bytes, run: str, server: str, now: Callable[[], float] = time.time
    ) -> None:
        self._key = key
        self._run = run
        self._server = server
        self._now = now
        self._seen: dict[
            str, float
        ] = {}  # nonces, with when their requests expire; the oldest first, or nearly

    def refuses(self, request: Request) -> int:
        """0, or the status with which it is refused: 403, and 410 for one that is meant for a
        server before this."""
        now = self._now()
        if re.fullmatch(r"\d{1,12}", request.expires):
            expires = int(request.expires)
        else:
            expires = 0
        while self._seen and next(iter(self._seen.values())) < now:
            del self._seen[next(iter(self._seen))]
        is_ours = (
            hmac.compare_digest(request.signature, request.signed(self._key))
            and request.run == self._run
        )
        if not is_ours or not now < expires <= now + 2 * LASTS_S or request.nonce in self._seen:
            return 403
        self._seen[request.nonce] = expires
        if request.server == self._server:
            return 0
        return 410
