"""A place of its own for real runs: folder, queue and history; commands as users type them; what
must hold after.

Tasks append a line to `ran` when they have done their work, so that whoever runs twice is seen.
Every process that a run starts inherits a mark in its environment, so that whoever stays behind is
seen, too.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from windrow.app.runs import RunPaths, RunView, all_runs
from windrow.report.run.view import status_view

MARK = "WINDROW_TEST_WORLD"

# A task of a real workflow: works a little, writes its output whole, then says that it was here.
WORK = (
    "sleep {work_s}; echo $WINDROW_TASK > {out}.part && mv {out}.part {out} && echo "
    "$WINDROW_TASK >> ran"
)


# Before that, where a test wants to act in the midst of it: says that it is there, and waits to be
# let through.
GATE = "echo $WINDROW_TASK >> waiting; until test -e go; do sleep 0.05; done; "


def braid(work_s: float = 0.05, width: int = 3, runtime_s: int = 1, *, gated: bool = False) -> str:
    """A workflow file: first, `width` chains of two, last. Gated: all but the first wait (see
    `World.open_gate`)."""

    def entry(name: str, after: Sequence[str]) -> str:
        command = GATE * (gated and bool(after)) + WORK.format(work_s=work_s, out=f"{name}.out")
        return "  - " + json.dumps(
            {
                "id": name,
                "kind": "braid",
                "command": command,
                "inputs": [f"{parent}.out" for parent in after],
                "outputs": [f"{name}.out"],
                "runtime": runtime_s,
            }
        )

    rows = [entry("first", [])]
    rows += [entry(f"up-{i}", ["first"]) for i in range(width)]
    rows += [entry(f"down-{i}", [f"up-{i}"]) for i in range(width)]
    rows += [entry("last", [f"down-{i}" for i in range(width)])]
    return "\n".join(["name: braid", "tasks:", *rows, ""])


# A task that hangs in whichever job is the first to try it, with half of its outputs written.
RACE = """
name: race
tasks:
  - id: hangs
    runtime: 5
    outputs: [one.txt, two.txt]
    command: >
      if mkdir taken 2> /dev/null; then for f in {outputs}; do echo half > $f; done; sleep 600 & wait;
      else for f in {outputs}; do echo $WINDROW_ATTEMPT > $f; done; fi
  - id: after
    runtime: 1
    inputs: [one.txt, two.txt]
    outputs: [both.txt]
    command: cat {inputs} > {outputs}
"""  # noqa: E501


def check_race(world: World, *more: str) -> None:
    """Two jobs run it: the run ends when one has, has the outputs of that one, and leaves nothing
    of the other."""
    world.write(RACE)
    code, said = world.run("--copies", "2", *more)
    assert code == 0, said
    world.check_nothing_left()
    first, second = (world.folder / "both.txt").read_text().split()
    assert first == second
    assert sorted(path.name for path in world.folder.glob("*.txt")) == [
        "both.txt",
        "one.txt",
        "two.txt",
    ]
    assert not list(world.folder.glob(".windrow-*"))
    told = RunView(world.latest)
    outcomes = {
        str(attempt.outcome): str(attempt.number) for attempt in told.story.tasks[0].attempts
    }
    told.close()
    assert sorted(outcomes) == ["finished", "superseded"]
    assert outcomes["finished"] == first


@dataclass
class World:
    """Where one test's runs happen."""

    folder: Path
    state: Path
    on: str = "local"
    umask: int = -1
    python: str = sys.executable
    prefix: tuple[str, ...] = ()
    """What makes somebody else of whoever starts it."""
    env: dict[str, str] = field(default_factory=dict)
    tags: Callable[[], list[str]] = list
    """The tags of all jobs that the queue was ever given, as far as it knows."""
    left: Callable[[], list[str]] = list
    """The jobs that the queue has."""

    def __post_init__(self) -> None:
        own = {
            "XDG_STATE_HOME": str(self.state / "state"),
            "XDG_DATA_HOME": str(self.state / "data"),
            "XDG_CONFIG_HOME": str(self.state / "config"),
            "WINDROW_HISTORY": str(self.state / "history.sqlite"),
            "WINDROW_CACHE": os.environ.get("WINDROW_CACHE")
            or str(_caches() / "windrow"),  # compiling takes long
            MARK: secrets.token_hex(8),
        }
        self.env = {**(self.env or os.environ), **own}
        self.folder.mkdir(parents=True, exist_ok=True)

    def write(self, text: str, name: str = "workflow.yaml") -> str:
        (self.folder / name).write_text(text)
        return name

    def start(self, *words: str) -> subprocess.Popen[str]:
        """A windrow command in the background."""
        command = [*self.prefix, self.python, "-m", "windrow.cli.main", *words]
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, cwd=self.folder, env=self.env, umask=self.umask, **pipes)

    def windrow(self, *words: str, timeout_s: float = 300) -> tuple[int, str]:
        """A windrow command: its exit code, and all it said."""
        with self.start(*words) as process:
            out, err = process.communicate(timeout=timeout_s)
        assert "Traceback" not in err, err
        return process.returncode, out + err

    def run(self, *more: str) -> tuple[int, str]:
        return self.windrow("run", "workflow.yaml", "--on", self.on, *more)

    @property
    def latest(self) -> RunPaths:
        return all_runs(self.folder / ".windrow" / "runs")[-1]

    def status(self) -> dict[str, Any]:
        """What `windrow status --json` says, without a process for it."""
        with contextlib.closing(RunView(self.latest)) as told:
            found: dict[str, Any] = to_builtins(status_view(told))
            return found

    def wait_for(self, what: Callable[[], Any], patience_s: float = 200.0) -> None:
        """Wait until it holds."""
        end = time.monotonic() + patience_s
        while not what():
            assert time.monotonic() < end, "it did not happen in time"
            time.sleep(0.02)

    def events(self) -> int:
        """How many records the latest run's journal has."""
        journals = sorted(self.folder.glob(".windrow/runs/*/journal.sqlite"))
        if not journals:
            return 0
        with (
            contextlib.suppress(sqlite3.OperationalError),
            contextlib.closing(sqlite3.connect(journals[-1])) as db,
        ):
            return int(db.execute("SELECT count(*) FROM events").fetchone()[0])
        return 0  # it is being made, and may get another name meanwhile

    def kill_after(self, words: Sequence[str], records: int, delay_s: float) -> bool:
        """Kill a windrow command when it has journaled so many records, or a little later; whether
        it ended first."""
        enough = self.events() + records
        with self.start(*words) as process:
            self.wait_for(lambda: self.events() >= enough or process.poll() is not None)
            time.sleep(delay_s)
            has_ended = process.poll() is not None
            process.kill()
            _, err = process.communicate()
        assert "Traceback" not in err, err
        return has_ended

    def has_run(self, name: str) -> bool:
        return name in self.ran()

    def at_gate(self) -> list[str]:
        """The tasks that came to the gate."""
        path = self.folder / "waiting"
        return path.read_text().split() if path.exists() else []

    def waiting_tasks(self) -> list[int]:
        """The processes that stand at the gate."""
        return [pid for pid in _pids() if self._is_here(pid) and _stands_at_gate(pid)]

    def _is_here(self, pid: int) -> bool:
        try:
            return Path(f"/proc/{pid}/cwd").readlink() == self.folder
        except OSError:  # it has ended
            return False

    def open_gate(self) -> None:
        """Let them through, and whoever comes later."""
        (self.folder / "go").touch()

    def ran(self) -> list[str]:
        """The tasks that did their work, in order; a task that ran again is there again."""
        path = self.folder / "ran"
        return path.read_text().split() if path.exists() else []

    def processes(self) -> list[int]:
        """What runs here, but for the queue's own server."""
        mark = f"{MARK}={self.env[MARK]}".encode()
        return [pid for pid in _pids() if mark in _words(pid, "environ") and not _is_server(pid)]

    def check_nothing_left(self) -> None:
        """No job in the queue, no process on the machine; those that are leaving may do so."""
        self.wait_for(lambda: not self.left(), 30)
        self.wait_for(lambda: not self.processes(), 30)

    def check_nothing_twice(self) -> None:
        tags = Counter(self.tags())
        assert all(count == 1 for count in tags.values()), f"submitted twice: {tags}"
        ran = Counter(self.ran())
        assert all(count == 1 for count in ran.values()), f"ran again: {ran}"

    def check_complete(self, tasks: int = 8) -> None:
        """Every task ran, once; every job was submitted once; nothing is left."""
        self.check_nothing_left()
        self.check_nothing_twice()
        assert len(self.ran()) == tasks
        told = RunView(self.latest)
        assert told.state == "complete"
        told.close()

    def clean(self) -> None:
        """End everything that the test left behind, the queue's server included."""
        mark = f"{MARK}={self.env[MARK]}".encode()
        for pid in [pid for pid in _pids() if mark in _words(pid, "environ")]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def local_world(folder: Path) -> World:
    """A world with a local queue of four nodes."""
    world = World(folder / "here", folder / "elsewhere")
    database = Path(world.env["XDG_STATE_HOME"]) / "windrow" / "queue-4x1-easy" / "queue.sqlite"

    def ask(query: str) -> list[str]:
        if not database.exists():
            return []
        with contextlib.closing(sqlite3.connect(database)) as db:
            return [str(row[0]) for row in db.execute(query)]

    world.tags = lambda: ask("SELECT tag FROM jobs")
    world.left = lambda: ask(
        "SELECT 'queue-4x1-easy.' || id FROM jobs WHERE state IN ('waiting', 'running')"
    )
    (world.folder / "windrow.toml").write_text("[queues.local]\nnodes = 4\n")
    return world


def _caches() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def _words(pid: int, what: str) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/{what}").read_bytes().split(b"\0")
    except OSError:  # gone, or somebody else's
        return []


def _stands_at_gate(pid: int) -> bool:
    return any(b"echo $WINDROW_TASK >> waiting" in word for word in _words(pid, "cmdline"))


def _is_server(pid: int) -> bool:
    """The server of the local queue stays a while; its keepers look like it, but are there only for
    a job."""
    return b"windrow.queues.local.server" in _words(pid, "cmdline")
