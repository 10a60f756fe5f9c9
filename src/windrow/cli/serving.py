"""The server behind `windrow serve`: pages of runs, to the one who started it, and to no one else.

On a login node, 127.0.0.1 is everybody's, and any page in a browser may ask it things. So:
Rule 1: whatever says anything needs the token, in a header, which a page of another site cannot
send. An address gets only an empty page, whose script takes the token from behind the `#`.
Rule 2: a request names this machine as its host (no other name may be pointed at it), and comes
from this server's own pages. A socket in the file system also asks the kernel who is there.
Rule 3: it only reads. With `control` it may start files of the folder that it was started in, and
cancel, resume and retry runs, by commands with fixed words; nothing that is sent is executed.
"""

from __future__ import annotations

import hmac
import json
import os
import re
import secrets
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar, cast
from urllib.parse import unquote, urlsplit

from windrow.app import runs
from windrow.errors import UserError, WindrowError
from windrow.report.page import Lively, page
from windrow.report.run.listing import Listed, listing_page
from windrow.report.run.page import page_now
from windrow.report.script import policy, script
from windrow.story.states import ACTIVE, TaskState

HOSTS = ("127.0.0.1", "localhost", "[::1]")
EVERY_S = 2.0
_LIST_EVERY_S = 5.0
_COST = 10
"""A page is made again no sooner than this many times what making it took."""
_BODY_MAX = 16_384
_LOG_MAX = 1 << 20
_COMMAND_S = 15.0
_PATIENCE_S = 30.0
_WORKFLOWS = (".yaml", ".yml", ".json", ".dax", ".xml")
_LOG = re.compile(r"[0-9]{1,9}\.[0-9]{1,6}")
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent back."""

    status: int
    body: bytes = b""
    kind: str = "text/plain; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)


def _words(status: int, words: str) -> Answer:
    return Answer(status, f"{words}\n".encode())


@dataclass(slots=True)
class _Made:
    """A page that was made, and when it is to be made again."""

    text: bytes
    tag: str
    seen: tuple[int, ...]
    until: float


class Portal:
    """What may be asked, and the answers. `root` is where runs are kept, `folder` where workflows
    are started."""

    def __init__(self, root: Path, folder: Path, token: str, *, control: bool) -> None:
        self.root = root
        self.folder = folder
        self.control = control
        self._token = token
        self._made: dict[str, _Made] = {}
        self._lock = threading.Lock()

    def refusal(self, headers: Mapping[str, str]) -> Answer | None:
        """Why this request is not answered at all; None if it is."""
        host = headers.get("Host", "")
        if host.rpartition(":")[0] not in HOSTS and host not in HOSTS:
            return _words(403, "this server answers to 127.0.0.1 and localhost only")
        origin = headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return _words(403, "pages of other sites may not ask this server")
        if headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            return _words(403, "pages of other sites may not ask this server")
        return None

    def knows(self, headers: Mapping[str, str]) -> bool:
        """Whether the request has the token."""
        said = headers.get("X-Windrow-Token", "").encode("utf-8", "replace")
        return hmac.compare_digest(said, self._token.encode())

    def get(self, path: str, headers: Mapping[str, str]) -> Answer:
        """The answer to a question."""
        parts = [unquote(part) for part in path.split("/") if part]
        if parts[:1] not in (["page"], ["files"]):
            return _shell()
        if not self.knows(headers):
            return _words(403, "the token is missing or wrong")
        match parts:
            case ["files"]:
                return self._files()
            case ["page"]:
                return self._page("", headers)
            case ["page", "runs", name]:
                return self._page(name, headers)
            case ["page", "runs", name, "log", log] if _LOG.fullmatch(log):
                return self._log(name, log)
        return _words(404, "there is nothing of this name")

    def _page(self, name: str, headers: Mapping[str, str]) -> Answer:
        with self._lock:  # one is made at a time: readers of one page share it
            made = self._now(name)
        if made is None:
            return _words(404, f"there is no run {name} in {self.root}")
        told = {"ETag": made.tag, "X-Windrow-Control": "yes" if self.control else "no"}
        if headers.get("If-None-Match") == made.tag:
            return Answer(304, headers=told)
        return Answer(200, made.text, "text/html; charset=utf-8", told)

    def _now(self, name: str) -> _Made | None:
        """The page of a run, or of all; None if there is no such run."""
        paths = None
        if name:
            paths = self.run(name)
            if paths is None:
                return None
        seen = _seen(paths.path if paths else self.root)
        before = self._made.get(name)
        now = time.monotonic()
        if before is not None and (now < before.until or (before.seen == seen and seen[-1] == 0)):
            return before
        try:
            if paths is None:
                is_active, text = self._listing()
            else:
                told = runs.RunView(paths, asks_agents=True)
                is_active = told.state in ACTIVE
                text = page_now(told, time.time(), EVERY_S if is_active else 5 * EVERY_S)
                told.close()
        except WindrowError as error:
            is_active = True
            text = page(f"Run {name}", str(error), [], Lively("", 5 * EVERY_S))
        body = text.encode()
        cost = time.monotonic() - now
        until = time.monotonic() + max(EVERY_S / 2, _COST * cost)
        tag = f'"{sha256(body).hexdigest()[:32]}"'
        self._made[name] = _Made(body, tag, (*seen[:-1], int(is_active)), until)
        return self._made[name]

    def _listing(self) -> tuple[bool, str]:
        found = [_listed(paths) for paths in runs.all_runs(self.root)]
        return True, listing_page(str(self.root.parent.parent), found, _LIST_EVERY_S)

    def run(self, name: str) -> runs.RunPaths | None:
        """The run of this name; None if there is none."""
        return next((one for one in runs.all_runs(self.root) if one.name == name), None)

    def _log(self, name: str, log: str) -> Answer:
        paths = self.run(name)
        if paths is None:
            return _words(404, "there is no such run")
        try:
            with (paths.folder.out / log).open("rb") as file:
                size = file.seek(0, 2)
                file.seek(max(0, size - _LOG_MAX))
                said = file.read(_LOG_MAX)
        except OSError as error:
            return _words(404, f"it cannot be read: {error.strerror}")
        if size > _LOG_MAX:
            said = f"(the last {_LOG_MAX:,} of {size:,} bytes)\n".encode() + said
        return Answer(200, said)

    def _files(self) -> Answer:
        """Workflows that may be started."""
        return Answer(200, json.dumps({"files": self._workflows()}).encode(), "application/json")

    def _workflows(self) -> list[str]:
        if not self.control:
            return []
        try:
            found = [
                entry.name
                for entry in self.folder.iterdir()
                if entry.suffix in _WORKFLOWS and entry.is_file() and not entry.name.startswith(".")
            ]
        except OSError:
            return []
        return sorted(found)

    def post(self, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Do what is asked, if that is allowed."""
        if not self.knows(headers):
            return _words(403, "the token is missing or wrong")
        if not self.control:
            return _words(403, "this server only shows; windrow serve --control may also act")
        try:
            said = json.loads(body)
            if not isinstance(said, dict):
                raise UserError("a request is an object")
            words = self._command(path.removeprefix("/do/"), said)
        except (ValueError, KeyError, UserError) as error:
            return _words(400, f"this cannot be done: {error}")
        return self._done(words)

    def _command(self, what: str, said: dict[str, Any]) -> list[str]:
        """The words of a command, of which each was looked up in what is there."""
        if what == "start":
            if said["file"] not in self._workflows():
                raise UserError("there is no such workflow in the folder")
            return ["run", "--detach", "--", str(said["file"])]
        paths = self.run(str(said["run"]))
        if paths is None:
            raise UserError("there is no such run")
        if what == "cancel":
            return ["cancel", "--run", paths.name]
        if what == "resume":
            return ["resume", "--detach", "--run", paths.name]
        if what == "retry":
            told = runs.RunView(paths)
            if said["task"] not in told.runnable.workflow.ids:
                raise UserError("the run has no such task")
            return ["retry", "--run", paths.name, "--", str(said["task"])]
        raise UserError("nothing of this name can be done")

    def _done(self, words: list[str]) -> Answer:
        """What a command says. One that manages a run continues by itself, also when this ends."""
        command = [sys.executable, "-P", "-m", "windrow.cli.main", *words]
        with tempfile.TemporaryFile() as out:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
            try:
                code = process.wait(_COMMAND_S)
            except subprocess.TimeoutExpired:
                process.returncode = 0  # it is on its own: no one here waits for its end
                return _words(202, "it is on its way; the page shows how it goes")
            out.seek(0)
            said = out.read(_BODY_MAX).decode(errors="replace").strip()
        return _words(200 if code == 0 else 409, said or "done")


def _seen(folder: Path) -> tuple[int, ...]:
    """What changes when a run's records do; its last number is for the caller."""
    found: list[int] = []
    for name in ("journal.sqlite", "journal.sqlite-wal", "lock", "out"):
        try:
            status = (folder / name).stat()
        except OSError:
            found += [0, 0]
        else:
            found += [status.st_size, status.st_mtime_ns]
    return (*found, 0)


def _shell() -> Answer:
    """A page that says nothing: its script asks for what it shows."""
    text = page("Windrow", "", ["<section></section>"], Lively(""))
    return Answer(200, text.encode(), "text/html; charset=utf-8")


def _listed(paths: runs.RunPaths) -> Listed:
    try:
        told = runs.RunView(paths, asks_agents=True)
    except WindrowError as error:
        return Listed(paths.name, "unreadable", trouble=str(error))
    story = told.story
    took_s = 0.0
    if story.begun_s is not None:
        took_s = told.recorded(time.time()).makespan_s
    found = Listed(
        name=paths.name,
        state=told.state,
        finished=story.count(TaskState.FINISHED),
        failed=story.count(TaskState.FAILED),
        tasks=len(story.tasks),
        jobs=len(story.jobs),
        on=told.facts.on,
        begun_s=story.begun_s,
        took_s=took_s,
    )
    told.close()
    return found


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "windrow"
    sys_version = ""
    timeout = _PATIENCE_S
    portal: ClassVar[Portal]

    def do_GET(self) -> None:
        told = dict(self.headers.items())
        self._send(self.portal.refusal(told) or self.portal.get(urlsplit(self.path).path, told))

    def do_POST(self) -> None:
        told = dict(self.headers.items())
        size = self.headers.get("Content-Length", "")
        if not size.isdecimal() or int(size) > _BODY_MAX:
            self.close_connection = True
            self._send(_words(413, "a request has at most 16 kB"))
            return
        body = self.rfile.read(int(size))
        if self.headers.get("Content-Type", "").partition(";")[0] != "application/json":
            self._send(_words(415, "a request is JSON"))
            return
        refused = self.portal.refusal(told)
        self._send(refused or self.portal.post(urlsplit(self.path).path, told, body))

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        headers = {
            **_HEADERS,
            "Content-Security-Policy": f"{policy(script())}; frame-ancestors 'none'",
            "Content-Type": answer.kind,
            "Content-Length": str(len(answer.body)),
            **answer.headers,
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing: a line for each look would bury what the person is to read."""


class Server(ThreadingHTTPServer):
    """On 127.0.0.1, at a port that is free."""

    daemon_threads = True
    allow_reuse_address = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """That someone leaves in the middle of an answer is not an error."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class SocketServer(Server):
    """On a socket in the file system, for its owner alone."""

    address_family = socket.AF_UNIX

    def server_bind(self) -> None:
        """No name is looked up, unlike in the base."""
        before = os.umask(0o177)
        try:
            self.socket.bind(self.server_address)
        finally:
            os.umask(before)
        self.server_name = "localhost"
        self.server_port = 0

    def get_request(self) -> tuple[socket.socket, Any]:
        """Who asks, as the kernel says."""
        made, _ = self.socket.accept()
        return made, ("socket", 0)

    def verify_request(self, request: Any, client_address: Any) -> bool:  # noqa: ARG002
        """Whether it is the owner."""
        form = "3i"
        found = request.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize(form))
        _, user, _ = struct.unpack(form, found)
        return bool(user == os.geteuid())


def opened(portal: Portal, port: int, path: Path | None) -> Server:
    """A server that listens; at a socket if there is a path."""
    handler = cast(type[_Handler], type("Handler", (_Handler,), {"portal": portal}))
    try:
        if path is not None:
            return SocketServer(str(path), handler)  # type: ignore[arg-type]
        return Server(("127.0.0.1", port), handler)
    except OSError as error:
        where = path or f"127.0.0.1:{port}"
        raise UserError(
            f"{where} cannot be listened at: {error.strerror}; choose another"
        ) from error


def new_token() -> str:
    """It cannot be guessed."""
    return secrets.token_urlsafe(32)
