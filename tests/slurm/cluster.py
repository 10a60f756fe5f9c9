"""A real Slurm of eight nodes on this machine: private, quick, and gone without trace when it is
closed.

    with SlurmCluster() as cluster:
        subprocess.run(["sinfo"], env=cluster.env)

Rule 1: everything lives in one temporary directory and on free ports of 127.0.0.1; no Slurm of the
system is ever read.
Rule 2: every daemon is a child in the foreground and dies with its parent, even if that is killed.
Rule 3: `close` leaves no process behind, whatever state the cluster was in; it may be called twice.

`python -m tests.slurm.cluster [--accounting]` starts one, prints what to export, and stops it at
Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import pwd
import random
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.slurm import releases
from tests.slurm.processes import end, of_cluster, of_node
from tests.slurm.settings import (
    Place,
    Settings,
    gres_conf,
    init_sql,
    mariadb_options,
    slurm_conf,
    slurmdbd_conf,
)

# Debian keeps the daemons there, off most users' path
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
MARK = (
    "WINDROW_TEST_SLURM"  # in the environment of every daemon; the value is the cluster's directory
)
SLURM = (
    "setpriv",
    "munged",
    "slurmctld",
    "slurmd",
    "sbatch",
    "squeue",
    "scancel",
    "scontrol",
    "sinfo",
    "srun",
)
ACCOUNTING = ("slurmdbd", "sacct", "sacctmgr", "mariadbd", "mariadb-install-db")
START_TIMEOUT_S = 60.0  # a start takes seconds; a busy machine may take ten times as long
_PORTS = 1500  # for each of eight test processes
DIES_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL", "--")


class ClusterError(Exception):
    """The private Slurm did not do what it should; the message has the end of the log that says
    why."""


def missing(accounting: bool = False) -> str:
    """Why a private Slurm cannot run here, in one line; empty where it can."""
    if not sys.platform.startswith("linux"):
        return "a private Slurm needs Linux"
    programs = SLURM + (ACCOUNTING if accounting else ())
    absent = [program for program in programs if not shutil.which(program, path=PATH)]
    return (
        f"not installed: {', '.join(absent)} (as root on Debian or Ubuntu: tests/slurm/install)"
        if absent
        else ""
    )


class SlurmCluster:
    """One private Slurm. `env` is the environment in which its commands work; nodes are `n1`, `n2`,
    ..."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        if reason := missing(self.settings.accounting):
            raise ClusterError(reason)
        # In /tmp whatever TMPDIR says: a socket's path may have 107 characters.
        directory = Path(tempfile.mkdtemp(prefix="windrow-slurm-", dir="/tmp"))
        directory.chmod(0o755)  # munged refuses a socket in a directory that others cannot reach
        self.place = Place(
            directory, _free_ports(3 + self.settings.nodes), pwd.getpwuid(os.getuid()).pw_name
        )
        kept = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("SLURM", "SBATCH", "SQUEUE", "SACCT"))
        }
        path = PATH
        if release := self.settings.release:
            path = f"{releases.programs(release)}:{PATH}"
        self.env = {**kept, "PATH": path, "SLURM_CONF": str(self.place.path("slurm.conf"))}
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def nodes(self) -> list[str]:
        """The names of the nodes."""
        return [f"n{i + 1}" for i in range(self.settings.nodes)]

    # Starting and stopping

    def start(self) -> Self:
        """Start everything and wait until all nodes are idle; on failure nothing is left
        running."""
        with ExitStack() as undo:
            undo.callback(self.close)
            self._start_all()
            undo.pop_all()
        return self

    def _start_all(self) -> None:
        self._write_files()
        self._start_munge()
        if self.settings.accounting:
            self._start_accounting()
        self.start_controller()
        for node in self.nodes:
            self._spawn(node, self._node_command(node))
        self.wait(
            lambda: self.node_states() == dict.fromkeys(self.nodes, "idle"),
            "eight idle nodes",
            "n1",
        )
        # only now, since what a limit counts is known once the controller has told its database
        for line in self.settings.accounts:
            self.run("sacctmgr", "-i", *line.split())

    def _node_command(self, name: str) -> list[str]:
        command = [*self._own_disk(), "slurmd", "-D", "-N", name]
        if release := self.settings.release:
            command += ["-d", str(releases.programs(release) / "slurmstepd")]
        return command

    def _own_disk(self) -> list[str]:
        """What to put before a node's daemon so that it and its jobs have a disk that no other node
        sees."""
        if not self.settings.disk_mib:
            return []
        self.place.disk.mkdir(exist_ok=True)
        size = f"size={self.settings.disk_mib}m,mode=1777"
        begin = f"mount -t tmpfs -o {size} disk {self.place.disk} && {self.settings.on_node}"
        return ["unshare", "-m", "sh", "-c", f'{begin} && exec "$@"', "sh"]

    def close(self) -> None:
        """Stop everything: jobs, daemons, the directory. Safe in any state, and a second time."""
        # Order matters: nodes first, since a controller that sees them go would only write about
        # it.
        for name in sorted(self._daemons, key=lambda name: not name.startswith("n")):
            if name not in ("munged", "database", "slurmdbd"):
                self._daemons[name].send_signal(signal.SIGKILL)
        end(self._strays())
        for name in ("slurmdbd", "database", "munged"):
            if name in self._daemons:
                self._daemons[name].send_signal(signal.SIGKILL)
        for daemon in self._daemons.values():
            daemon.wait()
        self._daemons.clear()
        end(self._strays())
        shutil.rmtree(self.place.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def _strays(self) -> list[int]:
        return of_cluster(MARK, str(self.place.directory), self.env["SLURM_CONF"])

    # Breaking and mending

    def kill_node(self, name: str) -> None:
        """Kill a node as a power cut would: its daemon and all that it runs. Slurm finds out after
        `node_timeout_s`."""
        daemon = self._daemons.pop(name)
        daemon.kill()
        daemon.wait()
        looks_without = 0
        while (
            looks_without < 2
        ):  # what was about to be started there may not have been there to be seen
            found = of_node(self._strays(), name)
            end(found)
            looks_without = 0 if found else looks_without + 1
            time.sleep(0.05)

    def kill_daemon(self, name: str) -> None:
        """Kill the daemon of a node alone, as when the node is cut off: what runs there goes on."""
        daemon = self._daemons.pop(name)
        daemon.kill()
        daemon.wait()

    def start_node(self, name: str, *, waits: bool = True) -> None:
        """Bring a killed node back; it `waits` until Slurm may use it."""
        self._spawn(name, self._node_command(name))
        if waits:
            self.wait(lambda: self.node_states().get(name) == "idle", f"{name} idle", name)

    def stop_controller(self) -> None:
        """Stop the controller; running jobs go on, and its state is on disk."""
        daemon = self._daemons.pop("slurmctld")
        daemon.terminate()
        daemon.wait()

    def start_controller(self) -> None:
        """Start the controller with the state that it had, and wait until it answers and has heard
        of its nodes."""
        self._spawn("slurmctld", ["slurmctld", "-D", "-i"])
        self.wait(
            lambda: self._succeeds("scontrol", "ping"), "a controller that answers", "slurmctld"
        )
        alive = [node for node in self.nodes if node in self._daemons]
        self.wait(lambda: not self._silent(alive), "word from the nodes", "slurmctld")

    @contextmanager
    def frozen_controller(self) -> Iterator[None]:
        """The controller hears and does not answer, as under heavy load; on leaving it wakes up."""
        daemon = self._daemons["slurmctld"]
        daemon.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            daemon.send_signal(signal.SIGCONT)

    # Asking

    def run(self, *argv: str, timeout_s: float = 30.0) -> str:
        """Run one of Slurm's commands on this cluster; returns what it printed, or raises
        ClusterError."""
        done = subprocess.run(
            argv, env=self.env, capture_output=True, text=True, timeout=timeout_s, check=False
        )
        if done.returncode:
            raise ClusterError(f"{' '.join(argv)}: {done.stderr.strip()}")
        return done.stdout

    def node_states(self) -> dict[str, str]:
        """The state of each node in sinfo's words; empty while the controller does not answer."""
        try:
            rows = self.run("sinfo", "-h", "-N", "-p", "main", "-o", "%N %T").split()
        except ClusterError:
            return {}
        return dict(zip(rows[::2], rows[1::2], strict=True))

    def is_free(self) -> bool:
        """Whether no job waits or runs and every node is idle."""
        return not self.run("squeue", "-h") and set(self.node_states().values()) == {"idle"}

    def clear(self) -> None:
        """Cancel every job, whosever it is, and wait until all nodes are idle."""
        self.cancel_all()
        self.wait(self.is_free, "an empty queue and idle nodes", "slurmctld")

    def cancel_all(self) -> None:
        """Cancel every job, whosever it is, and wait until they are gone."""
        for user in sorted({*self.run("squeue", "-h", "-o", "%u").split()}):
            self.run("scancel", "--user", user)
        self.wait(lambda: not self.run("squeue", "-h"), "an empty queue", "slurmctld")

    def wait(
        self, condition: Callable[[], bool], what: str, log: str, timeout_s: float = START_TIMEOUT_S
    ) -> None:
        """Wait until `condition` holds; else ClusterError with the end of that daemon's log."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > deadline:
                text = self.place.path(f"{log}.log").read_text(errors="replace")
                raise ClusterError(
                    f"no {what} after {timeout_s:.0f} s; {log} said last:\n{text[-2000:]}"
                )
            time.sleep(0.1)

    def _silent(self, nodes: Sequence[str]) -> list[str]:
        states = self.node_states()
        return [node for node in nodes if states.get(node, "unknown").startswith("unknown")]

    def _succeeds(self, *argv: str) -> bool:
        return (
            subprocess.run(
                argv, env=self.env, capture_output=True, check=False, timeout=30
            ).returncode
            == 0
        )

    # The parts

    def _write_files(self) -> None:
        for name in ("state", "spool"):
            self.place.path(name).mkdir()
        self._write_private("munge.key", secrets.token_bytes(128))
        self.place.path("slurm.conf").write_text(slurm_conf(self.place, self.settings))
        if self.settings.kinds:
            text, devices = gres_conf(self.place, self.settings)
            self.place.path("gres.conf").write_text(text)
            for device in devices:  # as root Slurm tells jobs of them; else they are only counted
                if os.getuid() == 0:
                    os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
                else:
                    device.touch()

    def _write_private(self, name: str, content: bytes) -> None:
        path = self.place.path(name)
        path.touch(mode=0o600)
        path.write_bytes(content)

    def _start_munge(self) -> None:
        at = self.place.path
        options = {
            "socket": "munge.socket",
            "key-file": "munge.key",
            "pid-file": "munge.pid",
            "seed-file": "munge.seed",
        }
        self._spawn(
            "munged", ["munged", "--foreground", *(f"--{k}={at(v)}" for k, v in options.items())]
        )
        self.wait(at("munge.socket").exists, "munge socket", "munged")

    def _start_accounting(self) -> None:
        password = secrets.token_hex(16)
        self._write_private(
            "slurmdbd.conf", slurmdbd_conf(self.place, password, self.settings).encode()
        )
        self._write_private("init.sql", init_sql(password).encode())
        # A server that starts removes what it finds of temporary tables, be it another server's: so
        # each has a folder.
        self.place.path("database.tmp").mkdir()
        data = (
            f"--datadir={self.place.path('database')}",
            f"--tmpdir={self.place.path('database.tmp')}",
        )
        install = [
            "mariadb-install-db",
            "--no-defaults",
            *data,
            f"--user={self.place.user}",
            "--skip-test-db",
        ]
        self.run(*install, "--auth-root-authentication-method=socket", timeout_s=START_TIMEOUT_S)
        self._spawn("database", ["mariadbd", *mariadb_options(self.place)])
        self.wait(lambda: _answers(self.place.port("database")), "database", "database")
        self._spawn("slurmdbd", ["slurmdbd", "-D"])
        self.wait(
            lambda: _answers(self.place.port("database daemon")), "database daemon", "slurmdbd"
        )
        self.run("sacctmgr", "-i", "add", "cluster", "windrow")
        self.run("sacctmgr", "-i", "add", "account", "science")
        self.run("sacctmgr", "-i", "add", "user", self.place.user, "account=science")

    def _spawn(self, name: str, argv: Sequence[str]) -> None:
        with self.place.path(f"{name}.log").open("ab") as log:
            self._daemons[name] = subprocess.Popen(
                [*DIES_WITH_PARENT, *argv],
                env={**self.env, MARK: str(self.place.directory), "WINDROW_TEST_NODE": name},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,  # a Ctrl-C is for the parent, which stops the daemons in order
            )


def _free_ports(count: int) -> int:
    """The first of `count` consecutive free ports, below those that outgoing connections are given.

    A port that is free now may be taken before a daemon of ours takes it: by a cluster of another
    test process, where several work side by side (pytest -n). So each of these looks in a range of
    its own.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    least = 20000 + _PORTS * (worker % 8)
    for first in random.sample(range(least, least + _PORTS - count), 500):
        if not any(_is_taken(port) for port in range(first, first + count)):
            return first
    raise ClusterError(f"no {count} consecutive free ports between {least} and {least + _PORTS}")


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _answers(port: int) -> bool:
    return _is_taken(port)


def main(argv: Sequence[str] | None = None) -> int:
    """Start a private Slurm, print what to export, stop it at Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m tests.slurm.cluster", description=main.__doc__)
    parser.add_argument("--accounting", action="store_true", help="with slurmdbd and MariaDB")
    parser.add_argument(
        "--select", default="select/linear", choices=("select/linear", "select/cons_tres")
    )
    parser.add_argument("--nodes", type=int, default=8)
    args = parser.parse_args(argv)
    return serve(Settings(accounting=args.accounting, select=args.select, nodes=args.nodes))


def serve(settings: Settings) -> int:
    """Keep a private Slurm until Ctrl-C; what to export is printed."""
    began = time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        with SlurmCluster(settings) as cluster:
            took_s = time.monotonic() - began
            print(f"# {settings.nodes} idle nodes after {took_s:.1f} s; Ctrl-C stops them")
            print(f"export SLURM_CONF={cluster.env['SLURM_CONF']}", flush=True)
            signal.pause()
    except KeyboardInterrupt:
        print("# stopped")
    return 0


if __name__ == "__main__":
    sys.exit(main())
