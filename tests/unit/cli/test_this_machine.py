"""Runs on this machine: all its cores, no time limit that nobody asked for, memory counted, nobody
in the way."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.queues.test_local import kill_server
from tests.waiting import wait_until

from windrow.agent.machine import this_machine
from windrow.app.queues import open_queue
from windrow.cli.main import main
from windrow.queues.local.queue import LocalQueue
from windrow.queues.port import JobSpec, SpecError

pytestmark = pytest.mark.usefixtures("home")

CORES = this_machine().cores


def write(*tasks: str, folder: str = ".") -> str:
    Path(folder).mkdir(exist_ok=True)
    lines = "".join(f"  - {{{task}}}\n" for task in tasks)
    (Path(folder) / "w.yaml").write_text(f"name: w\ntasks:\n{lines}")
    return "w.yaml"


def test_a_task_may_have_all_cores(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(
            [
                "run",
                write(
                    f"id: a, command: 'echo $WINDROW_CORES > n', cores: {CORES}",
                    "id: b, command: 'true'",
                ),
            ]
        )
        == 0
    )
    assert Path("n").read_text() == f"{CORES}\n"
    assert main(["run", "--again", write(f"id: a, command: 'true', cores: {CORES + 1}")]) == 2
    assert (
        f"task a needs {CORES + 1} cores; this machine has {CORES}; lower cores of the task in "
        "w.yaml" in (capsys.readouterr().err)
    )
    assert main(["run", "--again", write("id: a, command: 'true', nodes: 2")]) == 2
    assert (
        "task a needs 2 nodes; this machine has 1; lower nodes of the task"
        in capsys.readouterr().err
    )


def test_what_fits_nowhere_is_told_with_the_setting_that_forbids_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write("id: a, command: 'true', memory: 900TiB")
    assert main(["run", "w.yaml"]) == 2
    memory = this_machine().memory_bytes or 0
    said = f"task a needs 900 TiB of memory; this machine has {memory / 2**30:.1f}".removesuffix(
        ".0"
    )
    assert said in capsys.readouterr().err
    Path("windrow.toml").write_text('[queues.local]\nmemory = "1MiB"\n')
    write("id: a, command: 'true', memory: 2MiB")
    assert main(["run", "w.yaml"]) == 2
    assert (
        "task a needs 2 MiB of memory; windrow.toml allows 1 MiB; "
        "lower memory of the task in w.yaml, or raise memory in [queues.local] of windrow.toml\n"
    ) in capsys.readouterr().err
    Path("windrow.toml").write_text("[queues.mini]\nkind = 'local'\nnodes = 2\n")
    write("id: a, command: 'true', cores: 2")
    assert main(["run", "w.yaml", "--on", "mini"]) == 2
    assert (
        "a node of mini has 1; lower cores of the task in w.yaml, or raise cores in [queues.mini]"
        in (capsys.readouterr().err)
    )


def test_settings_of_a_folder_are_not_those_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, settings in (("a", "nodes = 3\n"), ("b", ""), ("c", "nodes = 5\ncores = 2\n")):
        Path(name).mkdir()
        (Path(name) / "windrow.toml").write_text(f"[queues.local]\n{settings}")
    found = {}
    for name in ("a", "b", "c", "b"):
        monkeypatch.chdir(name)
        queue = open_queue("local")
        assert isinstance(queue, LocalQueue)
        found[name] = (queue.limits().nodes, queue.limits().shape.cores, queue.folder.name)
        monkeypatch.chdir("..")
    assert found == {
        "a": (3, 1, "queue-3x1-easy"),
        "b": (1, CORES, "queue"),
        "c": (5, 2, "queue-5x2-easy"),
    }


def submitted(folder: Path) -> list[int]:
    """The walltimes of all jobs in a queue, in order; 0 where there is no limit."""
    with sqlite3.connect(folder / "queue.sqlite") as db:
        return [row[0] for row in db.execute("SELECT walltime_s FROM jobs ORDER BY id")]


def walltime_of_job(number: int, run: str = "w-1") -> float | None:
    found: float | None = json.loads(
        Path(f".windrow/runs/{run}/jobs/{number}/job.json").read_text()
    )["walltime_s"]
    return found


def test_no_walltime_unless_one_is_stated(capsys: pytest.CaptureFixture[str]) -> None:
    """A guess of a second would have become a request of a minute, and the end of every longer
    task."""
    assert main(["run", write("id: a, command: 'true'"), "--guess", "1s"]) == 0
    assert (walltime_of_job(0), submitted(Path("state/windrow/queue"))) == (None, [0])
    capsys.readouterr()
    assert main(["status"]) == 0
    assert "no limit" in capsys.readouterr().out
    Path("windrow.toml").write_text('[queues.local]\nwalltime = "2h"\n')
    assert main(["run", "--again", write("id: a, command: 'echo'"), "--guess", "1s"]) == 0
    assert (walltime_of_job(0, "w-2"), submitted(Path("state/windrow/queue"))) == (7200, [0, 7200])
    capsys.readouterr()
    assert main(["status", "--json"]) == 0
    assert [job["requested_s"] for job in json.loads(capsys.readouterr().out)["jobs"]] == [7200]


def test_a_stated_walltime_holds(tmp_path: Path) -> None:
    queue = LocalQueue(grace_s=0.2)
    ids = [
        queue.submit(JobSpec(f"t-{limit}", 1, limit, ("sleep", nap), str(tmp_path), f"{limit}.out"))
        for limit, nap in ((1, "600"), (None, "1.5"))
    ]
    wait_until(lambda: all(one.state.is_over for one in queue.status(ids).values()), 60)
    assert [queue.status(ids)[one].state.value for one in ids] == ["timed out", "ended"]
    with pytest.raises(SpecError, match="it has no walltime; this queue needs one"):
        LocalQueue(nodes=1).submit(JobSpec("none", 1, None, ("true",), str(tmp_path), "none.out"))
    kill_server(queue.folder)


def start(folder: str) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-c",
        "import sys; from windrow.cli.main import main; sys.exit(main(['run', 'w.yaml']))",
    ]
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


@pytest.mark.slow
@pytest.mark.skipif(CORES < 2, reason="a machine with one core runs one task at a time")
def test_two_runs_at_once_share_the_cores(tmp_path: Path) -> None:
    """A fills the machine. When its first tasks end, B gets cores though A wants them all: their
    tasks meet."""
    wait = "while ! test -e {}; do sleep 0.02; done"
    first = [
        f"id: f{n}, command: 'touch {tmp_path}/f{n}; {wait.format(tmp_path / 'go')}'"
        for n in range(CORES)
    ]
    after = "after: [" + ", ".join(f"f{n}" for n in range(CORES)) + "]"
    meet = f"touch {tmp_path}/a{{n}}; {wait.format(tmp_path / 'b0')}".replace("{n}", "0")
    second = [f"id: s{n}, command: '{meet}', {after}" for n in range(2 * CORES)]
    write(*first, *second, folder="a")
    write(f"id: b, command: 'touch {tmp_path}/b0; {wait.format(tmp_path / 'a0')}'", folder="b")
    one = start("a")
    wait_until(lambda: all((tmp_path / f"f{n}").exists() for n in range(CORES)), 120)
    two = start("b")
    book = tmp_path / "state/windrow/queue/shares"
    wait_until(lambda: book.read_bytes().partition(b"\n")[0].count(b"], [1, 0], ") == 1, 120)
    (tmp_path / "go").touch()
    for run in (one, two):
        assert run.wait(120) == 0, run.communicate()[0]


def test_stated_memory_is_not_handed_out_twice(tmp_path: Path) -> None:
    memory = (this_machine().memory_bytes or 0) * 3 // 5
    log = tmp_path / "log"
    tasks = [
        f"id: m{n}, command: 'echo start >> {log}; sleep 0.3; echo end >> {log}', memory: "
        f"{memory // 1000}kB"
        for n in "12"
    ]
    assert main(["run", write(*tasks)]) == 0
    assert log.read_text().split() == ["start", "end", "start", "end"]


def kept(folder: Path) -> Iterator[tuple[int, bytes]]:
    """Mode and content of the files there, of which some may go meanwhile."""
    for file in filter(Path.is_file, folder.rglob("*")):
        with contextlib.suppress(FileNotFoundError):
            yield file.stat().st_mode, file.read_bytes()


def test_no_secrets_stay_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "xyzzy-0815")
    assert main(["run", write("id: a, command: 'echo $TOKEN > seen'")]) == 0
    assert Path("seen").read_text() == "xyzzy-0815\n"
    assert list(Path("state").rglob("queue.sqlite"))
    # The server tidies up behind the run: first an exit code that all may read, then the
    # environment.
    wait_until(
        lambda: (
            not any(
                mode & 0o077 or b"xyzzy-0815" in content for mode, content in kept(Path("state"))
            )
        )
    )


def test_a_forecast_says_that_jobs_start_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["forecast"]) == 0
    assert "Jobs start at once here, so there is nothing to forecast." in capsys.readouterr().out
    assert main(["forecast", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "schema": 1,
        "queue": "local",
        "starts_at_once": True,
        "running_jobs": 0,
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "strategy", ["individual", "level-by-level", "one-job", "glume", "foresight"]
)
def test_every_strategy_works_here(strategy: str) -> None:
    tasks = [
        "id: a, command: 'true'",
        *(f"id: b{n}, command: 'true', after: [a]" for n in range(3)),
    ]
    assert main(["run", write(*tasks), "--strategy", strategy]) == 0


@pytest.mark.slow
def test_one_node_in_the_settings_needs_no_look_ahead() -> None:
    """A look ahead would load everything that simulates, and compile it."""
    Path("windrow.toml").write_text("[queues.local]\nnodes = 1\ncores = 2\n")
    tasks = [f"id: a{n}, command: 'true'" for n in range(3)]
    write(*tasks, "id: b, command: 'true', after: a0")
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-P", "-m", "windrow.cli.main", "run", "w.yaml", "--json"],  # noqa: E501
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert len(json.loads(done.stdout)["jobs"]) == 1
    assert "windrow.foresight" not in done.stderr
    assert " numba" not in done.stderr


@pytest.mark.slow
def test_a_run_loads_few_modules(tmp_path: Path) -> None:
    """On this machine nobody waits: no simulator, no look ahead, no format but the file's, one
    strategy."""
    program = (
        "import sys\n"
        "from windrow.cli.main import main\n"
        "assert main(['run', sys.argv[1]]) == 0\n"
        "print(*(name for name in sys.modules if name.partition('.')[0] == 'windrow'))\n"
    )
    command = [sys.executable, "-c", program, write("id: a, command: 'true'")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=200)
    loaded = done.stdout.splitlines()[-1].split()
    assert not [
        name
        for name in loaded
        if name.startswith(("windrow.sim", "windrow.foresight", "windrow.trials"))
    ]
    as_root = os.geteuid() == 0  # is told what it writes outside of its folder
    assert len(loaded) <= 124 + as_root, sorted(loaded)
