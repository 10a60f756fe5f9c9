"""Another account on this machine, reached through a real sshd on a port of its own. Root only: it makes a user.

The `ssh` that is found first in PATH is a wrapper with a configuration of its own: neither the user's keys nor the
user's settings are touched. `cut` ends every connection as a network failure would.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.slurm.cluster import DIES_WITH_PARENT, PATH, _answers, _free_ports
from tests.slurm.processes import end
from tests.waiting import wait_until

HOST = "west"


def missing() -> str:
    """Why there can be no second account here; empty where there can."""
    absent = [program for program in ("sshd", "ssh", "rsync", "useradd") if not shutil.which(program, path=PATH)]
    if absent:
        return f"not installed: {', '.join(absent)} (as root on Debian or Ubuntu: tests/slurm/install)"
    return "" if os.getuid() == 0 else "it takes root to make a second user"


class Account:
    """A throwaway user with a home and an sshd, for the length of a `with`."""

    def __init__(self, profile: str = "") -> None:
        """`profile`: what the account's login shells read."""
        self.folder = Path(tempfile.mkdtemp(prefix="windrow-far-", dir="/tmp"))
        self.folder.chmod(0o755)
        self.name = f"wf{os.getpid()}"
        self.home = self.folder / "home"
        self.port = _free_ports(1)
        self._profile = profile
        self._sshd: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        subprocess.run(["useradd", "-M", "-d", self.home, "-s", "/bin/bash", self.name], check=True)
        subprocess.run(["usermod", "-p", "*", self.name], check=True)  # else sshd takes it for locked
        (self.home / ".ssh").mkdir(mode=0o700, parents=True)
        (self.home / ".bash_profile").write_text(self._profile)
        for key in ("host", "user"):
            file = self.folder / key
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file], check=True)
        shutil.copy(self.folder / "user.pub", self.home / ".ssh" / "authorized_keys")
        subprocess.run(["chown", "-R", f"{self.name}:", self.home], check=True)
        host_key = (self.folder / "host.pub").read_text().split()[:2]
        (self.folder / "known").write_text(f"[127.0.0.1]:{self.port} {' '.join(host_key)}\n")
        (self.folder / "config").write_text(
            f"Host {HOST}\n HostName 127.0.0.1\n Port {self.port}\n User {self.name}\n"
            f" IdentityFile {self.folder}/user\n IdentitiesOnly yes\n UserKnownHostsFile {self.folder}/known\n"
        )
        (self.folder / "bin").mkdir()
        wrapper = self.folder / "bin" / "ssh"
        wrapper.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {self.folder}/config "$@"\n')
        wrapper.chmod(0o755)
        (self.folder / "run").mkdir()
        Path("/run/sshd").mkdir(exist_ok=True)
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
        end([int(p.name) for p in Path("/proc").iterdir() if p.name.isdecimal() and self._owns(p)])
        subprocess.run(["userdel", self.name], check=False, capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def env(self) -> dict[str, str]:
        """What the environment of a test needs in order to reach the account."""
        return {"PATH": f"{self.folder / 'bin'}:{PATH}", "XDG_RUNTIME_DIR": str(self.folder / "run")}

    def start(self) -> None:
        """Start the server."""
        options = {
            "Port": self.port, "ListenAddress": "127.0.0.1", "HostKey": self.folder / "host", "UsePAM": "no",
            "PasswordAuthentication": "no", "KbdInteractiveAuthentication": "no", "PidFile": "none",
            "StrictModes": "no", "Banner": self.folder / "banner",
        }  # fmt: skip
        (self.folder / "banner").write_text("Welcome to west\n")
        given = [f"-o{name}={value}" for name, value in options.items()]
        argv = [*DIES_WITH_PARENT, str(shutil.which("sshd", path=PATH)), "-D", "-e", "-f", "/dev/null", *given]
        with (self.folder / "sshd.log").open("ab") as log:
            self._sshd = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(lambda: _answers(self.port))

    def stop(self) -> None:
        """No one gets in any more, and whoever is in is cut off."""
        if self._sshd is not None:
            self._sshd.kill()
            self._sshd.wait()
            self._sshd = None
        self.cut()

    def cut(self) -> None:
        """Cut every connection."""
        marks = (f"sshd: {self.name}".encode(), str(self.folder / "run").encode())
        for entry in Path("/proc").iterdir():
            try:
                line = (entry / "cmdline").read_bytes() if entry.name.isdecimal() else b""
            except OSError:
                continue
            if line.startswith(marks[0]) or (line.startswith(b"ssh") and marks[1] in line):
                os.kill(int(entry.name), signal.SIGKILL)

    def _owns(self, entry: Path) -> bool:
        try:
            return entry.stat().st_uid == pwd.getpwnam(self.name).pw_uid
        except (OSError, KeyError):
            return False
