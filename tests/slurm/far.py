"""Another account on this machine, reached through a real sshd on a port of its own. Root only: it
makes a user.

A `Bed` is a folder with one or two private Slurms as sites: `east`, which sees the same files, and
`west`, behind ssh.

The `ssh` that is found first in PATH is a wrapper with a configuration of its own: neither the
user's keys nor the user's settings are touched. `cut` ends every connection as a network failure
would.
"""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.real.works import private, serial_checksums
from tests.real_workflows import write_real
from tests.slurm.cluster import DIES_WITH_PARENT, PATH, SlurmCluster, _answers, _free_ports
from tests.slurm.processes import end
from tests.waiting import wait_until

from windrow.app.runs import RunView, find_run
from windrow.formats import read_runnable
from windrow.story import events as e
from windrow.story.journal import RunJournal

HOST = "west"
HURRIED = str(Path(__file__).with_name("hurried.py"))
_numbers = count()


def missing() -> str:
    """Why there can be no second account here; empty where there can."""
    absent = [
        program
        for program in ("sshd", "ssh", "rsync", "useradd")
        if not shutil.which(program, path=PATH)
    ]
    if absent:
        return (
            f"not installed: {', '.join(absent)} (as root on Debian or Ubuntu: tests/slurm/install)"
        )
    return "" if os.getuid() == 0 else "it takes root to make a second user"


class Account:
    """A throwaway user with a home and an sshd, for the length of a `with`."""

    def __init__(self, profile: str = "") -> None:
        """`profile`: what the account's login shells read."""
        self.folder = Path(tempfile.mkdtemp(prefix="windrow-far-", dir="/tmp"))
        self.folder.chmod(0o755)
        self.name = f"wf{os.getpid()}x{next(_numbers)}"
        self.home = self.folder / "home"
        self.port = _free_ports(1)
        self._profile = profile
        self._sshd: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        subprocess.run(["useradd", "-M", "-d", self.home, "-s", "/bin/bash", self.name], check=True)
        subprocess.run(
            ["usermod", "-p", "*", self.name], check=True
        )  # else sshd takes it for locked
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
            f" IdentityFile {self.folder}/user\n IdentitiesOnly yes\n UserKnownHostsFile "
            f"{self.folder}/known\n"
        )
        (self.folder / "bin").mkdir()
        wrapper = self.folder / "bin" / "ssh"
        wrapper.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {self.folder}/config "$@"\n')
        wrapper.chmod(0o755)
        (self.folder / "run").mkdir()
        Path("/run/sshd").mkdir(exist_ok=True)
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.stop()
        end([int(p.name) for p in Path("/proc").iterdir() if p.name.isdecimal() and self._owns(p)])
        subprocess.run(["userdel", self.name], check=False, capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def env(self) -> dict[str, str]:
        """What the environment of a test needs in order to reach the account."""
        return {
            "PATH": f"{self.folder / 'bin'}:{PATH}",
            "XDG_RUNTIME_DIR": str(self.folder / "run"),
        }

    def start(self) -> None:
        """Start the server."""
        options = {
            "Port": self.port, "ListenAddress": "127.0.0.1", "HostKey": self.folder / "host",
            "UsePAM": "no",
            "PasswordAuthentication": "no", "KbdInteractiveAuthentication": "no", "PidFile": "none",
            "StrictModes": "no", "Banner": self.folder / "banner",
        }  # fmt: skip
        (self.folder / "banner").write_text("Welcome to west\n")
        given = [f"-o{name}={value}" for name, value in options.items()]
        argv = [
            *DIES_WITH_PARENT,
            str(shutil.which("sshd", path=PATH)),
            "-D",
            "-e",
            "-f",
            "/dev/null",
            *given,
        ]
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


@dataclass
class Bed:
    """A folder at home whose `windrow.toml` names private Slurms as sites, and the account that has
    the jobs of `west`.

    `keys`: what more the table of a site says; `setup`: what shells at `west` do first. `hurry`:
    constants of `windrow` (`hurried`).
    """

    folder: Path
    account: Account
    slurms: Mapping[str, SlurmCluster]
    keys: Mapping[str, str] = field(default_factory=dict)
    setup: str = ":"
    hurry: str = ""
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.work = self.folder / "work"
        self.work.mkdir()
        tables = ["[queues.local]\ncores = 2\ngpus = 1"]
        env = dict(next(iter(self.slurms.values())).env)
        del env["SLURM_CONF"]  # what a site has, we have only of our own
        for name, slurm in self.slurms.items():
            conf = slurm.env["SLURM_CONF"]
            if name == HOST:
                setup = f"export SLURM_CONF={conf}; {self.setup}"
                where = f'host = "{HOST}"\nfolder = "~/scratch"\nsetup = "{setup}"\n'
            else:
                where, env["SLURM_CONF"] = "", conf
            tables.append(f'[sites.{name}]\nqueue = "slurm"\n{where}{self.keys.get(name, "")}')
        (self.work / "windrow.toml").write_text("\n".join([*tables, ""]))
        waits = {"WINDROW_WAITS": str(self.folder / "waits.sqlite")}
        self.env = {**env, **private(self.folder), **self.account.env, **waits}

    @property
    def slurm(self) -> SlurmCluster:
        """The one behind ssh."""
        return self.slurms[HOST]

    def start(self, *words: str, **env: str) -> subprocess.Popen[str]:
        """A command of Windrow, in the folder."""
        program = (HURRIED, self.hurry) if self.hurry else ("-m", "windrow.cli.main")
        pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        command = [sys.executable, "-P", *program, *words]
        process = subprocess.Popen(
            command, cwd=self.work, env={**self.env, **env}, process_group=0, **pipes
        )
        self.started.append(process)
        return process

    def windrow(self, *words: str, timeout_s: float = 100.0, **env: str) -> str:
        """What it says; it must succeed."""
        process = self.start(*words, **env)
        said, _ = process.communicate(timeout=timeout_s)
        assert process.returncode == 0, said
        return said

    def stop(self) -> None:
        """End what was started."""
        for process in self.started:
            process.kill()
            process.wait()

    @property
    def events(self) -> list[e.Event]:
        """Of the one run, up to now."""
        if not (runs := list(self.work.glob(".windrow/runs/[!.]*/journal.sqlite"))):
            return []
        journal = RunJournal.open(runs[0])
        found = [record.event for _, record in journal.records()]
        journal.close()
        return found

    @property
    def told(self) -> RunView:
        """The last run."""
        return RunView(find_run(None, self.work / ".windrow" / "runs"))

    def check_nothing_left(self) -> None:
        """No file at the far site, and no job in any queue."""
        far = self.account.home / "scratch"
        assert [
            path.name for path in far.rglob("*") if path.is_file() and path.suffix != ".pyz"
        ] == []
        for slurm in self.slurms.values():
            slurm.wait(slurm.is_free, "an empty queue after the run", "slurmctld", timeout_s=20.0)

    def check_shape(self, recipe: str, on: str, tasks: int = 50, strategy: str = "glume") -> None:
        """Run a workflow of this shape: what comes home is what a serial run makes.

        At several sites each has to run every third task, and the others go where they should end
        first.
        """
        tasks = max(tasks, 80 if recipe == "fft" else 0)
        path = write_real(recipe, tasks, self.work, work_s=0.01)
        head, *lines = path.read_text().replace(sys.executable, "python3").split("\n  - ")
        if "," in on:
            sites = [{"site": site} for site in on.split(",")] + [{}]
            rows = [json.loads(line) | sites[n % len(sites)] for n, line in enumerate(lines)]
            lines = [json.dumps(row) for row in rows]
        path.write_text("\n  - ".join([head, *lines]))
        words = ("run", path.name, "--json", "--on", on, "--strategy", strategy)
        said = json.loads(self.windrow(*words, timeout_s=400.0))
        assert said["state"] == "complete"
        assert {job["site"] or on for job in said["jobs"]} == set(on.split(","))
        workflow = read_runnable(path).workflow
        read = set(workflow.inputs.index.tolist())
        wanted = {workflow.files[f].id for f in workflow.outputs.index.tolist() if f not in read}
        found = {
            name: hashlib.sha256((self.work / name).read_bytes()).hexdigest() for name in wanted
        }
        assert found == {
            name: text for name, text in serial_checksums(recipe, tasks).items() if name in wanted
        }
        self.check_ran_once()
        self.check_nothing_left()

    def check_ran_once(self) -> None:
        """Each task, and well."""
        told = self.told
        ran = [[str(attempt.outcome) for attempt in task.attempts] for task in told.story.tasks]
        told.close()
        assert ran == [["finished"]] * len(ran)
