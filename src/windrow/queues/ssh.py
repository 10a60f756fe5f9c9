"""Commands on another machine, by the user's own ssh: a `command.Run`, so that any batch system
works through it.

Rule 1: never a prompt. One connection for each host is kept open and shared by all commands and
transfers; one that the user has opened is used as it is. If a login needs a password or a second
factor, the error says what to type.
Rule 2: nothing of this machine's environment goes there but what the caller gives. A login shell
there runs the site's `setup` first: modules and variables of users are known in such shells alone.
Rule 3: what profiles and banners print is told apart by marks, before and after the command's own
words. Without the first mark it was not started (QueueError); without the last, unknown what became
of it: no answer, as after a timeout.
"""

import hashlib
import os
import secrets
import shlex
import stat
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from windrow.errors import UserError
from windrow.queues import command
from windrow.queues.command import Answer
from windrow.queues.port import QueueError

_CONNECT_S = 15
_QUIET = ("-o", "BatchMode=yes", "-o", "LogLevel=ERROR", "-o", f"ConnectTimeout={_CONNECT_S}")
_ALIVE = ("-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=3", "-o", "ControlPersist=10m")
_PROMPTS = (
    "permission denied",
    "host key verification",
    "authentication fail",
    "no supported authentication",
)

_CHANGED_KEY = "host identification has changed"


class Ssh:
    """One host; an empty one is this machine, where commands run in a login shell all the same."""

    def __init__(self, host: str = "", setup: str = "") -> None:
        self.host = host
        self._setup = setup
        self._mark = f"windrow-{secrets.token_hex(8)}"
        if host.startswith("-") or any(char.isspace() for char in host):
            raise UserError(
                f"{host!r} is not the name of a host; write it as for ssh: user@host, or a Host "
                "of its config"
            )

    def __call__(
        self, argv: Sequence[str], *, stdin: str, env: Mapping[str, str], timeout_s: float
    ) -> Answer:
        """Run one command there. QueueError if it was not even started."""
        if env:
            given = ["env", *(f"{name}={value}" for name, value in env.items())]
        else:
            given = []
        return self.script(shlex.join([*given, *argv]), stdin, timeout_s)

    def script(self, text: str, stdin: str = "", timeout_s: float = 60.0) -> Answer:
        """Run these lines of shell there; the exit code is that of the last."""
        mark = self._mark
        if self._setup:
            setup = f"{{ :\n{self._setup}\n}} </dev/null >&2\n"
        else:
            setup = ""
        marked = (
            f"{setup}echo {mark}; echo {mark} >&2\n(\n{text}\n)\ncode=$?; printf '\\n{mark} "
            "%d\\n' $code"
        )
        shell = ["bash", "-lc", marked]
        if self.host:
            argv = [*self.command, self.host, "exec " + shlex.join(shell)]
        else:
            argv = shell
        environ = (
            os.environ
            if self.host
            else {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}
        )
        answer = command.run(argv, stdin=stdin, env=environ, timeout_s=timeout_s)
        if answer.code is None:
            return answer
        _, is_begun, out = answer.out.partition(f"{mark}\n")
        out, is_ended, code = out.rpartition(f"\n{mark} ")
        err = answer.err.rpartition(f"{mark}\n")[2]
        if not is_begun:
            raise QueueError(self._unreached(answer))
        if is_ended:
            return Answer(int(code), out, err)
        return Answer(None, "", "")

    @cached_property
    def user(self) -> str:
        """Who asks, as the other machine sees it. QueueError if it does not answer."""
        answer = self.script("id -un")
        if not answer.is_good:
            raise QueueError(f"{self.host} does not say who we are: {answer.words}")
        return answer.out.strip()

    @property
    def command(self) -> list[str]:
        """The ssh of commands and transfers, over a connection that is open. QueueError if there
        is none."""
        if self._talks(["ssh", "-O", "check", self.host]):  # the user's own
            return ["ssh", *_QUIET]
        shared = ["ssh", *_QUIET, "-o", f"ControlPath={self.socket}"]
        if not self._talks([*shared, "-O", "check", self.host]):
            self._open(shared)
        return [*shared, "-o", "ControlMaster=no"]

    def _open(self, shared: Sequence[str]) -> None:
        """A connection that later commands share."""
        with tempfile.TemporaryFile("w+") as said:  # no pipe: the connection would hold it open
            opened = [*shared, *_ALIVE, "-fNM", self.host]
            how: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": said, "stderr": said}
            try:
                code = subprocess.run(opened, timeout=4 * _CONNECT_S, check=False, **how).returncode
            except subprocess.TimeoutExpired:
                raise QueueError(f"{self.host} does not answer ssh") from None
            said.seek(0)
            if code:
                raise QueueError(self._unreached(Answer(code, "", said.read())))

    @cached_property
    def socket(self) -> Path:
        """Where the connection is found: in a private folder with a short path, since sockets allow
        no other."""
        base = os.environ.get("XDG_RUNTIME_DIR", "")
        if 0 < len(base) < 40:
            folder = Path(base, "windrow")
        else:
            folder = Path(f"/tmp/windrow-{os.getuid()}")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise UserError(f"{folder} is not a private folder of yours; remove it")
        return folder / hashlib.sha256(self.host.encode()).hexdigest()[:12]

    def close(self) -> None:
        """Close the connection, unless it is the user's own."""
        self._talks(["ssh", "-o", f"ControlPath={self.socket}", "-O", "exit", self.host])

    def _talks(self, argv: list[str]) -> bool:
        return command.run(argv, stdin="", env=os.environ, timeout_s=_CONNECT_S).is_good

    def _unreached(self, answer: Answer) -> str:
        words = answer.words
        if _CHANGED_KEY in words.lower():
            known = f"ssh-keygen -R {self.host}"
            fix = (
                f"ask its administrators whether that is right; if it is: {known}, then ssh "
                f"{self.host}"
            )
            return (
                f"{self.host} has another host key than before, so it may be another machine; {fix}"
            )
        if any(prompt in words.lower() for prompt in _PROMPTS):
            typed = f"ssh -fNM -o ControlPersist=8h -S {self.socket} {self.host}"
            return (
                f"{self.host} wants a password, a second factor or a known host key; type: "
                f"{typed} ({words})"
            )
        return f"{self.host or 'bash'} cannot be reached: {words}"
