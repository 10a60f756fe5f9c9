"""How light a run is: short tasks per second beside what one would use instead, and what a manager
costs.

    python bench/light.py [--quick] [--json FILE]

Fairness. All run the same command, `true`, as often, on as many cores; rounds are interleaved, so
that a busy minute hits everybody. Of Windrow two times are given: the whole command (start of
Python, cutting, a job in the local queue, journal, exit) and the job alone. HyperQueue's time
begins when its server and worker are up, so beside it belongs the job alone. `xargs` keeps no
record of anything; it is the floor.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])  # so that `bench` is this folder's name

from rich.table import Table

from bench.peer_process import HERE, PeerMissingError
from bench.progress import Progress
from bench.tables import console, ratio, seconds, table

CORES = 2
HYPERQUEUE = "hyperqueue==0.27.0"
EXPECTED_S = {
    "short tasks": (230.0, 25.0),
    "a manager that waits": (60.0, 25.0),
    "resume": (25.0, 6.0),
}

_WORKFLOW = """
name: {name}
tasks:
  - id: t
    matrix: {{ i: 1..{tasks} }}
    command: {command}
    runtime: {runtime}
"""
_SETTINGS = f"[queues.local]\nnodes = 1\ncores = {CORES}\n"


@dataclass(frozen=True, slots=True)
class Rate:
    """One way to run short tasks. `problem` says why there are no times, where there are none."""

    tool: str
    tasks: int = 0
    wall_s: float | None = None
    rounds: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Idle:
    """A manager while tasks wait: the part of a core that it takes, and its memory."""

    waiting: int
    watched_s: float
    cpu_share: float
    resident_bytes: int
    met: bool


@dataclass(frozen=True, slots=True)
class Resumed:
    """How long `windrow resume` took on a journal of this many events, of which all but a few tasks
    were done."""

    events: int
    wall_s: float
    cpu_s: float
    met: bool


def run(progress: Progress, *, quick: bool) -> tuple[list[Rate], Idle, Resumed]:
    """Measure everything, in temporary folders with a queue of their own."""
    progress.part("short tasks")
    rates = short_tasks(progress, tasks=1000 if quick else 10_000, rounds=1 if quick else 3)
    progress.part("a manager that waits")
    idle = waiting_manager(waiting=200 if quick else 1000, watched_s=8.0 if quick else 30.0)
    progress.part("resume")
    return rates, idle, resumed(events=10_000 if quick else 100_000)


def short_tasks(progress: Progress, *, tasks: int, rounds: int) -> list[Rate]:
    """Each tool in turn, round after round; medians."""
    tools: dict[str, Callable[[int], dict[str, float]]] = {
        "xargs": _xargs,
        "Windrow": _windrow,
        "HyperQueue": _hyper,
    }
    times: dict[str, list[float]] = {}
    problems: dict[str, str] = {}
    for i in range(rounds):
        for name, once in tools.items():
            progress.say(f"{name}, round {i + 1} of {rounds}")
            try:
                found = {} if name in problems else once(tasks)
            except PeerMissingError as error:
                problems[name] = str(error)
                found = {}
            for what, wall_s in found.items():
                times.setdefault(what, []).append(wall_s)
    rates = [
        Rate(what, tasks, statistics.median(walls), len(walls)) for what, walls in times.items()
    ]
    return rates + [Rate(name, problem=why) for name, why in problems.items()]


def _xargs(tasks: int) -> dict[str, float]:
    if shutil.which("xargs") is None:
        raise PeerMissingError("it is not installed")
    numbers = "\n".join(map(str, range(tasks))).encode()
    begin = time.perf_counter()
    subprocess.run(["xargs", f"-P{CORES}", "-n1", "true"], input=numbers, check=True)
    return {f"xargs -P{CORES} -n1": time.perf_counter() - begin}


def _windrow(tasks: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder))
        place.write("short", tasks, command='["true"]', runtime="1s")
        begin = time.perf_counter()
        answer = place.windrow("run", "short.yaml", "--strategy", "one-job", "--json")
        wall_s = time.perf_counter() - begin
        (job,) = json.loads(answer)["jobs"]
        place.close()
    return {
        "Windrow, the whole command": wall_s,
        "Windrow, the job alone": job["ended_at"] - job["started_at"],
    }


def _hyper(tasks: int) -> dict[str, float]:
    python = hyperqueue_python()
    found = {}
    for title, options in (("HyperQueue", ()), ("HyperQueue, no output files", ("--no-output",))):
        command = [python, str(HERE / "peer_hyperqueue.py"), str(tasks), str(CORES), *options]
        try:
            done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
        except (OSError, subprocess.SubprocessError) as error:
            raise PeerMissingError(f"it failed: {error}") from None
        found[title] = float(json.loads(done.stdout.splitlines()[-1])["wall_s"])
    return found


def hyperqueue_python(cache: Path = HERE / ".peers") -> str:
    """The interpreter of an environment that has HyperQueue; made on first use. PeerMissingError
    where that fails."""
    folder = (
        cache
        / f"{HYPERQUEUE.replace('==', '-')}-py{sys.version_info.major}.{sys.version_info.minor}"
    )
    python = folder / "bin" / "python"
    ready = folder / "ready"
    if not ready.exists():
        install = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries=1")
        try:
            venv.create(folder, clear=True, with_pip=True)
            subprocess.run(
                [python, *install, HYPERQUEUE], check=True, capture_output=True, timeout=180
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise PeerMissingError(f"it could not be installed: {error}") from None
        ready.touch()
    return str(python)


class Place:
    """A folder with a queue of one node, and a history of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "windrow.toml").write_text(_SETTINGS, encoding="utf-8")
        own = {
            name: str(folder / name.lower())
            for name in ("XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")
        }
        self.env = {**os.environ, **own, "WINDROW_HISTORY": str(folder / "history.sqlite")}

    def write(self, name: str, tasks: int, *, command: str, runtime: str) -> None:
        """Write a workflow of this many equal tasks."""
        text = _WORKFLOW.format(name=name, tasks=tasks, command=command, runtime=runtime)
        (self.folder / f"{name}.yaml").write_text(text, encoding="utf-8")

    def command(self, *arguments: str) -> list[str]:
        """How the command is called."""
        return [sys.executable, "-P", "-m", "windrow.cli.main", *arguments]

    def windrow(self, *arguments: str) -> str:
        """Run a command to its end; what it printed."""
        done = subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env=self.env,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout

    def close(self) -> None:
        """Wait until the queue's server has let go of the folder; it goes when its folder does."""
        shutil.rmtree(self.folder / "xdg_state_home", ignore_errors=True)


def waiting_manager(*, waiting: int, watched_s: float) -> Idle:
    """A manager whose jobs wait behind one that runs: CPU time over a while, children included."""
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder))
        place.write("sleepy", waiting + 1, command='[sleep, "600"]', runtime="20m")
        arguments = (
            "run",
            "sleepy.yaml",
            "--strategy",
            "individual",
            "--cap",
            str(waiting + 1),
            "--json",
        )
        with subprocess.Popen(
            place.command(*arguments), cwd=place.folder, env=place.env, stdout=subprocess.DEVNULL
        ) as manager:
            try:
                _until_submitted(place, waiting + 1)
                time.sleep(5.0)
                before_s = _cpu_s(manager.pid)
                begin = time.perf_counter()
                time.sleep(watched_s)
                share = (_cpu_s(manager.pid) - before_s) / (time.perf_counter() - begin)
                resident = _resident_bytes(manager.pid)
            finally:
                place.windrow("cancel")
                with suppress(subprocess.TimeoutExpired):
                    manager.wait(60)
        place.close()
    return Idle(waiting, watched_s, share, resident, met=share < 0.01)


def _until_submitted(place: Place, jobs: int, patience_s: float = 120.0) -> None:
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        time.sleep(2.0)
        with suppress(subprocess.CalledProcessError):
            status = json.loads(place.windrow("status", "--json"))
            if sum(job["id"] is not None for job in status["jobs"]) == jobs:
                return
    raise TimeoutError(f"{jobs} jobs were not submitted within {patience_s:.0f} s")


def _cpu_s(pid: int) -> float:
    """CPU time of a process and the children that it waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return sum(int(ticks) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def _resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def resumed(*, events: int) -> Resumed:
    """Resume a run whose journal holds this many events of tasks, the last of which was lost with
    its job."""
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder))
        place.write("long", events // 2, command='["true"]', runtime="1s")
        subprocess.run(
            [sys.executable, "-P", __file__, "--make-journal"],
            cwd=folder,
            env=place.env,
            check=True,
            timeout=300,
        )
        used = os.times()
        begin = time.perf_counter()
        place.windrow("resume", "--json")
        wall_s = time.perf_counter() - begin
        after = os.times()
        cpu_s = (
            after.children_user + after.children_system - used.children_user - used.children_system
        )
        place.close()
    return Resumed(events, wall_s, cpu_s, met=wall_s < 10.0)


def make_journal() -> None:
    """A run of `long.yaml` in this folder, as a manager would have journaled it up to the loss of
    its only job."""
    # loaded here only: all other parts are timed from outside
    from windrow.app.execute import prepare, start_run
    from windrow.app.facts import RunRequest
    from windrow.model.attempt import Attempt
    from windrow.model.cause import Cause
    from windrow.story import events as e
    from windrow.story.journal import Record, RunJournal
    from windrow.strategies import Decision, JobPlan

    prepared = prepare(RunRequest(Path("long.yaml"), strategy="one-job"))
    tasks = len(prepared.runnable.workflow)
    at = int(time.time()) - 3600
    plan = JobPlan(tuple(range(tasks)), 1, tasks // CORES, tasks)
    records = [
        Record(e.RunBegan(at)),
        Record(e.JobsPlanned(at, Decision((plan,)))),
        Record(e.JobSubmitted(at, 0, "1")),
    ]
    records.append(Record(e.JobStarted(at, 0), {"hosts": ["here"]}))
    for task in range(tasks - 1):
        begun = at + task / 500
        records.append(
            Record(e.TaskStarted(int(begun), 0, task), None, begun, Attempt(task, 1, nodes=(0,)))
        )
        usage = Attempt(task, 1, begun=begun, cpu_s=0.001)
        records.append(Record(e.TaskFinished(int(begun), task), None, begun + 0.002, usage))
    records.append(Record(e.JobKilled(at + tasks, 0, Cause.NODE_FAILED, "a node failed")))
    journal = RunJournal.open(start_run(prepared).journal, writable=True)
    journal.append(records)
    journal.close()


def tables(rates: Sequence[Rate], idle: Idle, back: Resumed) -> list[Table]:
    """What was measured, the tasks as ratios to `xargs`."""
    floor_s = next((rate.wall_s for rate in rates if rate.tool.startswith("xargs")), None)
    rows = [_row(rate, floor_s) for rate in rates]
    columns = ("tool", "tasks", "takes", "tasks per s", "of xargs's time", "note")
    costs = (
        (
            f"a manager while {idle.waiting:,} tasks wait: part of a core",
            f"{idle.cpu_share:.2%}".replace("%", " %"),
            "below 1 %",
            "met" if idle.met else "MISSED",
        ),
        (f"its memory: {idle.resident_bytes / 1e6:.0f} MB", "", "", ""),
        (
            f"resume of {back.events:,} events: {seconds(back.cpu_s)} of CPU",
            seconds(back.wall_s),
            "seconds",
            "met" if back.met else "MISSED",
        ),
    )
    return [
        table(f"Short tasks on {CORES} cores: `true`, again and again", columns, rows),
        table("What a manager costs", ("note", "measured", "target", "target met"), costs),
    ]


def _row(rate: Rate, floor_s: float | None) -> tuple[str, ...]:
    if rate.wall_s is None:
        return (rate.tool, "-", "-", "-", "-", f"left out: {rate.problem}")
    beside = "-" if floor_s is None else ratio(rate.wall_s / floor_s)
    note = f"median of {rate.rounds}" if rate.rounds > 1 else ""
    return (
        rate.tool,
        f"{rate.tasks:,}",
        seconds(rate.wall_s),
        f"{rate.tasks / rate.wall_s:,.0f}",
        beside,
        note,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="light.py", description="Times short tasks, and what a manager costs."
    )
    parser.add_argument("--quick", action="store_true", help="fewer tasks, one round")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every number there")
    parser.add_argument("--make-journal", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.make_journal:
        make_journal()
        return 0
    progress = Progress({name: s[options.quick] for name, s in EXPECTED_S.items()})
    rates, idle, back = run(progress, quick=options.quick)
    progress.finish()
    screen = console()
    for grid in tables(rates, idle, back):
        screen.print("", grid)
    if hasattr(os, "getloadavg"):
        screen.print(
            f"\nLoad of the machine at the end: {os.getloadavg()[0]:.1f}, on {os.cpu_count()} "
            "cores."
        )
    if options.json:
        found: dict[str, Any] = {
            "rates": [asdict(r) for r in rates],
            "idle": asdict(idle),
            "resume": asdict(back),
        }
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
